/* rill_copy_3d_async */
#include "pitched.h"

static rill_copy_3d values_of(unsigned char *dst, const unsigned char *src, const struct box *box) {
  rill_copy_3d values = RILL_COPY_3D_INIT;
  values.dst = dst + box->dst_offset;
  values.src = src + box->src_offset;
  values.dst_pitch = box->dst_pitch;
  values.dst_slice_pitch = box->dst_slice;
  values.src_pitch = box->src_pitch;
  values.src_slice_pitch = box->src_slice;
  values.width = box->width;
  values.height = box->height;
  values.depth = box->depth;
  return values;
}

static rill_status copy(rill_stream stream, unsigned char *dst, const unsigned char *src, const struct box *box) {
  const rill_copy_3d values = values_of(dst, src, box);
  return rill_copy_3d_async(stream, &values);
}

static const struct box sample = { 3, 17, 17 * 6, 1, 19, 19 * 7, 13, 5, 4 };

static rill_copy_3d sample_values(void) {
  return values_of((unsigned char *)dut.memory, (const unsigned char *)dut.host,
                   &(struct box){ 0, 8, 16, 0, 16, 32, 4, 2, 3 });
}

static rill_status call_with_stream(uint64_t id) {
  const rill_copy_3d values = sample_values();
  return rill_copy_3d_async((rill_stream){ id }, &values);
}

static void refuses_bad_handles(void) { refuses_bad_streams("rill_copy_3d_async", call_with_stream); }

static rill_stream options_stream;
static rill_status call_with_values(const void *values) { return rill_copy_3d_async(options_stream, values); }

/* C1.4; NULL is refused, because a copy has no defaults. */
static void accepts_older_and_newer_structs(void) {
  options_stream = new_stream("stream");
  assert_fails(rill_copy_3d_async(options_stream, NULL), RILL_ERROR_INVALID_ARGUMENT);
  rill_copy_3d values = sample_values();
  values.struct_size = 0;
  assert_fails(rill_copy_3d_async(options_stream, &values), RILL_ERROR_INVALID_ARGUMENT);
  struct {
    rill_copy_3d values;
    size_t tail;
  } newer = { sample_values(), 0 };
  newer.values.struct_size = sizeof newer;
  assert_ok(call_with_values(&newer));
  newer.tail = 1;
  assert_fails_in("rill_copy_3d_async", call_with_values(&newer), RILL_ERROR_INVALID_ARGUMENT);
  assert_completes(options_stream);
}

/* C3 of the edge cases */
static void refuses_null(void) {
  rill_stream stream = new_stream("stream");
  rill_copy_3d values = sample_values();
  values.dst = NULL;
  assert_fails(rill_copy_3d_async(stream, &values), RILL_ERROR_INVALID_ARGUMENT);
  values = sample_values();
  values.src = NULL;
  assert_fails(rill_copy_3d_async(stream, &values), RILL_ERROR_INVALID_ARGUMENT);
}

/* C5.3; C2 of the edge cases */
static void does_nothing_for_zero_bytes(void) {
  rill_stream stream = new_stream("stream");
  for (int i = 0; i < 3; i++) {
    rill_copy_3d values = sample_values();
    *(i == 0 ? &values.width : i == 1 ? &values.height : &values.depth) = 0;
    assert_ok(rill_copy_3d_async(stream, &values));
    values.dst = NULL;
    values.src_pitch = 0;
    assert_ok(rill_copy_3d_async(stream, &values));
  }
  assert_completes(stream);
}

