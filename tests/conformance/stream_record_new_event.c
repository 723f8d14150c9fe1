/* rill_stream_record_new_event */
#include "support/testing.h"

static rill_status call_with_stream(uint64_t id) {
  rill_event out = { 1 };
  const rill_status status = rill_stream_record_new_event((rill_stream){ id }, NULL, &out);
  assert_int_equal(out.id, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_streams("rill_stream_record_new_event", call_with_stream); }

static void refuses_null_out(void) {
  assert_fails(rill_stream_record_new_event(new_stream("stream"), NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

static rill_stream stream_for_options;

static rill_status record_with(const void *options) {
  rill_event out = { 1 };
  const rill_status status = rill_stream_record_new_event(stream_for_options, options, &out);
  if (status == RILL_OK) {
    keep_event_until_end(out);
  } else {
    assert_int_equal(out.id, 0);
  }
  return status;
}

/* C1.4 */
static void accepts_older_and_newer_options(void) {
  stream_for_options = new_stream("stream");
  const rill_event_options options = { sizeof options, true, true, false, false, "grown" };
  takes_grown_options("rill_stream_record_new_event", record_with, &options, sizeof options, sizeof(size_t));
}

/* C4.1 */
static void refuses_contradictory_options(void) {
  rill_event out = { 1 };
  const rill_event_options *options = RILL_EVENT_OPTIONS(.timing = true, .interprocess = true);
  assert_fails(rill_stream_record_new_event(new_stream("stream"), options, &out), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(out.id, 0);
}

static rill_event record_new(rill_stream stream, const rill_event_options *options) {
  rill_event event;
  assert_ok(rill_stream_record_new_event(stream, options, &event));
  keep_event_until_end(event);
  return event;
}

/* C3.6 */
static void creates_an_event_that_marks_this_point(void) {
  rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  rill_event first = record_new(stream, NULL), second = record_new(stream, NULL);
  bool recorded = false;
  rill_device device;
  assert_false(rill_event_equal(first, second));
  assert_ok(rill_event_is_recorded(first, &recorded));
  assert_true(recorded);
  assert_ok(rill_event_device(first, &device));
  assert_true(rill_device_equal(device, dut.device));
  assert_false(is_ready(first));
  gate_open(gate);
  assert_becomes_ready(second);
  assert_true(is_ready(first));
}

/* C3.6: accepts the options of rill_event_create. */
static void applies_its_options(void) {
  rill_stream stream = new_stream("stream");
  rill_event start = record_new(stream, RILL_EVENT_OPTIONS(.timing = true));
  rill_event end = record_new(stream, RILL_EVENT_OPTIONS(.timing = true));
  float ms = -1.0f;
  assert_completes(stream);
  assert_ok(rill_event_elapsed_time(start, end, &ms));
  assert_true(ms >= 0.0f);
}

/* The option `signaled` has no effect on an event that is recorded. */
static void signaled_makes_no_difference(void) {
  rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  rill_event event = record_new(stream, RILL_EVENT_OPTIONS(.signaled = true));
  assert_false(is_ready(event));
  gate_open(gate);
  assert_becomes_ready(event);
}

TESTS_ON_EACH_DEVICE("rill_stream_record_new_event", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(accepts_older_and_newer_options), TEST(refuses_contradictory_options),
                     TEST(creates_an_event_that_marks_this_point), TEST(applies_its_options),
                     TEST(signaled_makes_no_difference))
