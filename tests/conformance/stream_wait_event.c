/* rill_stream_wait_event. For waits for events that were never recorded see stream_held.c. */
#include "support/testing.h"

static rill_event recorded_event(void) {
  rill_event event = new_event("recorded");
  assert_ok(rill_stream_record_event(new_stream("recorder"), event, 0));
  return event;
}

static rill_status call_with_stream(uint64_t id) {
  return rill_stream_wait_event((rill_stream){ id }, recorded_event(), 0);
}
static rill_status call_with_event(uint64_t id) {
  return rill_stream_wait_event(new_stream("stream"), (rill_event){ id }, 0);
}

/* W2, S11 */
static void refuses_bad_handles(void) {
  refuses_bad_streams("rill_stream_wait_event", call_with_stream);
  refuses_bad_events("rill_stream_wait_event", call_with_event);
}

/* C1.6 */
static void checks_the_stream_first(void) {
  rill_stream stale = new_stream("stale");
  assert_ok(rill_stream_release(stale));
  assert_fails(rill_stream_wait_event(stale, RILL_NULL_EVENT, UINT32_MAX), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_stream_wait_event(new_stream("live"), RILL_NULL_EVENT, UINT32_MAX), RILL_ERROR_INVALID_HANDLE);
}

/* C3.8, W2 */
static void refuses_unknown_flags(void) {
  rill_stream stream = new_stream("stream");
  const rill_event events[] = { new_event("never recorded"), recorded_event() };
  const uint32_t bad[] = { RILL_WAIT_IF_RECORDED | RILL_WAIT_MUST_BE_RECORDED, 8, UINT32_C(1) << 31, UINT32_MAX };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_fails(rill_stream_wait_event(stream, events[0], bad[i]), RILL_ERROR_INVALID_ARGUMENT);
    assert_fails(rill_stream_wait_event(stream, events[1], bad[i]), RILL_ERROR_INVALID_ARGUMENT);
  }
  assert_completes(stream);
}

/* C1.6 */
static void refuses_another_backend(void) {
  needs_foreign_device();
  rill_event event = new_event_on(dut.foreign, "there");
  assert_ok(rill_stream_record_event(new_stream_on(dut.foreign, "recorder"), event, 0));
  assert_fails(rill_stream_wait_event(new_stream("here"), event, 0), RILL_ERROR_WRONG_BACKEND);
}

/* C3.8, W1 */
static void passes_an_unrecorded_event_if_asked_to(void) {
  rill_stream stream = new_stream("stream");
  assert_ok(rill_stream_wait_event(stream, new_event("never"), RILL_WAIT_IF_RECORDED));
  write_cell(stream, 0, 1);
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 1);
}

/* C3.8 */
static void refuses_an_unrecorded_event_if_asked_to(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = new_event("never");
  assert_fails(rill_stream_wait_event(stream, event, RILL_WAIT_MUST_BE_RECORDED), RILL_ERROR_NOT_RECORDED);
  assert_says("never");
  write_cell(stream, 0, 2);
  read_cell(stream, 0);
  assert_completes(stream); /* C1.1: nothing was enqueued */
  assert_int_equal(dut.host[0], 2);
}

/* C3.8: a signaled event counts as recorded and complete. */
static void passes_a_signaled_event(void) {
  const uint32_t flags[] = { 0, RILL_WAIT_IF_RECORDED, RILL_WAIT_MUST_BE_RECORDED };
  rill_stream stream = new_stream("stream");
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    rill_event event;
    assert_ok(rill_event_create(dut.device, RILL_EVENT_OPTIONS(.signaled = true), &event));
    keep_event_until_end(event);
    assert_ok(rill_stream_wait_event(stream, event, flags[i]));
    assert_completes(stream);
  }
}

/* Work on `first` after a gate, an event after this work, and a read on `second` that waits for the event. */
struct scene {
  rill_stream first, second;
  rill_event event;
  struct gate *gate;
};

static struct scene set_scene(uint32_t value) {
  struct scene s = { new_stream("first"), new_stream("second"), new_event("event"), NULL };
  s.gate = gate_close(s.first);
  write_cell(s.first, 0, value);
  assert_ok(rill_stream_record_event(s.first, s.event, 0));
  return s;
}

static void wait_and_read(struct scene s, uint32_t flags) {
  assert_ok(rill_stream_wait_event(s.second, s.event, flags));
  read_cell(s.second, 0);
}

static void open_and_expect(struct scene s, uint32_t value) {
  assert_false(is_complete(s.second));
  gate_open(s.gate);
  assert_completes(s.second);
  assert_int_equal(dut.host[0], value);
}

/* C3.7: the host does not block; otherwise the gate would stay closed. */
static void orders_later_work_after_the_event(void) {
  struct scene s = set_scene(7);
  wait_and_read(s, 0);
  open_and_expect(s, 7);
}

