/* rill_fill_2d_async */
#include "pitched.h"

static const size_t sizes[] = { 1, 2, 4, 8, 16 };
enum { SIZES = sizeof sizes / sizeof *sizes };

/* Makes a pattern whose first `size` bytes all differ. */
static void make_pattern(unsigned char pattern[16]) {
  for (unsigned i = 0; i < 16; i++) pattern[i] = (unsigned char)(0x11 * i + 3);
}

static rill_status call_with_stream(uint64_t id) {
  const uint32_t zero = 0;
  return rill_fill_2d_async((rill_stream){ id }, dut.memory, 16, &zero, sizeof zero, 2, 3);
}

static void refuses_bad_handles(void) { refuses_bad_streams("rill_fill_2d_async", call_with_stream); }

static void refuses_null(void) {
  rill_stream stream = new_stream("stream");
  const uint32_t zero = 0;
  assert_fails(rill_fill_2d_async(stream, NULL, 16, &zero, sizeof zero, 2, 3), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("dst");
  assert_fails(rill_fill_2d_async(stream, dut.memory, 16, NULL, sizeof zero, 2, 3), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("pattern");
}

/* C5.3; C10 of the edge cases */
static void refuses_invalid_pattern_sizes(void) {
  rill_stream stream = new_stream("stream");
  const unsigned char pattern[64] = { 0 };
  const size_t bad[] = { 0, 3, 5, 6, 7, 9, 12, 15, 17, 32, 64, SIZE_MAX };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_fails(rill_fill_2d_async(stream, dut.memory, 64, pattern, bad[i], 1, 2), RILL_ERROR_INVALID_ARGUMENT);
  }
}

/* Every row must be aligned, so the pitch must be aligned as well. */
static void refuses_rows_that_are_not_aligned(void) {
  rill_stream stream = new_stream("stream");
  const unsigned char pattern[16] = { 0 };
  for (size_t i = 1; i < SIZES; i++) {
    void *dst = (unsigned char *)dut.memory + sizes[i] / 2;
    assert_fails(rill_fill_2d_async(stream, dst, 32, pattern, sizes[i], 1, 2), RILL_ERROR_INVALID_ARGUMENT);
    assert_fails(rill_fill_2d_async(stream, dut.memory, 32 + sizes[i] / 2, pattern, sizes[i], 1, 2),
                 RILL_ERROR_INVALID_ARGUMENT);
    assert_says("multiple");
  }
}

/* C5.3; C2, C8 of the edge cases */
static void does_nothing_for_zero_patterns(void) {
  rill_stream stream = new_stream("stream");
  const uint32_t pattern = 9;
  assert_ok(rill_fill_2d_async(stream, dut.memory, 16, &pattern, sizeof pattern, 0, 3));
  assert_ok(rill_fill_2d_async(stream, dut.memory, 16, &pattern, sizeof pattern, 3, 0));
  assert_ok(rill_fill_2d_async(stream, NULL, 0, NULL, sizeof pattern, 0, SIZE_MAX));
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 0);
}

/* C8 of the edge cases, also for a single row. The text contains the numbers. */
static void refuses_pitches_below_a_row(void) {
  rill_stream stream = new_stream("stream");
  const uint32_t pattern = 9;
  for (size_t height = 1; height < 3; height++) {
    assert_fails(rill_fill_2d_async(stream, dut.memory, 16, &pattern, 4, 5, height), RILL_ERROR_INVALID_ARGUMENT);
    assert_says("20 bytes, exceeds pitch 16");
  }
}

/* C5.3; C13 of the edge cases: the last byte of the last row counts; the padding after it does not. */
static void refuses_ranges_past_the_end(void) {
  rill_stream stream = new_stream("stream");
  const unsigned char pattern[16] = { 0 };
  unsigned char *there = (unsigned char *)dut.memory; /* 256 bytes */
  assert_ok(rill_fill_2d_async(stream, there + 6, 50, pattern, 1, 50, 5));
  assert_ok(rill_fill_2d_async(stream, there + 16, 60, pattern, 4, 15, 4));
  assert_ok(rill_fill_2d_async(stream, there, 240, pattern, 16, 1, 2));
  assert_fails(rill_fill_2d_async(stream, there + 7, 50, pattern, 1, 50, 5), RILL_ERROR_OUT_OF_RANGE);
  assert_says("250");
  assert_says("256");
  assert_fails(rill_fill_2d_async(stream, there + 20, 60, pattern, 4, 15, 4), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_fill_2d_async(stream, there, 256, pattern, 16, 1, 2), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_fill_2d_async(stream, dut.host, 256, pattern, 4, 1, 2), RILL_ERROR_OUT_OF_RANGE);
  assert_completes(stream);
}

