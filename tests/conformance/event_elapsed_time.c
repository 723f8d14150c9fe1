/* rill_event_elapsed_time */
#include "support/testing.h"

#include <math.h>

/* Returns a timing event that has been recorded and is complete. */
static rill_event timed(const char *label) {
  rill_stream stream = new_stream("stream");
  rill_event event = new_timing_event(label);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_completes(stream);
  return event;
}

static float elapsed(rill_event start, rill_event end) {
  float ms = NAN;
  assert_ok(rill_event_elapsed_time(start, end, &ms));
  assert_true(ms == ms); /* ms is not left a NaN */
  return ms;
}

static rill_status call_with_start(uint64_t id) {
  float ms = 1.0f;
  const rill_status status = rill_event_elapsed_time((rill_event){ id }, timed("end"), &ms);
  assert_true(ms == 0.0f);
  return status;
}
static rill_status call_with_end(uint64_t id) {
  float ms = 1.0f;
  const rill_status status = rill_event_elapsed_time(timed("start"), (rill_event){ id }, &ms);
  assert_true(ms == 0.0f);
  return status;
}

/* E14 */
static void refuses_bad_handles(void) {
  refuses_bad_events("rill_event_elapsed_time", call_with_start);
  refuses_bad_events("rill_event_elapsed_time", call_with_end);
}

/* E14 */
static void refuses_null_out(void) {
  rill_event event = timed("event");
  assert_fails(rill_event_elapsed_time(event, event, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* Checks that a bad event as either argument makes the call fail with this status, name that event, and set ms to 0. */
static void fails_for_either(rill_event bad, const char *label, rill_status status) {
  rill_event good = timed("good");
  float ms = 1.0f;
  assert_fails(rill_event_elapsed_time(bad, good, &ms), status);
  assert_says(label);
  assert_true(ms == 0.0f);
  ms = 1.0f;
  assert_fails(rill_event_elapsed_time(good, bad, &ms), status);
  assert_says(label);
  assert_true(ms == 0.0f);
}

/* C4.4, E15 */
static void needs_timing(void) {
  rill_event plain = new_event("without timing");
  fails_for_either(plain, "without timing", RILL_ERROR_TIMING_DISABLED);
  assert_ok(rill_stream_record_event(new_stream("stream"), plain, 0));
  fails_for_either(plain, "without timing", RILL_ERROR_TIMING_DISABLED);
}

/* C4.4, E16 */
static void needs_recorded_events(void) {
  fails_for_either(new_timing_event("not recorded"), "not recorded", RILL_ERROR_NOT_RECORDED);
}

/* C4.4, E17: the text says what to do. */
static void needs_complete_events(void) {
  rill_stream stream = new_stream("stream");
  rill_event start = timed("start"), end = new_timing_event("stop");
  float ms = 1.0f;
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, end, 0));
  assert_fails(rill_event_elapsed_time(start, end, &ms), RILL_ERROR_NOT_READY);
  assert_true(ms == 0.0f);
  assert_says("stop");
  assert_says("rill_event_synchronize");
  gate_open(gate);
  assert_becomes_ready(end);
  (void)elapsed(start, end);
}

/* C4.4, E18 */
static void needs_one_device(void) {
  needs_second_device();
  rill_event here = timed("here"), there;
  float ms = 1.0f;
  rill_stream stream = new_stream_on(dut.second, "there");
  assert_ok(rill_stream_record_new_event(stream, RILL_EVENT_OPTIONS(.timing = true, .label = "there"), &there));
  keep_event_until_end(there);
  assert_completes(stream);
  assert_fails(rill_event_elapsed_time(here, there, &ms), RILL_ERROR_WRONG_DEVICE);
  assert_true(ms == 0.0f);
  assert_says("here");
  assert_says("there");
}

/* C4.4: timing is checked first, then records, then completion, for both events. */
static void checks_its_conditions_in_order(void) {
  rill_stream stream = new_stream("stream");
  rill_event plain = new_event("without timing"), never = new_timing_event("not recorded");
  rill_event pending = new_timing_event("pending");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, pending, 0));
  float ms;
  assert_fails(rill_event_elapsed_time(never, plain, &ms), RILL_ERROR_TIMING_DISABLED);
  assert_says("without timing");
  assert_fails(rill_event_elapsed_time(pending, plain, &ms), RILL_ERROR_TIMING_DISABLED);
  assert_fails(rill_event_elapsed_time(pending, never, &ms), RILL_ERROR_NOT_RECORDED);
  assert_says("not recorded");
  assert_fails(rill_event_elapsed_time(never, pending, &ms), RILL_ERROR_NOT_RECORDED);
  assert_fails(rill_event_elapsed_time(pending, pending, &ms), RILL_ERROR_NOT_READY);
  gate_open(gate);
}

