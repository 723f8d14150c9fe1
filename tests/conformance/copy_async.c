/* rill_copy_async */
#include "support/testing.h"

#include "gate.rill.h"
#include "launch.rill.h"

enum { BYTES = 20000 }; /* several pages, but not a multiple of the page size */

/* Kinds of memory; pageable memory is from malloc. */
enum { PAGEABLE, PINNED, DEVICE, KINDS };

static struct { unsigned char *from[KINDS], *to[KINDS]; } memory;

static unsigned char *allocate(int kind) {
  unsigned char *p = NULL;
  if (kind == PAGEABLE) {
    p = malloc(BYTES);
  } else {
    assert_ok(RILL_NEW(dut.device, kind == PINNED ? RILL_MEMORY_PINNED : RILL_MEMORY_DEVICE, BYTES, &p));
  }
  assert_non_null(p);
  return p;
}

static void release(int kind, unsigned char *p) {
  if (kind == PAGEABLE) {
    free(p);
  } else {
    assert_ok(rill_free(p));
  }
}

static void allocate_all(void) {
  for (int kind = 0; kind < KINDS; kind++) {
    memory.from[kind] = allocate(kind);
    memory.to[kind] = allocate(kind);
  }
}

static void free_all(void) {
  for (int kind = 0; kind < KINDS; kind++) {
    release(kind, memory.from[kind]);
    release(kind, memory.to[kind]);
  }
}

/* Copies between memory of any kind and the host, and waits. */
static void move(rill_stream stream, void *dst, const void *src, size_t n) {
  assert_ok(rill_copy_async(stream, dst, src, n));
  assert_completes(stream);
}

static rill_status call_with_stream(uint64_t id) {
  return rill_copy_async((rill_stream){ id }, dut.host, dut.memory, 4);
}

static void refuses_bad_handles(void) { refuses_bad_streams("rill_copy_async", call_with_stream); }

/* C3 of the edge cases */
static void refuses_null(void) {
  rill_stream stream = new_stream("stream");
  assert_fails(rill_copy_async(stream, NULL, dut.host, 4), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_copy_async(stream, dut.host, NULL, 4), RILL_ERROR_INVALID_ARGUMENT);
}

/* C5.3 */
static void does_nothing_for_zero_bytes(void) {
  rill_stream stream = new_stream("stream");
  assert_ok(rill_copy_async(stream, dut.host, dut.memory, 0));
  assert_ok(rill_copy_async(stream, NULL, NULL, 0));
  assert_ok(rill_copy_async(stream, dut.host + CELLS, dut.memory + CELLS, 0));
  assert_completes(stream);
}

/* C5.3, C13 of the edge cases: the text has the numbers. Sizes that overflow are also out of range (C1.6). */
static void refuses_ranges_past_the_end(void) {
  rill_stream stream = new_stream("stream");
  const size_t all = CELLS * sizeof(uint32_t);
  unsigned char *big = calloc(1, all + 1);
  assert_fails(rill_copy_async(stream, dut.host, big, all + 1), RILL_ERROR_OUT_OF_RANGE);
  assert_says("257");
  assert_says("256");
  assert_fails(rill_copy_async(stream, big, dut.memory, all + 1), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_copy_async(stream, big, dut.memory + CELLS - 1, 5), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_copy_async(stream, dut.memory + CELLS - 1, big, 5), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_copy_async(stream, big, dut.memory, SIZE_MAX), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_copy_async(stream, big, dut.memory + 4, SIZE_MAX - 15), RILL_ERROR_OUT_OF_RANGE);
  assert_ok(rill_copy_async(stream, dut.memory, big, all));
  assert_ok(rill_copy_async(stream, big, dut.memory + CELLS - 1, 4));
  assert_completes(stream);
  free(big);
}

/* Copies `n` bytes at odd offsets and checks that the bytes around them are unchanged. */
static void check_copy(rill_stream stream, int from, int to, size_t n, unsigned seed) {
  static unsigned char pattern[BYTES], seen[BYTES];
  const size_t src = 1, dst = 3;
  for (size_t i = 0; i < BYTES; i++) pattern[i] = (unsigned char)(i * 7 + seed);
  move(stream, memory.from[from], pattern, BYTES);
  memset(seen, 0xee, BYTES);
  move(stream, memory.to[to], seen, BYTES);
  assert_ok(rill_copy_async(stream, memory.to[to] + dst, memory.from[from] + src, n));
  move(stream, seen, memory.to[to], BYTES);
  assert_memory_equal(seen + dst, pattern + src, n);
  for (size_t i = 0; i < dst; i++) assert_int_equal(seen[i], 0xee);
  for (size_t i = dst + n; i < BYTES; i++) assert_int_equal(seen[i], 0xee);
}