/* C1.6; C9, C22 of the edge cases: products and sums beyond 32 bits and beyond 64. */
static void refuses_sizes_that_overflow(void) {
  rill_stream stream = new_stream("stream");
  const unsigned char pattern[16] = { 0 };
  const size_t beyond_32_bits = (size_t)1 << 32;
  const struct {
    size_t pitch, size, width, height;
  } shapes[] = {
    { SIZE_MAX, 1, 1, 2 },
    { SIZE_MAX, 1, SIZE_MAX, 1 },
    { SIZE_MAX, 1, SIZE_MAX, SIZE_MAX },
    { SIZE_MAX - 15, 16, SIZE_MAX / 16 + 1, 1 }, /* 0, if truncated to the width of size_t */
    { 16, 8, SIZE_MAX / 8 + 1, 1 },
    { SIZE_MAX / 2 + 1, 4, 1, 3 },
    { 4, 4, 1, SIZE_MAX },
    { 16, 4, 1, SIZE_MAX / 16 + 2 },
    { beyond_32_bits, 4, 1, 2 },
    { 8, 4, 1, beyond_32_bits / 8 + 1 },
    { beyond_32_bits + 4, 4, beyond_32_bits / 4 + 1, 1 },
    { beyond_32_bits / 2, 4, 1, 3 },
  };
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    assert_fails(rill_fill_2d_async(stream, dut.memory, shapes[i].pitch, pattern, shapes[i].size, shapes[i].width,
                                    shapes[i].height),
                 RILL_ERROR_OUT_OF_RANGE);
  }
  assert_completes(stream);
}

struct region {
  size_t offset, gap, width, height; /* gap: bytes between rows; width: patterns per row; height: rows */
};

static const struct region regions[] = {
  { 16, 16, 1, 7 },  { 0, 16, 3, 5 },   { 32, 48, 5, 1 },    { 16, 0, 7, 9 },    { 0, 160, 1, 200 },
  { 48, 16, 2, 99 }, { 16, 32, 4, 64 }, { 0, 4096, 100, 4 }, { 16, 16, 200, 7 }, { 0, 16, 1, 2 },
};
enum { REGIONS = sizeof regions / sizeof *regions };

/* Returns the pitch of a region for a pattern size; the gap is a multiple of 16, and therefore of every pattern size.
 */
static size_t pitch_of(const struct region *region, size_t size) {
  return (region->width * size + 15) / 16 * 16 + region->gap;
}

/* Computes the expected contents of memory that was filled with the guard. */
static void fill_by_loops(unsigned char *dst, const struct region *region, size_t size, const unsigned char *pattern) {
  for (size_t y = 0; y < region->height; y++) {
    for (size_t x = 0; x < region->width * size; x++) {
      dst[region->offset + y * pitch_of(region, size) + x] = pattern[x % size];
    }
  }
}

static void check_region(rill_stream stream, const unsigned char *dst, const struct region *region, size_t size,
                         const unsigned char *pattern) {
  static unsigned char expected[PITCHED_BYTES], seen[PITCHED_BYTES];
  memset(expected, PITCHED_GUARD, sizeof expected);
  fill_by_loops(expected, region, size, pattern);
  assert_ok(rill_copy_async(stream, seen, dst, PITCHED_BYTES));
  assert_completes(stream);
  assert_memory_equal(seen, expected, PITCHED_BYTES);
}

static void set_guards(rill_stream stream, unsigned char *dst) {
  static unsigned char guards[PITCHED_BYTES];
  memset(guards, PITCHED_GUARD, PITCHED_BYTES);
  assert_ok(rill_copy_async(stream, dst, guards, PITCHED_BYTES));
  assert_completes(stream);
}

