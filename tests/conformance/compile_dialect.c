/* rill_module_compile: the contents of sources in the dialect (C6.1, C6.3, C6.4, C6.7). A fake device cannot run
 * compiled code: it runs host code of a kernel with the same name. The sources here therefore contain kernels of the
 * linked bundles, with their names. Cases that lose the device, or that can be observed only from outside, run in their
 * own process. */
#include "fault/children.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "basic.rill.h"
#include "dialect.rill.h"
#include "dialect_faults.rill.h"
#include "dialect_warps.rill.h"
#include "launch.rill.h"

static const rill_bundle *const volatile host_code[] = { /* referenced so that they are linked */
                                                         &basic_bundle, &dialect_bundle, &dialect_faults_bundle,
                                                         &dialect_warps_bundle, &launch_bundle
};

static bool can_compile(void) { return rill_device_supports(dut.device, RILL_FEATURE_RTC, NULL); }

static rill_status compile_on(rill_device device, const char *source, const rill_compile_options *more,
                              rill_module *out) {
  rill_compile_options options = RILL_COMPILE_OPTIONS_INIT;
  if (more != NULL) options = *more;
  options.no_cache = true;
  if (options.label == NULL) options.label = "my kernels, first try.cu";
  return rill_module_compile(device, source, &options, out);
}

/* Compiles a valid source, and returns one of its kernels. */
static rill_kernel compile_kernel(const char *source, const rill_compile_options *more, const char *name) {
  rill_module module = RILL_NULL_MODULE;
  rill_kernel kernel = RILL_NULL_KERNEL;
  const rill_status status = compile_on(dut.device, source, more, &module);
  if (status != RILL_OK) print_error("%s\n", rill_compile_log());
  assert_ok(status);
  assert_ok(rill_module_get_kernel(module, name, &kernel));
  assert_ok(rill_module_release(module));
  return kernel;
}

/* ---- variables ---- */

static const char with_variables[] = "#include <rill/device/kernel.h>\n"
                                     "__constant__ unsigned factors[4];\n"
                                     "__constant__ double offset_of_all;\n"
                                     "__device__ unsigned total;\n"
                                     "static __device__ unsigned hidden = 3;\n"
                                     "__device__ const unsigned fixed = 4;\n"
                                     "namespace inner { __device__ unsigned deep = 5; }\n"
                                     "__device__ unsigned helper(unsigned x) { return x + hidden - 3; }\n"
                                     "RILL_KERNEL(give_constants, unsigned *out, double *offset) {\n"
                                     "  __shared__ unsigned together;\n"
                                     "  together = fixed;\n"
                                     "  for (unsigned i = 0; i < together; i++) out[i] = helper(factors[i]);\n"
                                     "  *offset = offset_of_all + (inner::deep - 5);\n"
                                     "  atomicAdd(&total, 1u);\n"
                                     "}\n";

/* C6.3: address and size of variables; anything else in the source is refused. */
static void finds_variables(void) {
  static const char *const none[] = {
    "",         "FACTORS",        "factor",         "hidden",        "deep",   "helper",
    "together", "give_constants", "rill_cpu_image", "rill_services", "stdout", "environ",
    "malloc",   "_edata",         "__bss_start",    "__dso_handle"
  };
  rill_module module = RILL_NULL_MODULE, other = RILL_NULL_MODULE;
  void *factors = NULL, *offset = NULL, *total = NULL, *of_other = NULL, *p = NULL;
  size_t size = 0;
  rill_memory_info info = RILL_MEMORY_INFO_INIT;
  if (!can_compile()) return;
  assert_ok(compile_on(dut.device, with_variables, NULL, &module));
  assert_ok(rill_module_get_global(module, "factors", &factors, &size));
  assert_int_equal(size, 4 * sizeof(unsigned));
  assert_ok(rill_module_get_global(module, "offset_of_all", &offset, &size));
  assert_int_equal(size, sizeof(double));
  assert_ok(rill_module_get_global(module, "total", &total, &size));
  assert_int_equal(size, sizeof(unsigned));
  assert_true(factors != offset && offset != total && total != factors);
  assert_ok(rill_memory_get_info(factors, &info));
  assert_int_equal(info.size, 4 * sizeof(unsigned));
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    if (dut.gpu && strcmp(none[i], "hidden") == 0) continue; /* drivers also find static variables */
    assert_fails(rill_module_get_global(module, none[i], &p, &size), RILL_ERROR_NOT_FOUND);
    assert_null(p);
  }
  assert_ok(compile_on(dut.device, with_variables, NULL, &other));
  assert_ok(rill_module_get_global(other, "factors", &of_other, NULL));
  assert_ptr_not_equal(factors, of_other);
  assert_ok(rill_module_release(module));
  assert_ok(rill_module_release(other));
}