/* C4.4, E19 */
static void is_zero_for_the_same_event(void) {
  rill_event event = timed("event");
  assert_true(elapsed(event, event) == 0.0f);
}

/* C4.4, E20, E21, E23: the host waits at least 20 ms between the records; signs and sums are consistent. */
static void measures_the_gap_with_its_sign(void) {
  rill_stream stream = new_stream("stream");
  rill_event start = new_timing_event("start"), middle = new_timing_event("middle"), end = new_timing_event("end");
  assert_ok(rill_stream_record_event(stream, start, 0));
  assert_becomes_ready(start);
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, middle, 0));
  assert_ok(rill_stream_record_event(stream, end, 0));
  let_pass_ns(20 * MILLISECOND);
  gate_open(gate);
  assert_becomes_ready(end);

  const float ms = elapsed(start, end);
  assert_true(ms >= 10.0f);
  assert_true((double)ms < (double)TIMEOUT_NS / 1e6);
  assert_true(elapsed(start, middle) >= 10.0f);
  assert_true(elapsed(middle, end) >= 0.0f);
  assert_true(elapsed(start, end) == ms);
  assert_true(fabsf(elapsed(end, start) + ms) <= 0.001f + ms * 1e-4f);
  assert_true(fabsf(elapsed(start, middle) + elapsed(middle, end) - ms) <= 0.01f + ms * 1e-4f);
}

/* The events may be recorded on different streams. */
static void measures_between_streams(void) {
  rill_stream first = new_stream("first"), second = new_stream("second");
  rill_event start = new_timing_event("start"), end = new_timing_event("end");
  assert_ok(rill_stream_record_event(first, start, 0));
  assert_ok(rill_stream_wait_event(second, start, 0));
  assert_ok(rill_stream_record_event(second, end, 0));
  assert_becomes_ready(end);
  assert_true(elapsed(start, end) >= 0.0f);
}

/* E20, E6: the last record of an event counts. */
static void uses_the_last_records(void) {
  rill_event start = timed("start"), end = timed("end");
  rill_stream stream = new_stream("stream");
  assert_ok(rill_stream_record_event(stream, start, 0));
  assert_completes(stream);
  assert_true(elapsed(start, end) <= 0.0f);
  assert_ok(rill_stream_record_event(stream, end, 0));
  assert_completes(stream);
  assert_true(elapsed(start, end) >= 0.0f);
}

/* C3.5: an older record that is reached later changes nothing. */
static void is_not_changed_by_a_replaced_record(void) {
  rill_event start = timed("start"), end = new_timing_event("end");
  rill_stream late = new_stream("late"), stream = new_stream("stream");
  struct gate *gate = gate_close(late);
  assert_ok(rill_stream_record_event(late, end, 0));
  assert_ok(rill_stream_record_event(stream, end, 0));
  assert_completes(stream);
  const float ms = elapsed(start, end);
  gate_open(gate);
  assert_completes(late);
  assert_true(elapsed(start, end) == ms);
}

/* C4.6, E29 */
static void outlives_the_streams(void) {
  rill_stream stream = new_stream("stream");
  rill_event start = new_timing_event("start"), end = new_timing_event("end");
  assert_ok(rill_stream_record_event(stream, start, 0));
  assert_ok(rill_stream_record_event(stream, end, 0));
  assert_ok(rill_stream_release(stream));
  assert_becomes_ready(end);
  assert_true(elapsed(start, end) >= 0.0f);
}

TESTS_ON_EACH_DEVICE("rill_event_elapsed_time", TEST(refuses_bad_handles), TEST(refuses_null_out), TEST(needs_timing),
                     TEST(needs_recorded_events), TEST(needs_complete_events), TEST(needs_one_device),
                     TEST(checks_its_conditions_in_order), TEST(is_zero_for_the_same_event),
                     TEST(measures_the_gap_with_its_sign), TEST(measures_between_streams), TEST(uses_the_last_records),
                     TEST(is_not_changed_by_a_replaced_record), TEST(outlives_the_streams))
