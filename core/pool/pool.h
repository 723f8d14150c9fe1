/* What other files need of pools. */
#ifndef RILL_CORE_POOL_POOL_H
#define RILL_CORE_POOL_POOL_H

#include "core/backend.h"
#include "core/memory/ranges.h"

/* Looks at `n` bytes at `p` that a stream of `stream`'s device is to use.  Memory that rill does not know is left to
 * the driver: kind UNKNOWN.  Registered memory is pinned. */
rill_status rill__memory_check(const struct rill__stream *stream, const void *p, size_t n, const char *what,
                               uint32_t *kind);

/* The allocation in a segment of a pool that `p` lies in; false if the memory there is free.  Inside an epoch. */
bool rill__pool_find(const struct rill__allocation *segment, const void *p, uintptr_t *begin, size_t *size);

/* Notes a last use of the allocation that starts at `begin`, and owns it from then on. */
struct rill__last_use;
rill_status rill__pool_note_use(struct rill__allocation *segment, uintptr_t begin, struct rill__last_use *use);

/* rill_free of memory of a pool.  Leaves the epoch, since it may block. */
rill_status rill__pool_free(struct rill__thread *self, struct rill__allocation *segment, void *p);

/* The stream's last reference has gone, and it can still be recorded on.  Inside an epoch. */
void rill__pools_stream_end(struct rill__stream *stream);

/* After the host has synchronized, outside epochs: gives memory above the pools' thresholds back. */
void rill__pools_synchronized_(struct rill__device *device);
static inline void rill__pools_synchronized(struct rill__device *device) {
  if (RILL__UNLIKELY(atomic_load_explicit(&device->pool_thresholds, memory_order_relaxed))) {
    rill__pools_synchronized_(device);
  }
}

/* Gives memory of a kind that no pool of the device uses back to the driver: where an allocation failed for want of it.
 * Outside epochs.  False if there was none. */
bool rill__pools_give_back(struct rill__device *device, uint32_t kind);

/* What fork must not happen in the middle of. */
void rill__pools_lock(struct rill__device *device);
void rill__pools_unlock(struct rill__device *device);

#endif
