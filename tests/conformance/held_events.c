/* The state of events while streams are held for them, or while their record is queued on a held stream (C3.8). */
#include "support/native.h"

#include <pthread.h>
#include <stdio.h>

static void record(rill_stream stream, rill_event event) { assert_ok(rill_stream_record_event(stream, event, 0)); }
static void wait_for(rill_stream stream, rill_event event) { assert_ok(rill_stream_wait_event(stream, event, 0)); }

/* A stream that waits for an event which was never recorded, and a second stream on which it can be recorded. */
struct scene {
  rill_stream held, other;
  rill_event event;
};

static struct scene hold(void) {
  struct scene s = { new_stream("held"), new_stream("other"), new_event("awaited") };
  wait_for(s.held, s.event);
  return s;
}

/* ---- waits of held streams for what the driver has ---- */

/* C3.7: the wait keeps its point, and work before the wait is not delayed. */
static void a_queued_wait_keeps_the_point_of_a_recorded_event(void) {
  struct scene s = hold();
  rill_stream first = new_stream("first"), later = new_stream("later");
  rill_event recorded = new_event("recorded"), before = new_event("before");
  struct gate *gate = gate_close(first);
  write_cell(first, 0, 21);
  record(first, recorded);
  write_cell(s.held, 1, 22);
  record(s.held, before);
  wait_for(s.held, recorded);
  read_cell(s.held, 0);
  struct gate *gate_of_later = gate_close(later);
  /* from here on the event refers to this record; the queued wait still refers to the first one */
  record(later, recorded);
  record(s.other, s.event);
  assert_becomes_ready(before);
  assert_false(is_complete(s.held));
  gate_open(gate);
  assert_completes(s.held);
  assert_int_equal(dut.host[0], 21);
  assert_false(is_ready(recorded));
  rill_stream third = new_stream("third");
  wait_for(third, recorded);
  assert_false(is_complete(third));
  gate_open(gate_of_later);
  assert_completes(third);
  assert_becomes_ready(recorded);
}

/* An event is recorded repeatedly while waits for it are queued; each wait refers to its own record. */
static void each_queued_wait_keeps_its_own_point(void) {
  enum { MOST = 12 };
  const unsigned rounds = dut.gpu ? 3 : MOST; /* with more streams, several may share a hardware queue */
  struct scene s = hold();
  rill_stream writers[MOST];
  struct gate *gates[MOST];
  rill_event event = new_event("event"), passed[MOST];
  for (unsigned i = 0; i < rounds; i++) {
    writers[i] = new_stream("writer");
    passed[i] = new_event("passed");
    gates[i] = gate_close(writers[i]);
    write_cell(writers[i], i, 100 + i);
    record(writers[i], event);
    wait_for(s.held, event);
    read_cell(s.held, i);
    record(s.held, passed[i]);
  }
  record(s.other, s.event);
  for (unsigned i = 0; i < rounds; i++) {
    assert_false(is_ready(passed[i]));
    gate_open(gates[i]);
    assert_becomes_ready(passed[i]);
    assert_int_equal(dut.host[i], 100 + i);
  }
  assert_completes(s.held);
  assert_becomes_ready(event);
  struct gate *gate = gate_close(s.other);
  record(s.other, event); /* from here on an ordinary recorded event */
  assert_false(is_ready(event));
  gate_open(gate);
  assert_becomes_ready(event);
}

/* C4.4: the elapsed time is that of the last records, wherever they were made. */
static void times_are_of_the_last_record(void) {
  struct scene s = hold();
  rill_event start = new_timing_event("start"), end = new_timing_event("end");
  float ms = -1;
  record(s.other, start);
  record(s.held, end);
  assert_fails(rill_event_elapsed_time(start, end, &ms), RILL_ERROR_NOT_READY);
  wait_for(s.held, start);
  let_pass_ns(3 * MILLISECOND);
  record(s.other, start); /* recorded while a wait for its first record is queued */
  assert_ok(rill_event_synchronize(start));
  let_pass_ns(3 * MILLISECOND);
  record(s.other, s.event);
  assert_completes(s.held);
  assert_becomes_ready(start);
  assert_ok(rill_event_elapsed_time(start, end, &ms));
  assert_true(ms > 2.5f);
}

/* ---- records ---- */

