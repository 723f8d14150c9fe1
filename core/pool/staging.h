/* Staging buffers: pinned memory that stands in for pageable memory which work of a stream reads or writes later.
 *
 * Each device has a pool of its own for them (core/pool/cache.h).  The host writes a buffer at once, so it is taken
 * from what is complete; after the work that uses it, the stream frees it in order, as it would free memory of any
 * pool.  So a buffer costs neither an event nor a look at other buffers, and what a peak has left goes back to the
 * driver. */
#ifndef RILL_CORE_POOL_STAGING_H
#define RILL_CORE_POOL_STAGING_H

#include "core/held/held.h"

struct held_staging {
  struct rill__payload payload; /* that a held copy owns; `bytes` of `memory` */
  struct rill__block *block;    /* that this struct is at the start of */
  void *memory;                 /* after it */
  bool to_host;                 /* what is copied to here ... */
  struct rill__copy_3d deliver; /* ... goes on so, on the host */
};

/* A buffer of n bytes for work of the stream; NULL: of any stream.  rill__staging_finish returns it when the work that
 * uses it has been given to the stream's driver; rill__staging_cancel, its block, when no work uses it.  Who keeps a
 * buffer keeps its block beside it, since the buffer is not mapped any more after a reset of the device. */
rill_status rill__staging_take(struct rill__device *device, struct rill__stream *stream, size_t n,
                               struct held_staging **out);
void rill__staging_finish(struct rill__stream *stream, struct held_staging *staging);
void rill__staging_cancel(struct rill__block *block);

/* Releases memory that no buffer uses to the driver, but for a little.  May block; outside epochs.  `synchronized`:
 * the device has just done all its work. */
void rill__staging_release(struct rill__device *device, bool synchronized);

#endif
