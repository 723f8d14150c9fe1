/* rill_event_create */
#include "support/testing.h"

static rill_status call_with_device(uint64_t id) {
  rill_event out = { 1 };
  const rill_status status = rill_event_create((rill_device){ id }, NULL, &out);
  assert_int_equal(out.id, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_devices("rill_event_create", call_with_device); }

/* E1 */
static void refuses_null_out(void) {
  assert_fails(rill_event_create(dut.device, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

static rill_status create_with(const void *options) {
  rill_event out = { 1 };
  const rill_status status = rill_event_create(dut.device, options, &out);
  if (status == RILL_OK) {
    keep_event_until_end(out);
  } else {
    assert_int_equal(out.id, 0);
  }
  return status;
}

/* C1.4 */
static void accepts_older_and_newer_options(void) {
  const rill_event_options options = { sizeof options, true, true, false, true, "grown" };
  takes_grown_options("rill_event_create", create_with, &options, sizeof options, sizeof(size_t));
  takes_grown_options("rill_event_create", create_with, &options, sizeof options, offsetof(rill_event_options, label));
}

/* C4.1, E1 */
static void refuses_interprocess_with_timing(void) {
  rill_event out = { 1 };
  const rill_event_options *options = RILL_EVENT_OPTIONS(.interprocess = true, .timing = true);
  assert_fails(rill_event_create(dut.device, options, &out), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(out.id, 0);
}

/* C1.8: if events cannot be shared between processes, the error says so. */
static void interprocess_events_work_if_supported(void) {
  rill_event out = { 1 };
  const rill_event_options *options = RILL_EVENT_OPTIONS(.interprocess = true);
  if (rill_device_supports(dut.device, RILL_FEATURE_EVENT_IPC, NULL)) {
    assert_ok(rill_event_create(dut.device, options, &out));
    keep_event_until_end(out);
  } else {
    assert_fails(rill_event_create(dut.device, options, &out), RILL_ERROR_UNSUPPORTED);
    assert_int_equal(out.id, 0);
    assert_says("interprocess");
    assert_says(dut.name);
  }
}

static bool is_recorded(rill_event event) {
  bool recorded = false;
  assert_ok(rill_event_is_recorded(event, &recorded));
  return recorded;
}

/* C4.1, C4.2: without timing, not recorded, ready. */
static void has_defaults(void) {
  rill_event event;
  float ms = 1.0f;
  assert_ok(rill_event_create(dut.device, NULL, &event));
  keep_event_until_end(event);
  assert_false(is_recorded(event));
  assert_true(is_ready(event));
  assert_fails(rill_event_elapsed_time(event, event, &ms), RILL_ERROR_TIMING_DISABLED);
}

/* C3.8 */
static void signaled_counts_as_recorded_and_complete(void) {
  rill_event event;
  assert_ok(rill_event_create(dut.device, RILL_EVENT_OPTIONS(.signaled = true), &event));
  keep_event_until_end(event);
  assert_true(is_recorded(event));
  assert_true(is_ready(event));
  assert_ok(rill_event_synchronize(event));
}

/* C1.5 */
static void copies_its_label(void) {
  char label[] = "label";
  rill_event event = new_event(label);
  label[0] = 'x';
  assert_fails(rill_event_is_ready(event, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_names("label");
}

static void every_event_is_new(void) {
  rill_event events[100];
  for (unsigned i = 0; i < 100; i++) {
    events[i] = new_event(NULL);
    for (unsigned j = 0; j < i; j++) assert_false(rill_event_equal(events[i], events[j]));
  }
}

/* E34 */
static void many_are_created_and_released(void) {
  rill_stream stream = new_stream("stream");
  for (unsigned i = 0; i < scaled(10000); i++) {
    rill_event event;
    assert_ok(rill_event_create(dut.device, NULL, &event));
    if (i % 4 == 0) assert_ok(rill_stream_record_event(stream, event, 0));
    assert_ok(rill_event_release(event));
  }
}

TESTS_ON_EACH_DEVICE("rill_event_create", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(accepts_older_and_newer_options), TEST(refuses_interprocess_with_timing),
                     TEST(interprocess_events_work_if_supported), TEST(has_defaults),
                     TEST(signaled_counts_as_recorded_and_complete), TEST(copies_its_label), TEST(every_event_is_new),
                     TEST(many_are_created_and_released))