static rill_status fill_region(rill_stream stream, unsigned char *dst, const struct region *region, size_t size,
                               const unsigned char *pattern) {
  return rill_fill_2d_async(stream, dst + region->offset, pitch_of(region, size), pattern, size, region->width,
                            region->height);
}

/* C5.3; C12 of the edge cases: all pattern sizes in all kinds of memory leave the bytes around and between the rows
 * unchanged. */
static void fills_regions_of_every_kind_of_memory(void) {
  const int kinds[] = { PINNED, DEVICE, MANAGED, REGISTERED };
  unsigned char pattern[16];
  make_pattern(pattern);
  rill_stream stream = new_stream("stream");
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    if (!has_kind(kinds[k])) continue;
    unsigned char *dst = allocate_kind(kinds[k], PITCHED_BYTES);
    for (size_t i = 0; i < SIZES; i++) {
      for (size_t j = 0; j < REGIONS; j++) {
        set_guards(stream, dst);
        assert_ok(fill_region(stream, dst, &regions[j], sizes[i], pattern));
        check_region(stream, dst, &regions[j], sizes[i], pattern);
      }
    }
    free_kind(kinds[k], dst);
  }
}

/* A pattern of equal bytes, halves or words may use another path than other patterns. */
static void fills_with_patterns_that_repeat(void) {
  rill_stream stream = new_stream("stream");
  unsigned char *dst = allocate_kind(DEVICE, PITCHED_BYTES), pattern[16];
  for (size_t unit = 1; unit <= 8; unit *= 2) {
    for (size_t i = 0; i < sizeof pattern; i++) pattern[i] = (unsigned char)(0x81 + i % unit * 7);
    for (size_t i = 0; i < SIZES; i++) {
      set_guards(stream, dst);
      assert_ok(fill_region(stream, dst, &regions[6], sizes[i], pattern));
      check_region(stream, dst, &regions[6], sizes[i], pattern);
    }
  }
  free_kind(DEVICE, dst);
}

/* Large enough to be shared by the CPU's workers: many short rows, and few long ones. */
static void fills_many_megabytes(void) {
  static const struct {
    size_t pitch, width, height;
  } shapes[] = {
    { 112, 80, 40000 },   { 1600016, 1500000, 3 }, { 4000000, 400000, 2 }, { 16400, 16368, 33 },
    { 16400, 16384, 32 }, { 16416, 16400, 31 },    { 65552, 33000, 63 },   { 80, 48, 3000 },
  };
  rill_stream stream = new_stream("stream");
  const size_t most = (size_t)5 << 20;
  unsigned char *dst = allocate_kind(DEVICE, most), *seen = allocate_kind(PINNED, most), pattern[16];
  make_pattern(pattern);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const uint8_t guard = PITCHED_GUARD;
    assert_ok(rill_fill_async(stream, dst, &guard, 1, most));
    assert_ok(rill_fill_2d_async(stream, dst, shapes[i].pitch, pattern, 16, shapes[i].width / 16, shapes[i].height));
    assert_ok(rill_copy_async(stream, seen, dst, most));
    assert_completes(stream);
    for (size_t at = 0; at < most; at++) {
      const size_t row = at / shapes[i].pitch, x = at % shapes[i].pitch;
      const bool inside = row < shapes[i].height && x < shapes[i].width / 16 * 16;
      if (seen[at] != (inside ? pattern[x % 16] : PITCHED_GUARD)) fail_msg("shape %zu, byte %zu: %u", i, at, seen[at]);
    }
  }
  free_kind(DEVICE, dst);
  free_kind(PINNED, seen);
}

/* The pattern is read at the call, and the call does not wait for the stream, in all memory that rill knows. If the
 * call waited, the gate would open and the work would be complete. */
static void reads_the_pattern_at_the_call(void) {
  const int kinds[] = { PINNED, DEVICE, MANAGED };
  const struct region *const filled[] = { &regions[6], &regions[8] }; /* rows of few patterns, and rows of many */
  rill_stream stream = new_stream("stream");
  for (size_t k = 0; k < 3; k++) {
    if (!has_kind(kinds[k])) continue;
    unsigned char *dst = allocate_kind(kinds[k], PITCHED_BYTES), pattern[16], expected[16];
    make_pattern(expected);
    for (size_t i = 0; i < 2 * SIZES; i++) {
      const size_t size = sizes[i / 2];
      set_guards(stream, dst);
      make_pattern(pattern);
      struct gate *gate = gate_close_for(stream, (uint64_t)10000 * MILLISECOND);
      assert_ok(fill_region(stream, dst, filled[i % 2], size, pattern));
      memset(pattern, 0x43, sizeof pattern);
      assert_false(is_complete(stream));
      gate_open(gate);
      check_region(stream, dst, filled[i % 2], size, expected);
    }
    free_kind(kinds[k], dst);
  }
}

