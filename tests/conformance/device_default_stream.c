/* rill_device_default_stream */
#include "support/testing.h"

GETTER_TESTS(device, rill_device_default_stream, rill_stream, dut.device)

static rill_stream default_stream(void) {
  rill_stream stream;
  assert_ok(rill_device_default_stream(dut.device, &stream));
  return stream;
}

/* C2.4, D8 */
static void is_the_same_every_time(void) { assert_true(rill_stream_equal(default_stream(), default_stream())); }

static const char *gets_the_same(unsigned index, void *shared) {
  (void)index;
  rill_stream stream;
  REQUIRE_OK(rill_device_default_stream(dut.device, &stream));
  REQUIRE(rill_stream_equal(stream, *(const rill_stream *)shared));
  return NULL;
}

/* C1.7, C2.4 */
static void is_the_same_in_every_thread(void) {
  rill_stream stream = default_stream();
  run_threads(16, gets_the_same, &stream);
}

/* C2.4: it is created by rill, and is not ordered with the vendor's null stream. */
static void is_of_the_device_and_does_not_block(void) {
  rill_device device;
  bool blocking = true;
  assert_ok(rill_stream_device(default_stream(), &device));
  assert_true(rill_device_equal(device, dut.device));
  assert_ok(rill_stream_is_blocking(default_stream(), &blocking));
  assert_false(blocking);
}

/* C1.3, S19 */
static void cannot_be_released(void) {
  rill_stream stream = default_stream();
  for (int i = 0; i < 3; i++) assert_ok(rill_stream_release(stream));
  assert_ok(rill_stream_retain(stream));
  write_cell(stream, 0, 7);
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 7);
  assert_true(rill_stream_equal(default_stream(), stream));
}

/* C3.14: other streams do not wait for it. */
static void is_independent_of_other_streams(void) {
  rill_stream other = new_stream("other");
  struct gate *gate = gate_close(default_stream());
  write_cell(other, 1, 8);
  read_cell(other, 1);
  assert_completes(other);
  assert_int_equal(dut.host[1], 8);
  assert_false(is_complete(default_stream()));
  gate_open(gate);
  assert_completes(default_stream());
}

/* C2.4: each device has its own. */
static void differs_between_devices(void) {
  needs_second_device();
  rill_stream second;
  assert_ok(rill_device_default_stream(dut.second, &second));
  assert_false(rill_stream_equal(second, default_stream()));
}

TESTS_ON_EACH_DEVICE("rill_device_default_stream", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(is_the_same_every_time), TEST(is_the_same_in_every_thread),
                     TEST(is_of_the_device_and_does_not_block), TEST(cannot_be_released),
                     TEST(is_independent_of_other_streams), TEST(differs_between_devices))
