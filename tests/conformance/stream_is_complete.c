/* rill_stream_is_complete */
#include "support/testing.h"

#include <sched.h>

GETTER_TESTS(stream, rill_stream_is_complete, bool, new_stream("getter"))

/* Q1 */
static void is_true_for_a_new_stream(void) { assert_true(is_complete(new_stream("stream"))); }

/* C3.11, Q2, Q3: while work is pending it returns false, which is not an error, and does not block. */
static void becomes_true_when_the_work_is_done(void) {
  rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  for (int i = 0; i < 100; i++) assert_false(is_complete(stream));
  gate_open(gate);
  assert_completes(stream);
  assert_true(is_complete(stream));
}

static void poll(rill_stream stream) {
  const uint64_t end = now_ns() + TIMEOUT_NS;
  while (!is_complete(stream)) {
    assert_true(now_ns() < end);
    sched_yield();
  }
}

/* Q6: work completes without any call that waits for it. */
static void becomes_true_by_polling(void) {
  rill_stream stream = new_stream("stream");
  for (uint32_t i = 1; i <= 20; i++) {
    write_cell(stream, 0, i);
    read_cell(stream, 0);
    poll(stream);
    assert_int_equal(dut.host[0], i);
  }
}

/* A wait for an event is also work. */
static void is_false_while_the_stream_waits(void) {
  rill_stream first = new_stream("first"), second = new_stream("second");
  struct gate *gate = gate_close(first);
  assert_ok(rill_stream_wait_stream(second, first));
  assert_false(is_complete(second));
  gate_open(gate);
  poll(second);
}

static const char *sees_what_is_pending(unsigned index, void *shared) {
  (void)index;
  bool complete = true;
  REQUIRE_OK(rill_stream_is_complete(*(const rill_stream *)shared, &complete));
  REQUIRE(!complete);
  return NULL;
}

/* Q5: any thread may query. */
static void serves_every_thread(void) {
  rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  run_threads(4, sees_what_is_pending, &stream);
  gate_open(gate);
  poll(stream);
}

TESTS_ON_EACH_DEVICE("rill_stream_is_complete", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(is_true_for_a_new_stream), TEST(becomes_true_when_the_work_is_done),
                     TEST(becomes_true_by_polling), TEST(is_false_while_the_stream_waits), TEST(serves_every_thread))
