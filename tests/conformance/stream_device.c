/* rill_stream_device */
#include "support/testing.h"

GETTER_TESTS(stream, rill_stream_device, rill_device, new_stream("getter"))

/* C3.4, S24 */
static void is_the_device_it_was_created_on(void) {
  rill_device device = { 1 };
  assert_ok(rill_stream_device(new_stream("stream"), &device));
  assert_true(rill_device_equal(device, dut.device));
}

/* S23 */
static void differs_between_devices(void) {
  needs_second_device();
  rill_device device = { 1 };
  assert_ok(rill_stream_device(new_stream_on(dut.second, "second"), &device));
  assert_true(rill_device_equal(device, dut.second));
}

TESTS_ON_EACH_DEVICE("rill_stream_device", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(is_the_device_it_was_created_on), TEST(differs_between_devices))
