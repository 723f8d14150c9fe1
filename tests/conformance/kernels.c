/* Kernels have the same results on every device. */
#include "support/testing.h"

#include "basic.rill.h"
#include "gate.rill.h"
#include "launch.rill.h"

static const rill_launch one_thread = {
  sizeof one_thread, { 1, 1, 1 }, { 1, 1, 1 }, { 0, 0, 0 }, 0, 0, NULL, 0, NULL, 0, NULL
};

/* Returns pinned memory, which kernels and the host can access. */
static void *pinned(size_t bytes) {
  void *p = NULL;
  assert_ok(rill_alloc(dut.device, bytes, RILL_MEMORY_PINNED, &p));
  memset(p, 0, bytes);
  return p;
}

/* L6 */
static void kernels_may_have_no_arguments(void) {
  rill_stream stream = new_stream("stream");
  assert_ok(rill_stream_launch(stream, new_kernel(&launch_bundle, "nothing"), &one_thread, RILL_ARGS()));
  assert_ok(rill_stream_launch(stream, new_kernel(&launch_bundle, "nothing"), &one_thread, NULL, 0));
  assert_ok(nothing_launch(stream, &one_thread));
  assert_completes(stream);
}

/* L6 */
static void arguments_of_every_type_arrive(void) {
  rill_stream stream = new_stream("stream");
  double *out = pinned(8 * sizeof *out);
  assert_ok(scalars_launch(stream, &one_thread, -5, 65535, -123456, UINT64_C(1) << 52, 0.5f, 0.1, true, 'x', out));
  assert_completes(stream);
  const double expected[] = { -5, 65535, -123456, 4503599627370496.0, 0.5, 0.1, 1, 'x' };
  for (unsigned i = 0; i < 8; i++) assert_true(out[i] == expected[i]);
  assert_ok(rill_free(out));
}

/* L6 */
static void thirty_two_arguments_arrive(void) {
  rill_stream stream = new_stream("stream");
  rill_kernel kernel = new_kernel(&launch_bundle, "sum_of_many");
  uint32_t *out = dut.memory;
  assert_ok(rill_stream_launch(stream, kernel, &one_thread,
                               RILL_ARGS(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22,
                                         23, 24, 25, 26, 27, 28, 29, 30, 31, out)));
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 31 * 32 / 2);
}

/* Arguments are copied at the call. */
static void arguments_are_copied_at_the_call(void) {
  rill_stream stream = new_stream("stream");
  rill_kernel kernel = new_kernel(&launch_bundle, "store");
  unsigned value = 3;
  uint32_t *out = dut.memory;
  rill_arg args[] = { { &value, sizeof value }, { &out, sizeof out } };
  rill_launch launch = one_thread;
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_launch(stream, kernel, &launch, args, 2));
  value = 4;
  out = dut.memory + 1;
  memset(args, 0, sizeof args);
  memset(&launch, 0, sizeof launch);
  gate_open(gate);
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 3);
}

/* L21, L22: every thread of every block runs once, with its own indices. */
static void every_thread_runs_once(void) {
  const struct {
    rill_dim3 grid, block;
  } shapes[] = {
    { { 1, 1, 1 }, { 1, 1, 1 } },    { { 1, 0, 0 }, { 7, 0, 0 } },   { { 5, 0, 0 }, { 32, 0, 0 } },
    { { 3, 2, 1 }, { 8, 4, 1 } },    { { 2, 3, 4 }, { 3, 5, 2 } },   { { 1, 1, 7 }, { 1, 2, 16 } },
    { { 1000, 1, 1 }, { 1, 1, 1 } }, { { 2, 1, 1 }, { 256, 1, 1 } },
  };
  enum { MOST = 4096 };
  rill_stream stream = new_stream("stream");
  uint32_t *count = pinned(MOST * sizeof *count);
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    rill_launch launch = one_thread;
    launch.grid = shapes[i].grid;
    launch.block = shapes[i].block;
    const rill_dim3 sizes[] = { launch.grid, launch.block };
    uint32_t threads = 1;
    for (int j = 0; j < 2; j++) {
      threads *= sizes[j].x * (sizes[j].y == 0 ? 1 : sizes[j].y) * (sizes[j].z == 0 ? 1 : sizes[j].z);
    }
    memset(count, 0, MOST * sizeof *count);
    assert_ok(count_threads_launch(stream, &launch, count));
    assert_completes(stream);
    for (uint32_t t = 0; t < MOST; t++) assert_int_equal(count[t], t < threads);
  }
  assert_ok(rill_free(count));
}

