/* rill_device_is_peer_enabled */
#include "peers.h"

static rill_status call_with_first(uint64_t id) {
  bool out = true;
  const rill_status status = rill_device_is_peer_enabled((rill_device){ id }, dut.device, &out);
  assert_false(out);
  return status;
}

static rill_status call_with_second(uint64_t id) {
  bool out = true;
  const rill_status status = rill_device_is_peer_enabled(dut.device, (rill_device){ id }, &out);
  assert_false(out);
  return status;
}

/* P3, C1.1 */
static void refuses_bad_handles(void) {
  refuses_bad_devices("rill_device_is_peer_enabled", call_with_first);
  refuses_bad_devices("rill_device_is_peer_enabled", call_with_second);
}

static void refuses_null_out(void) {
  assert_fails(rill_device_is_peer_enabled(dut.device, dut.device, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* P4 */
static void refuses_another_backend(void) {
  needs_foreign_device();
  bool out = true;
  assert_fails(rill_device_is_peer_enabled(dut.device, dut.foreign, &out), RILL_ERROR_WRONG_BACKEND);
  assert_false(out);
}

/* P1 */
static void a_device_is_always_its_own_peer(void) { assert_true(peer_is_enabled(dut.device, dut.device)); }

/* C5.4: false until it is enabled. */
static void follows_enable_and_disable(void) {
  needs_peer();
  assert_false(peer_is_enabled(dut.device, dut.second));
  assert_ok(rill_device_enable_peer(dut.device, dut.second));
  assert_true(peer_is_enabled(dut.device, dut.second));
  assert_ok(rill_device_disable_peer(dut.device, dut.second));
  assert_false(peer_is_enabled(dut.device, dut.second));
}

TESTS_ON_EACH_DEVICE("rill_device_is_peer_enabled", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(refuses_another_backend), TEST(a_device_is_always_its_own_peer),
                     TEST(follows_enable_and_disable))
