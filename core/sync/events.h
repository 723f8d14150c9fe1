/* Making events. */
#ifndef RILL_CORE_SYNC_EVENTS_H
#define RILL_CORE_SYNC_EVENTS_H

#include "core/diagnose/order_notes.h"

rill_status rill__event_new(struct rill__device *device, const char *label, struct rill__event **out); /* empty */
/* Publishes an event that the backend has made or taken over, `status` being its outcome; else the event ends. */
rill_status rill__event_publish(struct rill__event *event, rill_status status);
rill_status rill__event_create(struct rill__device *device, const rill_event_options *options,
                               struct rill__event **out);

/* Set when a stream is first held: an event that stands for a fence does so no more; false if streams are held for its
 * first record, which then stays to come. */
extern bool (*_Atomic rill__event_leave_fence)(struct rill__event *event);

/* Set when an event is first recorded in a capture: the same of one that was. */
extern void (*_Atomic rill__event_leave_capture)(struct rill__event *event, enum rill__event_state after);

/* For an event that nobody uses: it has never been recorded. */
static inline void rill__event_reset(struct rill__event *event) {
  RILL__NOTE_ORDER(forget_event, event->base.id);
  if (RILL__UNLIKELY(atomic_load(&rill__core(event)->state) == RILL__EVENT_FENCED)) {
    const bool left = atomic_load(&rill__event_leave_fence)(event);
    RILL_ASSERT(left, "nobody waits for a record of an event that nobody uses");
    (void)left;
  }
  if (RILL__UNLIKELY(rill__core(event)->captured != NULL)) { /* or a record on a held stream came after it */
    atomic_load (&rill__event_leave_capture)(event, RILL__EVENT_UNRECORDED);
  }
  atomic_store_explicit(&rill__core(event)->state, RILL__EVENT_UNRECORDED, memory_order_relaxed);
}

#endif
