/* rill_module_retain */
#include "support/testing.h"

static rill_status call_with_handle(uint64_t id) { return rill_module_retain((rill_module){ id }); }

static void refuses_bad_handles(void) { refuses_bad_modules("rill_module_retain", call_with_handle); }

/* C1.3 */
static void counts_references(void) {
  rill_module module;
  rill_kernel kernel;
  assert_ok(rill_module_load(dut.device, sample_bundle(), &module));
  assert_ok(rill_module_retain(module));
  assert_ok(rill_module_release(module));
  assert_ok(rill_module_get_kernel(module, sample_kernel_name(), &kernel));
  assert_ok(rill_kernel_release(kernel));
  assert_ok(rill_module_release(module));
  assert_fails(rill_module_retain(module), RILL_ERROR_STALE_HANDLE);
}

TESTS_ON_EACH_DEVICE("rill_module_retain", TEST(refuses_bad_handles), TEST(counts_references))
