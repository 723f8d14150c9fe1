/* rill_kernel_get_info */
#include "support/testing.h"

#include "launch.rill.h"

static rill_status call_with_kernel(uint64_t id) {
  rill_kernel_info info;
  memset(&info, 0x5a, sizeof info);
  info.struct_size = sizeof info;
  const rill_status status = rill_kernel_get_info((rill_kernel){ id }, &info);
  /* C1.1 */
  assert_int_equal(info.struct_size, sizeof info);
  assert_null(info.name);
  assert_true(info.arg_count == 0 && info.registers == 0 && info.max_threads == 0);
  assert_true(info.shared_bytes == 0 && info.local_bytes == 0 && info.constant_bytes == 0);
  assert_true(info.warp_size == 0 && info.required_block[0] == 0 && info.required_cluster[0] == 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_kernels("rill_kernel_get_info", call_with_kernel); }

static rill_kernel kernel_to_fill_from;

static rill_status fill_info(void *output) { return rill_kernel_get_info(kernel_to_fill_from, output); }

/* C1.4 */
static void fills_older_and_newer_structs(void) {
  kernel_to_fill_from = new_kernel(&launch_bundle, "store");
  fills_grown_structs("rill_kernel_get_info", fill_info, sizeof(rill_kernel_info));
}

static rill_kernel_info info_of(const char *name) {
  rill_kernel_info info = RILL_KERNEL_INFO_INIT;
  assert_ok(rill_kernel_get_info(new_kernel(&launch_bundle, name), &info));
  return info;
}

/* C6.3, K8, K9 */
static void describes_the_kernel(void) {
  assert_string_equal(info_of("store").name, "store");
  assert_int_equal(info_of("nothing").arg_count, 0);
  assert_int_equal(info_of("store").arg_count, 2);
  assert_int_equal(info_of("sum_of_many").arg_count, 32);
  assert_true(info_of("store").max_threads >= 1);
  assert_true(info_of("store").max_threads <= dut.info.max_threads_per_block);
  assert_true(info_of("add_up").max_threads >= 256 || !dut.gpu);
  if (dut.gpu) assert_int_equal(info_of("add_up").shared_bytes, 256 * sizeof(unsigned));
}

TESTS_ON_EACH_DEVICE("rill_kernel_get_info", TEST(refuses_bad_handles), TEST(fills_older_and_newer_structs),
                     TEST(describes_the_kernel))
