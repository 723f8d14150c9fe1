/* The streams of a device that may have work, and waiting until there is none. */
#ifndef RILL_CORE_SYNC_STREAMS_H
#define RILL_CORE_SYNC_STREAMS_H

#include "core/object/core.h"

/* From list to unlist the stream may have work. */
void rill__stream_list(struct rill__stream *stream);
void rill__stream_unlist(struct rill__stream *stream);

/* For who uses a stream without its handle: the owner of an imported stream may destroy the native one when the handle
 * is released, which waits for visitors.  A visit is as short as a call that does not block. */
static inline void rill__stream_visit(struct rill__stream *stream) {
  rill__ref(&stream->base);
  atomic_fetch_add(&rill__core(stream)->visitors, 1);
}
static inline void rill__stream_leave(struct rill__stream *stream) {
  atomic_fetch_sub(&rill__core(stream)->visitors, 1);
  rill__unref(&stream->base);
}

/* All streams of the device that may have work, each visited.  NULL if memory ran out, or if another thread is looking
 * whether one of them can be destroyed. */
struct rill__stream **rill__device_visit_streams(struct rill__device *device, size_t *count);

/* Whether the device has no work: taking memory back then waits for nothing. */
bool rill__device_is_idle(struct rill__device *device);

/* The devices of the backend that are active and not lost: the next one after `after`, NULL for the first. */
struct rill__device *rill__next_active(const struct rill__device *like, const struct rill__device *after);
#define RILL__FOR_EACH_ACTIVE(like, device)                                             \
  for (struct rill__device *device = rill__next_active((like), NULL); (device) != NULL; \
       (device) = rill__next_active((like), (device)))

/* Of all devices of the backend that are active: whether they have no work, and waiting until the driver has no work of
 * theirs.  Outside epochs. */
bool rill__backend_is_idle(const struct rill__device *like);
rill_status rill__backend_synchronize(const struct rill__device *like);

#endif
