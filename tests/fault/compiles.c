/* Compiles at run time with each call below it refused once: calls of the compiler, and calls of the driver that loads
 * the result. Each time there is an error with a text, nothing leaks, nothing is left on disk, and the next compile
 * works. */
#include "tour.h"

#include "support/fake_rtc/rtc_control.h"

#include "basic.rill.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

static const rill_bundle *volatile host_code = &basic_bundle; /* so that it is linked */

static const char source[] = "#include <rill/device/kernel.h>\n"
                             "RILL_KERNEL(scale, int n, float a, float *x) {\n"
                             "  const int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "  if (i < n) x[i] = a * x[i];\n"
                             "}\n";

static const char *const compiler_functions[][2] = {
#define GPU_RTC_FN(field, cuda_name, hip_name, need) { #cuda_name, #hip_name },
#define GPU_RTC_FN_CUDA(field, cuda_name, need) { #cuda_name, NULL },
#define GPU_FN(field, cuda_name, hip_name, need, capture)
#define GPU_FN_CUDA(field, cuda_name, need, capture)
#define GPU_FN_HIP(field, hip_name, need, capture)
#include "backends/gpu/gpu_api.def"
};
enum { COMPILER_FUNCTIONS = sizeof compiler_functions / sizeof *compiler_functions };

static const struct rill_fake_rtc *rtc;
static char folder[64];

/* Removes all files, including hidden ones, and returns their number. */
static size_t empty_folder(void) {
  char path[400];
  size_t count = 0;
  DIR *listing = opendir(folder);
  assert_non_null(listing);
  for (const struct dirent *item = readdir(listing); item != NULL; item = readdir(listing)) {
    if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0) continue;
    (void)snprintf(path, sizeof path, "%s/%s", folder, item->d_name);
    assert_int_equal(unlink(path), 0);
    count++;
  }
  (void)closedir(listing);
  return count;
}

static void check_module(rill_module module) {
  enum { N = 8 };
  const float a = 3.0f;
  const int n = N;
  float *x = NULL;
  rill_kernel kernel = RILL_NULL_KERNEL;
  rill_stream stream = RILL_NULL_STREAM;
  const rill_launch launch = rill_launch_1d(N, N);
  assert_ok(rill_module_get_kernel(module, "scale", &kernel));
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_PINNED, N, &x));
  for (int i = 0; i < N; i++) x[i] = (float)i;
  assert_ok(rill_stream_launch(stream, kernel, &launch, RILL_ARGS(n, a, x)));
  assert_ok(rill_stream_synchronize(stream));
  for (int i = 0; i < N; i++) assert_true(x[i] == 3.0f * (float)i);
  assert_ok(rill_free(x));
  assert_ok(rill_stream_release(stream));
  assert_ok(rill_kernel_release(kernel));
}

/* Compiles once with a refused call and once without: the first result is the same or an error. */
static rill_status compile_refused(size_t alive) {
  rill_module module = { 1 };
  assert_int_equal(empty_folder(), 0);
  spoil_last_error();
  const rill_status status = rill_module_compile(vendor.device, source, NULL, &module);
  rtc->clear();
  vendor.fake->clear();
  assert_int_equal(rtc->live(), 0);
  if (status == RILL_OK) {
    check_module(module);
    assert_ok(rill_module_release(module));
  } else {
    assert_int_equal(module.id, 0);
    assert_says("rill_module_compile: ");
  }
  assert_int_equal(empty_folder(), status == RILL_OK ? 1 : 0);
  assert_true(settle() <= alive);
  return status;
}

static void compile_again(void) {
  rill_module module = RILL_NULL_MODULE;
  assert_ok(rill_module_compile(vendor.device, source, NULL, &module));
  check_module(module);
  assert_ok(rill_module_release(module));
  assert_int_equal(empty_folder(), 1);
}

/* What was made is right without: the log, the end of a program, and what the compiler knows beside the device's own
 * architecture (which it then refuses, unless the question was for the key only). */
static bool may_be_silent(const char *function) {
  return strstr(function, "ProgramLog") != NULL || strstr(function, "DestroyProgram") != NULL ||
         strstr(function, "Archs") != NULL;
}

static void check_refusal(const char *function, int code, rill_status status) {
  rill_error error = RILL_ERROR_INIT;
  if (status == RILL_OK) {
    if (!may_be_silent(function)) fail_msg("%s passes in silence", function);
    return;
  }
  assert_ok(rill_last_error(&error));
  if (code == 1) assert_int_equal(status, RILL_ERROR_OUT_OF_MEMORY);
  if (code == 6 && strstr(function, "CompileProgram") != NULL) {
    assert_int_equal(status, RILL_ERROR_INVALID_ARGUMENT); /* as if the source had errors */
  } else if (code != 1) {
    assert_int_equal(status, RILL_ERROR_BACKEND);
    assert_true(error.native_code != 0 && error.native_name[0] != '\0');
    if (strstr(function, "Archs") == NULL)
      assert_int_equal(error.native_code, code); /* else the wrong one is refused */
  }
}