/* C6.4: kernels see values that were copied to a variable or passed with a launch. */
static void kernels_see_the_same_variables(void) {
  const unsigned values[4] = { 2, 3, 5, 7 }, others[4] = { 11, 13, 17, 19 };
  const double offset = -1.5;
  rill_module module = RILL_NULL_MODULE;
  rill_kernel kernel = RILL_NULL_KERNEL;
  void *factors = NULL, *total = NULL;
  unsigned count = 0, zero = 0;
  if (!can_compile()) return;
  rill_stream stream = new_stream("stream");
  assert_ok(compile_on(dut.device, with_variables, NULL, &module));
  assert_ok(rill_module_get_kernel(module, "give_constants", &kernel));
  assert_ok(rill_module_get_global(module, "factors", &factors, NULL));
  assert_ok(rill_module_get_global(module, "total", &total, NULL));
  rill_launch shape = rill_launch_1d(1, 1);
  unsigned *out = dut.host, *second = dut.host + 4;
  double *out_offset = (double *)(void *)(dut.host + 8);
  assert_ok(rill_copy_async(stream, factors, values, sizeof values));
  assert_ok(rill_fill_async(stream, total, &zero, sizeof zero, 1));
  assert_ok(rill_stream_launch(stream, kernel, &shape, RILL_ARGS(out, out_offset)));
  const rill_constant constants[] = { { "factors", others, sizeof others },
                                      { "offset_of_all", &offset, sizeof offset } };
  shape.constants = constants;
  shape.constant_count = 2;
  assert_ok(rill_stream_launch(stream, kernel, &shape, RILL_ARGS(second, out_offset)));
  const rill_constant unknown = { "no_such_variable", values, 4 };
  shape.constants = &unknown;
  shape.constant_count = 1;
  assert_fails(rill_stream_launch(stream, kernel, &shape, RILL_ARGS(second, out_offset)), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_copy_async(stream, &count, total, sizeof count));
  assert_completes(stream);
  assert_memory_equal(out, values, sizeof values);
  assert_memory_equal(second, others, sizeof others);
  assert_true(*out_offset == offset);
  assert_int_equal(count, 2);
  assert_ok(rill_kernel_release(kernel));
  assert_ok(rill_module_release(module));
}

/* ---- threads that synchronize ---- */

/* Checks sums over blocks, which are correct only if each barrier synchronizes. */
static void check_sums(const char *source, const rill_compile_options *options) {
  enum { THREADS = 16, BLOCKS = 2, N = THREADS * BLOCKS };
  rill_stream stream = new_stream("sums");
  rill_kernel kernel = compile_kernel(source, options, "block_sum");
  rill_launch launch = rill_launch_1d(N, THREADS);
  launch.shared_mem_bytes = THREADS * sizeof(float);
  float *x = (float *)(void *)dut.host, *sums = x + N;
  const int n = N;
  for (int i = 0; i < N; i++) x[i] = (float)i;
  assert_ok(rill_stream_launch(stream, kernel, &launch, RILL_ARGS(n, x, sums)));
  assert_completes(stream);
  assert_true(sums[0] == 120.0f && sums[1] == 376.0f);
  assert_ok(rill_kernel_release(kernel));
}

