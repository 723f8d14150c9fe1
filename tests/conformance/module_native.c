/* rill_module_native */
#include "support/testing.h"

#include "launch.rill.h"

static rill_module load(void) {
  static rill_module module; /* kept until the program ends */
  assert_ok(rill_module_load(dut.device, &launch_bundle, &module));
  return module;
}

GETTER_TESTS(module, rill_module_native, uintptr_t, load())

/* On the CPU there are no native modules, so it is 0. */
static void is_the_same_every_time(void) {
  rill_module module = load();
  uintptr_t first = 1, second = 2;
  assert_ok(rill_module_native(module, &first));
  assert_ok(rill_module_native(module, &second));
  assert_int_equal(first, second);
  assert_int_equal(first != 0, dut.gpu);
}

TESTS_ON_EACH_DEVICE("rill_module_native", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(is_the_same_every_time))
