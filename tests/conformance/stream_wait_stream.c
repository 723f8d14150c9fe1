/* rill_stream_wait_stream */
#include "support/testing.h"

static rill_status call_with_stream(uint64_t id) {
  return rill_stream_wait_stream((rill_stream){ id }, new_stream("other"));
}
static rill_status call_with_other(uint64_t id) {
  return rill_stream_wait_stream(new_stream("stream"), (rill_stream){ id });
}

static void refuses_bad_handles(void) {
  refuses_bad_streams("rill_stream_wait_stream", call_with_stream);
  refuses_bad_streams("rill_stream_wait_stream", call_with_other);
}

/* C1.6 */
static void refuses_another_backend(void) {
  needs_foreign_device();
  rill_stream there = new_stream_on(dut.foreign, "there");
  assert_fails(rill_stream_wait_stream(new_stream("here"), there), RILL_ERROR_WRONG_BACKEND);
}

/* C3.9, W12 */
static void does_nothing_for_the_same_stream(void) {
  rill_stream stream = new_stream("stream");
  assert_ok(rill_stream_wait_stream(stream, stream));
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_wait_stream(stream, stream));
  gate_open(gate);
  assert_completes(stream);
}

static void does_nothing_for_idle_streams(void) {
  rill_stream stream = new_stream("stream");
  assert_ok(rill_stream_wait_stream(stream, new_stream("never used")));
  assert_completes(stream);
}

/* C3.9, W11 */
static void orders_after_all_submitted_work(void) {
  rill_stream first = new_stream("first"), second = new_stream("second");
  struct gate *gate = gate_close(first);
  write_cell(first, 0, 1);
  write_cell(first, 0, 2);
  assert_ok(rill_stream_wait_stream(second, first));
  read_cell(second, 0);
  assert_false(is_complete(second));
  gate_open(gate);
  assert_completes(second);
  assert_int_equal(dut.host[0], 2);
}

/* C3.9: it does not wait for work that is submitted to the other stream after the call. */
static void does_not_wait_for_later_work(void) {
  rill_stream first = new_stream("first"), second = new_stream("second");
  write_cell(first, 0, 3);
  assert_ok(rill_stream_wait_stream(second, first));
  struct gate *gate = gate_close(first);
  read_cell(second, 0);
  assert_completes(second);
  assert_int_equal(dut.host[0], 3);
  assert_false(is_complete(first));
  gate_open(gate);
}

/* C3.9 */
static void the_other_may_be_released(void) {
  rill_stream first = new_stream("first"), second = new_stream("second");
  struct gate *gate = gate_close(first);
  write_cell(first, 0, 4);
  assert_ok(rill_stream_wait_stream(second, first));
  assert_ok(rill_stream_release(first));
  read_cell(second, 0);
  assert_false(is_complete(second));
  gate_open(gate);
  assert_completes(second);
  assert_int_equal(dut.host[0], 4);
}

/* C3.9: the cached event serves many waiting streams, each with its own record. */
static void many_streams_wait_for_one(void) {
  enum { WAITERS = 16 };
  rill_stream first = new_stream("first"), waiters[WAITERS];
  struct gate *gate = NULL;
  for (unsigned i = 0; i < WAITERS; i++) {
    if (i == WAITERS / 2) gate = gate_close(first); /* the second half of the streams waits for more work */
    waiters[i] = new_stream("waiter");
    write_cell(first, i, 50 + i);
    assert_ok(rill_stream_wait_stream(waiters[i], first));
    read_cell(waiters[i], i);
  }
  for (unsigned i = 0; i < WAITERS / 2; i++) assert_completes(waiters[i]);
  for (unsigned i = WAITERS / 2; i < WAITERS; i++) assert_false(is_complete(waiters[i]));
  gate_open(gate);
  for (unsigned i = 0; i < WAITERS; i++) {
    assert_completes(waiters[i]);
    assert_int_equal(dut.host[i], 50 + i);
  }
}

static void streams_may_wait_for_each_other(void) {
  rill_stream one = new_stream("one"), other = new_stream("other");
  struct gate *gate = gate_close(one);
  write_cell(one, 0, 1);
  for (int i = 0; i < 50; i++) {
    assert_ok(rill_stream_wait_stream(other, one));
    assert_ok(rill_stream_wait_stream(one, other));
  }
  read_cell(one, 0);
  gate_open(gate);
  assert_completes(one);
  assert_completes(other);
  assert_int_equal(dut.host[0], 1);
}

/* C3.9, W6 */
static void orders_across_devices(void) {
  needs_second_device();
  rill_stream here = new_stream("here"), there = new_stream_on(dut.second, "there");
  const uint32_t value = 78;
  struct gate *gate = gate_close(there);
  assert_ok(rill_fill_async(there, dut.host, &value, sizeof value, 1));
  assert_ok(rill_stream_wait_stream(here, there));
  assert_ok(rill_copy_async(here, dut.host + 1, dut.host, sizeof value));
  assert_fails(rill_stream_synchronize_for(here, 20 * MILLISECOND), RILL_ERROR_TIMEOUT);
  gate_open(gate);
  assert_completes(here);
  assert_int_equal(dut.host[1], value);
}

TESTS_ON_EACH_DEVICE("rill_stream_wait_stream", TEST(refuses_bad_handles), TEST(refuses_another_backend),
                     TEST(does_nothing_for_the_same_stream), TEST(does_nothing_for_idle_streams),
                     TEST(orders_after_all_submitted_work), TEST(does_not_wait_for_later_work),
                     TEST(the_other_may_be_released), TEST(many_streams_wait_for_one),
                     TEST(streams_may_wait_for_each_other), TEST(orders_across_devices))
