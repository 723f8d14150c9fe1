/* rill_device_synchronize */
#include "support/testing.h"

static rill_status call_with_device(uint64_t id) { return rill_device_synchronize((rill_device){ id }); }

static void refuses_bad_handles(void) { refuses_bad_devices("rill_device_synchronize", call_with_device); }

static void returns_at_once_when_idle(void) {
  for (int i = 0; i < 10; i++) assert_ok(rill_device_synchronize(dut.device)); /* Q4 */
}

static const char *opens_after_a_while(unsigned index, void *shared) {
  (void)index;
  let_pass_ns(20 * MILLISECOND);
  gate_open(shared);
  return NULL;
}

/* C2.5, Q10: it waits for all streams, including those that wait for others. */
static void waits_for_every_stream(void) {
  enum { STREAMS = 8 };
  rill_stream first = new_stream("gated");
  rill_event event = new_event("gated");
  struct gate *gate = gate_close(first);
  assert_ok(rill_stream_record_event(first, event, 0));
  for (unsigned i = 0; i < STREAMS; i++) {
    rill_stream stream = new_stream("waiting");
    assert_ok(rill_stream_wait_event(stream, event, 0));
    write_cell(stream, i, 100 + i);
    read_cell(stream, i);
  }
  struct background *opener = start_threads(1, opens_after_a_while, gate);
  assert_ok(rill_device_synchronize(dut.device));
  for (unsigned i = 0; i < STREAMS; i++) assert_int_equal(dut.host[i], 100 + i);
  join_threads(opener);
}

static const char *records_after_a_while(unsigned index, void *shared) {
  const struct {
    rill_stream stream;
    rill_event event;
  } *const record = shared;
  (void)index;
  let_pass_ns(10 * MILLISECOND);
  REQUIRE_OK(rill_stream_record_event(record->stream, record->event, 0));
  return NULL;
}

/* C2.5: held work is included. */
static void waits_for_held_streams(void) {
  struct {
    rill_stream stream;
    rill_event event;
  } record = { new_stream("records"), new_event("awaited") };
  rill_stream held = new_stream("held");
  assert_ok(rill_stream_wait_event(held, record.event, 0));
  write_cell(held, 0, 9);
  read_cell(held, 0);
  struct background *recorder = start_threads(1, records_after_a_while, &record);
  assert_ok(rill_device_synchronize(dut.device));
  assert_int_equal(dut.host[0], 9);
  join_threads(recorder);
}

/* C1.3: the work of a released stream still belongs to the device. */
static void waits_for_streams_that_were_released(void) {
  rill_stream stream = new_stream("released");
  struct gate *gate = gate_close(stream);
  write_cell(stream, 0, 9);
  read_cell(stream, 0);
  assert_ok(rill_stream_release(stream));
  struct background *opener = start_threads(1, opens_after_a_while, gate);
  assert_ok(rill_device_synchronize(dut.device));
  assert_int_equal(dut.host[0], 9);
  join_threads(opener);
}

/* Q10: it waits only for this device. */
static void does_not_wait_for_other_devices(void) {
  needs_second_device();
  rill_stream stream = new_stream("gated");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_device_synchronize(dut.second));
  assert_false(is_complete(stream));
  gate_open(gate);
  assert_completes(stream);
}

TESTS_ON_EACH_DEVICE("rill_device_synchronize", TEST(refuses_bad_handles), TEST(returns_at_once_when_idle),
                     TEST(waits_for_every_stream), TEST(waits_for_held_streams),
                     TEST(waits_for_streams_that_were_released), TEST(does_not_wait_for_other_devices))