/* C5.3; C1, C7, C12 of the edge cases: every pair of kinds, with every odd size. */
static void copies_in_every_direction(void) {
  const size_t sizes[] = { 1, 2, 3, 7, 64, 2048, 4096, 8192, 4097, BYTES - 3 };
  rill_stream stream = new_stream("stream");
  allocate_all();
  for (int from = 0; from < KINDS; from++) {
    for (int to = 0; to < KINDS; to++) {
      for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        check_copy(stream, from, to, sizes[i], (unsigned)(from * 31 + to * 17 + (int)i));
      }
    }
  }
  free_all();
}

/* C5.3: a pageable source has been read when the call returns. The gate opens by itself, because the call may wait. */
static void reads_a_pageable_source_at_the_call(void) {
  rill_stream stream = new_stream("stream");
  unsigned char *source = malloc(BYTES), *seen = malloc(BYTES), *there = allocate(DEVICE);
  for (int kind = 0; kind < 2; kind++) { /* short and long copies may use different paths */
    const size_t n = kind == 0 ? 32 : BYTES;
    memset(source, 1, BYTES);
    struct gate *gate = gate_close_for(stream, 100 * MILLISECOND);
    assert_ok(rill_copy_async(stream, there, source, n));
    memset(source, 2, BYTES);
    gate_open(gate);
    move(stream, seen, there, n);
    for (size_t i = 0; i < n; i++) assert_int_equal(seen[i], 1);
  }
  assert_ok(rill_free(there));
  free(source);
  free(seen);
}

/* The data of a host call that sleeps and then fills pageable memory. */
struct late_fill {
  unsigned char *to;
  size_t size;
  unsigned char value;
};
static void fill_late(void *user, rill_status status) {
  const struct late_fill *fill = user;
  let_pass_ns(3 * MILLISECOND);
  if (status == RILL_OK) memset(fill->to, fill->value, fill->size);
}

/* Checks that the source was read after the host call had filled it, and only once: later writes are not visible.
 * `copying` waits for `filling` through `between`, or is the same stream. */
static void check_late_fill(rill_stream filling, rill_stream between, rill_stream copying, unsigned char *source,
                            size_t n) {
  unsigned char *const there = allocate(DEVICE), *const seen = malloc(BYTES);
  memset(source, 1, BYTES);
  struct late_fill fill = { source, n, 2 };
  assert_ok(rill_stream_host_call(filling, fill_late, &fill));
  assert_ok(rill_stream_wait_stream(between, filling));
  assert_ok(rill_stream_wait_stream(copying, between));
  assert_ok(rill_copy_async(copying, there, source, n));
  memset(source, 3, BYTES);
  move(copying, seen, there, n);
  for (size_t i = 0; i < n; i++) assert_int_equal(seen[i], 2);
  assert_ok(rill_free(there));
  free(seen);
}

/* C5.3: a source that earlier work of the stream writes is read after that work. The writer may be a host call on this
 * stream, or on a stream that this stream has waited for ... */
static void reads_a_pageable_source_after_host_calls(void) {
  const size_t sizes[] = { 1, 64, 8192, 8193, BYTES };
  rill_stream stream = new_stream("stream"), other = new_stream("other"), third = new_stream("third");
  unsigned char *source = malloc(BYTES);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    check_late_fill(stream, stream, stream, source, sizes[i]);
    check_late_fill(other, stream, stream, source, sizes[i]);
    check_late_fill(other, third, stream, source, sizes[i]);
  }
  free(source);
}

/* ... or a copy from the device to the host. The work before the copy takes some time. */
static void reads_a_pageable_source_after_copies(void) {
  rill_stream stream = new_stream("stream"), other = new_stream("other");
  unsigned char *here = malloc(BYTES), *there = allocate(DEVICE), *back = allocate(DEVICE), *seen = malloc(BYTES);
  for (unsigned round = 0; round < 6; round++) {
    const size_t n = round % 2 == 0 ? 64 : BYTES;
    const unsigned char value = (unsigned char)(10 + round);
    memset(here, 0, BYTES);
    struct gate *const gate = gate_close_for(stream, 20 * MILLISECOND);
    assert_ok(rill_fill_async(stream, there, &value, 1, n));
    assert_ok(rill_copy_async(stream, here, there, n));
    if (round >= 2) assert_ok(rill_fill_async(stream, there, &(unsigned char){ 99 }, 1, n));
    const rill_stream last = round >= 4 ? other : stream;
    if (round >= 4) assert_ok(rill_stream_wait_stream(other, stream));
    assert_ok(rill_copy_async(last, back, here, n));
    gate_open(gate);
    move(last, seen, back, n);
    for (size_t i = 0; i < n; i++) assert_int_equal(seen[i], value);
    assert_completes(stream);
  }
  assert_ok(rill_free(there));
  assert_ok(rill_free(back));
  free(here);
  free(seen);
}

/* A kernel of the cpu device may write any memory. A kernel that received no pointer to the caller's memory does not
 * delay the copy; any other kernel does. The gate opens by itself if the call waits. */
