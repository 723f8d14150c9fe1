/* The memory that a pool has from the driver: allocating and releasing it.
 *
 * Invariants
 * - `reserved` is raised before memory is allocated by the driver and lowered after it has been freed, so it never
 *   exceeds max_size.
 * - The driver is called without any lock.
 */
#include "core/held/held.h"
#include "core/pool/cache.h"
#include "core/pool/check.h"
#include "core/pool/guarded.h"
#include "core/pool/pool.h"
#include "core/sync/streams.h"
#include "core/tracking/deferred_free.h"
#include "core/tracking/map.h"

#include <rill/memory.h>
#include <stdlib.h>

/* Add a segment to the pool's list and remove it.  Call them under the lock. */
static void list_segment(struct rill__pool *pool, struct rill__segment *segment) {
  segment->other = pool->segments;
  segment->at = &pool->segments;
  if (segment->other != NULL) segment->other->at = &segment->other;
  pool->segments = segment;
}

static void unlist_segment(struct rill__segment *segment) {
  *segment->at = segment->other;
  if (segment->other != NULL) segment->other->at = segment->at;
}

/* ---- releasing ---- */

bool rill__pool_may_release(const struct rill__pool *pool) {
  struct rill__device *device = pool->base.device;
  return device->backend->memory->free_unused != NULL || rill__device_is_idle(device);
}

static rill_status free_segment(struct rill__device *device, const struct rill__allocation *allocation) {
  void *const p = (void *)allocation->begin;
  if (device->backend->memory->free_unused == NULL) {
    return RILL_DISPATCH(device, memory, free, device, p, allocation->kind);
  }
  return RILL_DISPATCH(device, memory, free_unused, device, p, allocation->kind);
}

/* Frees segments that are no longer in a heap. */
static rill_status release_segments(struct rill__pool *pool, struct rill__segment *list) {
  struct rill__device *device = pool->base.device;
  rill_status status = RILL_OK;
  if (list != NULL) rill__guards_wait_for_turn(device);
  while (list != NULL) {
    struct rill__segment *segment = list;
    list = segment->next;
    struct rill__allocation *allocation = &segment->allocation;
    /* Removed from the map before it is freed: the driver may return the same addresses to another thread at once. */
    rill__memory_untrack(allocation);
    rill_status freed = RILL_OK; /* a lost device has already lost the memory */
    if (atomic_load(&device->lost) == RILL_OK) freed = free_segment(device, allocation);
    const bool kept = freed != RILL_OK && atomic_load(&device->lost) == RILL_OK;
    if (kept) (void)rill__memory_track(allocation); /* cannot fail: the nodes of the map exist already */
    rill__pool_lock(pool);
    pool->transit -= allocation->size;
    if (kept) list_segment(pool, segment);
    if (kept) rill__heap_add(&pool->complete, segment);
    if (!kept) atomic_fetch_sub(&pool->reserved, allocation->size);
    rill__pool_unlock(pool);
    if (kept) status = freed;
    if (!kept) rill__object_defer(&allocation->base);
  }
  return status;
}

/* Removes a segment that is one FREE block of the complete heap from the pool, and adds it to the list.  Call it under
 * the lock. */
static void take_out(struct rill__pool *pool, struct rill__segment *segment, struct rill__segment **list) {
  rill__heap_remove(segment);
  unlist_segment(segment);
  pool->transit += segment->allocation.size;
  segment->next = *list;
  *list = segment;
}

void rill__pool_return_of_graphs(struct rill__pool *pool) {
  struct rill__segment *list = NULL;
  rill__pool_lock(pool);
  for (struct rill__segment *segment = pool->complete.segments, *next; segment != NULL; segment = next) {
    next = segment->next;
    if (segment->of_graph) take_out(pool, segment, &list);
  }
  pool->returns = false;
  rill__pool_unlock(pool);
  (void)release_segments(pool, list);
}

rill_status rill__pool_shrink(struct rill__pool *pool, uint64_t keep) {
  struct rill__segment *list = NULL;
  rill__pool_lock(pool);
#if RILL_CHECKS
  rill__pool_check(pool);
#endif
  uint64_t reserved = atomic_load(&pool->reserved);
  for (struct rill__segment *segment; reserved > keep && (segment = pool->complete.segments) != NULL;) {
    reserved -= segment->allocation.size;
    take_out(pool, segment, &list);
  }
  rill__pool_unlock(pool);
  return release_segments(pool, list);
}

rill_status rill__pool_trim(struct rill__pool *pool, uint64_t keep) {
  if (atomic_load(&pool->reserved) <= keep) return RILL_OK;
  if (rill__is_guarded(pool->base.device)) {
    (void)rill__guards_flush(pool->base.device, &pool->base, RILL__WAITS_FOR_NOTHING);
  }
  rill__pool_lock(pool);
  (void)rill__pool_search(pool, NULL, NULL, RILL__ALL_SEARCHES);
  rill__pool_unlock(pool);
  return rill__pool_shrink(pool, keep);
}

/* Reclaims from pools of all kinds: on some devices, and when host memory runs out, they share the same memory. */
bool rill__pools_reclaim(struct rill__device *device) {
  size_t count = 0;
  rill__reclaim_all();
  const uint64_t deferred = atomic_load(&rill__core(device)->deferred_bytes);
  rill__deferred_frees_end(device, true);
  bool any = atomic_load(&rill__core(device)->deferred_bytes) < deferred;
  if (rill__is_guarded(device)) any |= rill__guards_flush(device, NULL, RILL__WAITS_FOR_ALL);
  struct rill__pool **pools = rill__pools_ref(device, &count);
  rill__errors_suspend();
  for (size_t i = 0; i < count; i++) {
    const uint64_t before = atomic_load(&pools[i]->reserved);
    (void)rill__pool_trim(pools[i], 0);
    any |= atomic_load(&pools[i]->reserved) < before;
  }
  rill__errors_resume();
  rill__pools_unref(pools, count);
  return any;
}

