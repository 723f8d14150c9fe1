/* rill_event_device */
#include "support/testing.h"

GETTER_TESTS(event, rill_event_device, rill_device, new_event("getter"))

/* C4.5, E11 */
static void is_the_device_it_was_created_on(void) {
  rill_device device = { 1 };
  assert_ok(rill_event_device(new_event("event"), &device));
  assert_true(rill_device_equal(device, dut.device));
}

static void differs_between_devices(void) {
  needs_second_device();
  rill_device device = { 1 };
  assert_ok(rill_event_device(new_event_on(dut.second, "second"), &device));
  assert_true(rill_device_equal(device, dut.second));
}

TESTS_ON_EACH_DEVICE("rill_event_device", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(is_the_device_it_was_created_on), TEST(differs_between_devices))