/* L13 */
static void barriers_and_dynamic_shared_memory_work(void) {
  rill_stream stream = new_stream("stream");
  const uint32_t blocks[] = { 1, 2, 31, 32, 33, 128, 256 };
  enum { BLOCKS = 5, MOST = BLOCKS * 256 };
  uint32_t *x = pinned(MOST * sizeof *x);
  for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
    const uint32_t n = blocks[b];
    rill_launch launch = rill_launch_1d(BLOCKS * n, n);
    launch.shared_mem_bytes = n * (uint32_t)sizeof *x;
    for (uint32_t i = 0; i < BLOCKS * n; i++) x[i] = i;
    assert_ok(reverse_blocks_launch(stream, &launch, x));
    assert_completes(stream);
    for (uint32_t i = 0; i < BLOCKS * n; i++) assert_int_equal(x[i], i / n * n + (n - 1 - i % n));
  }
  assert_ok(rill_free(x));
}

/* L13 */
static void static_shared_memory_works(void) {
  rill_stream stream = new_stream("stream");
  for (uint32_t n = 1; n <= 256; n *= 2) {
    const rill_launch launch = rill_launch_1d(8 * n, n);
    assert_ok(add_up_launch(stream, &launch, dut.host));
    assert_completes(stream);
    for (uint32_t i = 0; i < 8; i++) assert_int_equal(dut.host[i], n * (n - 1) / 2);
  }
}

/* A complete pipeline: upload, two kernels, download, with a size that is not a multiple of the block. */
static void computes_what_the_host_computes(void) {
  enum { N = 10007 };
  rill_stream stream = new_stream("stream");
  const size_t bytes = N * sizeof(float);
  float *x = pinned(bytes), *y = pinned(bytes), *dx = NULL, *dy = NULL;
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, N, &dx));
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, N, &dy));
  for (int i = 0; i < N; i++) x[i] = (float)i, y[i] = (float)(N - i);
  const rill_launch launch = rill_launch_1d(N, 128);
  assert_ok(rill_copy_async(stream, dx, x, bytes));
  assert_ok(rill_copy_async(stream, dy, y, bytes));
  assert_ok(scale_launch(stream, &launch, N, 0.5f, dx));
  assert_ok(axpy_launch(stream, &launch, N, 2.0f, dx, dy));
  assert_ok(rill_copy_async(stream, y, dy, bytes));
  assert_completes(stream);
  for (int i = 0; i < N; i++) assert_true(y[i] == (float)N);
  assert_ok(rill_free(dx));
  assert_ok(rill_free(dy));
  assert_ok(rill_free(x));
  assert_ok(rill_free(y));
}

static const char *increments(unsigned index, void *shared) {
  (void)index;
  const rill_stream stream = *(const rill_stream *)shared;
  const rill_launch launch = rill_launch_1d(64, 32);
  for (unsigned i = 0; i < 50; i++) REQUIRE_OK(increment_launch(stream, &launch, dut.memory));
  return NULL;
}

/* L8, T2: twenty threads launch on one stream; each launch runs once. */
static void many_threads_launch_on_one_stream(void) {
  rill_stream stream = new_stream("shared");
  run_threads(20, increments, &stream);
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 20 * 50 * 64);
}

/* L8: one thread launches on twenty streams. */
static void one_thread_launches_on_many_streams(void) {
  rill_stream streams[20], last = new_stream("last");
  const rill_launch launch = rill_launch_1d(64, 32);
  for (unsigned i = 0; i < 20; i++) streams[i] = new_stream("stream");
  for (unsigned i = 0; i < 1000; i++) assert_ok(increment_launch(streams[i % 20], &launch, dut.memory));
  for (unsigned i = 0; i < 20; i++) assert_ok(rill_stream_wait_stream(last, streams[i]));
  read_cell(last, 0);
  assert_completes(last);
  assert_int_equal(dut.host[0], 1000 * 64);
}

/* C3.14: two kernels that wait for each other run concurrently. */
static void streams_overlap(void) {
  rill_stream first = new_stream("first"), second = new_stream("second");
  unsigned *flag = dut.host, *timed_out = dut.host + 1;
  assert_ok(set_flag_launch(second, &one_thread, flag, 0)); /* launched once before, so that the kernel is loaded */
  assert_completes(second);
  assert_ok(wait_for_flag_launch(first, &one_thread, flag, 5, UINT64_C(20) * 1000 * MILLISECOND, timed_out));
  assert_ok(set_flag_launch(second, &one_thread, flag, 5));
  assert_completes(first);
  assert_int_equal(*timed_out, 0);
}

TESTS_ON_EACH_DEVICE("kernels", TEST(kernels_may_have_no_arguments), TEST(arguments_of_every_type_arrive),
                     TEST(thirty_two_arguments_arrive), TEST(arguments_are_copied_at_the_call),
                     TEST(every_thread_runs_once), TEST(barriers_and_dynamic_shared_memory_work),
                     TEST(static_shared_memory_works), TEST(computes_what_the_host_computes),
                     TEST(many_threads_launch_on_one_stream), TEST(one_thread_launches_on_many_streams),
                     TEST(streams_overlap))
