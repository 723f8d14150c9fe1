/* rill_copy_2d_async */
#include "pitched.h"

static rill_status copy(rill_stream stream, unsigned char *dst, const unsigned char *src, const struct box *box) {
  return rill_copy_2d_async(stream, dst + box->dst_offset, box->dst_pitch, src + box->src_offset, box->src_pitch,
                            box->width, box->height);
}

static rill_status call_with_stream(uint64_t id) {
  return rill_copy_2d_async((rill_stream){ id }, dut.host, 8, dut.memory, 8, 4, 2);
}

static void refuses_bad_handles(void) { refuses_bad_streams("rill_copy_2d_async", call_with_stream); }

/* C3 of the edge cases */
static void refuses_null(void) {
  rill_stream stream = new_stream("stream");
  assert_fails(rill_copy_2d_async(stream, NULL, 8, dut.host, 8, 4, 2), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("dst");
  assert_fails(rill_copy_2d_async(stream, dut.host, 8, NULL, 8, 4, 2), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("src");
}

/* C5.3; C2, C8 of the edge cases */
static void does_nothing_for_zero_bytes(void) {
  rill_stream stream = new_stream("stream");
  assert_ok(rill_copy_2d_async(stream, dut.memory, 8, dut.host, 8, 0, 2));
  assert_ok(rill_copy_2d_async(stream, dut.memory, 8, dut.host, 8, 8, 0));
  assert_ok(rill_copy_2d_async(stream, NULL, 0, NULL, 0, 0, 0));
  assert_ok(rill_copy_2d_async(stream, dut.memory, 8, dut.host, 8, 0, SIZE_MAX));
  assert_completes(stream);
}

/* C8 of the edge cases, also for a single row. The text names the pitch and the numbers. */
static void refuses_pitches_below_the_width(void) {
  rill_stream stream = new_stream("stream");
  for (size_t height = 1; height < 3; height++) {
    assert_fails(rill_copy_2d_async(stream, dut.memory, 12, dut.host, 16, 13, height), RILL_ERROR_INVALID_ARGUMENT);
    assert_says("dst: width 13 exceeds pitch 12");
    assert_fails(rill_copy_2d_async(stream, dut.memory, 16, dut.host, 12, 13, height), RILL_ERROR_INVALID_ARGUMENT);
    assert_says("src: width 13 exceeds pitch 12");
  }
}

/* C5.3; C13 of the edge cases: the last byte of the last row counts; the padding after it does not. */
static void refuses_ranges_past_the_end(void) {
  rill_stream stream = new_stream("stream");
  /* memory of 256 bytes, and larger memory */
  unsigned char *there = (unsigned char *)dut.memory, *big = calloc(1, 4096);
  assert_ok(rill_copy_2d_async(stream, there + 6, 50, big, 50, 50, 5));
  assert_fails(rill_copy_2d_async(stream, there + 7, 50, big, 50, 50, 5), RILL_ERROR_OUT_OF_RANGE);
  assert_says("250");
  assert_says("256");
  assert_ok(rill_copy_2d_async(stream, big, 100, there + 4, 62, 4, 5));
  assert_fails(rill_copy_2d_async(stream, big, 100, there + 4, 62, 5, 5), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_copy_2d_async(stream, big, 100, there + 255, 300, 1, 2), RILL_ERROR_OUT_OF_RANGE);
  assert_completes(stream);
  free(big);
}

/* C1.6, C9, C22 of the edge cases: products and sums beyond 32 bits and beyond 64. */
static void refuses_sizes_that_overflow(void) {
  rill_stream stream = new_stream("stream");
  unsigned char *there = (unsigned char *)dut.memory, *host = calloc(1, 4096);
  const size_t beyond_32_bits = (size_t)1 << 32;
  const struct {
    size_t pitch, width, height;
  } sizes[] = {
    { SIZE_MAX, 1, 2 },
    { SIZE_MAX, SIZE_MAX, 1 },
    { SIZE_MAX / 2 + 1, 1, 3 },
    { SIZE_MAX / 2, SIZE_MAX / 2, 3 },
    { 4, 4, SIZE_MAX },
    { 4, 4, SIZE_MAX / 4 },
    { beyond_32_bits, 4, 2 },
    { 4, 4, beyond_32_bits / 4 + 1 },
    { beyond_32_bits + 4, beyond_32_bits + 4, 1 },
    { beyond_32_bits / 2, 4, 3 },
  };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    assert_fails(
        rill_copy_2d_async(stream, there, sizes[i].pitch, host, sizes[i].pitch, sizes[i].width, sizes[i].height),
        RILL_ERROR_OUT_OF_RANGE);
    assert_fails(
        rill_copy_2d_async(stream, host, sizes[i].pitch, there, sizes[i].pitch, sizes[i].width, sizes[i].height),
        RILL_ERROR_OUT_OF_RANGE);
  }
  assert_completes(stream);
  free(host);
}

/* C5.3; C1, C7, C8, C12 of the edge cases: odd sizes, pitches and offsets between all kinds of memory. */
static void copies_in_every_direction(void) {
  static const struct box boxes[] = {
    { 3, 17, 0, 1, 19, 0, 13, 11, 1 },         /* pitches larger than the width on both sides */
    { 0, 100, 0, 0, 100, 0, 100, 400, 1 },     /* no gaps: the same as a copy of one dimension */
    { 5, 400, 0, 7, 401, 0, 399, 99, 1 },      /* rows that span pages */
    { 1, 64, 0, 2, 64, 0, 1, 600, 1 },         /* a column of bytes */
    { 11, 5000, 0, 13, 7000, 0, 4097, 1, 1 },  /* one row */
    { 9, 1000, 0, 5, 333, 0, 333, 40, 1 },     /* from contiguous rows into rows with gaps */
    { 9, 333, 0, 5, 1000, 0, 333, 40, 1 },     /* from rows with gaps into contiguous rows */
    { 256, 512, 0, 512, 1024, 0, 256, 32, 1 }, /* aligned */
  };
  check_boxes(copy, boxes, sizeof boxes / sizeof *boxes);
}

/* Large enough to be shared among the CPU's workers. */
static void copies_many_megabytes(void) {
  enum { PITCH = 5003, WIDTH = 4999, ROWS = 1200 };
  rill_stream stream = new_stream("stream");
  unsigned char *there = allocate_kind(DEVICE, (size_t)PITCH * ROWS);
  unsigned char *from = allocate_kind(PINNED, (size_t)PITCH * ROWS),
                *back = allocate_kind(PINNED, (size_t)PITCH * ROWS);
  for (size_t i = 0; i < (size_t)PITCH * ROWS; i++) from[i] = pitched_byte(i);
  memset(back, PITCHED_GUARD, (size_t)PITCH * ROWS);
  assert_ok(rill_copy_2d_async(stream, there, PITCH, from, PITCH, WIDTH, ROWS));
  assert_ok(rill_copy_2d_async(stream, back, PITCH, there, PITCH, WIDTH, ROWS));
  assert_completes(stream);
  for (size_t row = 0; row < ROWS; row++) {
    assert_memory_equal(back + row * PITCH, from + row * PITCH, WIDTH);
    for (size_t i = WIDTH; i < PITCH; i++) assert_int_equal(back[row * PITCH + i], PITCHED_GUARD);
  }
  free_kind(DEVICE, there);
  free_kind(PINNED, from);
  free_kind(PINNED, back);
}

static const struct box sample = { 3, 17, 0, 1, 19, 0, 13, 11, 1 };

static void reads_a_pageable_source_at_the_call(void) { check_source_is_taken(copy, &sample); }

/* C3.8 */
static void waits_on_a_held_stream(void) { check_box_on_held_stream(copy, &sample); }

/* C3 of the edge cases: on the CPU, overlapping rows are copied as by memmove; on a GPU the result is undefined. */
static void overlapping_rows_are_moved_on_the_cpu(void) {
  if (dut.gpu) return;
  static const struct box overlapping[] = {
    { 100, 50, 0, 0, 50, 0, 40, 200, 1 },      { 0, 50, 0, 100, 50, 0, 40, 200, 1 },
    { 7, 50, 0, 0, 50, 0, 40, 200, 1 },        { 0, 50, 0, 0, 50, 0, 40, 200, 1 },
    { 30, 60, 0, 0, 50, 0, 40, 200, 1 },       { 0, 50, 0, 30, 60, 0, 40, 200, 1 },
    { 4000, 4000, 0, 0, 4000, 0, 3900, 8, 1 }, { 500, 4400, 0, 0, 4000, 0, 3900, 8, 1 },
  };
  const int kinds[] = { DEVICE, PAGEABLE };
  rill_stream stream = new_stream("stream");
  for (size_t k = 0; k < 2 * (sizeof overlapping / sizeof *overlapping); k++) {
    static unsigned char before[PITCHED_BYTES], expected[PITCHED_BYTES], seen[PITCHED_BYTES];
    const struct box *box = &overlapping[k / 2];
    unsigned char *p = allocate_kind(kinds[k % 2], PITCHED_BYTES);
    for (int later = 0; later < 2; later++) { /* executed immediately, and queued */
      for (size_t i = 0; i < PITCHED_BYTES; i++) before[i] = pitched_byte(i);
      memcpy(expected, before, PITCHED_BYTES);
      copy_by_loops(expected, before, box);
      assert_ok(rill_copy_async(stream, p, before, PITCHED_BYTES));
      assert_completes(stream);
      /* the gate opens by itself, because the call may wait */
      struct gate *gate = later ? gate_close_for(stream, 20 * MILLISECOND) : NULL;
      assert_ok(copy(stream, p, p, box));
      if (gate != NULL) gate_open(gate);
      assert_completes(stream); /* a pageable source is read at the call */
      assert_ok(rill_copy_async(stream, seen, p, PITCHED_BYTES));
      assert_completes(stream);
      assert_memory_equal(seen, expected, PITCHED_BYTES);
    }
    free_kind(kinds[k % 2], p);
  }
}

/* C5.3, P8; C17 of the edge cases */
static void copies_between_devices(void) { check_box_between_devices(copy, &sample); }

/* C5.3; C6, C15 of the edge cases: in stream order, without blocking the caller. */
static void runs_in_stream_order(void) {
  rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  for (uint32_t i = 0; i < 30; i++) {
    write_cell(stream, 0, i);
    write_cell(stream, 2, i + 100);
    /* copies cells 0 and 2 to cells 4 + i and 34 + i */
    assert_ok(rill_copy_2d_async(stream, dut.memory + 4 + i, 30 * 4, dut.memory, 2 * 4, 4, 2));
  }
  assert_ok(rill_copy_2d_async(stream, dut.host, CELLS * 4, dut.memory, CELLS * 4, CELLS * 4, 1));
  assert_int_equal(__atomic_load_n(dut.host + 33, __ATOMIC_SEQ_CST), 0);
  gate_open(gate);
  assert_completes(stream);
  for (uint32_t i = 0; i < 30; i++) {
    assert_int_equal(dut.host[4 + i], i);
    assert_int_equal(dut.host[34 + i], i + 100);
  }
}

TESTS_ON_EACH_DEVICE("rill_copy_2d_async", TEST(refuses_bad_handles), TEST(refuses_null),
                     TEST(does_nothing_for_zero_bytes), TEST(refuses_pitches_below_the_width),
                     TEST(refuses_ranges_past_the_end), TEST(refuses_sizes_that_overflow),
                     TEST(copies_in_every_direction), TEST(copies_many_megabytes),
                     TEST(reads_a_pageable_source_at_the_call), TEST(waits_on_a_held_stream),
                     TEST(overlapping_rows_are_moved_on_the_cpu), TEST(copies_between_devices),
                     TEST(runs_in_stream_order))