#define SUM_SOURCE(FIRST, BARRIER)                                                                           \
  "#include <rill/device/kernel.h>\n" FIRST "RILL_KERNEL(block_sum, int n, const float *x, float *sums) {\n" \
  "  RILL_DYNAMIC_SHARED(float, partial);\n"                                                                 \
  "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"                                                 \
  "  partial[threadIdx.x] = i < n ? x[i] : 0.0f;\n"                                                          \
  "  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {\n"                                          \
  "    " BARRIER "\n"                                                                                        \
  "    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];"                         \
  "  }\n"                                                                                                    \
  "  if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];\n"                                                 \
  "}\n"

static void barriers_in_headers_are_found(void) {
  const rill_compile_header header = { "mine/meet.h", "static __device__ void meet() { __syncthreads(); }\n" };
  rill_compile_options options = RILL_COMPILE_OPTIONS_INIT;
  if (!can_compile()) return;
  options.headers = &header;
  options.header_count = 1;
  check_sums(SUM_SOURCE("#include \"mine/meet.h\"\n", "meet();"), &options);
}

static void barriers_in_definitions_are_found(void) {
  const char *const word = "-DMEET=__syncthreads()";
  rill_compile_options options = RILL_COMPILE_OPTIONS_INIT;
  if (!can_compile()) return;
  options.options = &word;
  options.option_count = 1;
  check_sums(SUM_SOURCE("", "MEET;"), &options);
}

static void barriers_in_pieces_are_found(void) {
  if (!can_compile()) return;
  check_sums(SUM_SOURCE("", "__sy\\\nncthreads();"), NULL);
  check_sums(SUM_SOURCE("#define JOIN(a, b) a##b\n", "JOIN(__sync, threads)();"), NULL);
}

/* The vendors' compilers do not read files, or not from their original folder. */
static void barriers_in_files_are_found(void) {
  char path[] = "/tmp/rill-compile-XXXXXX", source[2048];
  if (!can_compile() || dut.gpu) return;
  const int file = mkstemp(path);
  assert_true(file >= 0 && write(file, "#define MEET __syncthreads()\n", 29) == 29);
  (void)close(file);
  (void)snprintf(source, sizeof source, "#include \"%s\"\n%s", path, SUM_SOURCE("", "MEET;"));
  check_sums(source, NULL);
  (void)unlink(path);
}

/* Computes the lane of a thread, in a kernel without any synchronization. */
static void lanes_are_numbered(void) {
  static const char source[] = "#include <rill/device/kernel.h>\n"
                               "RILL_KERNEL(warp_places, unsigned *lanes, unsigned *sizes) {\n"
                               "  lanes[threadIdx.x] = rill_lane();\n"
                               "  sizes[threadIdx.x] = rill_warp_size();\n"
                               "}\n";
  enum { THREADS = 70 };
  uint32_t *memory = NULL;
  if (!can_compile()) return;
  rill_stream stream = new_stream("lanes");
  rill_kernel kernel = compile_kernel(source, NULL, "warp_places");
  const rill_launch launch = rill_launch_1d(THREADS, THREADS);
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, 2 * THREADS, &memory));
  uint32_t *sizes = memory + THREADS;
  assert_ok(rill_stream_launch(stream, kernel, &launch, RILL_ARGS(memory, sizes)));
  assert_completes(stream);
  for (unsigned i = 0; i < THREADS; i++) {
    assert_int_equal(memory[i], i % dut.info.warp_size);
    assert_int_equal(sizes[i], dut.info.warp_size);
  }
  assert_ok(rill_free(memory));
  assert_ok(rill_kernel_release(kernel));
}

/* ---- forms of sources ---- */

