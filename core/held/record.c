#include "core/held/record.h"

#include "core/sync/submit.h"

/* Streams that are held for the event would wait for ever: a capture completes no record. */
static rill_status record_in_capture(struct rill__stream *stream, struct rill__event *event, uint32_t flags,
                                     bool *taken) {
  const bool fenced = atomic_load(&rill__core(event)->state) == RILL__EVENT_FENCED;
  struct rill__event *point = NULL;
  RILL_REQUIRE(!fenced || rill__fence_meaning(event, &point) != RILL__NO_RECORD || (flags & RILL_EVENT_EXTERNAL) != 0,
               RILL_ERROR_CAPTURE_ACTIVE,
               "%s is capturing, and streams are held for %s, which a capture does not complete" RILL_HINT
               "record the event outside captures first",
               rill__name_of(&stream->base).text, rill__name_of(&event->base).text);
  return rill__capture_record(stream, event, flags, taken);
}

static rill_status record_elsewhere(struct rill__stream *stream, struct rill__event *event, uint32_t flags,
                                    bool *taken) {
  if (rill__is_captured(stream)) return record_in_capture(stream, event, flags, taken);
  return rill__held_record(stream, event, flags, taken);
}

rill_status rill__record_slowly(struct rill__stream *stream, struct rill__event *event, uint32_t flags) {
  struct rill__recording recording;
  do {
    RILL_DIVERT(stream, record_elsewhere, event, flags);
    RILL_TRY(rill__recording_begin(&recording, stream, event));
  } while (recording.held);
  const rill_status status = rill__record_in_driver(stream, recording.target, flags);
  rill__recording_end(&recording, status);
  return status;
}

rill_status rill__wait_slowly(struct rill__stream *stream, struct rill__event *event, uint32_t flags) {
  struct rill__event *point = NULL;
  rill_status status = RILL_OK;
  bool taken = false;
  if (rill__is_captured(stream) || atomic_load(&rill__core(event)->state) == RILL__EVENT_CAPTURED) {
    RILL_TRY(rill__capture_wait(stream, event, flags, &taken));
    if (taken) return RILL_OK;
  }
  RILL_TRY(rill__held_wait(stream, event, &point, &taken));
  if (taken || rill__known_complete(point)) return RILL_OK;
  RILL_SUBMIT(status, stream, stream, wait, stream, point, flags);
  return status;
}
