/* rill_event_is_recorded */
#include "support/testing.h"

GETTER_TESTS(event, rill_event_is_recorded, bool, new_event("getter"))

static bool is_recorded(rill_event event) {
  bool recorded = false;
  assert_ok(rill_event_is_recorded(event, &recorded));
  return recorded;
}

/* C4.2 */
static void is_true_from_the_first_record_on(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = new_event("event");
  assert_false(is_recorded(event));
  assert_ok(rill_event_synchronize(event));
  assert_ok(rill_stream_wait_event(stream, event, RILL_WAIT_IF_RECORDED));
  assert_false(is_recorded(event));
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_true(is_recorded(event)); /* although it is not ready */
  gate_open(gate);
  assert_completes(stream);
  assert_true(is_recorded(event));
}

/* C1.1: a refused record does not make the event recorded. */
static void ignores_failed_records(void) {
  rill_event event = new_event("event");
  assert_fails(rill_stream_record_event(new_stream("stream"), event, UINT32_MAX), RILL_ERROR_INVALID_ARGUMENT);
  assert_false(is_recorded(event));
}

/* C3.8 */
static void is_true_for_signaled_events(void) {
  rill_event event;
  assert_ok(rill_event_create(dut.device, RILL_EVENT_OPTIONS(.signaled = true), &event));
  keep_event_until_end(event);
  assert_true(is_recorded(event));
}

TESTS_ON_EACH_DEVICE("rill_event_is_recorded", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(is_true_from_the_first_record_on), TEST(ignores_failed_records),
                     TEST(is_true_for_signaled_events))