static void bounded_kernels_run(void) {
  static const char source[] = "#include <rill/device/kernel.h>\n"
                               "#define BOUND 256\n"
                               "RILL_KERNEL_BOUNDED(BOUND, add_up, unsigned *sums) {\n"
                               "  __shared__ unsigned values[BOUND];\n"
                               "  values[threadIdx.x] = threadIdx.x;\n"
                               "  __syncthreads();\n"
                               "  for (unsigned i = 0, sum = 0; i < blockDim.x && threadIdx.x == 0; i++) {\n"
                               "    sum += values[i];\n"
                               "    sums[blockIdx.x] = sum;\n"
                               "  }\n"
                               "}\n"
                               "RILL_KERNEL_BOUNDED(1, nothing) {}\n";
  if (!can_compile()) return;
  rill_stream stream = new_stream("bounded");
  rill_kernel kernel = compile_kernel(source, NULL, "add_up");
  const rill_launch launch = rill_launch_1d(256, 128);
  unsigned *sums = dut.host;
  size_t size = 0;
  if (rill_device_supports(dut.device, RILL_FEATURE_KERNEL_ARGS, NULL) && !dut.gpu) {
    assert_ok(rill_kernel_arg_size(kernel, 0, &size));
    assert_int_equal(size, sizeof sums);
  }
  assert_ok(rill_stream_launch(stream, kernel, &launch, RILL_ARGS(sums)));
  assert_completes(stream);
  assert_int_equal(sums[0], 127 * 64);
  assert_int_equal(sums[1], 127 * 64);
  assert_ok(rill_kernel_release(kernel));
  assert_ok(rill_kernel_release(compile_kernel(source, NULL, "nothing")));
}

static void sources_without_kernels_compile(void) {
  static const char *const sources[] = { "", "\n", "#include <rill/device/kernel.h>\n",
                                         "#include <rill/device/kernel.h>\n__device__ unsigned total;\n" };
  rill_kernel kernel = { 1 };
  if (!can_compile()) return;
  for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
    rill_module module = RILL_NULL_MODULE;
    assert_ok(compile_on(dut.device, sources[i], NULL, &module));
    assert_fails(rill_module_get_kernel(module, "scale", &kernel), RILL_ERROR_NOT_FOUND);
    assert_int_equal(kernel.id, 0);
    assert_ok(rill_module_release(module));
  }
}

/* An unterminated construct at the end of a source does not affect what rill appends. */
static void accepts_any_last_line(void) {
  static const char *const ends[] = { "", "// the end", "// the end \\", "#define LAST 1", "#define LAST 1 \\", "\n" };
  char source[512];
  if (!can_compile()) return;
  for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
    (void)snprintf(source, sizeof source, "#include <rill/device/kernel.h>\nRILL_KERNEL(nothing) {}\n%s", ends[i]);
    assert_ok(rill_kernel_release(compile_kernel(source, NULL, "nothing")));
  }
}

