/* rill_kernel_native */
#include "support/testing.h"

#include "launch.rill.h"

GETTER_TESTS(kernel, rill_kernel_native, uintptr_t, new_kernel(&launch_bundle, "store"))

static uintptr_t native_of(rill_module module, const char *name) {
  rill_kernel kernel;
  uintptr_t native = 1;
  assert_ok(rill_module_get_kernel(module, name, &kernel));
  assert_ok(rill_kernel_native(kernel, &native));
  assert_ok(rill_kernel_release(kernel));
  return native;
}

/* On the CPU there are no native kernels, so it is 0. */
static void each_kernel_has_its_own(void) {
  rill_module module;
  assert_ok(rill_module_load(dut.device, &launch_bundle, &module));
  const uintptr_t store = native_of(module, "store");
  assert_int_equal(store, native_of(module, "store"));
  assert_int_equal(store != native_of(module, "nothing"), dut.gpu);
  assert_int_equal(store != 0, dut.gpu);
  assert_ok(rill_module_release(module));
}

TESTS_ON_EACH_DEVICE("rill_kernel_native", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(each_kernel_has_its_own))