/* Searches as long as it finds memory: the cost of all searches except the last few is amortized over the frees. */
static bool drain(struct rill__pool *pool) {
  rill__pool_lock(pool);
  for (uint64_t before = UINT64_MAX, left; (left = rill__pool_waiting(pool)) < before && left > 0;) {
    before = left;
    (void)rill__pool_search(pool, NULL, NULL, RILL__SEARCHES);
  }
  const bool any = pool->complete.segments != NULL;
  rill__pool_unlock(pool);
  return any;
}

void rill__pools_synchronized_(struct rill__device *device) {
  size_t count = 0;
  struct rill__pool **pools = rill__pools_ref(device, &count);
  bool looked = false, idle = false;
  rill__errors_suspend();
  for (size_t i = 0; i < count; i++) {
    const uint64_t threshold = atomic_load(&pools[i]->threshold);
    if (threshold == 0 || atomic_load(&pools[i]->reserved) <= threshold) continue;
    if (rill__is_guarded(device)) (void)rill__guards_flush(device, &pools[i]->base, RILL__WAITS_FOR_NOTHING);
    if (!drain(pools[i])) continue;
    /* queried once for all pools, and only if there is memory to release, because it may query every stream */
    if (!looked) idle = rill__pool_may_release(pools[i]);
    looked = true;
    if (idle) (void)rill__pool_shrink(pools[i], threshold);
  }
  rill__errors_resume();
  rill__pools_unref(pools, count);
}

/* ---- growing ---- */

enum { SEGMENT_USUAL_MAX = 64 << 20 };

/* Returns the bytes to request from the driver: more than is needed now, and more each time, as long as the pool stays
 * within its bound. */
static size_t segment_size(const struct rill__pool *pool, size_t rounded) {
  const size_t least = pool->least_segment;
  const uint64_t reserved = atomic_load(&pool->reserved), bound = rill__pool_bound(pool, rounded);
  size_t size = pool->grown < least ? least : pool->grown * 2;
  if (size > SEGMENT_USUAL_MAX) size = SEGMENT_USUAL_MAX;
  if (size > least && reserved + size > bound) {
    size = bound > reserved + least ? (size_t)(bound - reserved) / least * least : least;
  }
  if (size < rounded) size = rounded > SIZE_MAX - least ? rounded : rounded + least - 1;
  return size < least ? size : size / least * least;
}

bool rill__pool_may_grow(const struct rill__pool *pool, const struct rill__request *request) {
  return atomic_load(&pool->reserved) + segment_size(pool, request->rounded) <= rill__pool_bound(pool, 0);
}

/* Reserves bytes, if the limit allows it. */
static bool reserve(struct rill__pool *pool, uint64_t size) {
  rill__pool_lock(pool);
  const uint64_t reserved = atomic_load(&pool->reserved) + size;
  const uint64_t limit = rill__pool_limit(pool);
  const bool room = limit == 0 || (reserved >= size && reserved <= limit);
  if (room) atomic_store(&pool->reserved, reserved);
  if (room) pool->transit += size;
  if (room && pool->shown_reserved_peak < reserved) pool->shown_reserved_peak = reserved;
  rill__pool_unlock(pool);
  return room;
}

static rill_status add_segment(struct rill__pool *pool, size_t size, const struct rill__request *request,
                               struct rill__block **out) {
  struct rill__device *device = pool->base.device;
  if (!reserve(pool, size)) return RILL_ERROR_OUT_OF_MEMORY;
  struct rill__segment *segment = rill__segment_new(device, size, request->large, pool->kind);
  void *p = NULL;
  rill_status status = segment == NULL
                           ? RILL_ERROR_OUT_OF_MEMORY
                           : RILL_DISPATCH_ABOUT(&pool->base, device, memory, alloc, device, size, pool->kind, &p);
  if (status == RILL_OK) {
    segment->allocation.begin = (uintptr_t)p;
    segment->pool = pool;
    segment->of_graph = request->of_graph && request->large;
    if (rill__memory_track(&segment->allocation)) {
      rill__pool_lock(pool);
      pool->transit -= size;
      list_segment(pool, segment);
      rill__heap_add(&pool->complete, segment);
      pool->grown = size;
      /* Taken in the same critical section, so that no other thread takes the new segment first. */
      *out = rill__pool_take(pool, NULL, request, true);
      rill__pool_unlock(pool);
      return RILL_OK;
    }
    (void)RILL_DISPATCH(device, memory, free, device, p, pool->kind);
    status = RILL_ERROR_OUT_OF_MEMORY;
  }
  if (segment != NULL) rill__segment_free(segment);
  rill__pool_lock(pool);
  pool->transit -= size;
  atomic_fetch_sub(&pool->reserved, size);
  rill__pool_unlock(pool);
  return status;
}

rill_status rill__pool_grow(struct rill__pool *pool, const struct rill__request *request, struct rill__block **out) {
  const size_t rounded = request->rounded;
  if (pool->kind == RILL_MEMORY_DEVICE && rounded > pool->base.device->info.memory_total) {
    return RILL_ERROR_OUT_OF_MEMORY;
  }
  rill__pool_lock(pool);
  const size_t usual = segment_size(pool, rounded);
  rill__pool_unlock(pool);
  rill_status status = add_segment(pool, usual, request, out);
  /* The larger segment was only an optimization, so try again with exactly the size that is needed. */
  if (status == RILL_ERROR_OUT_OF_MEMORY && rounded < usual) status = add_segment(pool, rounded, request, out);
  return status;
}
