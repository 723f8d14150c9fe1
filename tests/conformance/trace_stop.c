/* rill_trace_stop */
#include "traces.h"

static void needs_a_trace(void) {
  assert_fails(rill_trace_stop(), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("no trace is running");
}

static void waits_for_what_it_times(void) {
  rill_stream stream = new_stream("stream");
  start_trace();
  for (unsigned i = 0; i < 50; i++) write_cell(stream, 0, i);
  assert_ok(rill_trace_stop());
  char *text = read_trace();
  assert_complete(text);
  assert_int_equal(count_of(text, "\"cat\":\"fill\""), 50);
  free(text);
}

static rill_status status_in_host_call;
static void stop_in_host_call(void *user, rill_status status) {
  (void)user;
  (void)status;
  status_in_host_call = rill_trace_stop();
}

static void is_refused_in_a_host_call(void) {
  rill_stream stream = new_stream("stream");
  start_trace();
  assert_ok(rill_stream_host_call(stream, stop_in_host_call, NULL));
  assert_completes(stream);
  assert_int_equal(status_in_host_call, RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_trace_stop());
  free(read_trace());
}

TESTS_ON_EACH_DEVICE("rill_trace_stop", TEST(needs_a_trace), TEST(waits_for_what_it_times),
                     TEST(is_refused_in_a_host_call))
