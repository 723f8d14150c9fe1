/* Shared by the tests of copies with pitches: memory of each kind, and copies that are compared with plain loops. Bytes
 * around and between the rows must not change. */
#ifndef RILL_TESTS_CONFORMANCE_PITCHED_H
#define RILL_TESTS_CONFORMANCE_PITCHED_H

#include "support/testing.h"

enum { PAGEABLE, PINNED, DEVICE, MANAGED, REGISTERED, MEMORY_KINDS };
enum { PITCHED_BYTES = 40009, PITCHED_GUARD = 0xee };

static inline bool has_kind(int kind) {
  return kind != MANAGED || rill_device_supports(dut.device, RILL_FEATURE_MANAGED, NULL);
}

static inline unsigned char *allocate_kind(int kind, size_t size) {
  static const uint32_t kinds[] = { 0, RILL_MEMORY_PINNED, RILL_MEMORY_DEVICE, RILL_MEMORY_MANAGED, 0 };
  void *p = NULL;
  if (kind == PAGEABLE || kind == REGISTERED) {
    p = aligned_alloc(4096, (size + 4095) / 4096 * 4096); /* page-aligned, so that it shares no page */
    if (kind == REGISTERED) assert_ok(rill_host_register(dut.device, p, size));
  } else {
    assert_ok(rill_alloc(dut.device, size, kinds[kind], &p));
  }
  assert_non_null(p);
  return p;
}

static inline void free_kind(int kind, void *p) {
  if (kind == REGISTERED) assert_ok(rill_host_unregister(p));
  if (kind == PAGEABLE || kind == REGISTERED) {
    free(p);
  } else {
    assert_ok(rill_free(p));
  }
}

/* Offsets, pitches and sizes of a copy; offsets are relative to the two buffers. */
struct box {
  size_t dst_offset, dst_pitch, dst_slice, src_offset, src_pitch, src_slice, width, height, depth;
};

static inline unsigned char pitched_byte(size_t i) { return (unsigned char)(i * 7 + i / 251); }

/* Computes the expected contents of the destination. */
static inline void copy_by_loops(unsigned char *dst, const unsigned char *src, const struct box *box) {
  for (size_t z = 0; z < box->depth; z++) {
    for (size_t y = 0; y < box->height; y++) {
      for (size_t x = 0; x < box->width; x++) {
        dst[box->dst_offset + z * box->dst_slice + y * box->dst_pitch + x] =
            src[box->src_offset + z * box->src_slice + y * box->src_pitch + x];
      }
    }
  }
}

/* Fills two buffers of PITCHED_BYTES with the pattern and the guard, with copies of one dimension. */
static inline void fill_buffers(rill_stream stream, unsigned char *dst, const unsigned char *src) {
  static unsigned char bytes[PITCHED_BYTES];
  for (size_t i = 0; i < PITCHED_BYTES; i++) bytes[i] = pitched_byte(i);
  assert_ok(rill_copy_async(stream, (void *)(uintptr_t)src, bytes, PITCHED_BYTES));
  assert_completes(stream);
  memset(bytes, PITCHED_GUARD, PITCHED_BYTES);
  assert_ok(rill_copy_async(stream, dst, bytes, PITCHED_BYTES));
  assert_completes(stream);
}

/* Checks that every byte of `dst` has the value that plain loops would have written. */
static inline void check_buffer(rill_stream stream, const unsigned char *dst, const struct box *box) {
  static unsigned char src[PITCHED_BYTES], expected[PITCHED_BYTES], seen[PITCHED_BYTES];
  for (size_t i = 0; i < PITCHED_BYTES; i++) src[i] = pitched_byte(i);
  memset(expected, PITCHED_GUARD, sizeof expected);
  copy_by_loops(expected, src, box);
  assert_ok(rill_copy_async(stream, seen, dst, PITCHED_BYTES));
  assert_completes(stream);
  assert_memory_equal(seen, expected, PITCHED_BYTES);
}

/* Runs `copy` for every box, from every kind of memory to every kind. */
typedef rill_status (*copy_box)(rill_stream stream, unsigned char *dst, const unsigned char *src,
                                const struct box *box);
