/* Last uses of memory: events after which it can be used for something else, or goes.
 *
 * Invariant.  Of two last uses of one stream the later one stands for both only if the earlier one's record had
 * returned before the later one's started: else either may be the later point, and both stay. */
#ifndef RILL_CORE_TRACKING_LAST_USE_H
#define RILL_CORE_TRACKING_LAST_USE_H

#include "core/object/core.h"
#include "core/sync/submit.h"

struct rill__last_uses; /* core/tracking/ranges.h */

#define RILL__FOR_EACH_LAST_USE(uses, last_use)                                                \
  for (uint32_t slot_ = 0; slot_ < (uses)->room; slot_++)                                      \
    for (const struct rill__last_use *last_use = (uses)->by_stream[slot_]; (last_use) != NULL; \
         (last_use) = (last_use)->next)

/* An event recorded on the stream now; and the end of a list. */
rill_status rill__last_use_new(struct rill__stream *stream, struct rill__last_use **out);
void rill__last_uses_free(struct rill__last_use *list);

/* Adds a last use, and owns it then; false if there is no host memory for the first one.  `dead`: the one of the same
 * stream that it stands for too, which is the caller's, or NULL.  There are no more than a few of a stream, however
 * often one is noted, and a look at those of one stream costs the same however many streams there are. */
bool rill__last_use_note(struct rill__last_uses *uses, struct rill__last_use *last_use, struct rill__last_use **dead);
void rill__last_uses_clear(struct rill__last_uses *uses);

/* Blocks until the driver has done the work before all of them, which are held no more; outside epochs. */
rill_status rill__last_uses_wait(const struct rill__last_uses *uses);

/* Asks the driver, unless the device is lost: then nothing uses memory any more. */
bool rill__last_use_is_complete(struct rill__event *event);

/* Makes later work of the stream wait for the event; false if the stream would have to be held for that, whose holder
 * may be waiting for the stream. */
bool rill__last_use_order(struct rill__stream *stream, struct rill__event *event);

/* Whether work before the stream's next free is known to be complete without asking.  Not of a stream with implicit
 * order after the legacy stream, whose work does not show in it. */
static inline bool rill__stream_is_drained(struct rill__stream *stream) {
  if (stream->blocking || atomic_load_explicit(&stream->foreign, memory_order_relaxed)) return false;
  return rill__known_idle(stream) || rill__never_had_work(stream);
}

/* Refuses a stream that is capturing: memory of a captured free would be used again while the graph can still run. */
rill_status rill__pool_check_capture(struct rill__stream *stream);

#endif
