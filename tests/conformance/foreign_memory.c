/* Copies and fills of memory that other code has allocated with the vendor's functions. rill does not know such memory,
 * and the driver determines its kind (C5.3). On a CPU only pageable memory is unknown to rill, which other tests cover.
 */
#include "pitched.h"
#include "support/native.h"

enum { FOREIGN_DEVICE, FOREIGN_PINNED, FOREIGN_KINDS };

static unsigned char *foreign(int kind) {
  return native_memory_alloc(dut.device, PITCHED_BYTES, kind == FOREIGN_PINNED);
}

static void free_foreign(int kind, void *p) { native_memory_free(dut.device, p, kind == FOREIGN_PINNED); }

static rill_status copy_line(rill_stream stream, unsigned char *dst, const unsigned char *src, const struct box *box) {
  return rill_copy_async(stream, dst + box->dst_offset, src + box->src_offset, box->width);
}

static rill_status copy_rows(rill_stream stream, unsigned char *dst, const unsigned char *src, const struct box *box) {
  return rill_copy_2d_async(stream, dst + box->dst_offset, box->dst_pitch, src + box->src_offset, box->src_pitch,
                            box->width, box->height);
}

static const struct {
  copy_box copy;
  struct box box;
} copies[] = { { copy_line, { 3, 0, 0, 5, 0, 0, 4097, 1, 1 } }, { copy_rows, { 3, 170, 0, 1, 190, 0, 133, 101, 1 } } };

/* rill does not know the memory */
static void is_unknown_to_rill(void) {
  if (!native_available()) return;
  rill_memory_info info = RILL_MEMORY_INFO_INIT;
  for (int kind = 0; kind < FOREIGN_KINDS; kind++) {
    unsigned char *p = foreign(kind);
    assert_fails(rill_memory_get_info(p, &info), RILL_ERROR_NOT_FOUND);
    assert_fails(rill_free(p), RILL_ERROR_NOT_FOUND);
    free_foreign(kind, p);
  }
}

/* C5.3: copies from and to every kind of rill's memory. */
static void copies_in_every_direction(void) {
  if (!native_available()) return;
  rill_stream stream = new_stream("stream");
  for (int kind = 0; kind < FOREIGN_KINDS; kind++) {
    for (int other = 0; other < MEMORY_KINDS; other++) {
      if (!has_kind(other)) continue;
      unsigned char *theirs = foreign(kind), *ours = allocate_kind(other, PITCHED_BYTES);
      for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) {
        fill_buffers(stream, theirs, ours);
        assert_ok(copies[i].copy(stream, theirs, ours, &copies[i].box));
        assert_completes(stream);
        check_buffer(stream, theirs, &copies[i].box);
        fill_buffers(stream, ours, theirs);
        assert_ok(copies[i].copy(stream, ours, theirs, &copies[i].box));
        assert_completes(stream);
        check_buffer(stream, ours, &copies[i].box);
      }
      free_kind(other, ours);
      free_foreign(kind, theirs);
    }
  }
}

/* C3.8: on a held stream the driver also determines the kind of such memory. It may be device memory, which the host
 * must not access, or pinned memory, which is read when the copy runs. */
static void copies_on_a_held_stream(void) {
  if (!native_available()) return;
  rill_stream other = new_stream("other");
  for (int kind = 0; kind < FOREIGN_KINDS; kind++) {
    for (int with = 0; with < MEMORY_KINDS; with++) {
      if (!has_kind(with)) continue;
      unsigned char *theirs = foreign(kind), *ours = allocate_kind(with, PITCHED_BYTES);
      for (size_t i = 0; i < 2 * (sizeof copies / sizeof *copies); i++) {
        unsigned char *dst = i % 2 == 0 ? theirs : ours, *src = i % 2 == 0 ? ours : theirs;
        rill_stream held = new_stream("held");
        rill_event event = new_event("awaited");
        fill_buffers(other, dst, src);
        assert_ok(rill_stream_wait_event(held, event, 0));
        assert_ok(copies[i / 2].copy(held, dst, src, &copies[i / 2].box));
        assert_false(is_complete(held));
        assert_ok(rill_stream_record_event(other, event, 0));
        assert_completes(held);
        check_buffer(other, dst, &copies[i / 2].box);
      }
      free_kind(with, ours);
      free_foreign(kind, theirs);
    }
  }
}

/* C6 of the edge cases: memory pinned by other code is treated as pinned, so the source is read when the copy runs,
 * also on a held stream. */
static void a_pinned_source_is_read_in_stream_order(void) {
  if (!native_available()) return;
  uint32_t *theirs = (uint32_t *)(void *)foreign(FOREIGN_PINNED);
  for (int held = 0; held < 2; held++) {
    rill_stream stream = new_stream("stream"), other = new_stream("other");
    rill_event event = new_event("awaited");
    struct gate *gate = held ? NULL : gate_close(stream);
    if (held) assert_ok(rill_stream_wait_event(stream, event, 0));
    __atomic_store_n(theirs, 1, __ATOMIC_SEQ_CST);
    assert_ok(rill_copy_async(stream, dut.memory, theirs, 4));
    read_cell(stream, 0);
    __atomic_store_n(theirs, 2, __ATOMIC_SEQ_CST);
    if (held) assert_ok(rill_stream_record_event(other, event, 0));
    else gate_open(gate);
    assert_completes(stream);
    assert_int_equal(dut.host[0], 2);
  }
  free_foreign(FOREIGN_PINNED, theirs);
}

