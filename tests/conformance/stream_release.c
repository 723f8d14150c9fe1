/* rill_stream_release */
#include "support/testing.h"

static void refuses_invalid_handles(void) {
  rill_event event = new_event("event");
  const uint64_t none[] = { 1, UINT64_MAX, UINT64_C(0xdeadbeefdeadbeef), dut.device.id, event.id };
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    assert_fails(rill_stream_release((rill_stream){ none[i] }), RILL_ERROR_INVALID_HANDLE);
  }
  assert_ok(rill_event_synchronize(event)); /* the event is still usable */
}

/* C1.3, S7: releasing the null handle returns OK and does not change the last error. */
static void does_nothing_for_zero(void) {
  spoil_last_error();
  assert_ok(rill_stream_release(RILL_NULL_STREAM));
  assert_says("rill_device_count");
}

/* C1.2, S8, S11 */
static void leaves_a_stale_handle(void) {
  rill_stream stream = new_stream("gone");
  rill_event event = new_event("event");
  assert_ok(rill_stream_release(stream));
  assert_fails(rill_stream_release(stream), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_stream_synchronize(stream), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_stream_record_event(stream, event, 0), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_stream_wait_event(stream, event, RILL_WAIT_IF_RECORDED), RILL_ERROR_STALE_HANDLE);
}

/* C1.2, W10: an id never finds a newer object. */
static void old_handles_stay_stale(void) {
  enum { OLD = 200 };
  rill_stream old[OLD];
  for (unsigned i = 0; i < OLD; i++) {
    assert_ok(rill_stream_create(dut.device, NULL, &old[i]));
    assert_ok(rill_stream_release(old[i]));
  }
  rill_stream live = new_stream("live");
  for (unsigned i = 0; i < OLD; i++) {
    assert_false(rill_stream_equal(old[i], live));
    assert_fails(rill_stream_synchronize(old[i]), RILL_ERROR_STALE_HANDLE);
  }
}

/* C1.3, S9: the release returns immediately, the work still completes, and its event reports it. */
static void lets_pending_work_complete(void) {
  rill_stream stream = new_stream("busy");
  rill_event event = new_event("event");
  struct gate *gate = gate_close(stream);
  write_cell(stream, 0, 11);
  read_cell(stream, 0);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_stream_release(stream));
  assert_false(is_ready(event));
  gate_open(gate);
  assert_becomes_ready(event);
  assert_int_equal(dut.host[0], 11);
}

/* S10, C4.6 */
static void keeps_events_of_finished_work(void) {
  rill_stream stream = new_stream("idle");
  rill_event event = new_event("event");
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_completes(stream);
  assert_ok(rill_stream_release(stream));
  assert_true(is_ready(event));
  assert_ok(rill_event_synchronize(event));
}

/* S13, C4.6 */
static void others_may_still_wait_for_it(void) {
  rill_stream stream = new_stream("busy"), other = new_stream("other");
  rill_event event = new_event("event");
  struct gate *gate = gate_close(stream);
  write_cell(stream, 0, 12);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_stream_wait_event(other, event, 0));
  read_cell(other, 0);
  assert_ok(rill_stream_release(stream));
  assert_false(is_complete(other));
  gate_open(gate);
  assert_completes(other);
  assert_int_equal(dut.host[0], 12);
}

/* S13: a stream that waits may also be released. */
static void may_be_released_while_waiting(void) {
  rill_stream first = new_stream("first"), waiting = new_stream("waiting");
  rill_event event = new_event("event"), done = new_event("done");
  struct gate *gate = gate_close(first);
  assert_ok(rill_stream_record_event(first, event, 0));
  assert_ok(rill_stream_wait_event(waiting, event, 0));
  write_cell(waiting, 0, 13);
  read_cell(waiting, 0);
  assert_ok(rill_stream_record_event(waiting, done, 0));
  assert_ok(rill_stream_release(waiting));
  assert_false(is_ready(done));
  gate_open(gate);
  assert_becomes_ready(done);
  assert_int_equal(dut.host[0], 13);
}

/* S12 */
static void its_events_stay_usable(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = new_event("event");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_stream_release(stream));
  assert_false(is_ready(event));
  assert_ok(rill_event_release(event));
  gate_open(gate);
}

TESTS_ON_EACH_DEVICE("rill_stream_release", TEST(refuses_invalid_handles), TEST(does_nothing_for_zero),
                     TEST(leaves_a_stale_handle), TEST(old_handles_stay_stale), TEST(lets_pending_work_complete),
                     TEST(keeps_events_of_finished_work), TEST(others_may_still_wait_for_it),
                     TEST(may_be_released_while_waiting), TEST(its_events_stay_usable))
