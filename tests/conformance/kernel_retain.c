/* rill_kernel_retain */
#include "support/testing.h"

static rill_status call_with_handle(uint64_t id) { return rill_kernel_retain((rill_kernel){ id }); }

static void refuses_bad_handles(void) { refuses_bad_kernels("rill_kernel_retain", call_with_handle); }

/* C1.3 */
static void counts_references(void) {
  rill_kernel kernel = new_kernel(sample_bundle(), sample_kernel_name());
  size_t size;
  assert_ok(rill_kernel_retain(kernel));
  assert_ok(rill_kernel_release(kernel));
  assert_ok(rill_kernel_arg_size(kernel, 0, &size));
  assert_ok(rill_kernel_release(kernel));
  assert_fails(rill_kernel_retain(kernel), RILL_ERROR_STALE_HANDLE);
}

TESTS_ON_EACH_DEVICE("rill_kernel_retain", TEST(refuses_bad_handles), TEST(counts_references))
