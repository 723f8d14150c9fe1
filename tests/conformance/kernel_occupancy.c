/* rill_kernel_occupancy */
#include "support/testing.h"

#include "launch.rill.h"

static rill_status call_with_kernel(uint64_t id) {
  uint32_t blocks = 1;
  const rill_status status = rill_kernel_occupancy((rill_kernel){ id }, 32, 0, &blocks);
  assert_int_equal(blocks, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_kernels("rill_kernel_occupancy", call_with_kernel); }

static void refuses(uint32_t threads, size_t shared, rill_status status) {
  uint32_t blocks = 1;
  assert_fails_in("rill_kernel_occupancy",
                  rill_kernel_occupancy(new_kernel(&launch_bundle, "store"), threads, shared, &blocks), status);
  assert_int_equal(blocks, 0);
  assert_says("store");
}

/* L20 */
static void refuses_impossible_blocks(void) {
  rill_kernel_info info = RILL_KERNEL_INFO_INIT;
  rill_kernel kernel = new_kernel(&launch_bundle, "store");
  assert_ok(rill_kernel_get_info(kernel, &info));
  refuses(0, 0, RILL_ERROR_INVALID_ARGUMENT);
  refuses(info.max_threads + 1, 0, RILL_ERROR_OUT_OF_RANGE);
  refuses(UINT32_MAX, 0, RILL_ERROR_OUT_OF_RANGE);
  refuses(32, (size_t)dut.info.shared_per_block_optin + 1, RILL_ERROR_OUT_OF_RANGE);
  refuses(32, (size_t)UINT32_MAX + 1, RILL_ERROR_OUT_OF_RANGE); /* L18: the size must not be truncated to 0 */
  refuses(32, SIZE_MAX, RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_kernel_occupancy(kernel, 32, 0, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

static uint32_t occupancy(rill_kernel kernel, uint32_t threads, size_t shared) {
  uint32_t blocks = 0;
  assert_ok(rill_kernel_occupancy(kernel, threads, shared, &blocks));
  return blocks;
}

/* C6.3, L20: never more than the hardware allows. */
static void is_within_the_hardware(void) {
  rill_kernel kernel = new_kernel(&launch_bundle, "touch_shared");
  rill_kernel_info info = RILL_KERNEL_INFO_INIT;
  assert_ok(rill_kernel_get_info(kernel, &info));
  for (uint32_t threads = 1; threads <= info.max_threads; threads *= 2) {
    const uint32_t blocks = occupancy(kernel, threads, 0);
    assert_true(blocks >= 1 && (uint64_t)blocks * threads <= dut.info.max_threads_per_unit);
  }
  for (size_t shared = 1024; shared <= dut.info.shared_per_block_optin; shared += 4096) {
    const uint32_t blocks = occupancy(kernel, 32, shared);
    assert_true(blocks >= 1 && blocks * (info.shared_bytes + shared) <= dut.info.shared_per_unit);
    assert_true(blocks <= occupancy(kernel, 32, shared - 1024));
  }
  assert_true(occupancy(kernel, 32, (size_t)(dut.info.shared_per_block_optin - info.shared_bytes)) >= 1);
}

TESTS_ON_EACH_DEVICE("rill_kernel_occupancy", TEST(refuses_bad_handles), TEST(refuses_impossible_blocks),
                     TEST(is_within_the_hardware))
