/* rill_event_release */
#include "support/testing.h"

static void refuses_invalid_handles(void) {
  rill_stream stream = new_stream("stream");
  const uint64_t none[] = { 1, UINT64_MAX, UINT64_C(0xdeadbeefdeadbeef), dut.device.id, stream.id };
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    assert_fails(rill_event_release((rill_event){ none[i] }), RILL_ERROR_INVALID_HANDLE);
  }
  assert_ok(rill_stream_synchronize(stream)); /* the stream is still usable */
}

/* C1.3 */
static void does_nothing_for_zero(void) {
  spoil_last_error();
  assert_ok(rill_event_release(RILL_NULL_EVENT));
  assert_says("rill_device_count");
}

/* C1.2, E2 */
static void leaves_a_stale_handle(void) {
  rill_event event = new_event("gone");
  bool ready = true;
  assert_ok(rill_event_release(event));
  assert_fails(rill_event_release(event), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_event_is_ready(event, &ready), RILL_ERROR_STALE_HANDLE);
  assert_false(ready);
  assert_fails(rill_stream_record_event(new_stream("stream"), event, 0), RILL_ERROR_STALE_HANDLE);
}

/* C1.2, W10 */
static void old_handles_stay_stale(void) {
  enum { OLD = 200 };
  rill_event old[OLD];
  for (unsigned i = 0; i < OLD; i++) {
    assert_ok(rill_event_create(dut.device, NULL, &old[i]));
    assert_ok(rill_event_release(old[i]));
  }
  rill_event live = new_event("live");
  for (unsigned i = 0; i < OLD; i++) {
    assert_false(rill_event_equal(old[i], live));
    assert_fails(rill_event_synchronize(old[i]), RILL_ERROR_STALE_HANDLE);
  }
}

/* C1.3, E3: it returns immediately, although the record has not been reached. */
static void does_not_wait_for_the_record(void) {
  rill_stream stream = new_stream("stream");
  rill_event event = new_event("event");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_event_release(event));
  write_cell(stream, 0, 1);
  read_cell(stream, 0);
  gate_open(gate);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 1);
}

/* E4, C3.7 */
static void keeps_the_waits_of_streams(void) {
  rill_stream first = new_stream("first"), second = new_stream("second");
  rill_event event = new_event("event");
  struct gate *gate = gate_close(first);
  write_cell(first, 0, 2);
  assert_ok(rill_stream_record_event(first, event, 0));
  assert_ok(rill_stream_wait_event(second, event, 0));
  assert_ok(rill_event_release(event));
  read_cell(second, 0);
  assert_false(is_complete(second));
  gate_open(gate);
  assert_completes(second);
  assert_int_equal(dut.host[0], 2);
}

static const char *synchronizes_or_is_late(unsigned index, void *shared) {
  (void)index;
  const rill_status status = rill_event_synchronize(*(const rill_event *)shared);
  REQUIRE(status == RILL_OK || status == RILL_ERROR_STALE_HANDLE);
  return NULL;
}

/* C1.2: a thread may be waiting with the handle. */
static void lets_waiting_threads_finish(void) {
  rill_stream stream = new_stream("stream");
  for (unsigned i = 0; i < scaled(30); i++) {
    rill_event event = new_event("event");
    struct gate *gate = gate_close_for(stream, 5 * MILLISECOND);
    assert_ok(rill_stream_record_event(stream, event, 0));
    struct background *threads = start_threads(2, synchronizes_or_is_late, &event);
    assert_ok(rill_event_release(event));
    gate_open(gate);
    join_threads(threads);
  }
}

TESTS_ON_EACH_DEVICE("rill_event_release", TEST(refuses_invalid_handles), TEST(does_nothing_for_zero),
                     TEST(leaves_a_stale_handle), TEST(old_handles_stay_stale), TEST(does_not_wait_for_the_record),
                     TEST(keeps_the_waits_of_streams), TEST(lets_waiting_threads_finish))
