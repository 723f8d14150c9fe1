/* rill_module_compile (C6.7). A fake device cannot run compiled code: it runs host code of a kernel with the same name.
 * The sources here therefore contain kernels of kernels/basic.kernel.cu, with their names. */
#include "basic.rill.h"
#include "support/testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static const rill_bundle *volatile host_code = &basic_bundle; /* referenced so that it is linked */

static const char scale_source[] = "#include <rill/device/kernel.h>\n"
                                   "RILL_KERNEL(scale, int n, float a, float *x) {\n"
                                   "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                                   "  if (i < n) x[i] = a * x[i];\n"
                                   "}\n";

/* Returns whether this device can compile; if not, checks that the error says so, and skips the test. */
static bool can_compile(void) {
  const char *why = NULL;
  if (rill_device_supports(dut.device, RILL_FEATURE_RTC, &why)) return true;
  rill_module out = { 1 };
  assert_true(why[0] != '\0');
  assert_fails(rill_module_compile(dut.device, scale_source, NULL, &out), RILL_ERROR_UNSUPPORTED);
  assert_says(why);
  assert_int_equal(out.id, 0);
  return false;
}

static rill_status compile(const char *source, const char *const *words, size_t count, rill_module *out) {
  rill_compile_options options = RILL_COMPILE_OPTIONS_INIT;
  options.options = words;
  options.option_count = count;
  options.label = "mine.cu";
  options.no_cache = true;
  return rill_module_compile(dut.device, source, &options, out);
}