/* C5.3: fills are passed to the driver unchanged. */
static void fills(void) {
  if (!native_available()) return;
  rill_stream stream = new_stream("stream");
  unsigned char pattern[16], expected[512], seen[512];
  for (unsigned i = 0; i < 16; i++) pattern[i] = (unsigned char)(i * 9 + 1);
  for (int kind = 0; kind < FOREIGN_KINDS; kind++) {
    unsigned char *theirs = foreign(kind);
    for (size_t size = 1; size <= 16; size *= 2) {
      const uint8_t guard = PITCHED_GUARD;
      memset(expected, PITCHED_GUARD, sizeof expected);
      for (size_t i = 0; i < 64; i++) expected[i] = pattern[i % size];
      for (size_t row = 0; row < 5; row++) {
        for (size_t i = 0; i < 48; i++) expected[96 + row * 80 + i] = pattern[i % size];
      }
      assert_ok(rill_fill_async(stream, theirs, &guard, 1, sizeof expected));
      assert_ok(rill_fill_async(stream, theirs, pattern, size, 64 / size));
      assert_ok(rill_fill_2d_async(stream, theirs + 96, 80, pattern, size, 48 / size, 5));
      assert_ok(rill_copy_async(stream, seen, theirs, sizeof seen));
      assert_completes(stream);
      assert_memory_equal(seen, expected, sizeof seen);
    }
    free_foreign(kind, theirs);
  }
}

/* Large fills leave the bytes around them unchanged, and the call does not wait for the stream in either kind of
 * memory. */
static void large_fills_do_not_wait(void) {
  if (!native_available()) return;
  static unsigned char expected[PITCHED_BYTES], seen[PITCHED_BYTES];
  enum { FROM = 48, PATTERNS = 2222, PITCH = 6000, WIDTH = 300, HEIGHT = 6 };
  rill_stream stream = new_stream("stream");
  unsigned char pattern[16];
  for (unsigned i = 0; i < 16; i++) pattern[i] = (unsigned char)(i * 9 + 1);
  for (int kind = 0; kind < FOREIGN_KINDS; kind++) {
    unsigned char *theirs = foreign(kind);
    for (int rows = 0; rows < 2; rows++) {
      const uint8_t guard = PITCHED_GUARD;
      memset(expected, PITCHED_GUARD, sizeof expected);
      for (size_t row = 0; row < (rows ? HEIGHT : 1); row++) {
        for (size_t i = 0; i < 16 * (rows ? WIDTH : PATTERNS); i++) expected[FROM + row * PITCH + i] = pattern[i % 16];
      }
      assert_ok(rill_fill_async(stream, theirs, &guard, 1, PITCHED_BYTES));
      assert_completes(stream);
      struct gate *gate = gate_close_for(stream, (uint64_t)10000 * MILLISECOND);
      if (rows) assert_ok(rill_fill_2d_async(stream, theirs + FROM, PITCH, pattern, 16, WIDTH, HEIGHT));
      else assert_ok(rill_fill_async(stream, theirs + FROM, pattern, 16, PATTERNS));
      assert_false(is_complete(stream));
      gate_open(gate);
      assert_ok(rill_copy_async(stream, seen, theirs, PITCHED_BYTES));
      assert_completes(stream);
      assert_memory_equal(seen, expected, PITCHED_BYTES);
    }
    free_foreign(kind, theirs);
  }
}

/* C5.3, C1.1: the driver refuses an access past the end of the memory, and no memory changes. */
static void fills_past_the_end_do_nothing(void) {
  if (!native_available()) return;
  static unsigned char seen[PITCHED_BYTES];
  rill_stream stream = new_stream("stream");
  const uint8_t guard = PITCHED_GUARD;
  unsigned char pattern[16], *theirs = foreign(FOREIGN_DEVICE);
  for (unsigned i = 0; i < 16; i++) pattern[i] = (unsigned char)(i * 9 + 1);
  assert_ok(rill_fill_async(stream, theirs, &guard, 1, PITCHED_BYTES));
  assert_fails(rill_fill_async(stream, theirs, pattern, 16, (size_t)1 << 36), RILL_ERROR_BACKEND);
  assert_ok(rill_copy_async(stream, seen, theirs, PITCHED_BYTES));
  assert_completes(stream);
  for (size_t i = 0; i < PITCHED_BYTES; i++) assert_int_equal(seen[i], PITCHED_GUARD);
  free_foreign(FOREIGN_DEVICE, theirs);
}

TESTS_ON_EACH_DEVICE("foreign memory", TEST(is_unknown_to_rill), TEST(copies_in_every_direction),
                     TEST(copies_on_a_held_stream), TEST(a_pinned_source_is_read_in_stream_order), TEST(fills),
                     TEST(large_fills_do_not_wait), TEST(fills_past_the_end_do_nothing))
