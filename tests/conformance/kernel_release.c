/* rill_kernel_release.  Kernels that run while they are released: module_release.c. */
#include "support/testing.h"

static void refuses_invalid_handles(void) {
  const uint64_t none[] = { 1, UINT64_MAX, dut.device.id, new_stream("stream").id };
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    assert_fails(rill_kernel_release((rill_kernel){ none[i] }), RILL_ERROR_INVALID_HANDLE);
  }
}

/* C1.3 */
static void does_nothing_for_zero(void) {
  spoil_last_error();
  assert_ok(rill_kernel_release(RILL_NULL_KERNEL));
  assert_says("rill_device_count");
}

/* C1.2 */
static void leaves_a_stale_handle(void) {
  rill_kernel kernel = new_kernel(sample_bundle(), sample_kernel_name());
  const rill_launch launch = rill_launch_1d(1, 1);
  assert_ok(rill_kernel_release(kernel));
  assert_fails(rill_kernel_release(kernel), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_stream_launch(new_stream("stream"), kernel, &launch, NULL, 0), RILL_ERROR_STALE_HANDLE);
}

TESTS_ON_EACH_DEVICE("rill_kernel_release", TEST(refuses_invalid_handles), TEST(does_nothing_for_zero),
                     TEST(leaves_a_stale_handle))
