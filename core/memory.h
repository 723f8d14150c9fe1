/* What the files about memory share: what is known of a pointer that work is to use. */
#ifndef RILL_CORE_MEMORY_H
#define RILL_CORE_MEMORY_H

#include "core/call.h"
#include "core/memory/deferred_free.h"
#include "core/memory/ranges.h"
#include "core/pool/pool.h"

/* Looks at `n` bytes at `p` that a stream of `stream`'s device is to use.  Memory that rill does not know is left to
 * the driver: kind UNKNOWN.  Registered memory is pinned. */
rill_status rill__memory_check(const struct rill__stream *stream, const void *p, size_t n, const char *what,
                               uint32_t *kind);

/* Hands a fill of one or several rows to the backend. */
rill_status rill__fill_rows(struct rill__stream *stream, const struct rill__fill_2d *fill);

/* Puts an allocation into the map, unless it overlaps another one, which it then gives, or memory ran out. */
bool rill__memory_insert(struct rill__allocation *allocation, struct rill__allocation **overlapping);

/* Takes the allocation, or the registered range, that begins at `p` out of the map: from then on it is the caller's
 * alone.  put_back: it is as it was. */
rill_status rill__memory_take_out(void *p, bool registered, struct rill__allocation **out);
void rill__memory_put_back(struct rill__allocation *allocation);

/* For a call that goes on with an allocation outside its epoch: the memory stays until rill__memory_let_go, whoever
 * frees it meanwhile.  hold: false if it is being freed.  let_go: true if it was freed meanwhile, and is gone if nobody
 * else holds it. */
bool rill__memory_hold(struct rill__allocation *allocation);
bool rill__memory_let_go(struct rill__allocation *allocation);

/* Frees what was taken out of the map, or closes an import, when all uses are complete; outside epochs, since it may
 * block for the device's work.  Sets the pointer to NULL, unless the driver refuses: then it is the caller's still. */
rill_status rill__memory_end(struct rill__allocation **allocation);

/* Whether memory goes back when the host synchronizes, for want of something else in use or because its free is
 * deferred; and that, after it has, outside epochs. */
static inline bool rill__memory_awaits_host(const struct rill__device *device) {
  return atomic_load_explicit(&device->pool_thresholds, memory_order_relaxed) || rill__frees_are_deferred(device);
}
static inline void rill__memory_synchronized(struct rill__device *device) {
  rill__deferred_frees_end_idle(device);
  rill__pools_synchronized(device);
}

/* Fails unless it is a power of two. */
static inline rill_status rill__check_alignment(size_t alignment) {
  RILL_REQUIRE(alignment != 0 && (alignment & (alignment - 1)) == 0, RILL_ERROR_INVALID_ARGUMENT,
               "alignment %zu is no power of two", alignment);
  return RILL_OK;
}

#endif
