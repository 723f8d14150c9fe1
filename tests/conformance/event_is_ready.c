/* rill_event_is_ready */
#include "support/testing.h"

#include <sched.h>

GETTER_TESTS(event, rill_event_is_ready, bool, new_event("getter"))

/* C4.2, E5 */
static void is_true_if_never_recorded(void) { assert_true(is_ready(new_event("never"))); }

/* C4.2 */
static void becomes_true_when_the_work_is_done(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = new_event("event");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, event, 0));
  for (int i = 0; i < 100; i++) assert_false(is_ready(event));
  gate_open(gate);
  assert_becomes_ready(event);
  for (int i = 0; i < 100; i++) assert_true(is_ready(event));
}

/* C4.2, E6: the next record discards the cached completion. */
static void refers_to_the_last_record(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = new_event("event");
  for (int i = 0; i < 10; i++) {
    struct gate *gate = gate_close(stream);
    assert_ok(rill_stream_record_event(stream, event, 0));
    assert_false(is_ready(event));
    gate_open(gate);
    assert_becomes_ready(event);
    assert_true(is_ready(event));
  }
}

/* Q6 */
static void becomes_true_by_polling(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = new_event("event");
  for (uint32_t i = 1; i <= 20; i++) {
    const uint64_t end = now_ns() + TIMEOUT_NS;
    write_cell(stream, 0, i);
    read_cell(stream, 0);
    assert_ok(rill_stream_record_event(stream, event, 0));
    while (!is_ready(event)) {
      assert_true(now_ns() < end);
      sched_yield();
    }
    assert_int_equal(dut.host[0], i);
  }
}

struct race {
  rill_event event;
  rill_stream stream;
  bool over;
};

static const char *asks_all_the_time(unsigned index, void *shared) {
  (void)index;
  struct race *race = shared;
  while (!__atomic_load_n(&race->over, __ATOMIC_SEQ_CST)) {
    bool ready;
    REQUIRE_OK(rill_event_is_ready(race->event, &ready));
  }
  return NULL;
}

/* C4.2: queries by other threads never cache the completion of the wrong record. */
static void is_correct_while_other_threads_query(void) {
  struct race race = { .event = new_event("event"), .stream = new_stream("stream") };
  struct background *threads = start_threads(3, asks_all_the_time, &race);
  for (unsigned i = 0; i < 40; i++) {
    rill_stream idle = new_stream("idle");
    assert_ok(rill_stream_record_event(idle, race.event, 0));
    struct gate *gate = gate_close(race.stream);
    assert_ok(rill_stream_record_event(race.stream, race.event, 0));
    assert_false(is_ready(race.event));
    gate_open(gate);
    assert_becomes_ready(race.event);
  }
  __atomic_store_n(&race.over, true, __ATOMIC_SEQ_CST);
  join_threads(threads);
}

TESTS_ON_EACH_DEVICE("rill_event_is_ready", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(is_true_if_never_recorded), TEST(becomes_true_when_the_work_is_done),
                     TEST(refers_to_the_last_record), TEST(becomes_true_by_polling),
                     TEST(is_correct_while_other_threads_query))
