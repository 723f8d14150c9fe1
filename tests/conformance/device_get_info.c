/* rill_device_get_info */
#include "support/testing.h"

static rill_status call_with_device(uint64_t id) {
  rill_device_info info;
  memset(&info, 0x5a, sizeof info);
  info.struct_size = sizeof info;
  const rill_status status = rill_device_get_info((rill_device){ id }, &info);
  /* C1.1: everything except struct_size is cleared */
  assert_int_equal(info.struct_size, sizeof info);
  assert_true(info.backend == 0 && info.name[0] == 0 && info.arch[63] == 0 && info.uuid[15] == 0);
  assert_true(info.max_grid_dim[2] == 0 && info.memory_total == 0 && info.priority_greatest == 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_devices("rill_device_get_info", call_with_device); }

static rill_status fill_info(void *output) { return rill_device_get_info(dut.device, output); }

/* C1.4 */
static void fills_older_and_newer_structs(void) {
  fills_grown_structs("rill_device_get_info", fill_info, sizeof(rill_device_info));
}

/* C2.2 */
static void describes_the_device(void) {
  const rill_device_info info = dut.info;
  assert_int_equal(info.struct_size, sizeof info);
  assert_true(info.backend >= RILL_BACKEND_CPU && info.backend < RILL_BACKEND_END_);
  assert_true(info.ordinal >= 0);
  assert_true(info.name[0] != '\0' && info.arch[0] != '\0');
  assert_int_equal(info.pci_bus_id[0] != '\0', dut.gpu);
  assert_true(info.numa_node >= -1);
  assert_true(info.driver_version > 0 || !dut.gpu);
  if (info.backend == RILL_BACKEND_CUDA) assert_int_equal(strncmp(info.arch, "sm_", 3), 0);
  if (info.backend == RILL_BACKEND_HIP) assert_int_equal(strncmp(info.arch, "gfx", 3), 0);
}

/* C2.2 */
static void reports_plausible_limits(void) {
  const rill_device_info info = dut.info;
  assert_true(info.compute_units >= 1);
  assert_true(info.warp_size >= 1 && (info.warp_size & (info.warp_size - 1)) == 0);
  assert_true(info.max_threads_per_block >= info.warp_size);
  for (int i = 0; i < 3; i++) {
    assert_true(info.max_block_dim[i] >= 1);
    assert_true(info.max_grid_dim[i] >= 1);
  }
  assert_true(info.shared_per_block >= 1024);
  assert_true(info.shared_per_block_optin >= info.shared_per_block);
  assert_true(info.max_threads_per_unit >= info.max_threads_per_block);
  assert_true(info.shared_per_unit >= info.shared_per_block_optin);
  assert_int_equal(info.registers_per_unit > 0, dut.gpu);
  assert_true(info.memory_total > 0);
  assert_true(info.priority_greatest <= 0 && info.priority_least >= 0);
}

static void is_the_same_every_time(void) {
  rill_device_info again = RILL_DEVICE_INFO_INIT;
  assert_ok(rill_device_get_info(dut.device, &again));
  assert_memory_equal(&again, &dut.info, sizeof again);
}

TESTS_ON_EACH_DEVICE("rill_device_get_info", TEST(refuses_bad_handles), TEST(fills_older_and_newer_structs),
                     TEST(describes_the_device), TEST(reports_plausible_limits), TEST(is_the_same_every_time))
