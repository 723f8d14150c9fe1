/* Held streams.
 *
 * A stream that waits for an event which has never been recorded is held: what is submitted to it is checked and
 * taken as ever, with copies of all that it needs, but queued on the host.  Whoever records the event hands the
 * queue to the driver.  A record in such a queue is a point that waits bind to, and hold in turn.
 *
 * Invariants
 * - Work that the driver has never depends on work that is held.  So the driver always finishes what it has, and a
 *   wait for a point that the driver has may be handed to it at any time.
 * - One lock guards all queues and points.  It is never held across a call into a backend: the thread that empties a
 *   queue marks it as running, takes one operation out under the lock, and hands it over without the lock.
 * - While a stream is held, all submissions to it go through its queue; `stream->held` becomes NULL under the lock when
 *   the queue is empty and its last operation has reached the driver.
 * - A wait that makes a stream held sets event->watched and then looks at event->recorded; a first record sets
 *   recorded and then looks at watched.  At least one of the two sees the other.
 */
#ifndef RILL_CORE_HELD_H
#define RILL_CORE_HELD_H

#include "core/call.h"

static inline bool rill__is_held(struct rill__stream *stream) {
  return RILL__UNLIKELY(atomic_load_explicit(&stream->held, memory_order_acquire) != NULL);
}

/* Each takes the operation if the stream is held, and says so in `taken`; if it is held no more, the caller goes on to
 * the driver.  On failure nothing was taken. */
rill_status rill__held_record(struct rill__stream *stream, struct rill__event *event, uint32_t flags, bool *taken);
rill_status rill__held_host_call(struct rill__stream *stream, rill_host_fn fn, void *user, bool *taken);
rill_status rill__held_copy(struct rill__stream *stream, void *dst, uint32_t dst_kind, const void *src,
                            uint32_t src_kind, size_t n, bool *taken);
rill_status rill__held_copy_3d(struct rill__stream *stream, const struct rill__copy_3d *copy, bool *taken);
rill_status rill__held_fill(struct rill__stream *stream, const struct rill__fill_2d *fill, bool *taken);
rill_status rill__held_prefetch(struct rill__stream *stream, const void *p, size_t size, bool *taken);
struct rill__constants;
/* `constants`: those of the launch, NULL if it has none; taken over, and set to NULL, with the launch. */
rill_status rill__held_launch(struct rill__stream *stream, const struct rill__launch *launch,
                              struct rill__constants **constants, bool *taken);

/* A wait that holds or may have to be queued: the event was never recorded, its point is held, or the stream is.
 * `taken` false: the driver can be given the wait. */
rill_status rill__held_wait(struct rill__stream *stream, struct rill__event *event, bool *taken);

/* After a record has reached the driver: ends what the event meant before, and releases what waits for it. */
void rill__held_recorded(struct rill__event *event);

/* The last reference to an event has gone: what waits for a record of it fails. */
void rill__held_abandoned(struct rill__event *event);

/* The device is lost: all that is held for it fails. */
void rill__held_device_lost(struct rill__device *device);

/* Fails, once, if held work of the stream has failed. */
rill_status rill__held_failure(struct rill__stream *stream);

/* Block, outside epochs, until the driver has what was submitted before the call; `ns` is reduced by the time that
 * took. */
rill_status rill__held_wait_for_stream(struct rill__stream *stream, uint64_t *ns);
rill_status rill__held_wait_for_event(struct rill__event *event, uint64_t *ns);
void rill__held_wait_for_device(struct rill__device *device);

/* Gives back the pinned memory that held copies do not need any more.  May block; outside epochs. */
void rill__staging_give_back(void);

/* How many streams are held. */
extern _Atomic uint32_t rill__held_count;

/* Blocks, outside epochs, until no held work may be going to use the allocation or registered range. */
void rill__held_wait_for_memory(struct rill__object *allocation);

/* What fork must not happen in the middle of. */
void rill__held_lock(void);
void rill__held_unlock(void);
void rill__held_after_fork(void);

#endif
