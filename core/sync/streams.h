/* The streams of a device that may have work, and waiting until there is none. */
#ifndef RILL_CORE_SYNC_STREAMS_H
#define RILL_CORE_SYNC_STREAMS_H

#include "core/object/core.h"

/* Add a stream to the streams that may have work, and remove it. */
void rill__stream_list(struct rill__stream *stream);
void rill__stream_unlist(struct rill__stream *stream);

/* Used to access a stream without its handle.  The owner of an imported stream may destroy the native stream once the
 * handle is released, so the release waits for visitors.  A visit must be as short as a call that does not block. */
static inline void rill__stream_visit(struct rill__stream *stream) {
  rill__ref(&stream->base);
  atomic_fetch_add(&rill__core(stream)->visitors, 1);
}
static inline void rill__stream_leave(struct rill__stream *stream) {
  atomic_fetch_sub(&rill__core(stream)->visitors, 1);
  rill__unref(&stream->base);
}

/* Returns all streams of the device that may have work, each visited.  Returns NULL if memory ran out, or if another
 * thread is checking whether one of the streams can be destroyed. */
struct rill__stream **rill__device_visit_streams(struct rill__device *device, size_t *count);

/* Returns true if the device has no work, so that freeing memory waits for nothing. */
bool rill__device_is_idle(struct rill__device *device);

/* Returns the next device of the backend after `after` (NULL: the first) that is active and not lost. */
struct rill__device *rill__next_active(const struct rill__device *like, const struct rill__device *after);
#define RILL__FOR_EACH_ACTIVE(like, device)                                             \
  for (struct rill__device *device = rill__next_active((like), NULL); (device) != NULL; \
       (device) = rill__next_active((like), (device)))

/* Returns true if no active device of the backend has work.  Call it outside epochs. */
bool rill__backend_is_idle(const struct rill__device *like);
/* Blocks until the driver has no work of any active device of the backend.  Call it outside epochs. */
rill_status rill__backend_synchronize(const struct rill__device *like);

#endif
