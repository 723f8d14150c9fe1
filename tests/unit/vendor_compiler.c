/* The vendor's run-time compiler, where installed, compiles the dialect without a device. It must have everything that
 * the dialect's headers use. Built once for each vendor. */
#include "backends/gpu/gpu.h"
#include "core/kernel/compile.h"
#include "support/testing.h"

#include <stdio.h>

#ifdef GPU_VENDOR_IS_CUDA
#define TARGET \
  { 9, 0 }
#else
#define TARGET \
  { "gfx90a" }
#endif

static struct rill__device *device;

static struct rill__compile request_for(const char *source) {
  return (struct rill__compile){ .source = source,
                                 .label = "mine.cu",
                                 .standard = 17,
                                 .fuse = true,
                                 .headers = rill__dialect_headers,
                                 .header_count = rill__dialect_header_count };
}

static const char all_of_it[] =
    "#include <rill/device/kernel.h>\n"
    "struct pair { float a; int b; };\n"
    "template <class T> static __device__ T twice(T x) { return x + x; }\n"
    "RILL_KERNEL(all, int n, pair p, const uint64_t *u, float *x) {\n"
    "  RILL_DYNAMIC_SHARED(float, t);\n"
    "  __shared__ int counts[32];\n"
    "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "  float v = i < n ? x[i] : 0;\n"
    "  for (unsigned step = rill_warp_size() / 2; step > 0; step /= 2) v += rill_shuffle_down(v, step);\n"
    "  counts[rill_lane() % 32] = __syncthreads_count(v > 0);\n"
    "  t[threadIdx.x] = sqrtf(v) + static_cast<float>(rill_ballot(v > 0)) + (rill_vote_all(v > 0) ? 1 : 0);\n"
    "  __syncthreads();\n"
    "  if (i < n) x[i] = t[0] + fmaxf(p.a, twice(static_cast<float>(u[i] % UINT32_MAX))) + counts[0];\n"
    "  if (i < n) atomicAdd(x, min(1.0f, p.a));\n"
    "}\n";

static void compiles_the_dialect(void) {
  const struct rill__compile request = request_for(all_of_it);
  struct rill__compiled result = { .image = NULL };
  char identity[256] = "";
  assert_ok(gpu_compiler(device, identity, sizeof identity));
  assert_true(identity[0] != '\0');
  const rill_status status = gpu_compile(device, &request, &result);
  if (result.image == NULL) print_message("%s\n", result.log != NULL ? result.log : "no log");
  assert_ok(status);
  assert_non_null(result.image);
  assert_true(result.size > 500);
  assert_memory_equal(result.image, "\177ELF", 4);
  free(result.image);
  free(result.log);
}

/* Includes the C headers that a source may use with all compilers. Under NDEBUG the argument of an assertion is not
 * even parsed. */
static void accepts_the_headers_of_c(void) {
  const struct rill__compile request = request_for("#include <assert.h>\n"
                                                   "#include <math.h>\n"
                                                   "#include <stddef.h>\n"
                                                   "#include <stdint.h>\n"
                                                   "#include <stdio.h>\n"
                                                   "#include <string.h>\n"
                                                   "#include <rill/device/kernel.h>\n"
                                                   "RILL_KERNEL(first, int n, float *x) {\n"
                                                   "  assert(n != 3);\n"
                                                   "  printf(\"%d\\n\", n);\n"
                                                   "  memset(x, 0, sizeof *x);\n"
                                                   "}\n"
                                                   "#define NDEBUG\n"
                                                   "#include <assert.h>\n"
                                                   "RILL_KERNEL(second, int n) { assert(n.nothing); }\n"
                                                   "#undef NDEBUG\n"
                                                   "#include <assert.h>\n"
                                                   "RILL_KERNEL(third, int n) { assert(n == 0); }\n");
  struct rill__compiled result = { .image = NULL };
  const rill_status status = gpu_compile(device, &request, &result);
  if (result.image == NULL) print_message("%s\n", result.log != NULL ? result.log : "no log");
  assert_ok(status);
  assert_non_null(result.image);
  free(result.image);
  free(result.log);
}

static void reports_errors_by_line(void) {
  const struct rill__compile request =
      request_for("#include <rill/device/kernel.h>\n\nRILL_KERNEL(k) { undeclared(); }\n");
  struct rill__compiled result = { .image = NULL };
  assert_ok(gpu_compile(device, &request, &result));
  assert_null(result.image);
  assert_non_null(strstr(result.log, "undeclared"));
  assert_non_null(strstr(result.log, "mine.cu"));
  assert_non_null(strstr(result.log, "3"));
  free(result.log);
}

int main(void) {
  static const struct test tests[] = { TEST(compiles_the_dialect), TEST(accepts_the_headers_of_c),
                                       TEST(reports_errors_by_line) };
  static const struct gpu_target target = TARGET;
  char driver[512] = "";
  const char *why = "";
  (void)gpu_load(driver, sizeof driver); /* one vendor's compiler is part of its driver library */
  if (!gpu_rtc_load(&why)) {
    (void)printf("%s\n", why);
    return 77; /* reported as skipped */
  }
  device = aligned_alloc(64, (RILL__PART_OFFSET(struct rill__device) + sizeof(struct gpu_device) + 63) / 64 * 64);
  if (device == NULL) return 1;
  memset(device, 0, RILL__PART_OFFSET(struct rill__device) + sizeof(struct gpu_device));
  gpu_device_of(device)->target = target;
  const int result = RUN_ONCE("vendor_compiler", tests);
  free(device);
  return result;
}
