/* rill_device_disable_peer */
#include "peers.h"

static rill_status call_with_first(uint64_t id) { return rill_device_disable_peer((rill_device){ id }, dut.device); }
static rill_status call_with_second(uint64_t id) { return rill_device_disable_peer(dut.device, (rill_device){ id }); }

/* P3 */
static void refuses_bad_handles(void) {
  refuses_bad_devices("rill_device_disable_peer", call_with_first);
  refuses_bad_devices("rill_device_disable_peer", call_with_second);
}

/* P1, P4 */
static void does_nothing_for_the_device_itself(void) {
  assert_ok(rill_device_disable_peer(dut.device, dut.device));
  assert_true(peer_is_enabled(dut.device, dut.device));
}

/* P4 */
static void refuses_another_backend(void) {
  needs_foreign_device();
  assert_fails(rill_device_disable_peer(dut.device, dut.foreign), RILL_ERROR_WRONG_BACKEND);
}

/* P2, P5: also without an enable before it. */
static void is_idempotent(void) {
  needs_second_device();
  assert_ok(rill_device_disable_peer(dut.device, dut.second));
  assert_ok(rill_device_disable_peer(dut.device, dut.second));
  assert_false(peer_is_enabled(dut.device, dut.second));
}

/* P6: the other direction stays enabled. */
static void is_directed(void) {
  needs_peer();
  assert_ok(rill_device_enable_peer(dut.device, dut.second));
  assert_ok(rill_device_enable_peer(dut.second, dut.device));
  assert_ok(rill_device_disable_peer(dut.device, dut.second));
  assert_false(peer_is_enabled(dut.device, dut.second));
  assert_true(peer_is_enabled(dut.second, dut.device));
  assert_ok(rill_device_disable_peer(dut.second, dut.device));
  check_copies_between_devices();
}

TESTS_ON_EACH_DEVICE("rill_device_disable_peer", TEST(refuses_bad_handles), TEST(does_nothing_for_the_device_itself),
                     TEST(refuses_another_backend), TEST(is_idempotent), TEST(is_directed))
