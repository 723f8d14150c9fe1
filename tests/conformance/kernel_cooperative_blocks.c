/* rill_kernel_cooperative_blocks */
#include "support/testing.h"

#include "launch.rill.h"

static rill_status call_with_kernel(uint64_t id) {
  uint32_t blocks = 1;
  const rill_status status = rill_kernel_cooperative_blocks((rill_kernel){ id }, 32, 0, &blocks);
  assert_int_equal(blocks, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_kernels("rill_kernel_cooperative_blocks", call_with_kernel); }

/* L20 */
static void refuses_impossible_requests(void) {
  rill_kernel kernel = new_kernel(&launch_bundle, "store");
  uint32_t blocks = 1;
  assert_fails(rill_kernel_cooperative_blocks(kernel, 32, 0, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_kernel_cooperative_blocks(kernel, 0, 0, &blocks), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(blocks, 0);
  assert_fails(rill_kernel_cooperative_blocks(kernel, UINT32_MAX, 0, &blocks), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_kernel_cooperative_blocks(kernel, 32, SIZE_MAX, &blocks), RILL_ERROR_OUT_OF_RANGE);
}

/* C6.3, C1.8 */
static void is_what_the_device_runs_at_once(void) {
  rill_kernel kernel = new_kernel(&launch_bundle, "store");
  uint32_t blocks = 1, per_unit = 0;
  const char *why = NULL;
  if (!rill_device_supports(dut.device, RILL_FEATURE_COOPERATIVE, &why)) {
    assert_fails(rill_kernel_cooperative_blocks(kernel, 32, 0, &blocks), RILL_ERROR_UNSUPPORTED);
    assert_int_equal(blocks, 0);
    assert_says(dut.name);
    assert_says(why);
    return;
  }
  assert_ok(rill_kernel_cooperative_blocks(kernel, 64, 1024, &blocks));
  assert_ok(rill_kernel_occupancy(kernel, 64, 1024, &per_unit));
  assert_int_equal(blocks, per_unit * dut.info.compute_units);
}

TESTS_ON_EACH_DEVICE("rill_kernel_cooperative_blocks", TEST(refuses_bad_handles), TEST(refuses_impossible_requests),
                     TEST(is_what_the_device_runs_at_once))
