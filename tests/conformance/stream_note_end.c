/* rill_stream_note_end */
#include "traces.h"

static rill_status end(uint64_t id) { return rill_stream_note_end((rill_stream){ id }); }

static void refuses_bad_handles(void) { refuses_bad_streams("rill_stream_note_end", end); }

static void does_nothing_without_a_begin(void) {
  rill_stream stream = new_stream("stream");
  assert_ok(rill_stream_note_end(stream));
  start_trace();
  assert_ok(rill_stream_note_end(stream));
  assert_ok(rill_trace_stop());
  free(read_trace());
}

static double number_after(const char *at, const char *what) {
  const char *const found = strstr(at, what);
  assert_non_null(found);
  return strtod(found + strlen(what), NULL);
}

/* Each note is a bar in the stream's track, around the work between the two calls; nested notes are nested bars. */
static void shows_notes_in_traces(void) {
  rill_stream stream = new_stream("noted");
  start_trace();
  write_cell(stream, 0, 1);
  assert_ok(rill_stream_note_begin(
      stream, RILL_STREAM_NOTE(.name = "outer", .group = "rows", .number = 3, .bytes = 64, .rank = 1, .ranks = 2)));
  assert_ok(rill_stream_note_begin(stream, RILL_STREAM_NOTE(.name = "inner")));
  write_cell(stream, 1, 1);
  assert_ok(rill_stream_note_end(stream));
  assert_ok(rill_stream_note_end(stream));
  write_cell(stream, 2, 1);
  assert_ok(rill_trace_stop());
  char *text = read_trace();
  assert_complete(text);
  assert_int_equal(count_of(text, "\"cat\":\"communication\""), 2);
  assert_int_equal(count_of(text, "\"name\":\"outer\",\"args\":{\"group\":\"rows\",\"number\":3,\"rank\":1,\"ranks\":2,"
                                  "\"bytes\":64,"),
                   1);
  const char *outer = strstr(text, "\"name\":\"outer\""), *inner = strstr(text, "\"name\":\"inner\"");
  while (*outer != '\n') outer--;
  while (*inner != '\n') inner--;
  const double outer_begin = number_after(outer, "\"ts\":"), inner_begin = number_after(inner, "\"ts\":");
  const double outer_end = outer_begin + number_after(outer, "\"dur\":");
  const double inner_end = inner_begin + number_after(inner, "\"dur\":");
  assert_true(outer_begin <= inner_begin && inner_begin <= inner_end && inner_end <= outer_end + 0.002);
  free(text);
}

/* A note that begins during a trace may end after it, and a note may begin before the trace. */
static void may_begin_or_end_outside_a_trace(void) {
  rill_stream stream = new_stream("noted");
  assert_ok(rill_stream_note_begin(stream, RILL_STREAM_NOTE(.name = "before")));
  start_trace();
  assert_ok(rill_stream_note_end(stream));
  assert_ok(rill_stream_note_begin(stream, RILL_STREAM_NOTE(.name = "after")));
  assert_ok(rill_trace_stop());
  assert_ok(rill_stream_note_end(stream));
  char *text = read_trace();
  assert_int_equal(count_of(text, "communication"), 0);
  free(text);
  start_trace();
  write_cell(stream, 0, 1);
  assert_ok(rill_trace_stop());
  text = read_trace();
  assert_complete(text);
  assert_int_equal(count_of(text, "communication"), 0);
  free(text);
}

TESTS_ON_EACH_DEVICE("rill_stream_note_end", TEST(refuses_bad_handles), TEST(does_nothing_without_a_begin),
                     TEST(shows_notes_in_traces), TEST(may_begin_or_end_outside_a_trace))
