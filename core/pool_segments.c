/* What a pool has from the driver: getting more, and giving it back.
 *
 * Invariants
 * - `reserved` is raised before memory comes from the driver and lowered after it has gone back, so it never passes
 *   max_size.
 * - The driver is called without any lock. */
#include "core/held/held.h"
#include "core/pool.h"
#include "core/pool_lanes.h"
#include "core/put_off.h"

#include <rill/memory.h>
#include <stdlib.h>

/* ---- numbers ---- */

static void raise_peak(_Atomic uint64_t *peak, uint64_t value) {
  uint64_t before = atomic_load_explicit(peak, memory_order_relaxed);
  while (before < value &&
         !atomic_compare_exchange_weak_explicit(peak, &before, value, memory_order_relaxed, memory_order_relaxed)) {
  }
}

/* Reserves `size` bytes under the limit. */
static bool reserve(struct rill__pool *pool, uint64_t size) {
  uint64_t before = atomic_load(&pool->reserved);
  do {
    if (pool->max_size != 0 && (before > pool->max_size || size > pool->max_size - before)) return false;
  } while (!atomic_compare_exchange_weak(&pool->reserved, &before, before + size));
  raise_peak(&pool->reserved_peak, before + size);
  return true;
}

void rill__pool_note_used(struct rill__pool *pool, uint64_t size) {
  const uint64_t before = atomic_fetch_add_explicit(&pool->used, size, memory_order_relaxed);
  if (before == 0) rill__keep(&pool->base);
  raise_peak(&pool->used_peak, before + size);
}

/* ---- segments ---- */

/* Gives segments that are in no lane any more back to the driver. */
static rill_status release_segments(struct rill__pool *pool, struct rill__segment *list) {
  struct rill__device *device = pool->base.device;
  rill_status status = RILL_OK;
  while (list != NULL) {
    struct rill__segment *segment = list;
    list = segment->next;
    struct rill__allocation *allocation = &segment->allocation;
    rill__memory_forget(allocation);
    rill_status freed = RILL_OK; /* of a lost device, the memory has gone with it */
    if (atomic_load(&device->lost) == RILL_OK) {
      freed = RILL_DOOR(device, memory, free, device, (void *)allocation->begin, allocation->kind);
    }
    if (freed != RILL_OK && atomic_load(&device->lost) == RILL_OK) {
      struct rill__lane *lane = (struct rill__lane *)atomic_load(&segment->heap);
      (void)rill__memory_know(allocation); /* its nodes are there */
      rill__lane_lock(lane);
      rill__heap_add(&lane->heap, segment, 0);
      rill__lane_unlock(lane);
      status = freed;
      continue;
    }
    atomic_fetch_sub(&pool->reserved, allocation->size);
    rill__object_defer(&allocation->base);
  }
  return status;
}

rill_status rill__pool_give_back(struct rill__pool *pool, uint64_t keep) {
  const uint64_t reserved = atomic_load(&pool->reserved);
  if (reserved <= keep) return RILL_OK;
  return release_segments(pool, rill__lanes_take_segments(pool, reserved - keep));
}

bool rill__pools_give_back(struct rill__device *device, uint32_t kind) {
  size_t count = 0;
  bool any = false;
  struct rill__pool **pools = rill__pools_keep(device, &count);
  rill__errors_aside();
  for (size_t i = 0; i < count; i++) {
    if (pools[i]->kind != kind) continue;
    const uint64_t before = atomic_load(&pools[i]->reserved);
    (void)rill__pool_give_back(pools[i], 0);
    any |= atomic_load(&pools[i]->reserved) < before;
  }
  rill__errors_back();
  rill__pools_drop(pools, count);
  return any;
}

void rill__pools_synchronized_(struct rill__device *device) {
  size_t count = 0;
  struct rill__pool **pools = rill__pools_keep(device, &count);
  bool looked = false, idle = false;
  rill__errors_aside();
  for (size_t i = 0; i < count; i++) {
    const uint64_t threshold = atomic_load(&pools[i]->threshold);
    if (threshold == 0 || atomic_load(&pools[i]->reserved) <= threshold) continue;
    if (!looked) idle = rill__device_is_idle(device);
    looked = true;
    if (idle) (void)rill__pool_give_back(pools[i], threshold);
  }
  rill__errors_back();
  rill__pools_drop(pools, count);
}

/* ---- growing ---- */

enum { SEGMENT_LEAST = 2 << 20, SEGMENT_USUAL_MOST = 64 << 20 };

/* What to ask the driver for: more than is needed now, and more each time. */
static size_t segment_size(const struct rill__lane *lane, size_t rounded) {
  size_t size = lane->grown < SEGMENT_LEAST ? SEGMENT_LEAST : lane->grown * 2;
  if (size > SEGMENT_USUAL_MOST) size = SEGMENT_USUAL_MOST;
  if (size < rounded) size = rounded > SIZE_MAX - SEGMENT_LEAST ? rounded : rounded + SEGMENT_LEAST - 1;
  return size < SEGMENT_LEAST ? size : size / SEGMENT_LEAST * SEGMENT_LEAST;
}

static rill_status add_segment(struct rill__pool *pool, struct rill__lane *lane, size_t size,
                               const struct rill__wish *wish, struct rill__block **out) {
  struct rill__device *device = pool->base.device;
  if (!reserve(pool, size)) return RILL_ERROR_OUT_OF_MEMORY;
  struct rill__segment *segment = rill__segment_new(device, size, wish->large, pool->kind);
  void *p = NULL;
  rill_status status =
      segment == NULL ? RILL_ERROR_OUT_OF_MEMORY : RILL_DOOR(device, memory, alloc, device, size, pool->kind, &p);
  if (status == RILL_OK) {
    segment->allocation.begin = (uintptr_t)p;
    atomic_store(&segment->heap, &lane->heap);
    if (rill__memory_know(&segment->allocation)) {
      rill__lane_lock(lane);
      rill__heap_add(&lane->heap, segment, 0);
      lane->grown = size;
      /* Of a segment that nobody else knows, so it is there. */
      *out = rill__heap_take(&lane->heap, wish, UINT64_MAX);
      rill__lane_unlock(lane);
      return RILL_OK;
    }
    (void)RILL_DOOR(device, memory, free, device, p, pool->kind);
    status = RILL_ERROR_OUT_OF_MEMORY;
  }
  if (segment != NULL) rill__segment_free(segment);
  atomic_fetch_sub(&pool->reserved, size);
  return status;
}

rill_status rill__pool_grow(struct rill__pool *pool, struct rill__lane *lane, const struct rill__wish *wish,
                            struct rill__block **out) {
  const size_t rounded = wish->rounded;
  if (pool->kind == RILL_MEMORY_DEVICE && rounded > pool->base.device->info.memory_total) {
    return RILL_ERROR_OUT_OF_MEMORY;
  }
  rill__lane_lock(lane);
  const size_t usual = segment_size(lane, rounded);
  rill__lane_unlock(lane);
  rill_status status = add_segment(pool, lane, usual, wish, out);
  if (status == RILL_ERROR_OUT_OF_MEMORY && rounded < usual) status = add_segment(pool, lane, rounded, wish, out);
  return status;
}
