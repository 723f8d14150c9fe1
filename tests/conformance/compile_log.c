/* rill_compile_log (C6.7) */
#include "support/testing.h"

static rill_status compile(const char *source) {
  rill_module module = RILL_NULL_MODULE;
  rill_compile_options options = RILL_COMPILE_OPTIONS_INIT;
  options.no_cache = true;
  const rill_status status = rill_module_compile(dut.device, source, &options, &module);
  rill_module_release(module);
  return status;
}

static const char wrong[] = "#error \"all of it: first\"\n#error \"all of it: second\"\n";

static const char *sees_an_empty_log(unsigned index, void *shared) {
  (void)index, (void)shared;
  REQUIRE(strcmp(rill_compile_log(), "") == 0);
  return NULL;
}

/* Each thread has its own complete log. */
static void holds_the_complete_compiler_output(void) {
  run_threads(1, sees_an_empty_log, NULL);
  if (!rill_device_supports(dut.device, RILL_FEATURE_RTC, NULL)) {
    assert_fails_in("rill_module_compile", compile(wrong), RILL_ERROR_UNSUPPORTED);
    assert_string_equal(rill_compile_log(), "");
    return;
  }
  assert_fails_in("rill_module_compile", compile(wrong), RILL_ERROR_INVALID_ARGUMENT);
  assert_non_null(strstr(rill_compile_log(), "all of it: first"));
  /* not every compiler continues after the first error */
  if (!dut.gpu) assert_non_null(strstr(rill_compile_log(), "all of it: second"));
  run_threads(1, sees_an_empty_log, NULL);
  assert_ok(compile("#include <rill/device/kernel.h>\n"
                    "RILL_KERNEL(scale, int n, float a, float *x) { if (n > 0) x[0] = a * x[0]; }\n"));
  assert_null(strstr(rill_compile_log(), "all of it"));
}

/* If no compiler runs, there is no log. */
static void is_empty_if_no_compiler_ran(void) {
  rill_module module = RILL_NULL_MODULE;
  rill_compile_options options = RILL_COMPILE_OPTIONS_INIT;
  options.label = "a\"b";
  if (!rill_device_supports(dut.device, RILL_FEATURE_RTC, NULL)) return; /* as above */
  assert_fails_in("rill_module_compile", compile(wrong), RILL_ERROR_INVALID_ARGUMENT);
  assert_true(rill_compile_log()[0] != '\0');
  assert_fails(rill_module_compile(dut.device, wrong, &options, &module), RILL_ERROR_INVALID_ARGUMENT);
  assert_string_equal(rill_compile_log(), "");
  assert_fails_in("rill_module_compile", compile(wrong), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_module_compile(RILL_NULL_DEVICE, wrong, NULL, &module), RILL_ERROR_INVALID_HANDLE);
  assert_string_equal(rill_compile_log(), "");
}

TESTS_ON_EACH_DEVICE("rill_compile_log", TEST(holds_the_complete_compiler_output), TEST(is_empty_if_no_compiler_ran))
