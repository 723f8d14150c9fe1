/* What other files need of pools. */
#ifndef RILL_CORE_POOL_POOL_H
#define RILL_CORE_POOL_POOL_H

#include "core/object/core.h"
#include "core/tracking/ranges.h"

#include <rill/pool.h>

rill_status rill__pool_create(struct rill__device *device, const rill_pool_options *options, struct rill__pool **out);

/* The device's default pool, and that of its staging buffers, each made at the first use. */
rill_status rill__pool_default(struct rill__device *device, struct rill__pool **out);
rill_status rill__pool_of_staging(struct rill__device *device, struct rill__pool **out);

/* Of the same device.  Leaves the epoch if it has to look further than the stream's own cache. */
struct rill__request;
rill_status rill__pool_alloc(struct rill__thread *self, struct rill__pool *pool, struct rill__stream *stream,
                             struct rill__request *request, void **out);
rill_status rill__pool_free_async(struct rill__thread *self, struct rill__stream *stream, void *p);

/* The allocation in a segment of a pool that `p` lies in; false if the memory there is free.  Inside an epoch. */
bool rill__pool_find(const struct rill__allocation *segment, const void *p, uintptr_t *begin, size_t *size);

/* The allocation there that `p`, any address, is nearest to; false if there is none. */
bool rill__pool_nearest(const struct rill__allocation *segment, uintptr_t p, uintptr_t *begin, size_t *size);

/* Notes a last use, by the stream, of the allocation that starts at `begin`, and owns it from then on. */
struct rill__last_use;
rill_status rill__pool_note_last_use(struct rill__allocation *segment, uintptr_t begin, struct rill__stream *stream,
                                     struct rill__last_use *last_use);

/* rill_free of memory of a pool.  Leaves the epoch, since it may block. */
rill_status rill__pool_free(struct rill__thread *self, struct rill__allocation *segment, void *p);

/* After the host has synchronized, outside epochs: releases memory above the pools' thresholds. */
void rill__pools_synchronized_(struct rill__device *device);
static inline void rill__pools_synchronized(struct rill__device *device) {
  if (RILL__UNLIKELY(atomic_load_explicit(&rill__core(device)->pool_thresholds, memory_order_relaxed))) {
    rill__pools_synchronized_(device);
  }
}

/* Where an allocation fails for want of memory: destroys what has been released, ends deferred frees, and releases
 * memory that no pool of the device uses to the driver.  May block; outside epochs.  True if there may be more to
 * release, since drivers wait for work while they take memory back. */
bool rill__pools_reclaim(struct rill__device *device);

/* What fork must not happen in the middle of. */
void rill__pools_lock(struct rill__device *device);
void rill__pools_unlock(struct rill__device *device);

#endif