/* C3.5: the newest record applies, whether it was queued or not. */
static void a_newer_record_replaces_a_queued_one(void) {
  struct scene s = hold();
  rill_stream busy = new_stream("busy");
  rill_event event = new_event("event");
  record(s.held, event);
  struct gate *gate = gate_close(busy);
  record(busy, event);
  record(s.other, s.event);
  assert_completes(s.held); /* the held stream submits its own record of the event, which is the older one */
  assert_false(is_ready(event));
  gate_open(gate);
  assert_becomes_ready(event);
}

static void a_queued_record_replaces_an_older_one(void) {
  struct scene s = hold();
  rill_event event = new_event("event");
  record(s.other, event);
  assert_becomes_ready(event);
  record(s.held, event);
  assert_false(is_ready(event));
  record(s.other, s.event);
  assert_becomes_ready(event);
}

struct race {
  rill_stream streams[8];
  rill_stream held;
  rill_event event;
};

static const char *records(unsigned index, void *shared) {
  const struct race *race = shared;
  REQUIRE_OK(rill_stream_record_event(race->streams[index], race->event, 0));
  return NULL;
}

static void count_call(void *user, rill_status status) {
  if (status == RILL_OK) atomic_fetch_add((_Atomic unsigned *)user, 1);
}

/* C3.8: many threads record the event for the first time. Some do so on streams that are held for this event, which is
 * refused until another thread has recorded it. */
static void first_records_race(void) {
  _Atomic unsigned calls = 0;
  struct race race;
  for (unsigned i = 0; i < 8; i++) race.streams[i] = new_stream("recorder");
  race.held = new_stream("held");
  const unsigned rounds = scaled(200);
  for (unsigned i = 0; i < rounds; i++) {
    assert_ok(rill_event_create(dut.device, NULL, &race.event));
    wait_for(race.held, race.event);
    assert_ok(rill_stream_host_call(race.held, count_call, &calls));
    run_threads(8, records, &race);
    assert_completes(race.held);
    assert_becomes_ready(race.event);
    assert_ok(rill_event_release(race.event));
  }
  assert_int_equal(atomic_load(&calls), rounds);
}

static const char *waits_and_records(unsigned index, void *shared) {
  const struct race *race = shared;
  if (index % 2 == 0) ignore(rill_stream_wait_event(race->streams[index], race->event, 0));
  const rill_status status = rill_stream_record_event(race->streams[index], race->event, 0);
  REQUIRE(status == RILL_OK || status == RILL_ERROR_INVALID_ARGUMENT);
  return NULL;
}

/* C3.8: no stream stays held because of its own record. */
static void waits_and_first_records_race(void) {
  _Atomic unsigned calls = 0;
  struct race race;
  for (unsigned i = 0; i < 8; i++) race.streams[i] = new_stream("stream");
  const unsigned rounds = scaled(200);
  for (unsigned i = 0; i < rounds; i++) {
    assert_ok(rill_event_create(dut.device, NULL, &race.event));
    run_threads(8, waits_and_records, &race);
    for (unsigned k = 0; k < 8; k++) assert_ok(rill_stream_host_call(race.streams[k], count_call, &calls));
    for (unsigned k = 0; k < 8; k++) assert_completes(race.streams[k]);
    assert_ok(rill_event_release(race.event));
  }
  assert_int_equal(atomic_load(&calls), 8 * rounds);
}

/* ---- failed records ---- */

/* C3.8: the event has failed: every query and wait reports the status until the event is recorded again. */
static void a_failed_record_is_reported_until_the_next(void) {
  struct scene s = hold();
  rill_event failed = new_timing_event("inner");
  bool out = true;
  float ms = 0;
  record(s.held, failed);
  assert_ok(rill_event_release(s.event));
  assert_fails(rill_stream_synchronize(s.held), RILL_ERROR_NOT_RECORDED);
  assert_fails(rill_event_is_ready(failed, &out), RILL_ERROR_NOT_RECORDED);
  assert_says("inner");
  assert_says("awaited");
  assert_false(out);
  assert_fails(rill_event_is_recorded(failed, &out), RILL_ERROR_NOT_RECORDED);
  assert_fails(rill_event_synchronize(failed), RILL_ERROR_NOT_RECORDED);
  assert_fails(rill_event_synchronize_for(failed, 1), RILL_ERROR_NOT_RECORDED);
  assert_fails(rill_event_elapsed_time(failed, failed, &ms), RILL_ERROR_NOT_RECORDED);
  const uint32_t flags[] = { 0, RILL_WAIT_IF_RECORDED, RILL_WAIT_MUST_BE_RECORDED };
  for (int i = 0; i < 3; i++) {
    assert_fails(rill_stream_wait_event(s.other, failed, flags[i]), RILL_ERROR_NOT_RECORDED);
  }
  assert_completes(s.other); /* not a held stream */
  record(s.other, failed);
  assert_becomes_ready(failed);
  assert_ok(rill_event_is_recorded(failed, &out));
  assert_true(out);
  wait_for(s.held, failed);
  assert_completes(s.held);
}