/* C3.8, C7.2: for a recorded event the flags make no difference. */
static void orders_with_every_flag(void) {
  const uint32_t flags[] = { RILL_WAIT_IF_RECORDED, RILL_WAIT_MUST_BE_RECORDED, RILL_EVENT_EXTERNAL,
                             RILL_EVENT_EXTERNAL | RILL_WAIT_MUST_BE_RECORDED };
  for (uint32_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    struct scene s = set_scene(70 + i);
    wait_and_read(s, flags[i]);
    open_and_expect(s, 70 + i);
  }
}

/* C3.7: work submitted before the wait does not wait. */
static void leaves_earlier_work_alone(void) {
  rill_event before = new_event("before");
  struct scene s = set_scene(8);
  write_cell(s.second, 1, 9);
  read_cell(s.second, 1);
  assert_ok(rill_stream_record_event(s.second, before, 0));
  wait_and_read(s, 0);
  assert_becomes_ready(before);
  assert_int_equal(dut.host[1], 9);
  open_and_expect(s, 8);
}

/* C3.7, W8: a wait refers to the last record before the call. A later record after unfinished work does not delay it
 * ... */
static void is_not_delayed_by_a_later_record(void) {
  rill_stream first = new_stream("first"), second = new_stream("second");
  rill_event event = new_event("event");
  write_cell(first, 0, 3);
  assert_ok(rill_stream_record_event(first, event, 0));
  assert_ok(rill_stream_wait_event(second, event, 0));
  struct gate *gate = gate_close(first);
  assert_ok(rill_stream_record_event(first, event, 0));
  read_cell(second, 0);
  assert_completes(second);
  assert_int_equal(dut.host[0], 3);
  assert_false(is_ready(event));
  gate_open(gate);
}

/* C3.7, W8: ... and a later record on an idle stream does not release it. */
static void is_not_released_by_a_later_record(void) {
  rill_stream idle = new_stream("idle");
  struct scene s = set_scene(4);
  wait_and_read(s, 0);
  assert_ok(rill_stream_record_event(idle, s.event, 0));
  assert_completes(idle);
  assert_true(is_ready(s.event));
  open_and_expect(s, 4);
}

/* W3 */
static void many_streams_wait_for_one_event(void) {
  enum { WAITERS = 16 };
  rill_stream waiters[WAITERS];
  struct scene s = set_scene(21);
  for (unsigned i = 0; i < WAITERS; i++) {
    waiters[i] = new_stream("waiter");
    assert_ok(rill_stream_wait_event(waiters[i], s.event, 0));
    assert_ok(rill_copy_async(waiters[i], dut.host + i, dut.memory, sizeof *dut.host));
  }
  for (unsigned i = 0; i < WAITERS; i++) assert_false(is_complete(waiters[i]));
  gate_open(s.gate);
  for (unsigned i = 0; i < WAITERS; i++) {
    assert_completes(waiters[i]);
    assert_int_equal(dut.host[i], 21);
  }
}

/* W4 */
static void one_stream_waits_for_many_events(void) {
  enum { EVENTS = 16 };
  rill_stream waiter = new_stream("waiter"), gated = new_stream("gated");
  struct gate *gate = gate_close(gated);
  for (unsigned i = 0; i < EVENTS; i++) {
    rill_stream stream = i == EVENTS / 2 ? gated : new_stream("stream");
    rill_event event = new_event("event");
    write_cell(stream, i, 30 + i);
    assert_ok(rill_stream_record_event(stream, event, 0));
    assert_ok(rill_stream_wait_event(waiter, event, 0));
  }
  assert_ok(rill_copy_async(waiter, dut.host, dut.memory, EVENTS * sizeof *dut.host));
  assert_false(is_complete(waiter));
  gate_open(gate);
  assert_completes(waiter);
  for (unsigned i = 0; i < EVENTS; i++) assert_int_equal(dut.host[i], 30 + i);
}

/* W5 */
static void a_stream_may_wait_for_its_own_event(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = new_event("event");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_stream_wait_event(stream, event, 0));
  write_cell(stream, 0, 5);
  read_cell(stream, 0);
  gate_open(gate);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 5);
}

/* W5: two streams may wait for earlier records of each other. */
static void streams_may_wait_for_each_other(void) {
  rill_stream streams[] = { new_stream("one"), new_stream("other") };
  rill_event events[] = { new_event("one"), new_event("other") };
  struct gate *gate = gate_close(streams[0]);
  write_cell(streams[0], 0, 1);
  for (unsigned i = 1; i < 100; i++) {
    const unsigned from = (i - 1) % 2, to = i % 2;
    assert_ok(rill_stream_record_event(streams[from], events[from], 0));
    assert_ok(rill_stream_wait_event(streams[to], events[from], 0));
    assert_ok(rill_copy_async(streams[to], dut.memory + i % CELLS, dut.memory + (i - 1) % CELLS, sizeof(uint32_t)));
  }
  read_cell(streams[1], 99 % CELLS);
  gate_open(gate);
  assert_completes(streams[1]);
  assert_int_equal(dut.host[99 % CELLS], 1);
}

