/* rill_stream_priority. stream_create.c tests the meaning of the numbers. */
#include "support/testing.h"

GETTER_TESTS(stream, rill_stream_priority, int32_t, new_stream("getter"))

/* C3.2, S3 */
static void is_zero_by_default(void) {
  rill_stream standard;
  int32_t priority = 1;
  assert_ok(rill_device_default_stream(dut.device, &standard));
  assert_ok(rill_stream_priority(standard, &priority));
  assert_int_equal(priority, 0);
  priority = 1;
  assert_ok(rill_stream_priority(new_stream("stream"), &priority));
  assert_int_equal(priority, 0);
}

TESTS_ON_EACH_DEVICE("rill_stream_priority", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(is_zero_by_default))