static inline void check_boxes(copy_box copy, const struct box *boxes, size_t count) {
  rill_stream stream = new_stream("stream");
  for (int from = 0; from < MEMORY_KINDS; from++) {
    for (int to = 0; to < MEMORY_KINDS; to++) {
      if (!has_kind(from) || !has_kind(to)) continue;
      unsigned char *src = allocate_kind(from, PITCHED_BYTES), *dst = allocate_kind(to, PITCHED_BYTES);
      for (size_t i = 0; i < count; i++) {
        fill_buffers(stream, dst, src);
        assert_ok(copy(stream, dst, src, &boxes[i]));
        assert_completes(stream);
        check_buffer(stream, dst, &boxes[i]);
      }
      free_kind(from, src);
      free_kind(to, dst);
    }
  }
}

/* Does the same on a stream that is held when the copy is submitted; a pageable source is overwritten after the call
 * (C3.8). */
static inline void check_box_on_held_stream(copy_box copy, const struct box *box) {
  rill_stream other = new_stream("other");
  for (int from = 0; from < MEMORY_KINDS; from++) {
    for (int to = 0; to < MEMORY_KINDS; to++) {
      if (!has_kind(from) || !has_kind(to)) continue;
      rill_stream held = new_stream("held");
      rill_event event = new_event("awaited");
      unsigned char *src = allocate_kind(from, PITCHED_BYTES), *dst = allocate_kind(to, PITCHED_BYTES);
      fill_buffers(other, dst, src);
      assert_ok(rill_stream_wait_event(held, event, 0));
      assert_ok(copy(held, dst, src, box));
      if (from == PAGEABLE) memset(src, 1, PITCHED_BYTES);
      assert_false(is_complete(held));
      assert_ok(rill_stream_record_event(other, event, 0));
      assert_completes(held);
      check_buffer(other, dst, box);
      free_kind(from, src);
      free_kind(to, dst);
    }
  }
}

/* Checks that a pageable source has been read when the call returns (C5.3). The gate opens by itself, because the call
 * may wait. */
static inline void check_source_is_taken(copy_box copy, const struct box *box) {
  rill_stream stream = new_stream("stream");
  unsigned char *src = malloc(PITCHED_BYTES), *dst = allocate_kind(DEVICE, PITCHED_BYTES);
  fill_buffers(stream, dst, src);
  struct gate *gate = gate_close_for(stream, 100 * MILLISECOND);
  assert_ok(copy(stream, dst, src, box));
  memset(src, 1, PITCHED_BYTES);
  gate_open(gate);
  assert_completes(stream);
  check_buffer(stream, dst, box);
  free_kind(DEVICE, dst);
  free(src);
}

/* Copies from one device to another and back, with and without peer access (P8, C17). */
static inline void check_box_between_devices(copy_box copy, const struct box *box) {
  needs_second_device();
  rill_stream here = new_stream("here"), there = new_stream_on(dut.second, "there");
  unsigned char *near_src = allocate_kind(DEVICE, PITCHED_BYTES), *near_dst = allocate_kind(DEVICE, PITCHED_BYTES);
  unsigned char *far_dst = NULL, *far_src = NULL;
  assert_ok(RILL_NEW(dut.second, RILL_MEMORY_DEVICE, PITCHED_BYTES, &far_dst));
  assert_ok(RILL_NEW(dut.second, RILL_MEMORY_DEVICE, PITCHED_BYTES, &far_src));
  fill_buffers(here, far_dst, near_src);
  assert_ok(copy(here, far_dst, near_src, box));
  assert_completes(here);
  check_buffer(there, far_dst, box);
  fill_buffers(there, near_dst, far_src);
  assert_ok(copy(there, near_dst, far_src, box));
  assert_completes(there);
  check_buffer(here, near_dst, box);
  fill_buffers(there, near_dst, far_src);
  assert_ok(copy(here, near_dst, far_src, box));
  assert_completes(here);
  check_buffer(here, near_dst, box);
  free_kind(DEVICE, near_src);
  free_kind(DEVICE, near_dst);
  assert_ok(rill_free(far_dst));
  assert_ok(rill_free(far_src));
}

#endif
