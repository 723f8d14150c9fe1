/* Large arrays in kernels: on the cpu device, stacks are as large as each kernel needs (C6.1). */
#include "support/testing.h"

#include "dialect_stacks.rill.h"

#include <stdio.h>
#include <unistd.h>

enum { MOST = 4096 };

typedef rill_status (*launch_function)(rill_stream, const rill_launch *, unsigned *);

static const struct {
  const char *name;
  launch_function launch;
  unsigned threads, block, count;
} kernels[] = {
  { "large_in_loops", large_in_loops_launch, 256, 64, 20000 },
  { "large_between_barriers", large_between_barriers_launch, 256, 64, 20000 },
  { "large_on_fibers", large_on_fibers_launch, 192, 64, 20000 },
  { "small_on_fibers", small_on_fibers_launch, 4096, 1024, 100 },
  { "larger_on_fibers", larger_on_fibers_launch, 24, 8, 250000 },
  { "large_in_function", large_in_function_launch, 128, 32, 30000 },
  { "large_on_fibers", large_on_fibers_launch, 1024, 1024, 20000 },
  { "largest", largest_launch, 2, 2, 2000000 },
};
enum { KERNELS = sizeof kernels / sizeof *kernels };

static unsigned *out;

static rill_status launch(rill_stream stream, unsigned which, unsigned *to) {
  const rill_launch shape = rill_launch_1d(kernels[which].threads, kernels[which].block);
  return kernels[which].launch(stream, &shape, to);
}

static bool is_right(unsigned which, const unsigned *from) {
  const uint32_t n = kernels[which].count, pairs = (uint32_t)((uint64_t)n * (n - 1) / 2);
  for (uint32_t t = 0; t < kernels[which].threads; t++)
    if (from[t] != pairs + n * t) return false;
  return true;
}

static void each_kernel_has_stack_space(void) {
  if (dut.gpu) return; /* a GPU reserves stack memory for as many threads as it can hold */
  rill_stream stream = new_stream("stream");
  for (unsigned round = 0; round < 2; round++) {
    for (unsigned i = 0; i < KERNELS; i++) {
      memset(out, 0, MOST * sizeof *out);
      assert_ok(launch(stream, i, out));
      assert_completes(stream);
      if (!is_right(i, out)) fail_msg("kernel %s", kernels[i].name);
    }
  }
}

/* Alternates kernels with small and large stacks, on workers that have both. */
static const char *runs_some(unsigned index, void *shared) {
  rill_stream stream;
  unsigned *const to = (unsigned *)shared + (size_t)index * MOST;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  for (unsigned i = 0; i < 14; i++) {
    const unsigned which = (i + index) % 6;
    REQUIRE_OK(launch(stream, which, to));
    REQUIRE_OK(rill_stream_synchronize(stream));
    REQUIRE(is_right(which, to));
  }
  REQUIRE_OK(rill_stream_release(stream));
  return NULL;
}

static void kernels_run_side_by_side(void) {
  enum { THREADS = 3 };
  if (dut.gpu) return;
  unsigned *all = NULL;
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, (size_t)THREADS * MOST, &all));
  run_threads(THREADS, runs_some, all);
  assert_ok(rill_free(all));
}

/* ---- compiled at run time ---- */

#define SOURCE(count)                                                     \
  "#include <rill/device/kernel.h>\n"                                     \
  "RILL_KERNEL(own, unsigned n, unsigned *out) {\n"                       \
  "  volatile unsigned a[" #count "];\n"                                  \
  "  for (unsigned i = 0; i < " #count "; i++) a[i] = threadIdx.x + i;\n" \
  "  __syncthreads();\n"                                                  \
  "  unsigned sum = 0;\n"                                                 \
  "  for (unsigned i = 0; i < n; i++) sum += a[i];\n"                     \
  "  out[threadIdx.x] = sum;\n"                                           \
  "}\n"

static void run_time_kernels_have_stack_space(void) {
  if (dut.gpu || !rill_device_supports(dut.device, RILL_FEATURE_RTC, NULL)) return;
  rill_stream stream = new_stream("stream");
  rill_module module;
  rill_kernel kernel;
  assert_ok(rill_module_compile(dut.device, SOURCE(20000), NULL, &module));
  assert_ok(rill_module_get_kernel(module, "own", &kernel));
  const rill_launch shape = rill_launch_1d(64, 64);
  const uint32_t n = 20000;
  assert_ok(rill_stream_launch(stream, kernel, &shape, RILL_ARGS(n, out)));
  assert_completes(stream);
  for (uint32_t t = 0; t < 64; t++) assert_int_equal(out[t], (uint32_t)((uint64_t)n * (n - 1) / 2) + n * t);
  assert_ok(rill_kernel_release(kernel));
  assert_ok(rill_module_release(module));
}

static void too_large_stacks_are_refused_at_run_time(void) {
  if (dut.gpu || !rill_device_supports(dut.device, RILL_FEATURE_RTC, NULL)) return;
  static const char no_bound[] = "#include <rill/device/kernel.h>\n"
                                 "RILL_KERNEL(own, unsigned n, unsigned *out) {\n"
                                 "  unsigned *a = (unsigned *)__builtin_alloca(n * 4);\n"
                                 "  a[0] = 1; a[n - 1] = 2; out[0] = a[n / 2];\n"
                                 "}\n";
  rill_module module;
  assert_fails(rill_module_compile(dut.device, SOURCE(3000000), NULL, &module), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("8388608");
  assert_non_null(strstr(rill_compile_log(), "bytes of stack"));
  assert_fails(rill_module_compile(dut.device, no_bound, NULL, &module), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("alloca");
}

int main(void) {
  static const struct test tests[] = { TEST(each_kernel_has_stack_space), TEST(kernels_run_side_by_side),
                                       TEST(run_time_kernels_have_stack_space),
                                       TEST(too_large_stacks_are_refused_at_run_time) };
  rill_device cpu;
  (void)setenv("RILL_CACHE", "off", 1);
  if (rill_device_open("cpu", &cpu) != RILL_OK || RILL_NEW(cpu, RILL_MEMORY_PINNED, MOST, &out) != RILL_OK) {
    (void)printf("%s\n", rill_last_error_text());
    return 1;
  }
  return RUN_ON_EACH_DEVICE("large arrays in kernels", tests);
}
