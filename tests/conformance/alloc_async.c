/* rill_alloc_async */
#include "support/testing.h"

#include <stdio.h>

static rill_status call_with_stream(uint64_t id) {
  void *out = &out;
  const rill_status status = rill_alloc_async((rill_stream){ id }, 16, &out);
  assert_null(out);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_streams("rill_alloc_async", call_with_stream); }

/* M3 */
static void refuses_null_out(void) {
  assert_fails(rill_alloc_async(new_stream("stream"), 16, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* M1 */
static void returns_null_for_size_zero(void) {
  void *out = &out;
  assert_ok(rill_alloc_async(new_stream("stream"), 0, &out));
  assert_null(out);
}

/* M2, R4: the text contains the requested, free and total bytes and the pool's numbers, and the device stays usable. */
static void too_large_sizes_are_out_of_memory(void) {
  rill_stream stream = new_stream("stream");
  uint64_t free_bytes, total_bytes;
  assert_ok(rill_device_get_memory(dut.device, &free_bytes, &total_bytes));
  const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2, (size_t)total_bytes + 1 };
  char asked[32], total[32];
  (void)snprintf(total, sizeof total, "%llu", (unsigned long long)total_bytes);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    void *out = &out;
    assert_fails(rill_alloc_async(stream, sizes[i], &out), RILL_ERROR_OUT_OF_MEMORY);
    assert_null(out);
    (void)snprintf(asked, sizeof asked, "%zu", sizes[i]);
    assert_says(asked);
    assert_says(total);
    assert_says("reserves");
    assert_ok(rill_alloc_async(stream, 4096, &out));
    assert_ok(rill_free_async(stream, out));
  }
}

/* C5.2, M4, M11: allocations of all sizes are aligned, do not overlap, and are usable at once. */
static void allocations_do_not_overlap(void) {
  const size_t sizes[] = { 1, 2, 3, 100, 511, 512, 513, 4096, 65536, 262144, 262145, 1000003, 3 << 20 };
  enum { COUNT = sizeof sizes / sizeof *sizes };
  unsigned char *pointers[2 * COUNT];
  rill_stream stream = new_stream("stream");
  for (size_t i = 0; i < 2 * COUNT; i++) {
    const unsigned char value = (unsigned char)i;
    assert_ok(rill_alloc_async(stream, sizes[i / 2], (void **)&pointers[i]));
    assert_int_equal((uintptr_t)pointers[i] % 256, 0);
    assert_ok(rill_fill_async(stream, pointers[i], &value, 1, sizes[i / 2]));
  }
  for (size_t i = 0; i < 2 * COUNT; i++) {
    for (size_t j = 0; j < i; j++) {
      assert_true(pointers[i] + sizes[i / 2] <= pointers[j] || pointers[j] + sizes[j / 2] <= pointers[i]);
    }
    assert_ok(rill_copy_async(stream, (char *)dut.host + i, pointers[i] + sizes[i / 2] - 1, 1));
    assert_ok(rill_free_async(stream, pointers[i]));
  }
  assert_completes(stream);
  for (size_t i = 0; i < 2 * COUNT; i++) assert_int_equal(((unsigned char *)dut.host)[i], i);
}

/* M11: the same stream gets the memory back at once, although its work has not finished. */
static void the_same_stream_reuses_it_at_once(void) {
  needs_plain_memory();
  rill_stream stream = new_stream("stream");
  void *first, *second;
  assert_ok(rill_alloc_async(stream, 1 << 20, &first));
  struct gate *gate = gate_close(stream);
  assert_ok(rill_free_async(stream, first));
  assert_ok(rill_alloc_async(stream, 1 << 20, &second));
  assert_ptr_equal(first, second);
  gate_open(gate);
  assert_ok(rill_free_async(stream, second));
}

/* M11: another stream does not get the memory until the work before the free has finished. */
static void another_stream_gets_other_memory(void) {
  rill_stream stream = new_stream("stream"), other = new_stream("other");
  void *first, *second;
  assert_ok(rill_alloc_async(stream, 1 << 20, &first));
  struct gate *gate = gate_close(stream);
  assert_ok(rill_free_async(stream, first));
  assert_ok(rill_alloc_async(other, 1 << 20, &second));
  assert_ptr_not_equal(first, second);
  gate_open(gate);
  assert_ok(rill_free_async(other, second));
}

/* C5.3, C13: copies past the end of an allocation, and into free memory, are refused. */
static void ranges_are_checked(void) {
  rill_stream stream = new_stream("stream");
  unsigned char *p, *q;
  assert_ok(rill_alloc_async(stream, 1000, (void **)&p));
  assert_ok(rill_alloc_async(stream, 700000, (void **)&q));
  assert_ok(rill_copy_async(stream, p, dut.host, 100));
  assert_fails(rill_copy_async(stream, p, q, 1001), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_copy_async(stream, p + 999, q, 2), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_copy_async(stream, p, q + 699999, 2), RILL_ERROR_OUT_OF_RANGE);
  assert_ok(rill_copy_async(stream, p + 999, q + 699999, 1));
  assert_ok(rill_free_async(stream, p));
  assert_fails(rill_copy_async(stream, q, p, 1), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_free_async(stream, q));
}

static void record(void *user, rill_status status) {
  if (status == RILL_OK) (void)__atomic_add_fetch((unsigned *)user, 1, __ATOMIC_SEQ_CST);
}

/* C3.8: a held stream gets memory at once, and uses it in order once it is released. */
static void held_streams_allocate(void) {
  rill_stream held = new_stream("held"), other = new_stream("other");
  rill_event event = new_event("later");
  uint32_t *p, *q, *third;
  unsigned called = 0;
  const uint32_t seven = 7, eight = 8;
  assert_ok(rill_stream_wait_event(held, event, 0));
  assert_ok(rill_alloc_async(held, 4096, (void **)&p));
  assert_ok(rill_fill_async(held, p, &seven, 4, 1));
  assert_ok(rill_copy_async(held, dut.host, p, 4));
  assert_ok(rill_free_async(held, p));
  assert_ok(rill_alloc_async(held, 4096, (void **)&q));
  assert_ptr_equal(p, q);
  assert_ok(rill_fill_async(held, q, &eight, 4, 1));
  assert_ok(rill_copy_async(held, dut.host + 1, q, 4));
  assert_ok(rill_free_async(held, q));
  assert_ok(rill_alloc_async(other, 4096, (void **)&third));
  assert_ptr_not_equal(third, q);
  assert_ok(rill_free_async(other, third));
  assert_ok(rill_stream_host_call(held, record, &called));
  assert_ok(rill_stream_record_event(other, event, 0));
  assert_completes(held);
  assert_int_equal(dut.host[0], 7);
  assert_int_equal(dut.host[1], 8);
  assert_int_equal(__atomic_load_n(&called, __ATOMIC_SEQ_CST), 1);
}

/* M21 */
static void many_are_allocated_and_freed(void) {
  rill_stream stream = new_stream("stream");
  rill_pool pool;
  assert_ok(rill_pool_default(dut.device, &pool));
  void *p;
  for (unsigned i = 0; i < scaled(1000); i++) {
    assert_ok(rill_alloc_async(stream, 1000 + i * 100, &p));
    assert_ok(rill_free_async(stream, p));
  }
  rill_pool_info info = RILL_POOL_INFO_INIT;
  assert_ok(rill_pool_get_info(pool, &info));
  assert_int_equal(info.used, 0);
}

static const char *allocates_and_frees(unsigned index, void *shared) {
  (void)shared;
  rill_stream stream;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  for (unsigned i = 0; i < 50; i++) {
    void *pointers[4];
    for (unsigned j = 0; j < 4; j++) REQUIRE_OK(rill_alloc_async(stream, 64u << (index + j), &pointers[j]));
    for (unsigned j = 0; j < 4; j++) REQUIRE_OK(rill_free_async(stream, pointers[j]));
  }
  REQUIRE_OK(rill_stream_release(stream));
  return NULL;
}

/* M22 */
static void serves_many_threads(void) { run_threads(8, allocates_and_frees, NULL); }

TESTS_ON_EACH_DEVICE("rill_alloc_async", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(returns_null_for_size_zero), TEST(too_large_sizes_are_out_of_memory),
                     TEST(allocations_do_not_overlap), TEST(the_same_stream_reuses_it_at_once),
                     TEST(another_stream_gets_other_memory), TEST(ranges_are_checked), TEST(held_streams_allocate),
                     TEST(many_are_allocated_and_freed), TEST(serves_many_threads))