/* The failure spreads to everything that waits for the record, with a text that names the cause. */
static void a_failure_spreads_through_chains(void) {
  struct scene s = hold();
  rill_stream last = s.held;
  rill_event links[8];
  for (unsigned i = 0; i < 8; i++) {
    links[i] = new_event("link");
    record(last, links[i]);
    last = new_stream("next");
    wait_for(last, links[i]);
  }
  bool out = true;
  assert_ok(rill_event_release(s.event));
  assert_fails(rill_stream_synchronize(last), RILL_ERROR_NOT_RECORDED);
  assert_says("awaited");
  assert_ok(rill_stream_synchronize(last));
  for (unsigned i = 0; i < 8; i++) assert_fails(rill_event_is_ready(links[i], &out), RILL_ERROR_NOT_RECORDED);
}

/* ---- numbers ---- */

/* Two held streams repeatedly wait for each other, each time through a new event that is waited for before it is
 * recorded. */
static void repeated_flushes_do_not_slow_down(void) {
  const unsigned rounds = 2000;
  struct scene s = hold();
  rill_stream second = new_stream("second");
  for (unsigned i = 0; i < rounds; i++) {
    rill_event event;
    assert_ok(rill_event_create(dut.device, NULL, &event));
    wait_for(second, event);
    record(s.held, event);
    assert_ok(rill_event_release(event));
    assert_ok(rill_event_create(dut.device, NULL, &event));
    wait_for(s.held, event);
    record(second, event);
    assert_ok(rill_event_release(event));
  }
  write_cell(second, 0, 23);
  read_cell(second, 0);
  record(s.other, s.event);
  assert_completes(second);
  assert_completes(s.held);
  assert_int_equal(dut.host[0], 23);
}

enum { LONG_CHAIN = 2000 };

struct chain {
  rill_stream streams[LONG_CHAIN];
  rill_event events[LONG_CHAIN]; /* streams[i] waits for events[i] */
  rill_event last;
  char text[64];
};

/* Each record is checked for a cycle through all streams; the last record would close one. */
static void *builds_a_chain(void *user) {
  struct chain *c = user;
  for (unsigned i = 0; i < LONG_CHAIN; i++) {
    if (rill_stream_wait_event(c->streams[i], c->events[i], 0) != RILL_OK) return "a wait fails";
  }
  for (unsigned i = 0; i + 1 < LONG_CHAIN; i++) {
    if (rill_stream_record_event(c->streams[i], c->events[i + 1], 0) != RILL_OK) return "a record fails";
  }
  if (rill_stream_record_event(c->streams[LONG_CHAIN - 1], c->events[0], 0) != RILL_ERROR_INVALID_ARGUMENT) {
    return "the cycle is not refused";
  }
  return NULL;
}

/* C3.8: builds the chain on a thread with half a megabyte of stack. */
static void long_chains_need_no_stack(void) {
  static struct chain c;
  pthread_attr_t attributes;
  pthread_t thread;
  void *fault = NULL;
  for (unsigned i = 0; i < LONG_CHAIN; i++) {
    assert_ok(rill_stream_create(dut.device, NULL, &c.streams[i]));
    assert_ok(rill_event_create(dut.device, NULL, &c.events[i]));
  }
  assert_int_equal(pthread_attr_init(&attributes), 0);
  assert_int_equal(pthread_attr_setstacksize(&attributes, 512 << 10), 0);
  assert_int_equal(pthread_create(&thread, &attributes, builds_a_chain, &c), 0);
  assert_int_equal(pthread_join(thread, &fault), 0);
  (void)pthread_attr_destroy(&attributes);
  record(new_stream("first"), c.events[0]);
  assert_completes(c.streams[LONG_CHAIN - 1]);
  for (unsigned i = 0; i < LONG_CHAIN; i++) {
    assert_ok(rill_stream_release(c.streams[i]));
    assert_ok(rill_event_release(c.events[i]));
  }
  if (fault != NULL) fail_msg("%s", (const char *)fault);
}

/* ---- texts ---- */

