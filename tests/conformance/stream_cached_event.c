/* rill_stream_cached_event */
#include "support/testing.h"

GETTER_TESTS(stream, rill_stream_cached_event, rill_event, new_stream("getter"))

static rill_event cached_event(rill_stream stream) {
  rill_event event = { 0 };
  assert_ok(rill_stream_cached_event(stream, &event));
  assert_true(event.id != 0);
  return event;
}

static void each_stream_has_its_own(void) {
  rill_stream first = new_stream("first"), second = new_stream("second");
  assert_true(rill_event_equal(cached_event(first), cached_event(first)));
  assert_false(rill_event_equal(cached_event(first), cached_event(second)));
}

static const char *gets_the_same(unsigned index, void *shared) {
  rill_event *events = shared;
  const rill_stream stream = { events[16].id };
  REQUIRE_OK(rill_stream_cached_event(stream, &events[index]));
  return NULL;
}

static void all_threads_share_it(void) {
  rill_event events[17] = { { 0 } };
  events[16].id = new_stream("shared").id;
  run_threads(16, gets_the_same, events);
  for (int i = 1; i < 16; i++) assert_true(rill_event_equal(events[0], events[i]));
}

/* C1.3: borrowed. */
static void retain_and_release_do_nothing(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = cached_event(stream);
  for (int i = 0; i < 3; i++) assert_ok(rill_event_release(event));
  assert_ok(rill_event_retain(event));
  assert_ok(rill_event_synchronize(event));
  assert_true(rill_event_equal(cached_event(stream), event));
}

/* C3.9: the event that rill_stream_wait_stream records. */
static void marks_the_last_wait_for_the_stream(void) {
  rill_stream stream = new_stream("stream"), waiter = new_stream("waiter"), third = new_stream("third");
  rill_event event = cached_event(stream);
  struct gate *gate = gate_close(stream);
  write_cell(stream, 0, 5);
  assert_ok(rill_stream_wait_stream(waiter, stream));
  bool recorded = false;
  assert_ok(rill_event_is_recorded(event, &recorded));
  assert_true(recorded);
  assert_false(is_ready(event));
  assert_ok(rill_stream_wait_event(third, event, 0)); /* other streams may wait for it */
  read_cell(third, 0);
  assert_false(is_complete(third));
  gate_open(gate);
  assert_completes(third);
  assert_true(is_ready(event));
  assert_int_equal(dut.host[0], 5);
}

/* It lives as long as the stream. */
static void is_released_with_the_stream(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = cached_event(stream);
  assert_ok(rill_stream_release(stream));
  assert_fails(rill_event_synchronize(event), RILL_ERROR_STALE_HANDLE);
}

/* C3.8: it can no longer be recorded by the user. */
static void releases_streams_held_for_it(void) {
  rill_stream held = new_stream("held"), other;
  rill_event cached;
  assert_ok(rill_stream_create(dut.device, NULL, &other));
  assert_ok(rill_stream_cached_event(other, &cached));
  assert_ok(rill_stream_wait_event(held, cached, 0));
  assert_ok(rill_stream_release(other));
  assert_fails(rill_stream_synchronize_for(held, UINT64_C(10000000000)), RILL_ERROR_NOT_RECORDED);
  assert_completes(held);
}

static void has_no_timing(void) {
  rill_event event = cached_event(new_stream("stream"));
  float ms = 1.0f;
  assert_fails(rill_event_elapsed_time(event, event, &ms), RILL_ERROR_TIMING_DISABLED);
}

TESTS_ON_EACH_DEVICE("rill_stream_cached_event", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(each_stream_has_its_own), TEST(all_threads_share_it), TEST(retain_and_release_do_nothing),
                     TEST(marks_the_last_wait_for_the_stream), TEST(is_released_with_the_stream),
                     TEST(releases_streams_held_for_it), TEST(has_no_timing))
