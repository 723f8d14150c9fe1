/* rill_stream_fail */
#include "support/testing.h"

static rill_status call_with_stream(uint64_t id) {
  return rill_stream_fail((rill_stream){ id }, RILL_ERROR_BACKEND, "text");
}

static void refuses_bad_handles(void) { refuses_bad_streams("rill_stream_fail", call_with_stream); }

static void refuses_statuses_of_success(void) {
  rill_stream stream = new_stream("stream");
  assert_fails(rill_stream_fail(stream, RILL_OK, "text"), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_fail(stream, RILL_STATUS_END_, "text"), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_fail(stream, -1, "text"), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_fail(stream, RILL_ERROR_BACKEND, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_stream_synchronize(stream));
}

static void accepts_every_failure(void) {
  rill_stream stream = new_stream("stream");
  for (rill_status status = RILL_OK + 1; status < RILL_STATUS_END_; status++) {
    assert_ok(rill_stream_fail(stream, status, "text"));
    assert_fails(rill_stream_synchronize(stream), status);
  }
}

static void is_reported_once_and_the_stream_continues(void) {
  rill_stream stream = new_stream("stream"), other = new_stream("other");
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_stream_fail(stream, RILL_ERROR_TIMEOUT, "rank 3 of 4 is late"));
  assert_ok(rill_stream_synchronize(other));
  assert_fails(rill_stream_synchronize(stream), RILL_ERROR_TIMEOUT);
  assert_says("stream");
  assert_says("rank 3 of 4 is late");
  assert_ok(rill_stream_synchronize(stream));
  write_cell(stream, 0, 4);
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 4);
}

static void the_first_of_several_is_reported(void) {
  rill_stream stream = new_stream("stream");
  assert_ok(rill_stream_fail(stream, RILL_ERROR_BACKEND, "first"));
  assert_ok(rill_stream_fail(stream, RILL_ERROR_TIMEOUT, "second"));
  assert_fails(rill_stream_synchronize(stream), RILL_ERROR_BACKEND);
  assert_says("first");
  assert_ok(rill_stream_synchronize(stream));
}

/* The synchronize still waits for earlier work. If its time limit passes first, it returns TIMEOUT, and a later call
 * reports the failure. */
static void comes_after_the_wait(void) {
  rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_fail(stream, RILL_ERROR_BACKEND, "the cause"));
  assert_fails(rill_stream_synchronize_for(stream, MILLISECOND), RILL_ERROR_TIMEOUT);
  gate_open(gate);
  assert_fails(rill_stream_synchronize_for(stream, TIMEOUT_NS), RILL_ERROR_BACKEND);
  assert_says("the cause");
  assert_ok(rill_stream_synchronize(stream));
}

/* A synchronize that is already blocked also reports it. */
static const char *synchronize(unsigned index, void *shared) {
  (void)index;
  const rill_status status = rill_stream_synchronize(*(rill_stream *)shared);
  REQUIRE(status == RILL_ERROR_BACKEND);
  REQUIRE(strstr(rill_last_error_text(), "meanwhile") != NULL);
  return NULL;
}

static void is_reported_to_waiting_threads(void) {
  rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  struct background *waiting = start_threads(1, synchronize, &stream);
  assert_ok(rill_stream_fail(stream, RILL_ERROR_BACKEND, "meanwhile"));
  gate_open(gate);
  join_threads(waiting);
}

static void is_forgotten_with_the_stream(void) {
  rill_stream stream = RILL_NULL_STREAM;
  assert_ok(rill_stream_create(dut.device, NULL, &stream));
  assert_ok(rill_stream_fail(stream, RILL_ERROR_BACKEND, "nobody asks"));
  assert_ok(rill_stream_release(stream));
}

TESTS_ON_EACH_DEVICE("rill_stream_fail", TEST(refuses_bad_handles), TEST(refuses_statuses_of_success),
                     TEST(accepts_every_failure), TEST(is_reported_once_and_the_stream_continues),
                     TEST(the_first_of_several_is_reported), TEST(comes_after_the_wait),
                     TEST(is_reported_to_waiting_threads), TEST(is_forgotten_with_the_stream))
