/* Last uses of memory: events after which it can be reused or freed.
 *
 * Invariant: of two last uses of one stream, the later one replaces the earlier one only if the earlier one's record
 * had returned before the later one's record started.  Otherwise either may be the later point, and both are kept.
 */
#ifndef RILL_CORE_TRACKING_LAST_USE_H
#define RILL_CORE_TRACKING_LAST_USE_H

#include "core/object/core.h"
#include "core/sync/submit.h"

struct rill__last_uses; /* defined in core/tracking/ranges.h */

#define RILL__FOR_EACH_LAST_USE(uses, last_use)                                                \
  for (uint32_t slot_ = 0; slot_ < (uses)->room; slot_++)                                      \
    for (const struct rill__last_use *last_use = (uses)->by_stream[slot_]; (last_use) != NULL; \
         (last_use) = (last_use)->next)

/* Records an event on the stream now and returns it as a last use. */
rill_status rill__last_use_new(struct rill__stream *stream, struct rill__last_use **out);
/* Frees a list of last uses. */
void rill__last_uses_free(struct rill__last_use *list);

/* Adds a last use and takes it over.  Returns false if there is no host memory for the first one.  `dead`: the last use
 * of the same stream that was replaced, which the caller frees, or NULL.  The list has only a few uses of each stream,
 * however often uses are recorded, and the search among those of one stream takes the same time however many streams
 * there are. */
bool rill__last_use_note(struct rill__last_uses *uses, struct rill__last_use *last_use, struct rill__last_use **dead);
void rill__last_uses_clear(struct rill__last_uses *uses);

/* Blocks until the driver has finished the work before all last uses, none of which may still be held.  Call it outside
 * epochs. */
rill_status rill__last_uses_wait(const struct rill__last_uses *uses);

/* Returns true if the event is complete, after a query to the driver.  If the device is lost, returns true: nothing
 * uses memory any more. */
bool rill__last_use_is_complete(struct rill__event *event);

/* Makes later work of the stream wait for the event.  Returns false if the stream would have to be held for that,
 * because the thread that would record the event may be waiting for the stream. */
bool rill__last_use_order(struct rill__stream *stream, struct rill__event *event);

/* Returns true if the work before the stream's next free is known to be complete without a query.  Always false for a
 * stream that is implicitly ordered after the legacy stream, whose work is not counted in it. */
static inline bool rill__stream_is_drained(struct rill__stream *stream) {
  if (stream->blocking || atomic_load_explicit(&stream->foreign, memory_order_relaxed)) return false;
  return rill__known_idle(stream) || rill__never_had_work(stream);
}

/* Refuses a stream that is capturing: memory that is freed in a capture would be reused while the graph can still
 * run. */
rill_status rill__pool_check_capture(struct rill__stream *stream);

#endif
