/* rill_event_synchronize_for */
#include "support/testing.h"

static rill_status call_with_event(uint64_t id) {
  return rill_event_synchronize_for((rill_event){ id }, 1000 * MILLISECOND);
}

static void refuses_bad_handles(void) { refuses_bad_events("rill_event_synchronize_for", call_with_event); }

static const uint64_t limits[] = { 0, 1, MILLISECOND, UINT64_C(1) << 63, UINT64_MAX - 1, UINT64_MAX };

/* C4.3 */
static void returns_at_once_when_ready(void) {
  rill_event event = new_event("event");
  for (int round = 0; round < 2; round++) { /* round 0: never recorded; round 1: complete */
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) assert_ok(rill_event_synchronize_for(event, limits[i]));
    assert_ok(rill_stream_record_event(new_stream("stream"), event, 0));
    assert_ok(rill_event_synchronize(event));
  }
}

static rill_event event_of_kind(bool blocking_sync) {
  rill_event event;
  assert_ok(
      rill_event_create(dut.device, RILL_EVENT_OPTIONS(.label = "slow one", .blocking_sync = blocking_sync), &event));
  keep_event_until_end(event);
  return event;
}

/* C3.10, C4.3: TIMEOUT, never too early, and a later wait succeeds. */
static void times_out_no_earlier_than_asked(void) {
  const uint64_t pauses[] = { 0, 1, MILLISECOND, 20 * MILLISECOND };
  for (int kind = 0; kind < 2; kind++) {
    rill_stream stream = new_stream("stream");
    rill_event event = event_of_kind(kind != 0);
    struct gate *gate = gate_close(stream);
    assert_ok(rill_stream_record_event(stream, event, 0));
    for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
      const uint64_t start = now_ns();
      assert_fails(rill_event_synchronize_for(event, pauses[i]), RILL_ERROR_TIMEOUT);
      assert_true(now_ns() - start >= pauses[i]);
      assert_names("slow one");
    }
    assert_false(is_ready(event));
    gate_open(gate);
    assert_becomes_ready(event);
  }
}

static const char *opens_after_a_while(unsigned index, void *shared) {
  (void)index;
  let_pass_ns(5 * MILLISECOND);
  gate_open(shared);
  return NULL;
}

/* Time limits that would overflow when added to the clock are treated as long limits. */
static void waits_with_every_long_limit(void) {
  for (size_t i = 3; i < sizeof limits / sizeof *limits; i++) {
    rill_stream stream = new_stream("stream");
    rill_event event = event_of_kind(false);
    struct gate *gate = gate_close(stream);
    write_cell(stream, 0, 20 + (uint32_t)i);
    read_cell(stream, 0);
    assert_ok(rill_stream_record_event(stream, event, 0));
    struct background *opener = start_threads(1, opens_after_a_while, gate);
    assert_ok(rill_event_synchronize_for(event, limits[i]));
    assert_int_equal(dut.host[0], 20 + i);
    join_threads(opener);
  }
}

TESTS_ON_EACH_DEVICE("rill_event_synchronize_for", TEST(refuses_bad_handles), TEST(returns_at_once_when_ready),
                     TEST(times_out_no_earlier_than_asked), TEST(waits_with_every_long_limit))