/* C3.8, C3.10: the text names the event that holds the stream, and the chain of waits that leads to it. */
static void a_timeout_names_what_holds_the_stream(void) {
  struct scene s = hold();
  rill_stream last = new_stream("last");
  rill_event link = new_event("the link");
  record(s.held, link);
  wait_for(last, link);
  assert_fails(rill_stream_synchronize_for(last, MILLISECOND), RILL_ERROR_TIMEOUT);
  assert_says("stream \"last\" waits for event \"the link\"");
  assert_says("stream \"held\" waits for event \"awaited\"");
  assert_says("never been recorded");
  assert_fails(rill_event_synchronize_for(link, MILLISECOND), RILL_ERROR_TIMEOUT);
  assert_says("stream \"held\" waits for event \"awaited\"");
  record(s.other, s.event);
  assert_completes(last);
  assert_ok(rill_event_synchronize(link));
}

/* ---- native handles ---- */

/* C3.4: if the driver has no native stream, the query changes nothing. */
static void a_missing_native_handle_disables_nothing(void) {
  if (dut.gpu) return;
  rill_stream stream = new_stream("stream"), other = new_stream("other");
  rill_event event = new_event("awaited");
  uintptr_t native = 1;
  assert_ok(rill_stream_native(stream, &native));
  assert_int_equal(native, 0);
  wait_for(stream, event);
  assert_false(is_complete(stream));
  record(other, event);
  assert_completes(stream);
}

static const char *shares_or_waits(unsigned index, void *shared) {
  const struct race *race = shared;
  uintptr_t native = 0;
  if (index == 0) {
    const rill_status status = rill_stream_native(race->held, &native);
    REQUIRE(status == RILL_OK || status == RILL_ERROR_NOT_READY);
    REQUIRE((status == RILL_OK) == (native != 0));
  } else {
    const rill_status status = rill_stream_wait_event(race->held, race->event, 0);
    REQUIRE(status == RILL_OK || status == RILL_ERROR_NOT_RECORDED);
  }
  return NULL;
}

/* C3.4, C3.8: a stream is either held or its native handle has been returned, never both. */
static void the_native_handle_races_with_the_first_wait(void) {
  if (!dut.gpu) return;
  rill_stream other = new_stream("other");
  for (unsigned i = 0; i < scaled(200); i++) {
    struct race race;
    uintptr_t native = 0;
    assert_ok(rill_stream_create(dut.device, NULL, &race.held));
    assert_ok(rill_event_create(dut.device, NULL, &race.event));
    run_threads(2, shares_or_waits, &race);
    const bool held = !is_complete(race.held);
    assert_int_equal(rill_stream_native(race.held, &native), held ? RILL_ERROR_NOT_READY : RILL_OK);
    record(other, race.event);
    assert_completes(race.held);
    assert_ok(rill_stream_release(race.held));
    assert_ok(rill_event_release(race.event));
  }
}

/* C4.5: the native event receives each record, including queued records and first records. */
static void the_native_event_has_the_record(void) {
  if (!native_available()) return;
  struct scene s = hold();
  rill_event event = new_event("event");
  uintptr_t native = 0, imported_native;
  rill_event imported;
  record(s.held, event);
  assert_ok(rill_event_native(event, &native));
  assert_int_not_equal(native, 0);
  struct gate *gate = gate_close(s.other);
  record(s.other, s.event);
  assert_ok(rill_event_native(s.event, &imported_native));
  assert_ok(rill_event_import(dut.device, native, NULL, &imported));
  keep_event_until_end(imported);
  assert_false(is_ready(imported));
  gate_open(gate);
  assert_becomes_ready(imported);
  assert_becomes_ready(event);
}

TESTS_ON_EACH_DEVICE("events and held streams", TEST(a_queued_wait_keeps_the_point_of_a_recorded_event),
                     TEST(each_queued_wait_keeps_its_own_point), TEST(times_are_of_the_last_record),
                     TEST(a_newer_record_replaces_a_queued_one), TEST(a_queued_record_replaces_an_older_one),
                     TEST(first_records_race), TEST(waits_and_first_records_race),
                     TEST(a_failed_record_is_reported_until_the_next), TEST(a_failure_spreads_through_chains),
                     TEST(repeated_flushes_do_not_slow_down), TEST(long_chains_need_no_stack),
                     TEST(a_timeout_names_what_holds_the_stream), TEST(a_missing_native_handle_disables_nothing),
                     TEST(the_native_handle_races_with_the_first_wait), TEST(the_native_event_has_the_record))
