/* rill_stream_note_begin */
#include "support/testing.h"

static rill_status begin(uint64_t id) {
  return rill_stream_note_begin((rill_stream){ id }, RILL_STREAM_NOTE(.name = "noted"));
}

static rill_stream noted;
static rill_status begin_with(const void *note) { return rill_stream_note_begin(noted, note); }

static void refuses_bad_arguments(void) {
  refuses_bad_streams("rill_stream_note_begin", begin);
  noted = new_stream("noted");
  assert_fails(rill_stream_note_begin(noted, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_note_begin(noted, RILL_STREAM_NOTE(.number = 1)), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("name");
  assert_fails(rill_stream_note_begin(noted, RILL_STREAM_NOTE(.name = "reduce", .rank = 4, .ranks = 4)),
               RILL_ERROR_INVALID_ARGUMENT);
  assert_says("rank is 4, but ranks is 4");
}

static void accepts_older_and_newer_notes(void) {
  noted = new_stream("noted");
  const rill_stream_note note = { .struct_size = sizeof note, .name = "reduce", .number = 1 };
  takes_grown_options("rill_stream_note_begin", begin_with, &note, sizeof note, offsetof(rill_stream_note, group));
}

/* Reports contain the notes in stream order; their texts are copied. */
static void appears_in_reports(void) {
  char text[4096], name[] = "reduce", group[] = "rows", *const at = text;
  size_t size = sizeof text;
  rill_stream stream = new_stream("noted");
  struct gate *const gate = gate_close(stream);
  write_cell(stream, 0, 1);
  assert_ok(rill_stream_note_begin(
      stream, RILL_STREAM_NOTE(.name = name, .group = group, .number = 7, .bytes = 4096, .rank = 1, .ranks = 4)));
  name[0] = group[0] = '?';
  assert_ok(rill_stream_note_end(stream));
  assert_ok(rill_stream_note_begin(stream, RILL_STREAM_NOTE(.name = "a name", .group = "longer than its room")));
  assert_ok(rill_stream_note_end(stream));
  write_cell(stream, 1, 1);
  assert_ok(rill_stream_explain(stream, text, &size));
  const char *const first = strstr(at, "reduce 7 of \"rows\", rank 1 of 4, 4096 bytes\n");
  const char *const second = strstr(at, "a name 0 of \"longer than its ...\", 0 bytes\n");
  if (first == NULL || second == NULL) fail_msg("it says: %s", text);
  assert_true(strstr(at, "fill of 4 bytes") < first && first < second && second < strstr(second, "fill of 4 bytes"));
  gate_open(gate);
  assert_completes(stream);
  size = sizeof text;
  assert_ok(rill_stream_explain(stream, text, &size));
  assert_string_equal(text, "stream \"noted\": has no work\n");
}

/* Notes on a held stream are ignored, because its work is submitted later. */
static void ignores_held_streams(void) {
  char text[4096];
  size_t size = sizeof text;
  rill_stream stream = new_stream("held"), other = new_stream("other");
  rill_event event = new_event("late");
  assert_ok(rill_stream_wait_event(stream, event, 0));
  assert_ok(rill_stream_note_begin(stream, RILL_STREAM_NOTE(.name = "reduce")));
  assert_ok(rill_stream_note_end(stream));
  assert_ok(rill_stream_explain(stream, text, &size));
  assert_null(strstr(text, "reduce"));
  assert_ok(rill_stream_record_event(other, event, 0));
  assert_completes(stream);
}

TESTS_ON_EACH_DEVICE("rill_stream_note_begin", TEST(refuses_bad_arguments), TEST(accepts_older_and_newer_notes),
                     TEST(appears_in_reports), TEST(ignores_held_streams))
