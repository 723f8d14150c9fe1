/* rill_event_synchronize */
#include "support/testing.h"

static rill_status call_with_event(uint64_t id) { return rill_event_synchronize((rill_event){ id }); }

static void refuses_bad_handles(void) { refuses_bad_events("rill_event_synchronize", call_with_event); }

/* C4.3, E5 */
static void returns_at_once_if_never_recorded(void) {
  rill_event event = new_event("never");
  for (int i = 0; i < 10; i++) assert_ok(rill_event_synchronize(event));
}

/* C4.3, for both ways of waiting (Q12). */
static void returns_when_the_work_is_done(void) {
  rill_stream stream = new_stream("stream");
  for (uint32_t i = 0; i < scaled(200); i++) {
    rill_event event;
    assert_ok(rill_stream_record_new_event(stream, RILL_EVENT_OPTIONS(.blocking_sync = i % 2 != 0), &event));
    write_cell(stream, 0, i);
    read_cell(stream, 0);
    assert_ok(rill_stream_record_event(stream, event, 0));
    assert_ok(rill_event_synchronize(event));
    assert_int_equal(dut.host[0], i);
    assert_true(is_ready(event));
    assert_ok(rill_event_release(event));
  }
}

/* It waits for the record, not for later work of the stream. */
static void does_not_wait_for_later_work(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = new_event("event");
  write_cell(stream, 0, 3);
  read_cell(stream, 0);
  assert_ok(rill_stream_record_event(stream, event, 0));
  struct gate *gate = gate_close(stream);
  assert_ok(rill_event_synchronize(event));
  assert_int_equal(dut.host[0], 3);
  assert_false(is_complete(stream));
  gate_open(gate);
}

static const char *synchronizes(unsigned index, void *shared) {
  (void)index;
  REQUIRE_OK(rill_event_synchronize(*(const rill_event *)shared));
  REQUIRE(__atomic_load_n(dut.host, __ATOMIC_SEQ_CST) == 9);
  return NULL;
}

/* Q7, W18 */
static void waits_in_many_threads(void) {
  rill_stream stream = new_stream("stream"), other = new_stream("other");
  for (int i = 0; i < 2; i++) {
    rill_event event;
    struct gate *gate = gate_close(stream);
    write_cell(stream, 0, 9);
    read_cell(stream, 0);
    assert_ok(rill_stream_record_new_event(stream, RILL_EVENT_OPTIONS(.blocking_sync = i != 0), &event));
    keep_event_until_end(event);
    struct background *threads = start_threads(8, synchronizes, &event);
    write_cell(other, 1, 1);
    assert_completes(other); /* other threads are not delayed */
    gate_open(gate);
    join_threads(threads);
    dut.host[0] = 0;
  }
}

/* C4.6, S12 */
static void outlives_its_stream(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = new_event("event");
  struct gate *gate = gate_close(stream);
  write_cell(stream, 0, 9);
  read_cell(stream, 0);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_stream_release(stream));
  gate_open(gate);
  assert_ok(rill_event_synchronize(event));
  assert_int_equal(dut.host[0], 9);
}

TESTS_ON_EACH_DEVICE("rill_event_synchronize", TEST(refuses_bad_handles), TEST(returns_at_once_if_never_recorded),
                     TEST(returns_when_the_work_is_done), TEST(does_not_wait_for_later_work),
                     TEST(waits_in_many_threads), TEST(outlives_its_stream))