static void each_call_of_the_compiler_may_fail(void) {
  static const int codes[] = { 7, 1, 6 };
  const size_t alive = settle();
  unsigned refusals = 0;
  for (size_t f = 0; f < COMPILER_FUNCTIONS; f++) {
    const char *function = compiler_functions[f][vendor.cuda ? 0 : 1];
    for (size_t c = 0; c < 3 && function != NULL; c++) {
      for (unsigned nth = 1, called = 1; called >= nth; nth++) {
        const uint64_t before = rtc->calls(function);
        if (strstr(function, "Archs") != NULL && codes[c] != 7) break; /* any code is the same there */
        rtc->fail_call(function, nth, codes[c]);
        const rill_status status = compile_refused(alive);
        called = (unsigned)(rtc->calls(function) - before);
        if (called >= nth) {
          check_refusal(function, codes[c], status);
          compile_again();
          refusals++;
        } else {
          assert_int_equal(status, RILL_OK);
        }
      }
    }
  }
  assert_true(refusals >= 20);
}

/* Calls whose refusal a compile may ignore: what they restore or query is known otherwise. */
static bool driver_may_be_silent(const char *field) {
  static const char *const silent[] = { "set_device",       "exchange_capture_mode", "runtime_version",
                                        "device_attribute", "function_attribute",    "context_current" };
  for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
    if (strcmp(silent[i], field) == 0) return true;
  }
  return false;
}

static void each_call_of_the_driver_may_fail(void) {
  const size_t alive = settle();
  unsigned refusals = 0;
  for (size_t f = 0; f < vendor_function_count; f++) {
    const struct vendor_function *function = &vendor_functions[f];
    if (function->name == NULL || !vendor_has(function->field)) continue;
    if (strcmp(function->field, "context_pop") == 0) continue; /* cannot fail */
    rill_module module = RILL_NULL_MODULE;
    uint64_t calls = vendor.fake->calls(function->name);
    assert_ok(rill_module_compile(vendor.device, source, NULL, &module));
    calls = vendor.fake->calls(function->name) - calls;
    assert_ok(rill_module_release(module));
    ignore((rill_status)settle());
    for (unsigned nth = 1; nth <= calls; nth++) {
      const struct native_state before = native_state();
      (void)empty_folder();
      vendor.fake->fail_call(function->name, nth, 999);
      const rill_status status = compile_refused(alive);
      if (status == RILL_OK && !driver_may_be_silent(function->field)) fail_msg("%s is silent", function->name);
      if (status != RILL_OK) assert_says(vendor.unknown);
      native_put_back(before);
      compile_again();
      refusals++;
      assert_ok(rill_module_compile(vendor.device, source, NULL, &module)); /* for the next to find it */
      assert_ok(rill_module_release(module));
    }
  }
  (void)empty_folder();
  assert_true(refusals >= 2);
}

/* Only the first compile opens the compiler and finds out which options it knows. */
static void begin(void) {
  rill_module module = RILL_NULL_MODULE;
  const char *version = getenv("RILL_FAKE_VERSION");
  vendor_begin();
  const bool newer = !vendor.cuda && (version == NULL || version[0] >= '7');
  const bool llvm = !vendor.cuda && (version == NULL || version[0] < '8');
  assert_int_equal(rill_module_compile(vendor.device, "#error this is wrong\n", NULL, &module),
                   RILL_ERROR_INVALID_ARGUMENT);
  assert_says("this is wrong");
  rtc = rill_fake_rtc_find(vendor.cuda ? "libnvrtc.so.13" : "libhiprtc.so.7");
  assert_non_null(rtc);
  for (uint64_t i = 0; i < 2; i++) {
    const char *function = vendor.cuda ? "nvrtcCompileProgram" : "hiprtcCompileProgram";
    const uint64_t before = rtc->calls(function);
    assert_ok(rill_module_compile(vendor.device, source, NULL, &module));
    assert_int_equal(rtc->calls(function) - before, i == 0 && !vendor.cuda && !newer ? 2 : 1);
    assert_true(rtc->had_option("-fatomic-fine-grained-memory") == newer);
    assert_true(rtc->had_option("-fatomic-remote-memory") == newer);
    assert_true(rtc->had_option("-amdgpu-sdwa-peephole=0") == llvm);
    assert_string_equal(rill_compile_log(), "");
    assert_ok(rill_module_release(module));
    assert_int_equal(empty_folder(), 1);
  }
  assert_int_equal(rill_module_compile(vendor.device, "#error this is wrong\n", NULL, &module),
                   RILL_ERROR_INVALID_ARGUMENT);
  assert_says("this is wrong");
}

int main(void) {
  static const struct test tests[] = { TEST(begin), TEST(each_call_of_the_compiler_may_fail),
                                       TEST(each_call_of_the_driver_may_fail), TEST(vendor_end) };
  (void)host_code;
  (void)snprintf(folder, sizeof folder, "/tmp/rill-compiles-XXXXXX");
  if (mkdtemp(folder) == NULL) return 1;
  (void)setenv("RILL_CACHE", folder, 1);
  const int result = RUN_ONCE("compiling with failing calls", tests);
  (void)rmdir(folder);
  return result;
}
