#include "core/held/record.h"

#include "core/sync/submit.h"

static rill_status record_elsewhere(struct rill__stream *stream, struct rill__event *event, uint32_t flags,
                                    bool *taken) {
  if (rill__is_captured(stream)) return rill__capture_record(stream, event, flags, taken);
  return rill__held_record(stream, event, flags, taken);
}

/* Repeats because the stream may become held, or stop being held, between the two checks: RILL_DIVERT reads the state
 * without the lock, rill__recording_begin reads it under the lock. */
rill_status rill__record_slow(struct rill__stream *stream, struct rill__event *event, uint32_t flags) {
  struct rill__recording recording;
  do {
    RILL_DIVERT(stream, record_elsewhere, event, flags);
    RILL_TRY(rill__recording_begin(&recording, stream, event));
  } while (recording.held);
  const rill_status status = rill__record_in_driver(stream, recording.target, flags);
  rill__recording_end(&recording, status);
  return status;
}

rill_status rill__wait_slow(struct rill__stream *stream, struct rill__event *event, uint32_t flags) {
  struct rill__event *point = NULL;
  bool taken = false;
  /* A wait for a captured event must be seen by the capture even if this stream is not captured: the wait joins the
   * stream to the capture. */
  if (rill__is_captured(stream) || atomic_load(&rill__core(event)->state) == RILL__EVENT_CAPTURED) {
    RILL_TRY(rill__capture_wait(stream, event, flags, &taken));
    if (taken) return RILL_OK;
  }
  RILL_TRY(rill__held_wait(stream, event, &point, &taken));
  if (taken) return RILL_OK;
  if (rill__known_complete(point)) {
    RILL__NOTE_ORDER(ordered, stream, point);
    return RILL_OK;
  }
  return rill__submit_wait(stream, point, flags);
}
