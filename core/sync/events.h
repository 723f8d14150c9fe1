/* Creating events. */
#ifndef RILL_CORE_SYNC_EVENTS_H
#define RILL_CORE_SYNC_EVENTS_H

#include "core/diagnose/order_notes.h"

/* Creates an event object without a native event. */
rill_status rill__event_new(struct rill__device *device, const char *label, struct rill__event **out);
/* Publishes an event that the backend has created or taken over; `status` is the backend's result.  Destroys the event
 * if `status` or the publication is a failure. */
rill_status rill__event_publish(struct rill__event *event, rill_status status);
rill_status rill__event_create(struct rill__device *device, const rill_event_options *options,
                               struct rill__event **out);

/* Set when a stream is first held.  Makes an event no longer stand for its fence.  Returns false if streams are held
 * for the event's first record, and then changes nothing. */
extern bool (*_Atomic rill__event_leave_fence)(struct rill__event *event);

/* Set when an event is first recorded in a capture.  Makes an event no longer stand for a place in a capture. */
extern void (*_Atomic rill__event_leave_capture)(struct rill__event *event, enum rill__event_state after);

/* Resets an event that nothing uses to one that has never been recorded. */
static inline void rill__event_reset(struct rill__event *event) {
  RILL__NOTE_ORDER(forget_event, event->base.id);
  if (RILL__UNLIKELY(atomic_load(&rill__core(event)->state) == RILL__EVENT_FENCED)) {
    const bool left = atomic_load(&rill__event_leave_fence)(event);
    RILL_ASSERT(left, "no wait is queued for an event that nothing uses");
    (void)left;
  }
  /* still set if a record on a held stream followed the captured one */
  if (RILL__UNLIKELY(rill__core(event)->captured != NULL)) {
    atomic_load (&rill__event_leave_capture)(event, RILL__EVENT_UNRECORDED);
  }
  atomic_store_explicit(&rill__core(event)->state, RILL__EVENT_UNRECORDED, memory_order_relaxed);
}

#endif
