/* rill_module_get_kernel */
#include "support/testing.h"

static rill_status call_with_module(uint64_t id) {
  rill_kernel out = { 1 };
  const rill_status status = rill_module_get_kernel((rill_module){ id }, sample_kernel_name(), &out);
  assert_int_equal(out.id, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_modules("rill_module_get_kernel", call_with_module); }

static rill_module load(void) {
  rill_module module;
  assert_ok(rill_module_load(dut.device, sample_bundle(), &module));
  return module;
}

/* K3 */
static void refuses_null(void) {
  rill_module module = load();
  rill_kernel out = { 1 };
  assert_fails(rill_module_get_kernel(module, NULL, &out), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(out.id, 0);
  assert_fails(rill_module_get_kernel(module, sample_kernel_name(), NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_module_release(module));
}

/* K3: the text lists the kernels of the module. */
static void refuses_unknown_names(void) {
  const char *const none[] = { "", "no_such_kernel", "WAIT_FOR_FLAG", "wait_for_fla", "wait_for_flag " };
  rill_module module = load();
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    rill_kernel out = { 1 };
    assert_fails(rill_module_get_kernel(module, none[i], &out), RILL_ERROR_NOT_FOUND);
    assert_int_equal(out.id, 0);
    assert_says(none[i]);
    assert_says(sample_kernel_name());
  }
  assert_ok(rill_module_release(module));
}

/* C6.3 */
static void returns_the_kernel_of_that_name(void) {
  rill_module module = load();
  rill_kernel kernel;
  rill_kernel_info info = RILL_KERNEL_INFO_INIT;
  assert_ok(rill_module_get_kernel(module, sample_kernel_name(), &kernel));
  assert_ok(rill_kernel_get_info(kernel, &info));
  assert_string_equal(info.name, sample_kernel_name());
  assert_ok(rill_kernel_release(kernel));
  assert_ok(rill_module_release(module));
}

TESTS_ON_EACH_DEVICE("rill_module_get_kernel", TEST(refuses_bad_handles), TEST(refuses_null),
                     TEST(refuses_unknown_names), TEST(returns_the_kernel_of_that_name))