static rill_status call_with_device(uint64_t id) {
  rill_module out = { 1 };
  const rill_status status = rill_module_compile((rill_device){ id }, scale_source, NULL, &out);
  assert_int_equal(out.id, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_devices("rill_module_compile", call_with_device); }

static void refuses_null(void) {
  rill_module out = { 1 };
  assert_fails(rill_module_compile(dut.device, NULL, NULL, &out), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(out.id, 0);
  assert_fails(rill_module_compile(dut.device, scale_source, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

static rill_status call_with_size(const void *options) {
  rill_module out = { 1 };
  const rill_status status = rill_module_compile(dut.device, scale_source, options, &out);
  if (status != RILL_OK) assert_int_equal(out.id, 0);
  if (status == RILL_OK) rill_module_release(out);
  return status;
}

static void accepts_older_and_newer_options(void) {
  rill_compile_options options = RILL_COMPILE_OPTIONS_INIT;
  if (!can_compile()) return;
  takes_grown_options("rill_module_compile", call_with_size, &options, sizeof options, sizeof(size_t));
}

/* Multiplies by 3 with the module's kernel "scale". */
static void check_scale(rill_module module) {
  enum { N = 1000 };
  float values[N];
  void *memory = NULL;
  rill_kernel kernel = RILL_NULL_KERNEL;
  rill_stream stream = new_stream("scale");
  for (int i = 0; i < N; i++) values[i] = (float)i;
  assert_ok(rill_module_get_kernel(module, "scale", &kernel));
  assert_ok(rill_alloc(dut.device, sizeof values, RILL_MEMORY_DEVICE, &memory));
  assert_ok(rill_copy_async(stream, memory, values, sizeof values));
  const rill_launch launch = rill_launch_1d(N, 128);
  const int n = N;
  const float a = 3.0f;
  assert_ok(rill_stream_launch(stream, kernel, &launch, RILL_ARGS(n, a, memory)));
  assert_ok(rill_copy_async(stream, values, memory, sizeof values));
  assert_ok(rill_stream_synchronize(stream));
  for (int i = 0; i < N; i++) assert_true(values[i] == 3.0f * (float)i);
  assert_ok(rill_free(memory));
  assert_ok(rill_kernel_release(kernel));
}

static void compiles_a_kernel_that_runs(void) {
  rill_module module = RILL_NULL_MODULE, other = RILL_NULL_MODULE;
  if (!can_compile()) return;
  assert_ok(compile(scale_source, NULL, 0, &module));
  check_scale(module);
  assert_ok(compile(scale_source, NULL, 0, &other));
  assert_false(rill_module_equal(module, other));
  assert_ok(rill_module_release(module));
  check_scale(other);
  assert_ok(rill_module_release(other));
}

static void compiles_with_definitions_and_headers(void) {
  static const char source[] = "#include <rill/device/kernel.h>\n"
                               "#include \"mine/index.h\"\n"
                               "#if __cplusplus < 202002L || !defined(WANTED) || defined(UNWANTED)\n"
                               "#error \"options were lost\"\n"
                               "#endif\n"
                               "RILL_KERNEL(scale, int n, float a, float *x) {\n"
                               "  const int i = INDEX;\n"
                               "  if (i < n) x[i] = FACTOR * x[i];\n"
                               "}\n";
  const rill_compile_header headers[] = {
    { "mine/index.h", "#include \"mine/deep/er.h\"\n" },
    { "mine/deep/er.h", "#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)\n" },
  };
  const char *const words[] = { "-DWANTED",   "-DFACTOR=(a + 0)",  "-DUNWANTED", "-UUNWANTED",
                                "-std=c++20", "-ffp-contract=off", "-g" };
  rill_compile_options options = RILL_COMPILE_OPTIONS_INIT;
  rill_module module = RILL_NULL_MODULE;
  if (!can_compile()) return;
  options.options = words;
  options.option_count = sizeof words / sizeof words[0];
  options.headers = headers;
  options.header_count = 2;
  assert_ok(rill_module_compile(dut.device, source, &options, &module));
  check_scale(module);
  assert_ok(rill_module_release(module));
}

/* Compiles a kernel whose threads synchronize and use shared memory; `meet` is the statement that synchronizes. */
static void check_block_sum(const char *meet, const char *const *words, size_t count) {
  static const char form[] = "#include <rill/device/kernel.h>\n"
                             "RILL_KERNEL(block_sum, int n, const float *x, float *sums) {\n"
                             "  RILL_DYNAMIC_SHARED(float, partial);\n"
                             "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "  partial[threadIdx.x] = i < n ? x[i] : 0.0f;\n"
                             "  %s;\n"
                             "  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {\n"
                             "    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];\n"
                             "    %s;\n"
                             "  }\n"
                             "  if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];\n"
                             "}\n";
  enum { THREADS = 64, BLOCKS = 4, N = THREADS * BLOCKS };
  float values[N], sums[BLOCKS];
  char source[2 * sizeof form];
  void *memory = NULL, *result = NULL;
  rill_module module = RILL_NULL_MODULE;
  rill_kernel kernel = RILL_NULL_KERNEL;
  rill_stream stream = new_stream("sum");
  (void)snprintf(source, sizeof source, form, meet, meet);
  for (int i = 0; i < N; i++) values[i] = (float)(i % 7);
  assert_ok(compile(source, words, count, &module));
  assert_ok(rill_module_get_kernel(module, "block_sum", &kernel));
  assert_ok(rill_alloc(dut.device, sizeof values, RILL_MEMORY_DEVICE, &memory));
  assert_ok(rill_alloc(dut.device, sizeof sums, RILL_MEMORY_DEVICE, &result));
  assert_ok(rill_copy_async(stream, memory, values, sizeof values));
  rill_launch launch = rill_launch_1d(N, THREADS);
  launch.shared_mem_bytes = THREADS * sizeof(float);
  const int n = N;
  assert_ok(rill_stream_launch(stream, kernel, &launch, RILL_ARGS(n, memory, result)));
  assert_ok(rill_copy_async(stream, sums, result, sizeof sums));
  assert_ok(rill_stream_synchronize(stream));
  for (int b = 0; b < BLOCKS; b++) {
    float expected = 0;
    for (int i = 0; i < THREADS; i++) expected += values[b * THREADS + i];
    assert_true(sums[b] == expected);
  }
  assert_ok(rill_free(memory));
  assert_ok(rill_free(result));
  assert_ok(rill_kernel_release(kernel));
  assert_ok(rill_module_release(module));
}

static void compiles_kernels_with_barriers(void) {
  if (!can_compile()) return;
  check_block_sum("__syncthreads()", NULL, 0);
}

/* A textual search for barriers would not find this one. */
static void compiles_kernels_with_barriers_in_definitions(void) {
  if (!can_compile()) return;
  check_block_sum("MEET()", (const char *const[]){ "-DMEET=__syncthreads" }, 1);
}

/* The error text has the compiler's message, with the label and the line. */
static void says_what_is_wrong_with_a_source(void) {
  static const char source[] = "#include <rill/device/kernel.h>\n"
                               "\n"
                               "#error \"this source is wrong\"\n";
  rill_module module = { 1 };
  if (!can_compile()) return;
  assert_fails_in("rill_module_compile", compile(source, NULL, 0, &module), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(module.id, 0);
  assert_says("mine.cu");
  assert_says("this source is wrong");
  assert_non_null(strstr(rill_compile_log(), "this source is wrong"));
  assert_ok(compile(scale_source, NULL, 0, &module));
  assert_null(strstr(rill_compile_log(), "this source is wrong"));
  assert_ok(rill_module_release(module));
}

static void refuses_options_that_some_compilers_lack(void) {
  static const char *const words[] = {
    "-O3",   "-I/usr/include", "--use_fast_math", "-D", "-D1",        "-D A", "-DA B=1",
    "-UA=1", "-fplugin=x.so",  "@file",           "",   "-std=c++14", "-o",   "-DA=1\n#include \"x\""
  };
  rill_module module = { 1 };
  if (!can_compile()) return;
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    assert_fails_in("rill_module_compile", compile(scale_source, &words[i], 1, &module), RILL_ERROR_INVALID_ARGUMENT);
    assert_says("options[0]");
    assert_int_equal(module.id, 0);
  }
  const char *const none = NULL;
  assert_fails_in("rill_module_compile", compile(scale_source, &none, 1, &module), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails_in("rill_module_compile", compile(scale_source, NULL, 1, &module), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("option_count is 1");
}

static void refuses_headers_outside_the_source(void) {
  static const rill_compile_header bad[] = {
    { NULL, "" },     { "a.h", NULL }, { "", "" },   { "/etc/a.h", "" }, { "../a.h", "" },      { "a/../b.h", "" },
    { "a//b.h", "" }, { "./a.h", "" }, { "a/", "" }, { "a\"b.h", "" },   { "rill/base.h", "" },
  };
  rill_compile_options options = RILL_COMPILE_OPTIONS_INIT;
  rill_module module = { 1 };
  if (!can_compile()) return;
  options.header_count = 1;
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    options.headers = &bad[i];
    assert_fails(rill_module_compile(dut.device, scale_source, &options, &module), RILL_ERROR_INVALID_ARGUMENT);
    assert_says("headers[0]");
    assert_int_equal(module.id, 0);
  }
  const rill_compile_header twice[] = { { "a.h", "" }, { "a.h", "" } };
  options.headers = twice;
  options.header_count = 2;
  assert_fails(rill_module_compile(dut.device, scale_source, &options, &module), RILL_ERROR_INVALID_ARGUMENT);
  options.headers = NULL;
  assert_fails(rill_module_compile(dut.device, scale_source, &options, &module), RILL_ERROR_INVALID_ARGUMENT);
  options.header_count = 0;
  options.label = "a\"b";
  assert_fails(rill_module_compile(dut.device, scale_source, &options, &module), RILL_ERROR_INVALID_ARGUMENT);
}

/* ---- results on disk ---- */

static size_t count_files(const char *folder) {
  size_t count = 0;
  DIR *listing = opendir(folder);
  assert_non_null(listing);
  for (const struct dirent *item = readdir(listing); item != NULL; item = readdir(listing))
    count += item->d_name[0] != '.';
  (void)closedir(listing);
  return count;
}

static void remove_files(const char *folder) {
  char path[512];
  DIR *listing = opendir(folder);
  for (const struct dirent *item = readdir(listing); item != NULL; item = readdir(listing)) {
    (void)snprintf(path, sizeof path, "%s/%s", folder, item->d_name);
    if (item->d_name[0] != '.') (void)unlink(path);
  }
  (void)closedir(listing);
  (void)rmdir(folder);
}

static void compile_kept(const char *source, const char *word, bool no_cache) {
  rill_compile_options options = RILL_COMPILE_OPTIONS_INIT;
  rill_module module = RILL_NULL_MODULE;
  options.options = &word;
  options.option_count = word != NULL;
  options.no_cache = no_cache;
  assert_ok(rill_module_compile(dut.device, source, &options, &module));
  check_scale(module);
  assert_ok(rill_module_release(module));
}

/* There is one file for each source and set of options; results that may depend on other files, or that must not be
 * cached, have none. */
static void caches_results_on_disk(void) {
  char folder[64] = "/tmp/rill-compile-test-XXXXXX", outside[128], including[512];
  if (!can_compile()) return;
  assert_non_null(mkdtemp(folder));
  assert_int_equal(setenv("RILL_CACHE", folder, 1), 0);
  compile_kept(scale_source, NULL, true);
  assert_int_equal(count_files(folder), 0);
  compile_kept(scale_source, NULL, false);
  compile_kept(scale_source, NULL, false);
  assert_int_equal(count_files(folder), 1);
  compile_kept(scale_source, "-DOTHER", false);
  assert_int_equal(count_files(folder), 2);
  compile_kept(scale_source, "-DOTHER", false);
  assert_int_equal(count_files(folder), 2);
  /* the vendors' compilers do not read files, or not from their original folder */
  if (dut.info.backend == RILL_BACKEND_CPU) {
    (void)snprintf(outside, sizeof outside, "%s/outside.h", folder);
    (void)close(open(outside, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    (void)snprintf(including, sizeof including, "#include \"%s\"\n%s", outside, scale_source);
    compile_kept(including, NULL, false);
    assert_int_equal(count_files(folder), 3); /* the header itself is the third file */
  }
  (void)unsetenv("RILL_CACHE");
  (void)setenv("RILL_CACHE", "off", 1);
  remove_files(folder);
}

/* ---- threads ---- */

static const char *compiles(unsigned index, void *shared) {
  char word[32];
  const char *const words = word;
  rill_module module = RILL_NULL_MODULE;
  rill_compile_options options = RILL_COMPILE_OPTIONS_INIT;
  (void)shared;
  (void)snprintf(word, sizeof word, "-DTHREAD=%u", index / 2);
  options.options = &words;
  options.option_count = 1;
  REQUIRE_OK(rill_module_compile(dut.device, scale_source, &options, &module));
  REQUIRE(rill_module_release(module) == RILL_OK);
  return NULL;
}

static void compiles_on_several_threads(void) {
  if (!can_compile()) return;
  run_threads(4, compiles, NULL);
}

int main(void) {
  static const struct test tests[] = {
    TEST(refuses_bad_handles),
    TEST(refuses_null),
    TEST(accepts_older_and_newer_options),
    TEST(compiles_a_kernel_that_runs),
    TEST(compiles_with_definitions_and_headers),
    TEST(compiles_kernels_with_barriers),
    TEST(compiles_kernels_with_barriers_in_definitions),
    TEST(says_what_is_wrong_with_a_source),
    TEST(refuses_options_that_some_compilers_lack),
    TEST(refuses_headers_outside_the_source),
    TEST(caches_results_on_disk),
    TEST(compiles_on_several_threads),
  };
  (void)host_code;
  (void)setenv("RILL_CACHE", "off", 1); /* writes nothing to the home folder */
  return RUN_ON_EACH_DEVICE("rill_module_compile", tests);
}