/* Messages name the label, including its spaces, or the file of a #line directive. */
static void messages_name_the_source(void) {
  rill_module module = { 1 };
  if (!can_compile()) return;
  assert_fails_in("rill_module_compile", compile_on(dut.device, "\n\n#error \"wrong here\"\n", NULL, &module),
                  RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(module.id, 0);
  assert_says("the source \"my kernels, first try.cu\" has errors");
  assert_non_null(strstr(rill_compile_log(), "my kernels, first try.cu"));
  assert_non_null(strstr(rill_compile_log(), "3"));
  assert_fails_in("rill_module_compile",
                  compile_on(dut.device, "#line 7012 \"made by.y\"\n#error \"wrong there\"\n", NULL, &module),
                  RILL_ERROR_INVALID_ARGUMENT);
  assert_non_null(strstr(rill_compile_log(), "made by.y"));
  assert_non_null(strstr(rill_compile_log(), "7012"));
}

/* ---- in a process of its own ---- */

static rill_device own_device;
static rill_stream own_stream;
static unsigned *own_out;

static bool begin(const char *source, const char *name, rill_kernel *kernel) {
  rill_module module = RILL_NULL_MODULE;
  void *p = NULL;
  if (rill_device_open(getenv("RILL_TEST_DEVICE"), &own_device) != RILL_OK ||
      rill_stream_create(own_device, NULL, &own_stream) != RILL_OK ||
      rill_alloc(own_device, 64 * sizeof *own_out, RILL_MEMORY_PINNED, &p) != RILL_OK ||
      compile_on(own_device, source, NULL, &module) != RILL_OK ||
      rill_module_get_kernel(module, name, kernel) != RILL_OK)
    return false;
  own_out = p;
  return rill_module_release(module) == RILL_OK;
}

static bool print(void) {
  static const char source[] = "#include <stdio.h>\n"
                               "#include <rill/device/kernel.h>\n"
                               "RILL_KERNEL(print_line, int i, double v) { printf(\"dialect: %d %.2f\\n\", i, v); }\n";
  rill_kernel kernel = RILL_NULL_KERNEL;
  const rill_launch one_thread = rill_launch_1d(1, 1);
  const int i = 7;
  const double v = 2.5;
  return begin(source, "print_line", &kernel) &&
         rill_stream_launch(own_stream, kernel, &one_thread, RILL_ARGS(i, v)) == RILL_OK &&
         rill_stream_synchronize(own_stream) == RILL_OK;
}

static bool assert_that(void) {
  static const char source[] = "#include <assert.h>\n"
                               "#include <rill/device/kernel.h>\n"
                               "RILL_KERNEL(assert_in_kernel, unsigned bad, unsigned *out) {\n"
                               "  const unsigned number = blockIdx.x * blockDim.x + threadIdx.x;\n"
                               "  assert(number != bad);\n"
                               "  out[number] = number;\n"
                               "}\n";
  rill_kernel kernel = RILL_NULL_KERNEL;
  const rill_launch launch = rill_launch_1d(40, 20);
  unsigned bad = 1000;
  if (!begin(source, "assert_in_kernel", &kernel) ||
      rill_stream_launch(own_stream, kernel, &launch, RILL_ARGS(bad, own_out)) != RILL_OK ||
      rill_stream_synchronize(own_stream) != RILL_OK || own_out[39] != 39)
    return false;
  bad = 25;
  return rill_stream_launch(own_stream, kernel, &launch, RILL_ARGS(bad, own_out)) == RILL_OK &&
         rill_stream_synchronize(own_stream) == RILL_ERROR_DEVICE_LOST;
}

static int run_case(const char *name) {
  (void)setenv("RILL_CACHE", "off", 1);
  const bool right = strcmp(name, "print") == 0 ? print() : assert_that();
  (void)printf("last error: %s\n", rill_last_error_text());
  return right ? 0 : 1;
}

static void check_child(const char *name, bool may_abort, const char *const *texts, size_t count) {
  char device[64];
  (void)snprintf(device, sizeof device, "RILL_TEST_DEVICE=%s", dut.name);
  const char *const variables[] = { device };
  struct child *child = calloc(1, sizeof *child);
  assert_non_null(child);
  run_child(name, variables, 1, child);
  bool right = child->exit_code == 0 || (may_abort && child->signal == SIGABRT);
  for (size_t i = 0; i < count; i++) right = right && strstr(child->output, texts[i]) != NULL;
  if (!right) print_error("%s: %s\n%s\n", name, child_end(child), child->output);
  free(child);
  assert_true(right);
}

static void kernels_print(void) {
  const char *const line = "dialect: 7 2.50\n";
  if (can_compile()) check_child("print", false, &line, 1);
}

/* The cpu device reports the location; AMD's runtime ends the process at a trap (C2.6). */
static void failed_assertions_are_printed(void) {
  static const char *const texts[] = { "my kernels, first try.cu:5", "block (1, 0, 0)", "thread (5, 0, 0)",
                                       "number != bad" };
  if (can_compile()) check_child("assert", dut.info.backend == RILL_BACKEND_HIP, texts, dut.gpu ? 0 : 4);
}

int main(int argc, char **argv) {
  static const struct test tests[] = {
    TEST(finds_variables),
    TEST(kernels_see_the_same_variables),
    TEST(barriers_in_headers_are_found),
    TEST(barriers_in_definitions_are_found),
    TEST(barriers_in_pieces_are_found),
    TEST(barriers_in_files_are_found),
    TEST(lanes_are_numbered),
    TEST(bounded_kernels_run),
    TEST(sources_without_kernels_compile),
    TEST(accepts_any_last_line),
    TEST(messages_name_the_source),
    TEST(kernels_print),
    TEST(failed_assertions_are_printed),
  };
  (void)host_code[0];
  if (argc > 1) return run_case(argv[1]);
  (void)setenv("RILL_CACHE", "off", 1);
  return RUN_ON_EACH_DEVICE("rill_module_compile: the dialect", tests);
}
