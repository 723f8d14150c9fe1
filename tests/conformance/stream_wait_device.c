/* rill_stream_wait_device */
#include "support/testing.h"

static rill_status call_with_stream(uint64_t id) { return rill_stream_wait_device((rill_stream){ id }, dut.device); }
static rill_status call_with_device(uint64_t id) {
  return rill_stream_wait_device(new_stream("stream"), (rill_device){ id });
}

static void refuses_bad_handles(void) {
  refuses_bad_streams("rill_stream_wait_device", call_with_stream);
  refuses_bad_devices("rill_stream_wait_device", call_with_device);
}

/* C1.6 */
static void refuses_another_backend(void) {
  needs_foreign_device();
  assert_fails(rill_stream_wait_device(new_stream("here"), dut.foreign), RILL_ERROR_WRONG_BACKEND);
}

static rill_stream default_stream(rill_device device) {
  rill_stream stream;
  assert_ok(rill_device_default_stream(device, &stream));
  return stream;
}

/* C3.9, D9 */
static void orders_after_the_default_stream(void) {
  rill_stream standard = default_stream(dut.device), stream = new_stream("stream");
  struct gate *gate = gate_close(standard);
  write_cell(standard, 0, 1);
  assert_ok(rill_stream_wait_device(stream, dut.device));
  read_cell(stream, 0);
  assert_false(is_complete(stream));
  gate_open(gate);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 1);
}

/* D9: it does not wait for other streams of the device. */
static void does_not_wait_for_other_streams(void) {
  rill_stream busy = new_stream("busy"), stream = new_stream("stream");
  struct gate *gate = gate_close(busy);
  assert_ok(rill_stream_wait_device(stream, dut.device));
  write_cell(stream, 0, 2);
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 2);
  assert_false(is_complete(busy));
  gate_open(gate);
}

/* C3.9: a wait for the same stream does nothing. */
static void does_nothing_for_the_default_stream_itself(void) {
  rill_stream standard = default_stream(dut.device);
  struct gate *gate = gate_close(standard);
  assert_ok(rill_stream_wait_device(standard, dut.device));
  gate_open(gate);
  assert_completes(standard);
}

/* W6 */
static void orders_across_devices(void) {
  needs_second_device();
  rill_stream there = default_stream(dut.second), here = new_stream("here");
  struct gate *gate = gate_close(there);
  assert_ok(rill_stream_wait_device(here, dut.second));
  write_cell(here, 0, 3);
  assert_false(is_complete(here));
  gate_open(gate);
  assert_completes(here);
}

TESTS_ON_EACH_DEVICE("rill_stream_wait_device", TEST(refuses_bad_handles), TEST(refuses_another_backend),
                     TEST(orders_after_the_default_stream), TEST(does_not_wait_for_other_streams),
                     TEST(does_nothing_for_the_default_stream_itself), TEST(orders_across_devices))
