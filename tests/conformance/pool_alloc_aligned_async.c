/* rill_pool_alloc_aligned_async */
#include "support/testing.h"

static rill_pool sample;

static rill_status call_with_pool(uint64_t id) {
  void *out = &out;
  const rill_status status = rill_pool_alloc_aligned_async((rill_pool){ id }, new_stream("stream"), 16, 64, &out);
  assert_null(out);
  return status;
}

static rill_status call_with_stream(uint64_t id) {
  void *out = &out;
  const rill_status status = rill_pool_alloc_aligned_async(sample, (rill_stream){ id }, 16, 64, &out);
  assert_null(out);
  return status;
}

static void refuses_bad_pool_handles(void) { refuses_bad_pools("rill_pool_alloc_aligned_async", call_with_pool); }

static void refuses_bad_stream_handles(void) {
  assert_ok(rill_pool_default(dut.device, &sample));
  refuses_bad_streams("rill_pool_alloc_aligned_async", call_with_stream);
}

/* M3, M4 */
static void refuses_invalid_alignments(void) {
  const size_t bad[] = { 0, 3, 768, SIZE_MAX };
  rill_stream stream = new_stream("stream");
  assert_ok(rill_pool_default(dut.device, &sample));
  assert_fails(rill_pool_alloc_aligned_async(sample, stream, 16, 16, NULL), RILL_ERROR_INVALID_ARGUMENT);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    void *out = &out;
    assert_fails(rill_pool_alloc_aligned_async(sample, stream, 16, bad[i], &out), RILL_ERROR_INVALID_ARGUMENT);
    assert_null(out);
  }
}

/* M1, M2 */
static void serves_the_smallest_and_largest_sizes(void) {
  void *out = &out;
  rill_stream stream = new_stream("stream");
  assert_ok(rill_pool_default(dut.device, &sample));
  assert_ok(rill_pool_alloc_aligned_async(sample, stream, 0, 4096, &out));
  assert_null(out);
  assert_fails(rill_pool_alloc_aligned_async(sample, stream, SIZE_MAX, 4096, &out), RILL_ERROR_OUT_OF_MEMORY);
  assert_fails(rill_pool_alloc_aligned_async(sample, stream, 1, SIZE_MAX / 2 + 1, &out), RILL_ERROR_OUT_OF_MEMORY);
  assert_null(out);
}

struct piece {
  unsigned char *memory;
  size_t size;
};

static unsigned random_number = 99;

static unsigned pick(unsigned below) {
  random_number = random_number * 1664525 + 1013904223;
  return (random_number >> 8) % below;
}

static void make(rill_pool pool, rill_stream stream, struct piece *piece, unsigned char value) {
  const size_t alignment = (size_t)1 << pick(22);
  rill_memory_info info = RILL_MEMORY_INFO_INIT;
  piece->size = 1 + pick(1u << (2 + pick(18)));
  assert_ok(rill_pool_alloc_aligned_async(pool, stream, piece->size, alignment, (void **)&piece->memory));
  assert_int_equal((uintptr_t)piece->memory % alignment, 0);
  assert_ok(rill_memory_get_info(piece->memory + piece->size - 1, &info));
  assert_ptr_equal(info.base, piece->memory);
  assert_int_equal(info.size, piece->size);
  assert_ok(rill_fill_async(stream, piece->memory, &value, 1, piece->size));
}

/* Checks that the first and the last byte are unchanged, and frees the piece. */
static void end(rill_stream stream, struct piece *piece, unsigned char value) {
  unsigned char *seen = (unsigned char *)dut.host;
  assert_ok(rill_copy_async(stream, seen, piece->memory, 1));
  assert_ok(rill_copy_async(stream, seen + 1, piece->memory + piece->size - 1, 1));
  assert_completes(stream);
  assert_true(seen[0] == value && seen[1] == value);
  if (piece->size > 1) {
    assert_fails(rill_free_async(stream, piece->memory + 1), RILL_ERROR_INVALID_ARGUMENT);
  }
  if (pick(8) == 0) {
    assert_ok(rill_free(piece->memory));
  } else {
    assert_ok(rill_free_async(stream, piece->memory));
  }
  assert_fails(rill_free_async(stream, piece->memory), RILL_ERROR_NOT_FOUND);
  piece->memory = NULL;
}

/* C5.2, M4, M6, M8, M15: memory of all kinds, among allocations of other alignments; no memory is lost. */
static void honours_every_alignment(void) {
  needs_plain_memory();
  enum { PLACES = 32 };
  for (uint32_t kind = RILL_MEMORY_DEVICE; kind <= RILL_MEMORY_MANAGED; kind++) {
    struct piece pieces[PLACES] = { { NULL, 0 } };
    rill_pool pool;
    rill_stream stream = new_stream("stream");
    if (kind == RILL_MEMORY_MANAGED && !rill_device_supports(dut.device, RILL_FEATURE_MANAGED, NULL)) continue;
    assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.kind = kind), &pool));
    for (unsigned i = 0; i < scaled(600); i++) {
      const unsigned place = pick(PLACES);
      if (pieces[place].memory == NULL) {
        make(pool, stream, &pieces[place], (unsigned char)place);
      } else {
        end(stream, &pieces[place], (unsigned char)place);
      }
    }
    for (unsigned i = 0; i < PLACES; i++) {
      if (pieces[i].memory != NULL) end(stream, &pieces[i], (unsigned char)i);
    }
    rill_pool_info info = RILL_POOL_INFO_INIT;
    assert_ok(rill_pool_trim(pool, 0));
    assert_ok(rill_pool_get_info(pool, &info));
    assert_true(info.used == 0 && info.reserved == 0);
    assert_ok(rill_pool_release(pool));
  }
}

/* M11: memory taken over from another stream is also aligned, and the whole block is counted. */
static void aligns_memory_under_a_limit(void) {
  needs_plain_memory();
  enum { BYTES = 4 << 20 };
  rill_pool pool;
  rill_stream first = new_stream("first"), second = new_stream("second");
  char *p, *q;
  assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.max_size = BYTES), &pool));
  assert_ok(rill_pool_alloc_async(pool, first, BYTES, (void **)&p));
  struct gate *gate = gate_close(first);
  assert_ok(rill_free_async(second, p));
  gate_open(gate);
  gate = gate_close(second);
  assert_ok(rill_pool_alloc_aligned_async(pool, first, 100000, 1 << 20, (void **)&q));
  assert_true((uintptr_t)q % (1 << 20) == 0 && q >= p && q + 100000 <= p + BYTES);
  gate_open(gate);
  assert_ok(rill_free_async(first, q));
  assert_ok(rill_pool_release(pool));
}

TESTS_ON_EACH_DEVICE("rill_pool_alloc_aligned_async", TEST(refuses_bad_pool_handles), TEST(refuses_bad_stream_handles),
                     TEST(refuses_invalid_alignments), TEST(serves_the_smallest_and_largest_sizes),
                     TEST(honours_every_alignment), TEST(aligns_memory_under_a_limit))
