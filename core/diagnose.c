#include "core/device/life.h"
#include "core/diagnose/settings.h"
#include "core/explain.h"
#include "core/memory/memory.h"
#include "core/object/options.h"
#include "core/sync/submit.h"
#include "core/timeline/timeline.h"

#include <rill/diagnose.h>
#include <string.h>

bool rill_check_is_on(const char *name) {
  return name != NULL && (rill__settings()->checks & rill__check_of(name, strlen(name))) != 0;
}

rill_status rill_device_get_leaks(rill_device device, rill_leak *leaks, size_t *count) {
  RILL_ENTER();
  struct rill__device *d;
  const size_t room = count != NULL ? *count : 0;
  if (count != NULL) *count = 0;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(count != NULL && (leaks != NULL || room == 0), RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               count == NULL ? "count" : "leaks");
  RILL_REQUIRE(rill__checks(RILL__CHECK_MEMORY), RILL_ERROR_UNSUPPORTED,
               "live objects are not recorded" RILL_HINT "run the program with RILL_CHECK=memory in its environment");
  RILL_TRY(rill__device_activate(d));
  size_t all = room;
  RILL_REQUIRE(rill__leaks_list(d, leaks, &all), RILL_ERROR_OUT_OF_MEMORY, "no host memory for the list of leaks");
  *count = all;
  return RILL_OK;
}

/* Checks the buffer for a text.  `room`: the size of the caller's buffer. */
static rill_status check_text_room(const char *text, const size_t *size, size_t room) {
  RILL_REQUIRE(size != NULL, RILL_ERROR_INVALID_ARGUMENT, "size is NULL");
  RILL_REQUIRE(text != NULL || room == 0, RILL_ERROR_INVALID_ARGUMENT, "text is NULL, but *size is %zu", room);
  return RILL_OK;
}

rill_status rill_stream_explain(rill_stream stream, char *text, size_t *size) {
  RILL_ENTER();
  struct rill__text out = { text, size != NULL ? *size : 0, 0 };
  if (size != NULL) *size = 0;
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_TRY(check_text_room(text, size, out.size));
  rill__explain_stream(s, &out);
  *size = out.length + 1;
  return RILL_OK;
}

/* Reads the options of a note.  Fails if they do not describe one. */
static rill_status read_note(const rill_stream_note *note, rill_stream_note *out) {
  *out = (rill_stream_note)RILL_STREAM_NOTE_INIT;
  RILL_REQUIRE(note != NULL, RILL_ERROR_INVALID_ARGUMENT, "note is NULL");
  RILL_TRY(rill__options_read(out, sizeof *out, note, "rill_stream_note"));
  RILL_REQUIRE(out->name != NULL, RILL_ERROR_INVALID_ARGUMENT, "rill_stream_note.name is NULL");
  RILL_REQUIRE(out->ranks == 0 || out->rank < out->ranks, RILL_ERROR_INVALID_ARGUMENT,
               "rill_stream_note.rank is %u, but ranks is %u", out->rank, out->ranks);
  return RILL_OK;
}

rill_status rill_stream_note_begin(rill_stream stream, const rill_stream_note *note) {
  RILL_ENTER();
  struct rill__stream *s;
  rill_stream_note n;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_TRY(read_note(note, &n));
  if (rill__is_diverted(s)) return RILL_OK;
  rill__record_note(self, s, &n);
  rill__timeline_note_begin(s, &n);
  return RILL_OK;
}

rill_status rill_stream_note_end(rill_stream stream) {
  RILL_ENTER();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  rill__timeline_note_end(s);
  return RILL_OK;
}

rill_status rill_stream_note_ran(rill_stream stream, const rill_stream_note *note, uint64_t begin_ns, uint64_t end_ns) {
  RILL_ENTER();
  struct rill__stream *s;
  rill_stream_note n;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_TRY(read_note(note, &n));
  RILL_REQUIRE(begin_ns <= end_ns, RILL_ERROR_INVALID_ARGUMENT, "end_ns is %llu, but begin_ns is %llu",
               (unsigned long long)end_ns, (unsigned long long)begin_ns);
  rill__timeline_note_ran(s, &n, begin_ns, end_ns);
  return RILL_OK;
}

rill_status rill_device_explain(rill_device device, char *text, size_t *size) {
  RILL_ENTER();
  struct rill__text out = { text, size != NULL ? *size : 0, 0 };
  if (size != NULL) *size = 0;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_TRY(check_text_room(text, size, out.size));
  rill__leave(&self); /* devices live until the process ends, and leaving a stream may destroy it */
  rill__explain_device(d, &out);
  *size = out.length + 1;
  return RILL_OK;
}