/* W7: each stream copies what the previous stream wrote. */
static void chains_through_sixteen_streams(void) {
  enum { STREAMS = 16 };
  rill_stream streams[STREAMS];
  struct gate *gate = NULL;
  for (unsigned i = 0; i < STREAMS; i++) {
    streams[i] = new_stream("link");
    if (i == 0) {
      gate = gate_close(streams[0]);
      write_cell(streams[0], 0, 42);
      continue;
    }
    rill_event event = new_event("link");
    assert_ok(rill_stream_record_event(streams[i - 1], event, 0));
    assert_ok(rill_stream_wait_event(streams[i], event, 0));
    assert_ok(rill_copy_async(streams[i], dut.memory + i, dut.memory + i - 1, sizeof(uint32_t)));
  }
  read_cell(streams[STREAMS - 1], STREAMS - 1);
  assert_false(is_complete(streams[STREAMS - 1]));
  gate_open(gate);
  assert_completes(streams[STREAMS - 1]);
  assert_int_equal(dut.host[STREAMS - 1], 42);
}

/* C3.7, W9, E4 */
static void stays_valid_when_the_event_is_released(void) {
  struct scene s = set_scene(10);
  wait_and_read(s, 0);
  assert_ok(rill_event_release(s.event));
  open_and_expect(s, 10);
}

/* W10: a new event, possibly at the address of the old one, has no effect on the wait. */
static void is_not_confused_by_a_new_event(void) {
  rill_stream idle = new_stream("idle");
  struct scene s = set_scene(11);
  wait_and_read(s, 0);
  assert_ok(rill_event_release(s.event));
  for (int i = 0; i < 100; i++) {
    rill_event event;
    assert_ok(rill_stream_record_new_event(idle, NULL, &event));
    assert_becomes_ready(event);
    assert_ok(rill_event_release(event));
  }
  open_and_expect(s, 11);
}

static void stays_valid_when_the_recording_stream_is_released(void) {
  struct scene s = set_scene(12);
  wait_and_read(s, 0);
  assert_ok(rill_stream_release(s.first));
  open_and_expect(s, 12);
}

static void passes_an_event_that_is_complete(void) {
  rill_event event = recorded_event();
  assert_becomes_ready(event);
  rill_stream stream = new_stream("stream");
  assert_ok(rill_stream_wait_event(stream, event, 0));
  assert_completes(stream);
}

static void note_order(void *user, rill_status status) {
  (void)status;
  __atomic_store_n((uint32_t *)user, dut.host[0], __ATOMIC_SEQ_CST);
}

/* C3.7, C3.13: host calls wait like other work. */
static void orders_host_calls(void) {
  uint32_t seen = 0;
  struct scene s = set_scene(13);
  wait_and_read(s, 0);
  assert_ok(rill_stream_host_call(s.second, note_order, &seen));
  open_and_expect(s, 13);
  assert_int_equal(__atomic_load_n(&seen, __ATOMIC_SEQ_CST), 13);
}

/* C3.7, W6 */
static void orders_across_devices(void) {
  needs_second_device();
  rill_stream here = new_stream("here"), there = new_stream_on(dut.second, "there");
  rill_event event = new_event_on(dut.second, "there");
  const uint32_t value = 77;
  struct gate *gate = gate_close(there);
  /* pinned memory, which every device can access */
  assert_ok(rill_fill_async(there, dut.host, &value, sizeof value, 1));
  assert_ok(rill_stream_record_event(there, event, 0));
  assert_ok(rill_stream_wait_event(here, event, 0));
  assert_ok(rill_copy_async(here, dut.memory, dut.host, sizeof value));
  assert_ok(rill_copy_async(here, dut.host + 1, dut.memory, sizeof value));
  assert_false(is_complete(here));
  gate_open(gate);
  assert_completes(here);
  assert_int_equal(dut.host[1], value);
}

TESTS_ON_EACH_DEVICE("rill_stream_wait_event", TEST(refuses_bad_handles), TEST(checks_the_stream_first),
                     TEST(refuses_unknown_flags), TEST(refuses_another_backend),
                     TEST(passes_an_unrecorded_event_if_asked_to), TEST(refuses_an_unrecorded_event_if_asked_to),
                     TEST(passes_a_signaled_event), TEST(orders_later_work_after_the_event),
                     TEST(orders_with_every_flag), TEST(leaves_earlier_work_alone),
                     TEST(is_not_delayed_by_a_later_record), TEST(is_not_released_by_a_later_record),
                     TEST(many_streams_wait_for_one_event), TEST(one_stream_waits_for_many_events),
                     TEST(a_stream_may_wait_for_its_own_event), TEST(streams_may_wait_for_each_other),
                     TEST(chains_through_sixteen_streams), TEST(stays_valid_when_the_event_is_released),
                     TEST(is_not_confused_by_a_new_event), TEST(stays_valid_when_the_recording_stream_is_released),
                     TEST(passes_an_event_that_is_complete), TEST(orders_host_calls), TEST(orders_across_devices))
