/* rill_device_can_access_peer */
#include "peers.h"

static void is_no_with_the_reason(rill_device device, rill_device memory_of) {
  const char *why = NULL;
  assert_false(rill_device_can_access_peer(device, memory_of, &why));
  assert_non_null(why);
  assert_true(why[0] != '\0');
  assert_false(rill_device_can_access_peer(device, memory_of, NULL));
}

/* C1.2, P3 */
static void bad_handles_reach_nothing(void) {
  const uint64_t bad[] = { 0, 1, UINT64_MAX, new_stream("bad").id, dut.device.id + 1 };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    is_no_with_the_reason((rill_device){ bad[i] }, dut.device);
    is_no_with_the_reason(dut.device, (rill_device){ bad[i] });
  }
}

/* C5.4, P1 */
static void a_device_reaches_itself(void) {
  const char *why = NULL;
  assert_true(rill_device_can_access_peer(dut.device, dut.device, &why));
  assert_string_equal(why, "");
  assert_true(rill_device_can_access_peer(dut.device, dut.device, NULL));
}

/* P4 */
static void devices_of_two_backends_do_not_reach_each_other(void) {
  needs_foreign_device();
  is_no_with_the_reason(dut.device, dut.foreign);
  is_no_with_the_reason(dut.foreign, dut.device);
}

/* C1.8, C2.3: a negative answer has a reason, and agrees with RILL_FEATURE_PEER. */
static void says_why_not(void) {
  needs_second_device();
  const char *why = NULL;
  const bool can = rill_device_can_access_peer(dut.device, dut.second, &why);
  assert_non_null(why);
  assert_int_equal(can, why[0] == '\0');
  if (can) assert_true(rill_device_supports(dut.device, RILL_FEATURE_PEER, NULL));
}

TESTS_ON_EACH_DEVICE("rill_device_can_access_peer", TEST(bad_handles_reach_nothing), TEST(a_device_reaches_itself),
                     TEST(devices_of_two_backends_do_not_reach_each_other), TEST(says_why_not))