static void reads_a_pageable_source_after_kernels_that_may_write_it(void) {
  if (dut.gpu) return;
  rill_stream stream = new_stream("stream");
  const rill_launch one = rill_launch_1d(1, 1);
  unsigned source = 1;
  gate_close_for(stream, 20 * MILLISECOND);
  assert_ok(store_launch(stream, &one, 7, &source)); /* conformance/launch.kernel.cu */
  assert_ok(rill_copy_async(stream, dut.memory, &source, sizeof source));
  source = 2;
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 7);

  /* pinned; the limit in nanoseconds could not be an address */
  uint32_t *const flag = dut.host + 2, *const timed_out = dut.host + 3;
  assert_ok(wait_for_flag_launch(stream, &one, flag, 1, UINT64_MAX, timed_out));
  assert_ok(store_launch(stream, &one, 8, dut.memory));
  assert_ok(rill_copy_async(stream, dut.memory + 1, &source, sizeof source));
  source = 3;
  __atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
  read_cell(stream, 1);
  assert_completes(stream);
  assert_int_equal(dut.host[1], 2);
  assert_int_equal(*timed_out, 0);
}

/* C6 of the edge cases: a pinned source is read when the copy runs. */
static void reads_a_pinned_source_in_stream_order(void) {
  rill_stream stream = new_stream("stream");
  dut.host[1] = 1;
  struct gate *gate = gate_close(stream);
  assert_ok(rill_copy_async(stream, dut.memory, dut.host + 1, 4));
  read_cell(stream, 0);
  __atomic_store_n(dut.host + 1, 2, __ATOMIC_SEQ_CST);
  gate_open(gate);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 2);
}

/* C5.3; C15 of the edge cases */
static void runs_in_stream_order(void) {
  rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  for (uint32_t i = 0; i < 50; i++) {
    write_cell(stream, 0, i);
    assert_ok(rill_copy_async(stream, dut.memory + 1 + i, dut.memory, 4));
  }
  assert_ok(rill_copy_async(stream, dut.host, dut.memory, CELLS * sizeof *dut.host));
  assert_int_equal(__atomic_load_n(dut.host + 49, __ATOMIC_SEQ_CST), 0);
  gate_open(gate);
  assert_completes(stream);
  for (uint32_t i = 0; i < 50; i++) assert_int_equal(dut.host[1 + i], i);
}

/* C14 of the edge cases */
static void accepts_thousands_before_one_synchronize(void) {
  rill_stream stream = new_stream("stream");
  for (unsigned i = 0; i < scaled(5000); i++) {
    assert_ok(rill_copy_async(stream, dut.memory + (i + 1) % CELLS, dut.memory + i % CELLS, 4));
  }
  assert_completes(stream);
}

/* On the CPU, overlapping ranges are copied as by memmove; on a GPU the result is undefined. */
static void overlapping_ranges_are_moved_on_the_cpu(void) {
  if (dut.gpu) return;
  rill_stream stream = new_stream("stream");
  unsigned char *p = allocate(DEVICE);
  unsigned char expected[BYTES];
  for (size_t i = 0; i < BYTES; i++) expected[i] = (unsigned char)(i * 13);
  move(stream, p, expected, BYTES);
  move(stream, p + 100, p, BYTES - 100);
  memmove(expected + 100, expected, BYTES - 100);
  move(stream, p, p + 50, BYTES - 50);
  memmove(expected, expected + 50, BYTES - 50);
  move(stream, p, p, BYTES);
  assert_memory_equal(p, expected, BYTES);
  assert_ok(rill_free(p));
}

/* C19 of the edge cases: copies from one device to the other. */
static void copies_between_devices(void) {
  needs_second_device();
  rill_stream here = new_stream("here"), there = new_stream_on(dut.second, "there");
  uint32_t *far = NULL;
  assert_ok(RILL_NEW(dut.second, RILL_MEMORY_DEVICE, CELLS, &far));
  write_cell(here, 0, 91);
  assert_ok(rill_copy_async(here, far, dut.memory, 4));
  assert_ok(rill_stream_wait_stream(there, here));
  assert_ok(rill_copy_async(there, far + 1, far, 4));
  assert_ok(rill_copy_async(there, dut.memory + 1, far + 1, 4));
  assert_ok(rill_stream_wait_stream(here, there));
  read_cell(here, 1);
  assert_completes(here);
  assert_int_equal(dut.host[1], 91);
  assert_ok(rill_free(far));
}

TESTS_ON_EACH_DEVICE("rill_copy_async", TEST(refuses_bad_handles), TEST(refuses_null),
                     TEST(does_nothing_for_zero_bytes), TEST(refuses_ranges_past_the_end),
                     TEST(copies_in_every_direction), TEST(reads_a_pageable_source_at_the_call),
                     TEST(reads_a_pageable_source_after_host_calls), TEST(reads_a_pageable_source_after_copies),
                     TEST(reads_a_pageable_source_after_kernels_that_may_write_it),
                     TEST(reads_a_pinned_source_in_stream_order), TEST(runs_in_stream_order),
                     TEST(accepts_thousands_before_one_synchronize), TEST(overlapping_ranges_are_moved_on_the_cpu),
                     TEST(copies_between_devices))