/* C8 of the edge cases: slices must not overlap; with a single slice the slice pitch is not checked. */
static void refuses_pitches_that_are_too_small(void) {
  rill_stream stream = new_stream("stream");
  rill_copy_3d values = sample_values();
  values.dst_pitch = 3;
  assert_fails(rill_copy_3d_async(stream, &values), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("dst: width 4 exceeds pitch 3");
  values = sample_values();
  values.src_pitch = 3;
  assert_fails(rill_copy_3d_async(stream, &values), RILL_ERROR_INVALID_ARGUMENT);
  values = sample_values();
  values.dst_slice_pitch = 15;
  assert_fails(rill_copy_3d_async(stream, &values), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("dst: slice pitch 15");
  values = sample_values();
  values.src_slice_pitch = 31;
  assert_fails(rill_copy_3d_async(stream, &values), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("src: slice pitch 31");
  values.depth = 1;
  assert_ok(rill_copy_3d_async(stream, &values));
  assert_completes(stream);
}

/* C5.3; C13 of the edge cases */
static void refuses_ranges_past_the_end(void) {
  rill_stream stream = new_stream("stream");
  /* memory of 256 bytes, and larger memory */
  unsigned char *there = (unsigned char *)dut.memory, *big = calloc(1, 4096);
  /* the last byte is byte 240 + 40 + 6 = 286 */
  struct box box = { 0, 10, 60, 0, 10, 60, 6, 5, 5 };
  assert_fails_in("rill_copy_3d_async", copy(stream, there, big, &box), RILL_ERROR_OUT_OF_RANGE);
  assert_says("286");
  assert_fails_in("rill_copy_3d_async", copy(stream, big, there, &box), RILL_ERROR_OUT_OF_RANGE);
  box.depth = 4; /* the last byte is byte 226 */
  box.dst_offset = 30;
  assert_ok(copy(stream, there, big, &box));
  box.dst_offset = 31;
  assert_fails_in("rill_copy_3d_async", copy(stream, there, big, &box), RILL_ERROR_OUT_OF_RANGE);
  assert_completes(stream);
  free(big);
}

/* C1.6, C9, C22 of the edge cases */
static void refuses_sizes_that_overflow(void) {
  rill_stream stream = new_stream("stream");
  unsigned char *there = (unsigned char *)dut.memory, *host = calloc(1, 4096);
  const size_t beyond_32_bits = (size_t)1 << 32;
  const struct box boxes[] = {
    { 0, 4, SIZE_MAX, 0, 4, SIZE_MAX, 4, 1, 2 },
    { 0, 4, SIZE_MAX / 2, 0, 4, SIZE_MAX / 2, 4, 2, 4 },
    { 0, SIZE_MAX / 2, SIZE_MAX, 0, SIZE_MAX / 2, SIZE_MAX, 4, 3, 2 },
    { 0, 4, 8, 0, 4, 8, 4, 2, SIZE_MAX },
    { 0, 4, 8, 0, 4, 8, 4, 2, SIZE_MAX / 8 },
    { 0, 4, beyond_32_bits, 0, 4, beyond_32_bits, 4, 2, 2 },
    { 0, 4, 8, 0, 4, 8, 4, 2, beyond_32_bits / 8 + 1 },
    { 0, 65536, beyond_32_bits, 0, 65536, beyond_32_bits, 65536, 65536, 1 },
  };
  for (size_t i = 0; i < sizeof boxes / sizeof *boxes; i++) {
    assert_fails_in("rill_copy_3d_async", copy(stream, there, host, &boxes[i]), RILL_ERROR_OUT_OF_RANGE);
    assert_fails_in("rill_copy_3d_async", copy(stream, host, there, &boxes[i]), RILL_ERROR_OUT_OF_RANGE);
  }
  assert_completes(stream);
  free(host);
}

/* C5.3; C1, C7, C12 of the edge cases */
static void copies_in_every_direction(void) {
  static const struct box boxes[] = {
    { 3, 17, 17 * 6, 1, 19, 19 * 7, 13, 5, 4 },          /* gaps between rows and between slices */
    { 3, 17, 17 * 5 + 9, 1, 19, 19 * 5 + 3, 13, 5, 40 }, /* slice pitches that are not multiples of the row pitch */
    { 0, 20, 20 * 10, 0, 20, 20 * 10, 20, 10, 30 },      /* no gaps: the same as a copy of one dimension */
    { 1, 30, 30 * 10, 2, 20, 20 * 10, 20, 10, 30 },      /* no gaps between slices: the same as rows */
    { 7, 20, 20 * 10 + 7, 5, 20, 20 * 10, 20, 10, 30 },  /* no gaps between rows */
    { 5, 7, 333, 3, 9, 501, 5, 1, 60 },                  /* slices of one row each */
    { 5, 64, 0, 3, 70, 0, 60, 50, 1 },                   /* one slice */
    { 2, 1, 1, 1, 3, 7, 1, 1, 1 },                       /* slices of one byte */
    { 0, 64, 64 * 16, 512, 128, 128 * 8, 64, 8, 8 },     /* aligned */
  };
  check_boxes(copy, boxes, sizeof boxes / sizeof *boxes);
}

static void reads_a_pageable_source_at_the_call(void) { check_source_is_taken(copy, &sample); }

/* C3.8 */
static void waits_on_a_held_stream(void) { check_box_on_held_stream(copy, &sample); }

/* C5.3, P8; C17 of the edge cases */
static void copies_between_devices(void) { check_box_between_devices(copy, &sample); }

/* The caller may change the struct as soon as the call has returned. */
static void reads_the_struct_at_the_call(void) {
  rill_stream stream = new_stream("stream");
  unsigned char *src = allocate_kind(PINNED, PITCHED_BYTES), *dst = allocate_kind(DEVICE, PITCHED_BYTES);
  fill_buffers(stream, dst, src);
  rill_copy_3d values = values_of(dst, src, &sample);
  struct gate *gate = gate_close(stream);
  assert_ok(rill_copy_3d_async(stream, &values));
  memset(&values, 0xff, sizeof values);
  assert_false(is_complete(stream));
  gate_open(gate);
  assert_completes(stream);
  check_buffer(stream, dst, &sample);
  free_kind(PINNED, src);
  free_kind(DEVICE, dst);
}

TESTS_ON_EACH_DEVICE("rill_copy_3d_async", TEST(refuses_bad_handles), TEST(accepts_older_and_newer_structs),
                     TEST(refuses_null), TEST(does_nothing_for_zero_bytes), TEST(refuses_pitches_that_are_too_small),
                     TEST(refuses_ranges_past_the_end), TEST(refuses_sizes_that_overflow),
                     TEST(copies_in_every_direction), TEST(reads_a_pageable_source_at_the_call),
                     TEST(waits_on_a_held_stream), TEST(copies_between_devices), TEST(reads_the_struct_at_the_call))
