/* rill_stream_is_capturing */
#include "support/testing.h"

GETTER_TESTS(stream, rill_stream_is_capturing, bool, new_stream("getter"))

/* C3.12 */
static void is_false_without_a_capture(void) {
  rill_stream stream = new_stream("stream");
  bool capturing = true;
  assert_ok(rill_stream_is_capturing(stream, &capturing));
  assert_false(capturing);
  struct gate *gate = gate_close(stream);
  capturing = true;
  assert_ok(rill_stream_is_capturing(stream, &capturing));
  assert_false(capturing);
  gate_open(gate);
}

TESTS_ON_EACH_DEVICE("rill_stream_is_capturing", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(is_false_without_a_capture))
