/* rill_stream_note_ran */
#include "traces.h"

static rill_status ran(uint64_t id) {
  return rill_stream_note_ran((rill_stream){ id }, RILL_STREAM_NOTE(.name = "noted"), 0, 0);
}

static void refuses_bad_arguments(void) {
  refuses_bad_streams("rill_stream_note_ran", ran);
  rill_stream stream = new_stream("noted");
  assert_fails(rill_stream_note_ran(stream, NULL, 0, 0), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_note_ran(stream, RILL_STREAM_NOTE(.name = "late"), 2, 1), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("end_ns is 1, but begin_ns is 2");
}

/* The note is a bar in the stream's track, with the given host times. */
static void appears_in_traces(void) {
  rill_stream stream = new_stream("noted");
  start_trace();
  const uint64_t begin = now_ns() + 1000000;
  write_cell(stream, 0, 1);
  assert_completes(stream);
  assert_ok(rill_stream_note_ran(stream, RILL_STREAM_NOTE(.name = "reduce", .rank = 1, .ranks = 2, .bytes = 8),
                                 begin + UINT64_C(3600000000000), begin + UINT64_C(3600000250000)));
  assert_ok(rill_trace_stop());
  char *text = read_trace();
  assert_complete(text);
  assert_int_equal(count_of(text, ",\"dur\":250.000,\"cat\":\"communication\",\"name\":\"reduce\""), 1);
  free(text);
}

static void does_nothing_without_a_trace(void) {
  rill_stream stream = new_stream("noted");
  assert_ok(rill_stream_note_ran(stream, RILL_STREAM_NOTE(.name = "reduce"), 1, 2));
  start_trace();
  assert_ok(rill_trace_stop());
  char *text = read_trace();
  assert_int_equal(count_of(text, "reduce"), 0);
  free(text);
}

TESTS_ON_EACH_DEVICE("rill_stream_note_ran", TEST(refuses_bad_arguments), TEST(appears_in_traces),
                     TEST(does_nothing_without_a_trace))
