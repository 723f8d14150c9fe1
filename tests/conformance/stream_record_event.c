/* rill_stream_record_event */
#include "support/testing.h"

static rill_status call_with_stream(uint64_t id) {
  return rill_stream_record_event((rill_stream){ id }, new_event("event"), 0);
}
static rill_status call_with_event(uint64_t id) {
  return rill_stream_record_event(new_stream("stream"), (rill_event){ id }, 0);
}

static void refuses_bad_handles(void) {
  refuses_bad_streams("rill_stream_record_event", call_with_stream);
  refuses_bad_events("rill_stream_record_event", call_with_event);
}

/* C1.6: an invalid first argument is reported first. */
static void checks_the_stream_first(void) {
  rill_stream stale = new_stream("stale");
  assert_ok(rill_stream_release(stale));
  assert_fails(rill_stream_record_event(stale, RILL_NULL_EVENT, UINT32_MAX), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_stream_record_event(new_stream("live"), RILL_NULL_EVENT, UINT32_MAX), RILL_ERROR_INVALID_HANDLE);
}

/* A flag of waits is not valid for records. */
static void refuses_unknown_flags(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = new_event("event");
  const uint32_t bad[] = { RILL_WAIT_IF_RECORDED, RILL_WAIT_MUST_BE_RECORDED, 8, UINT32_C(1) << 31, UINT32_MAX };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_fails(rill_stream_record_event(stream, event, bad[i]), RILL_ERROR_INVALID_ARGUMENT);
  }
  bool recorded = true;
  assert_ok(rill_event_is_recorded(event, &recorded));
  assert_false(recorded);
}

/* C3.9 */
static void refuses_a_cached_event(void) {
  rill_stream stream = new_stream("stream");
  rill_event cached;
  assert_ok(rill_stream_cached_event(stream, &cached));
  assert_fails(rill_stream_record_event(stream, cached, 0), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_record_event(new_stream("other"), cached, 0), RILL_ERROR_INVALID_ARGUMENT);
}

/* C3.5, E8: the text names both devices. */
static void refuses_another_device(void) {
  needs_second_device();
  rill_stream stream = new_stream("here");
  rill_event event = new_event_on(dut.second, "there");
  assert_fails(rill_stream_record_event(stream, event, 0), RILL_ERROR_WRONG_DEVICE);
  assert_says("here");
  assert_says("there");
  assert_says(dut.name);
}

/* C1.6 */
static void refuses_another_backend(void) {
  needs_foreign_device();
  rill_event event = new_event_on(dut.foreign, "there");
  assert_fails(rill_stream_record_event(new_stream("here"), event, 0), RILL_ERROR_WRONG_BACKEND);
}

/* C3.5 */
static void marks_the_work_before_it(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = new_event("event");
  struct gate *gate = gate_close(stream);
  write_cell(stream, 0, 5);
  read_cell(stream, 0);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_false(is_ready(event));
  gate_open(gate);
  assert_becomes_ready(event);
  assert_int_equal(dut.host[0], 5);
}

/* C3.5 */
static void is_not_delayed_by_later_work(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = new_event("event");
  write_cell(stream, 0, 6);
  read_cell(stream, 0);
  assert_ok(rill_stream_record_event(stream, event, 0));
  struct gate *gate = gate_close(stream);
  assert_becomes_ready(event);
  assert_int_equal(dut.host[0], 6);
  assert_false(is_complete(stream));
  gate_open(gate);
}

/* C3.5, E6 */
static void replaces_the_earlier_point(void) {
  rill_stream stream = new_stream("stream"), other = new_stream("other");
  rill_event event = new_event("event");
  assert_ok(rill_stream_record_event(other, event, 0));
  assert_becomes_ready(event);
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_false(is_ready(event));
  assert_ok(rill_stream_record_event(other, event, 0)); /* and once more on the first stream, which is still busy */
  assert_becomes_ready(event);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_false(is_ready(event));
  gate_open(gate);
  assert_becomes_ready(event);
}

/* C7.2: outside captures the flag has no effect. */
static void accepts_the_external_flag(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = new_event("event");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, event, RILL_EVENT_EXTERNAL));
  assert_false(is_ready(event));
  gate_open(gate);
  assert_becomes_ready(event);
}

/* Every kind of event can be recorded. */
static void records_timing_blocking_and_signaled_events(void) {
  rill_stream stream = new_stream("stream");
  const rill_event_options kinds[] = {
    { sizeof kinds[0], true, false, false, false, NULL },
    { sizeof kinds[0], false, true, false, false, NULL },
    { sizeof kinds[0], true, true, false, false, NULL },
    { sizeof kinds[0], false, false, false, true, NULL },
  };
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    rill_event event;
    assert_ok(rill_event_create(dut.device, &kinds[i], &event));
    keep_event_until_end(event);
    struct gate *gate = gate_close(stream);
    assert_ok(rill_stream_record_event(stream, event, 0));
    assert_false(is_ready(event));
    gate_open(gate);
    assert_becomes_ready(event);
  }
}

/* E34 */
static void can_be_called_a_hundred_thousand_times(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = new_event("event");
  for (unsigned i = 0; i < scaled(100000); i++) {
    if (rill_stream_record_event(stream, event, 0) != RILL_OK) assert_ok(RILL_ERROR_INTERNAL);
  }
  assert_becomes_ready(event);
}

static const char *records(unsigned index, void *shared) {
  (void)index;
  const rill_event event = *(const rill_event *)shared;
  rill_stream stream;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  for (unsigned i = 0; i < 200; i++) REQUIRE_OK(rill_stream_record_event(stream, event, 0));
  REQUIRE_OK(rill_stream_release(stream));
  return NULL;
}

/* E35 */
static void serves_many_threads_on_one_event(void) {
  rill_event event = new_event("shared");
  run_threads(8, records, &event);
  assert_becomes_ready(event);
}

TESTS_ON_EACH_DEVICE("rill_stream_record_event", TEST(refuses_bad_handles), TEST(checks_the_stream_first),
                     TEST(refuses_unknown_flags), TEST(refuses_a_cached_event), TEST(refuses_another_device),
                     TEST(refuses_another_backend), TEST(marks_the_work_before_it), TEST(is_not_delayed_by_later_work),
                     TEST(replaces_the_earlier_point), TEST(accepts_the_external_flag),
                     TEST(records_timing_blocking_and_signaled_events), TEST(can_be_called_a_hundred_thousand_times),
                     TEST(serves_many_threads_on_one_event))