/* C3.8 */
static void waits_on_a_held_stream(void) {
  rill_stream held = new_stream("held"), other = new_stream("other");
  unsigned char *dst = allocate_kind(DEVICE, PITCHED_BYTES), pattern[16], expected[16];
  make_pattern(expected);
  for (size_t i = 0; i < SIZES; i++) {
    rill_event event = new_event("awaited");
    set_guards(other, dst);
    make_pattern(pattern);
    assert_ok(rill_stream_wait_event(held, event, 0));
    assert_ok(fill_region(held, dst, &regions[2], sizes[i], pattern)); /* one row, which is a fill of one dimension */
    assert_ok(fill_region(held, dst, &regions[6], sizes[i], pattern));
    memset(pattern, 0x43, sizeof pattern);
    assert_false(is_complete(held));
    assert_ok(rill_stream_record_event(other, event, 0));
    assert_completes(held);
    static unsigned char wanted[PITCHED_BYTES], seen[PITCHED_BYTES];
    memset(wanted, PITCHED_GUARD, sizeof wanted);
    fill_by_loops(wanted, &regions[2], sizes[i], expected);
    fill_by_loops(wanted, &regions[6], sizes[i], expected);
    assert_ok(rill_copy_async(other, seen, dst, PITCHED_BYTES));
    assert_completes(other);
    assert_memory_equal(seen, wanted, PITCHED_BYTES);
  }
  free_kind(DEVICE, dst);
}

/* C15 of the edge cases */
static void runs_in_stream_order(void) {
  rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  for (uint32_t i = 0; i < 100; i++) {
    assert_ok(rill_fill_2d_async(stream, dut.memory + i % 3, 16, &i, sizeof i, 2, 4));
    write_cell(stream, 4, i + 1000);
  }
  assert_ok(rill_copy_async(stream, dut.host, dut.memory, 16 * sizeof *dut.host));
  assert_false(is_complete(stream));
  gate_open(gate);
  assert_completes(stream);
  static const uint32_t expected[16] = { 99, 99, 98, 98, 1099, 99, 98, 98, 99, 99, 98, 98, 99, 99, 98, 98 };
  assert_memory_equal(dut.host, expected, sizeof expected);
}

/* On the vendor's null stream, calls need a current device. */
static void fills_on_imported_streams(void) {
  if (!dut.gpu) return;
  rill_stream null_stream;
  unsigned char *dst = allocate_kind(DEVICE, PITCHED_BYTES), pattern[16];
  make_pattern(pattern);
  assert_ok(rill_stream_import(dut.device, 0, NULL, &null_stream));
  keep_stream_until_end(null_stream);
  for (size_t i = 0; i < SIZES; i++) {
    set_guards(null_stream, dst);
    assert_ok(fill_region(null_stream, dst, &regions[6], sizes[i], pattern));
    check_region(null_stream, dst, &regions[6], sizes[i], pattern);
  }
  free_kind(DEVICE, dst);
}

TESTS_ON_EACH_DEVICE("rill_fill_2d_async", TEST(refuses_bad_handles), TEST(refuses_null),
                     TEST(refuses_invalid_pattern_sizes), TEST(refuses_rows_that_are_not_aligned),
                     TEST(does_nothing_for_zero_patterns), TEST(refuses_pitches_below_a_row),
                     TEST(refuses_ranges_past_the_end), TEST(refuses_sizes_that_overflow),
                     TEST(fills_regions_of_every_kind_of_memory), TEST(fills_with_patterns_that_repeat),
                     TEST(fills_many_megabytes), TEST(reads_the_pattern_at_the_call), TEST(waits_on_a_held_stream),
                     TEST(runs_in_stream_order), TEST(fills_on_imported_streams))
