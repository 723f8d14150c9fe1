/* Records and waits of any stream, held or not, and queries of events. */
#ifndef RILL_CORE_HELD_RECORD_H
#define RILL_CORE_HELD_RECORD_H

#include "core/device/life.h"
#include "core/diagnose/order_notes.h"
#include "core/held/held.h"
#include "core/sync/submit.h"

/* Records on a held or captured stream, records an event for the first time, or records an event that stands for a
 * fence. */
rill_status rill__record_slow(struct rill__stream *stream, struct rill__event *event, uint32_t flags);

/* Waits on a held or captured stream, or for an event that is not RECORDED. */
rill_status rill__wait_slow(struct rill__stream *stream, struct rill__event *event, uint32_t flags);

static inline rill_status rill__stream_record(struct rill__stream *stream, struct rill__event *event, uint32_t flags) {
  RILL_TRY(rill__check_usable(stream->base.device));
  if (RILL__UNLIKELY(atomic_load_explicit(&rill__core(event)->state, memory_order_acquire) != RILL__EVENT_RECORDED ||
                     rill__is_diverted(stream))) {
    return rill__record_slow(stream, event, flags);
  }
  return rill__record_in_driver(stream, event, flags);
}

/* Waits for a recorded event, or holds the stream for an event that has never been recorded. */
static inline rill_status rill__stream_wait_for(struct rill__stream *stream, struct rill__event *event,
                                                uint32_t flags) {
  if (RILL__UNLIKELY(atomic_load_explicit(&rill__core(event)->state, memory_order_acquire) != RILL__EVENT_RECORDED ||
                     rill__is_diverted(stream))) {
    return rill__wait_slow(stream, event, flags);
  }
  return rill__submit_wait(stream, event, flags);
}

/* Does the same for an event that has been recorded, without flags.  Skips the wait if the event is known to be
 * complete. */
static inline rill_status rill__stream_wait(struct rill__stream *stream, struct rill__event *event) {
  struct rill__event *point = NULL;
  const bool complete = rill__event_meaning(event, &point) == RILL__RECORD_ISSUED && rill__known_complete(point);
  if (!complete) return rill__stream_wait_for(stream, event, 0);
  RILL__NOTE_ORDER(ordered, stream, point);
  return RILL_OK;
}

/* Queries whether the event is complete.  `point`: the event that the driver was queried about. */
static inline rill_status rill__query_event(struct rill__event *event, struct rill__event **point, bool *out) {
  *out = false;
  RILL_TRY(rill__check_usable(event->base.device));
  switch (rill__event_meaning(event, point)) {
    case RILL__NO_RECORD: *out = true; return RILL_OK;
    case RILL__RECORD_HELD: return RILL_OK;
    case RILL__RECORD_FAILED: return rill__fail_failed_record(event);
    case RILL__RECORD_CAPTURED: return rill__fail_captured_record(event);
    case RILL__RECORD_ISSUED: break;
  }
  struct rill__event *const queried = *point;
  *out = rill__known_complete(queried);
  if (*out) return RILL_OK;
  const struct rill__completion_query query = rill__query_completion(&rill__core(queried)->work);
  const struct rill__recorded where = rill__event_recorded(queried);
  RILL_TRY(RILL_DISPATCH(queried, event, is_ready, queried, out));
  if (*out) rill__event_seen(queried, &query, &where);
  return RILL_OK;
}

static inline rill_status rill__event_is_ready(struct rill__event *event, bool *out) {
  struct rill__event *point = NULL;
  return rill__query_event(event, &point, out);
}

#endif
