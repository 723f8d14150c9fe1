/* The interface of pools for other folders. */
#ifndef RILL_CORE_POOL_POOL_H
#define RILL_CORE_POOL_POOL_H

#include "core/object/core.h"
#include "core/tracking/ranges.h"

#include <rill/pool.h>

rill_status rill__pool_create(struct rill__device *device, const rill_pool_options *options, struct rill__pool **out);

/* Return the device's default pool and the pool of its staging buffers; each is created at its first use. */
rill_status rill__pool_default(struct rill__device *device, struct rill__pool **out);
rill_status rill__pool_of_staging(struct rill__device *device, struct rill__pool **out);

struct rill__request;
/* Allocates from the pool in the order of the stream, which is of the same device.  Leaves the epoch if it has to
 * search further than the stream's own cache. */
rill_status rill__pool_alloc(struct rill__thread *self, struct rill__pool *pool, struct rill__stream *stream,
                             struct rill__request *request, void **out);
rill_status rill__pool_free_async(struct rill__thread *self, struct rill__stream *stream, void *p);

/* Finds the allocation in a pool's segment that contains `p`; returns false if the memory there is free.  Call it
 * inside an epoch. */
bool rill__pool_find(const struct rill__allocation *segment, const void *p, uintptr_t *begin, size_t *size);

/* Finds the allocation in the segment that is nearest to `p`, which may be any address; returns false if there is
 * none. */
bool rill__pool_nearest(const struct rill__allocation *segment, uintptr_t p, uintptr_t *begin, size_t *size);

struct rill__last_use;
/* Notes a last use, by the stream, of the allocation that starts at `begin`, and takes over `last_use`. */
rill_status rill__pool_note_last_use(struct rill__allocation *segment, uintptr_t begin, struct rill__stream *stream,
                                     struct rill__last_use *last_use);

/* Implements rill_free for memory of a pool.  Leaves the epoch, since it may block. */
rill_status rill__pool_free(struct rill__thread *self, struct rill__allocation *segment, void *p);

/* Releases memory above the pools' thresholds.  Called after the host has synchronized, outside epochs. */
void rill__pools_synchronized_(struct rill__device *device);
static inline void rill__pools_synchronized(struct rill__device *device) {
  if (RILL__UNLIKELY(atomic_load_explicit(&rill__core(device)->pool_thresholds, memory_order_relaxed))) {
    rill__pools_synchronized_(device);
  }
}

/* Reclaims memory when an allocation fails for lack of it: destroys released objects, finishes deferred frees, and
 * returns memory that no pool of the device uses to the driver.  May block; call it outside epochs.  Returns true if
 * more may become releasable, because drivers wait for work while they free memory. */
bool rill__pools_reclaim(struct rill__device *device);

/* Lock and unlock all pools around a fork, which must not happen while a pool is being changed. */
void rill__pools_lock(struct rill__device *device);
void rill__pools_unlock(struct rill__device *device);

#endif
