/* rill_kernel_available_shared */
#include "support/testing.h"

#include "launch.rill.h"

static rill_status call_with_kernel(uint64_t id) {
  size_t shared = 1;
  const rill_status status = rill_kernel_available_shared((rill_kernel){ id }, 32, 1, &shared);
  assert_int_equal(shared, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_kernels("rill_kernel_available_shared", call_with_kernel); }

static void refuses(uint32_t threads, uint32_t blocks, rill_status status) {
  size_t shared = 1;
  assert_fails_in("rill_kernel_available_shared",
                  rill_kernel_available_shared(new_kernel(&launch_bundle, "touch_shared"), threads, blocks, &shared),
                  status);
  assert_int_equal(shared, 0);
}

/* L20 */
static void refuses_impossible_requests(void) {
  rill_kernel kernel = new_kernel(&launch_bundle, "touch_shared");
  assert_fails(rill_kernel_available_shared(kernel, 32, 1, NULL), RILL_ERROR_INVALID_ARGUMENT);
  refuses(0, 1, RILL_ERROR_INVALID_ARGUMENT);
  refuses(32, 0, RILL_ERROR_INVALID_ARGUMENT);
  refuses(dut.info.max_threads_per_block + 1, 1, RILL_ERROR_OUT_OF_RANGE);
  refuses(32, UINT32_MAX, RILL_ERROR_OUT_OF_RANGE);
  assert_says("touch_shared");
  assert_says(dut.name);
}

/* C6.3: with this size the requested number of blocks fits, and with one byte more fewer blocks fit, unless the size is
 * already the maximum of a block. */
static void is_the_largest_size_that_fits(void) {
  rill_kernel kernel = new_kernel(&launch_bundle, "touch_shared");
  rill_kernel_info info = RILL_KERNEL_INFO_INIT;
  uint32_t most = 0;
  size_t before = SIZE_MAX;
  assert_ok(rill_kernel_get_info(kernel, &info));
  assert_ok(rill_kernel_occupancy(kernel, 32, 0, &most));
  for (uint32_t blocks = 1; blocks <= most; blocks++) {
    size_t shared = SIZE_MAX;
    uint32_t fit = 0;
    assert_ok(rill_kernel_available_shared(kernel, 32, blocks, &shared));
    assert_true(shared <= before && shared + info.shared_bytes <= dut.info.shared_per_block_optin);
    assert_ok(rill_kernel_occupancy(kernel, 32, shared, &fit));
    assert_true(fit >= blocks);
    if (shared + info.shared_bytes < dut.info.shared_per_block_optin) {
      assert_ok(rill_kernel_occupancy(kernel, 32, shared + 1, &fit));
      assert_true(fit < blocks);
    }
    before = shared;
  }
}

TESTS_ON_EACH_DEVICE("rill_kernel_available_shared", TEST(refuses_bad_handles), TEST(refuses_impossible_requests),
                     TEST(is_the_largest_size_that_fits))
