/* Pools: the public functions.  core/pool_blocks.h cuts memory up, core/pool_lanes.h says who may take it when.
 *
 * Invariants
 * - `reserved` is raised before memory comes from the driver and lowered after it has gone back, so it never passes
 *   max_size.
 * - A pool is kept by its handle, and while `used` is not 0; it is destroyed by a later call, when the device has no
 *   work, since drivers wait for all work when they take memory back.
 * - The driver is called without any lock. */
#include "core/pool.h"

#include "core/held.h"
#include "core/options.h"
#include "core/pool_lanes.h"

#include <rill/pool.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the pools of a device ---- */

/* Those that are not being destroyed, each kept; NULL if memory ran out. */
static struct rill__pool **keep_pools(struct rill__device *device, size_t *count) {
  size_t most = 1;
  *count = 0;
  pthread_mutex_lock(&device->pools_lock);
  for (const struct rill__pool *pool = device->pools; pool != NULL; pool = pool->next) most++;
  struct rill__pool **pools = malloc(most * sizeof *pools);
  for (struct rill__pool *pool = device->pools; pool != NULL && pools != NULL; pool = pool->next) {
    if (rill__keep_if_kept(&pool->base)) pools[(*count)++] = pool;
  }
  pthread_mutex_unlock(&device->pools_lock);
  return pools;
}

static void drop_pools(struct rill__pool **pools, size_t count) {
  for (size_t i = 0; i < count; i++) rill__drop(&pools[i]->base);
  free(pools);
}

void rill__pools_stream_end(struct rill__stream *stream) {
  struct rill__device *device = stream->base.device;
  atomic_store(&stream->pools_closed, true);
  if (!atomic_load(&stream->pooled)) return;
  size_t count = 0;
  struct rill__pool **pools = keep_pools(device, &count);
  for (size_t i = 0; i < count; i++) rill__lane_end(pools[i], stream);
  drop_pools(pools, count);
}

#define FOR_EACH_LOCK(device, pool, lane)                                          \
  for (struct rill__pool *pool = (device)->pools; pool != NULL; pool = pool->next) \
    for (unsigned bucket_ = 0; bucket_ < RILL__LANE_BUCKETS; bucket_++)            \
      for (struct rill__lane *lane = atomic_load(&pool->lanes[bucket_]); lane != NULL; lane = lane->next)

void rill__pools_lock(struct rill__device *device) {
  pthread_mutex_lock(&device->pools_lock);
  for (struct rill__pool *pool = device->pools; pool != NULL; pool = pool->next) pthread_mutex_lock(&pool->lock);
  FOR_EACH_LOCK(device, pool, lane) rill__lane_lock(lane);
}

void rill__pools_unlock(struct rill__device *device) {
  FOR_EACH_LOCK(device, pool, lane) rill__lane_unlock(lane);
  for (struct rill__pool *pool = device->pools; pool != NULL; pool = pool->next) pthread_mutex_unlock(&pool->lock);
  pthread_mutex_unlock(&device->pools_lock);
}

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

/* While the pool is kept otherwise. */
static void note_used(struct rill__pool *pool, uint64_t size) {
  const uint64_t before = atomic_fetch_add_explicit(&pool->used, size, memory_order_relaxed);
  if (before == 0) rill__keep(&pool->base);
  raise_peak(&pool->used_peak, before + size);
}

/* True if the caller has to drop the pool, outside epochs. */
static bool note_unused(struct rill__pool *pool, uint64_t size) {
  return atomic_fetch_sub_explicit(&pool->used, size, memory_order_acq_rel) == size;
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

static rill_status give_back(struct rill__pool *pool, uint64_t keep) {
  const uint64_t reserved = atomic_load(&pool->reserved);
  if (reserved <= keep) return RILL_OK;
  return release_segments(pool, rill__lanes_take_segments(pool, reserved - keep));
}

bool rill__pools_give_back(struct rill__device *device) {
  size_t count = 0;
  bool any = false;
  struct rill__pool **pools = keep_pools(device, &count);
  rill__errors_aside();
  for (size_t i = 0; i < count; i++) {
    const uint64_t before = atomic_load(&pools[i]->reserved);
    (void)give_back(pools[i], 0);
    any |= atomic_load(&pools[i]->reserved) < before;
  }
  rill__errors_back();
  drop_pools(pools, count);
  return any;
}

/* Whether the device has no work: taking memory back then waits for nothing. */
static bool is_idle(struct rill__device *device) {
  if (atomic_load(&device->lost) != RILL_OK) return true;
  if (atomic_load(&device->held_streams) != 0) return false;
  size_t count = 0;
  struct rill__stream **streams = rill__device_keep_streams(device, &count);
  bool idle = streams != NULL;
  rill__errors_aside();
  for (size_t i = 0; i < count; i++) {
    bool capturing = false, complete = rill__known_idle(streams[i]);
    if (idle && !complete &&
        (RILL_DOOR(streams[i], stream, is_capturing, streams[i], &capturing) != RILL_OK || capturing ||
         RILL_DOOR(streams[i], stream, is_complete, streams[i], &complete) != RILL_OK)) {
      complete = false;
    }
    idle = idle && complete;
    rill__drop(&streams[i]->base);
  }
  rill__errors_back();
  free(streams);
  return idle;
}

void rill__pools_synchronized_(struct rill__device *device) {
  size_t count = 0;
  struct rill__pool **pools = keep_pools(device, &count);
  bool looked = false, idle = false;
  rill__errors_aside();
  for (size_t i = 0; i < count; i++) {
    const uint64_t threshold = atomic_load(&pools[i]->threshold);
    if (threshold == 0 || atomic_load(&pools[i]->reserved) <= threshold) continue;
    if (!looked) idle = is_idle(device);
    looked = true;
    if (idle) (void)give_back(pools[i], threshold);
  }
  rill__errors_back();
  drop_pools(pools, count);
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

/* OUT_OF_MEMORY, without a text, if the driver has no more or the limit is reached. */
static rill_status add_segment(struct rill__pool *pool, struct rill__lane *lane, bool large, size_t size,
                               size_t rounded, struct rill__block **out) {
  struct rill__device *device = pool->base.device;
  if (!reserve(pool, size)) return RILL_ERROR_OUT_OF_MEMORY;
  struct rill__segment *segment = rill__segment_new(device, size, large);
  void *p = NULL;
  rill_status status = segment == NULL ? RILL_ERROR_OUT_OF_MEMORY
                                       : RILL_DOOR(device, memory, alloc, device, size, RILL_MEMORY_DEVICE, &p);
  if (status == RILL_OK) {
    segment->allocation.begin = (uintptr_t)p;
    atomic_store(&segment->heap, &lane->heap);
    if (rill__memory_know(&segment->allocation)) {
      rill__lane_lock(lane);
      rill__heap_add(&lane->heap, segment, 0);
      lane->grown = size;
      /* Of a segment that nobody else knows, so it is there. */
      *out = rill__heap_take(&lane->heap, large, rounded, UINT64_MAX);
      rill__lane_unlock(lane);
      return RILL_OK;
    }
    (void)RILL_DOOR(device, memory, free, device, p, RILL_MEMORY_DEVICE);
    status = RILL_ERROR_OUT_OF_MEMORY;
  }
  if (segment != NULL) rill__segment_free(segment);
  atomic_fetch_sub(&pool->reserved, size);
  return status;
}

static rill_status grow(struct rill__pool *pool, struct rill__lane *lane, bool large, size_t rounded,
                        struct rill__block **out) {
  if (rounded > pool->base.device->info.memory_total) return RILL_ERROR_OUT_OF_MEMORY;
  rill__lane_lock(lane);
  const size_t usual = segment_size(lane, rounded);
  rill__lane_unlock(lane);
  rill_status status = add_segment(pool, lane, large, usual, rounded, out);
  if (status == RILL_ERROR_OUT_OF_MEMORY && rounded < usual) {
    status = add_segment(pool, lane, large, rounded, rounded, out);
  }
  return status;
}

static rill_status fail_memory(struct rill__pool *pool, size_t size) {
  struct rill__device *device = pool->base.device;
  uint64_t free_bytes = 0, total_bytes = 0;
  if (RILL_DOOR(device, device, get_memory, device, &free_bytes, &total_bytes) != RILL_OK) free_bytes = total_bytes = 0;
  char limit[48] = "no limit";
  if (pool->max_size != 0) {
    (void)snprintf(limit, sizeof limit, "a limit of %llu", (unsigned long long)pool->max_size);
  }
  return rill__fail(RILL_ERROR_OUT_OF_MEMORY,
                    "%zu bytes asked for; %s has %llu bytes free of %llu; %s has %s, %llu reserved and %llu of them "
                    "in use" RILL_HINT "free memory, or synchronize with the streams that still use what was freed",
                    size, device->name, (unsigned long long)free_bytes, (unsigned long long)total_bytes,
                    rill__name_of(&pool->base).text, limit, (unsigned long long)atomic_load(&pool->reserved),
                    (unsigned long long)atomic_load(&pool->used));
}

/* ---- allocation ---- */

/* The lane may be another stream's by now, if this one is being released. */
static bool is_lane_of(const struct rill__lane *lane, const struct rill__stream *stream) {
  return RILL__LIKELY(atomic_load_explicit(&lane->number, memory_order_relaxed) == stream->number);
}

static struct rill__block *take_own(struct rill__lane *lane, const struct rill__stream *stream, bool large,
                                    size_t rounded) {
  rill__lane_lock(lane);
  struct rill__block *block =
      is_lane_of(lane, stream) ? rill__heap_take(&lane->heap, large, rounded, UINT64_MAX) : NULL;
  rill__lane_unlock(lane);
  return block;
}

/* What the limit or the driver refuses: what others have, complete; then what can be waited for in the device.  Only
 * then memory goes back to the driver, since drivers wait for all work meanwhile: the pool's own if its limit is in the
 * way, else that of all the device's pools. */
static rill_status take_under_pressure(struct rill__pool *pool, struct rill__stream *stream, struct rill__lane *lane,
                                       bool large, size_t rounded, struct rill__block **out) {
  struct rill__device *device = pool->base.device;
  atomic_store(&pool->marks_frees, true);
  *out = rill__lanes_take_complete(pool, lane, large, rounded, true);
  if (*out == NULL) *out = rill__lanes_take_and_wait(pool, stream, large, rounded);
  if (*out != NULL) return RILL_OK;
  if (rounded > device->info.memory_total) return RILL_ERROR_OUT_OF_MEMORY;
  const uint64_t before = atomic_load(&pool->reserved);
  if (pool->max_size != 0 && rounded > pool->max_size - before) {
    if (rounded > pool->max_size) return RILL_ERROR_OUT_OF_MEMORY;
    rill__errors_aside();
    (void)give_back(pool, 0);
    rill__errors_back();
    if (atomic_load(&pool->reserved) >= before) return RILL_ERROR_OUT_OF_MEMORY;
  } else if (!rill__pools_give_back(device)) {
    return RILL_ERROR_OUT_OF_MEMORY;
  }
  return grow(pool, lane, large, rounded, out);
}

/* Outside epochs. */
static rill_status take_slowly(struct rill__pool *pool, struct rill__stream *stream, struct rill__lane *lane,
                               bool large, size_t rounded, struct rill__block **out) {
  rill__lane_poll(lane);
  *out = take_own(lane, stream, large, rounded);
  if (*out == NULL) *out = rill__lanes_take_own_free(pool, stream, large, rounded);
  if (*out == NULL) *out = rill__lanes_take_complete(pool, lane, large, rounded, false);
  if (*out != NULL) return RILL_OK;
  const rill_status status = grow(pool, lane, large, rounded, out);
  if (status != RILL_ERROR_OUT_OF_MEMORY) return status;
  return take_under_pressure(pool, stream, lane, large, rounded, out);
}

static void *begin(struct rill__pool *pool, const struct rill__stream *stream, struct rill__block *block, size_t size) {
  block->user = stream->number;
  note_used(pool, rill__block_size(block));
  return rill__block_begin(block, size);
}

static rill_status allocate(struct rill__thread *self, struct rill__pool *pool, struct rill__stream *stream,
                            size_t size, void **out) {
  RILL_TRY(rill__check_usable(stream->base.device));
  RILL_TRY(rill__pool_check_capture(stream));
  if (size == 0) return RILL_OK;
  bool large = false;
  size_t rounded = 0;
  if (!rill__heap_round(size, &large, &rounded)) return fail_memory(pool, size);
  struct rill__lane *lane = rill__lane_find(pool, stream);
  if (RILL__UNLIKELY(lane == NULL)) {
    atomic_store(&stream->pooled, true);
    RILL_TRY(rill__lane_get(pool, stream, &lane));
  }
  rill__lane_lock(lane);
  struct rill__block *block =
      is_lane_of(lane, stream) ? rill__heap_take(&lane->heap, large, rounded, UINT64_MAX) : NULL;
  if (RILL__LIKELY(block != NULL)) *out = begin(pool, stream, block, size);
  rill__lane_unlock(lane);
  if (RILL__LIKELY(block != NULL)) return RILL_OK;
  rill__keep(&pool->base);
  rill__keep_and_leave(self, &stream->base);
  rill_status status = take_slowly(pool, stream, lane, large, rounded, &block);
  if (status == RILL_OK) {
    struct rill__lane *from = rill__lane_of(block);
    rill__lane_lock(from);
    *out = begin(pool, stream, block, size);
    rill__lane_unlock(from);
  } else if (status == RILL_ERROR_OUT_OF_MEMORY) {
    status = fail_memory(pool, size);
  }
  rill__drop(&stream->base);
  rill__drop(&pool->base);
  return status;
}

/* ---- freeing ---- */

/* Ends the allocation that begins at `p`. */
static rill_status claim(struct rill__segment *segment, void *p, struct rill__block **block, size_t *size) {
  uintptr_t begins = 0;
  size_t is = 0;
  const bool found = rill__segment_find(segment, p, &begins, &is);
  if (found && begins == (uintptr_t)p) {
    *size = rill__segment_claim(segment, begins, block);
    if (*size != 0) return RILL_OK;
  }
  RILL_REQUIRE(!found || begins == (uintptr_t)p, RILL_ERROR_INVALID_ARGUMENT,
               "%p lies inside an allocation, %zu bytes behind its begin" RILL_HINT "free it by its first address", p,
               (size_t)((uintptr_t)p - begins));
  return rill__fail(RILL_ERROR_NOT_FOUND, "%p is no allocation of rill, or has been freed", p);
}

/* Takes the inherited uses out of the list. */
static struct rill__use *take_inherited(struct rill__use **list) {
  struct rill__use *taken = NULL;
  while (*list != NULL) {
    struct rill__use *use = *list;
    if (use->inherited) {
      *list = use->next;
      use->next = taken;
      taken = use;
    } else {
      list = &use->next;
    }
  }
  return taken;
}

/* A block that has been claimed goes back to its lane; `number`: of the stream that it is freed on, 0 if of none, and
 * `use` where it is freed, NULL if that is the lane's own stream.  False if it is that no more. */
static bool put_back(struct rill__lane *lane, struct rill__block *block, struct rill__use *use, uint64_t number) {
  struct rill__use *dead = NULL;
  rill__lane_lock(lane);
  const bool own = use == NULL && number != 0;
  if (own && RILL__UNLIKELY(atomic_load_explicit(&lane->number, memory_order_relaxed) != number)) {
    rill__lane_unlock(lane);
    return false;
  }
  rill__block_end(block);
  if (RILL__UNLIKELY(block->uses != NULL) && block->user == number) dead = take_inherited(&block->uses);
  if (use != NULL) {
    use->next = block->uses;
    block->uses = use;
  }
  const uint64_t freed = own ? ++lane->freed : 0;
  if (RILL__LIKELY(block->uses == NULL)) {
    rill__heap_give(&lane->heap, block, freed);
  } else {
    block->state = RILL__BLOCK_WAITING;
    block->freed = freed;
    block->user = number;
    block->elsewhere = !own;
    block->next = lane->waiting;
    lane->waiting = block;
  }
  rill__lane_unlock(lane);
  if (RILL__UNLIKELY(dead != NULL)) rill__uses_free(dead);
  return true;
}

/* Records where the last frees of the lane are, so that another stream waits for no more than that. */
static void mark_free(struct rill__lane *lane, struct rill__stream *stream) {
  enum { MOST = 64 };
  struct rill__use *mark = NULL;
  rill__lane_lock(lane);
  const uint64_t number = lane->freed;
  const bool full = lane->mark_count >= MOST;
  rill__lane_unlock(lane);
  if (full) rill__lane_poll_marks(lane, false);
  rill__errors_aside(); /* without it, a later point is marked when it is needed */
  if ((!full || lane->mark_count < MOST) && rill__use_new(stream, &mark) == RILL_OK) {
    rill__lane_lock(lane);
    rill__lane_add_mark(lane, mark, number);
    rill__lane_unlock(lane);
  }
  rill__errors_back();
}

/* Inside an epoch. */
static rill_status find_segment(void *p, struct rill__segment **out) {
  struct rill__allocation *allocation = rill__ranges_find(p);
  RILL_REQUIRE(allocation != NULL, RILL_ERROR_NOT_FOUND, "%p is no allocation of rill, or has been freed", p);
  RILL_REQUIRE(allocation->pooled, RILL_ERROR_INVALID_ARGUMENT,
               "%p is of rill_alloc, not of a pool" RILL_HINT "free it with rill_free", p);
  *out = (struct rill__segment *)allocation;
  return RILL_OK;
}

rill_status rill_free_async(rill_stream stream, void *p) {
  RILL_ENTER();
  struct rill__stream *s;
  struct rill__segment *segment = NULL;
  struct rill__block *block = NULL;
  size_t size = 0;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  if (p == NULL) return RILL_OK;
  RILL_TRY(rill__check_usable(s->base.device));
  RILL_TRY(find_segment(p, &segment));
  RILL_TRY(rill__check_same_device(&((struct rill__lane *)atomic_load(&segment->heap))->pool->base, &s->base));
  RILL_TRY(rill__pool_check_capture(s));
  RILL_TRY(claim(segment, p, &block, &size));
  struct rill__lane *lane = rill__lane_of(block);
  struct rill__pool *pool = lane->pool;
  const bool own = atomic_load_explicit(&lane->number, memory_order_relaxed) == s->number;
  struct rill__use *use = NULL;
  if (!own) {
    const rill_status status = rill__use_new(s, &use);
    if (status != RILL_OK) {
      rill__segment_unclaim(segment, block, size);
      return status;
    }
  }
  const uint64_t bytes = rill__block_size(block);
  if (RILL__UNLIKELY(!put_back(lane, block, use, s->number))) { /* the stream is being released meanwhile */
    const rill_status status = rill__use_new(s, &use);
    if (status != RILL_OK) {
      rill__segment_unclaim(segment, block, size);
      return status;
    }
    (void)put_back(lane, block, use, s->number);
  }
  if (use == NULL && RILL__UNLIKELY(atomic_load_explicit(&pool->marks_frees, memory_order_relaxed))) mark_free(lane, s);
  if (note_unused(pool, bytes)) {
    rill__leave(&self);
    rill__drop(&pool->base);
  }
  return RILL_OK;
}

bool rill__pool_find(const struct rill__allocation *segment, const void *p, uintptr_t *begins, size_t *size) {
  return rill__segment_find((const struct rill__segment *)segment, p, begins, size);
}

/* A use at the end of each stream of the device.  On failure some have been added, which does no harm. */
static rill_status use_everywhere(struct rill__device *device, struct rill__use **list) {
  size_t count = 0;
  rill_status status = RILL_OK;
  struct rill__stream **streams = rill__device_keep_streams(device, &count);
  RILL_REQUIRE(streams != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a list of streams");
  for (size_t i = 0; i < count; i++) {
    struct rill__use *use = NULL;
    const bool idle = rill__known_idle(streams[i]) && !rill__is_held(streams[i]);
    if (status == RILL_OK && !idle) status = rill__use_new(streams[i], &use);
    if (use != NULL) {
      use->next = *list;
      *list = use;
    }
    rill__drop(&streams[i]->base);
  }
  free(streams);
  return status;
}

/* While streams are held, what they hold may be going to use the memory, and may be waiting for the caller: it then
 * goes when all streams have passed this point. */
rill_status rill__pool_free(struct rill__thread *self, struct rill__allocation *allocation, void *p) {
  struct rill__segment *segment = (struct rill__segment *)allocation;
  struct rill__device *device = allocation->base.device;
  struct rill__block *block = NULL;
  struct rill__use *uses = NULL;
  size_t size = 0;
  RILL_TRY(claim(segment, p, &block, &size));
  rill__leave(&self); /* the block keeps its segment and pool */
  struct rill__lane *lane = rill__lane_of(block);
  struct rill__pool *pool = lane->pool;
  rill_status status = rill__check_usable(device);
  if (status == RILL_OK) {
    status = atomic_load(&device->held_streams) != 0 ? use_everywhere(device, &uses)
                                                     : RILL_DOOR(device, device, synchronize, device);
  }
  if (status != RILL_OK && atomic_load(&device->lost) == RILL_OK) {
    rill__uses_free(uses);
    rill__segment_unclaim(segment, block, size);
    return status;
  }
  const uint64_t bytes = rill__block_size(block);
  rill__lane_lock(lane);
  struct rill__use **end = &block->uses;
  while (*end != NULL) end = &(*end)->next;
  *end = uses;
  rill__lane_unlock(lane);
  (void)put_back(lane, block, NULL, 0);
  if (note_unused(pool, bytes)) rill__drop(&pool->base);
  return status;
}

rill_status rill_memory_record_use(void *p, rill_stream stream) {
  RILL_ENTER();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(p != NULL, RILL_ERROR_INVALID_ARGUMENT, "p is NULL");
  RILL_TRY(rill__check_usable(s->base.device));
  struct rill__allocation *allocation = rill__ranges_find(p);
  RILL_REQUIRE(allocation != NULL, RILL_ERROR_NOT_FOUND, "%p is no allocation of rill, or has been freed", p);
  RILL_TRY(rill__check_same_backend(&allocation->base, &s->base));
  uintptr_t begins = allocation->begin;
  size_t size = 0;
  const bool live = !allocation->pooled || rill__pool_find(allocation, p, &begins, &size);
  RILL_REQUIRE(live, RILL_ERROR_NOT_FOUND, "%p lies in memory of a pool that is not allocated, or has been freed", p);
  RILL_REQUIRE(begins == (uintptr_t)p, RILL_ERROR_INVALID_ARGUMENT,
               "%p lies inside an allocation, %zu bytes behind its begin" RILL_HINT "name it by its first address", p,
               (size_t)((uintptr_t)p - begins));
  if (!allocation->pooled) return RILL_OK;
  struct rill__segment *segment = (struct rill__segment *)allocation;
  struct rill__lane *lane = (struct rill__lane *)atomic_load(&segment->heap);
  struct rill__use *use = NULL;
  RILL_TRY(rill__use_new(s, &use));
  const uint32_t granule = (uint32_t)((begins - allocation->begin) >> segment->shift);
  rill__lane_lock(lane);
  const bool still = atomic_load(&segment->heap) == &lane->heap && atomic_load(&segment->live[granule]) != 0;
  if (still) {
    use->next = segment->block[granule]->uses;
    segment->block[granule]->uses = use;
  }
  rill__lane_unlock(lane);
  if (still) return RILL_OK;
  rill__uses_free(use);
  return rill__fail(RILL_ERROR_NOT_FOUND, "%p was freed during the call", p);
}

/* ---- life ---- */

static void destroy_pool(struct rill__object *object) {
  struct rill__pool *pool = (struct rill__pool *)object;
  struct rill__device *device = object->device;
  if (atomic_load(&pool->reserved) != 0) {
    if (is_idle(device)) (void)give_back(pool, 0);
    if (atomic_load(&pool->reserved) != 0) {
      rill__object_postpone(object);
      return;
    }
  }
  pthread_mutex_lock(&device->pools_lock);
  *pool->link = pool->next;
  if (pool->next != NULL) pool->next->link = pool->link;
  pthread_mutex_unlock(&device->pools_lock);
  rill__lanes_free(pool);
  (void)pthread_mutex_destroy(&pool->lock);
  rill__object_free(object);
}

static void list_pool(struct rill__pool *pool) {
  struct rill__device *device = pool->base.device;
  pthread_mutex_lock(&device->pools_lock);
  pool->next = device->pools;
  pool->link = &device->pools;
  if (pool->next != NULL) pool->next->link = &pool->next;
  device->pools = pool;
  pthread_mutex_unlock(&device->pools_lock);
}

static rill_status create_pool(struct rill__device *device, const rill_pool_options *options, struct rill__pool **out) {
  rill_pool_options o = RILL_POOL_OPTIONS_INIT;
  RILL_TRY(rill__options_read(&o, sizeof o, options, "rill_pool_options"));
  RILL_TRY(rill__device_activate(device));
  struct rill__pool *pool = NULL;
  RILL_TRY(rill__object_new(sizeof *pool, device, o.label, destroy_pool, &pool));
  (void)pthread_mutex_init(&pool->lock, NULL);
  pool->max_size = o.max_size;
  atomic_init(&pool->threshold, o.release_threshold);
  atomic_init(&pool->marks_frees, o.max_size != 0);
  list_pool(pool);
  const rill_status status = rill__object_publish(&pool->base, RILL__POOL);
  if (status != RILL_OK) {
    rill__drop(&pool->base);
    return status;
  }
  if (o.release_threshold != 0) atomic_store(&device->pool_thresholds, true);
  *out = pool;
  return RILL_OK;
}

static rill_status default_pool(struct rill__device *device, struct rill__pool **out) {
  *out = atomic_load_explicit(&device->default_pool, memory_order_acquire);
  if (RILL__LIKELY(*out != NULL)) return RILL_OK;
  struct rill__pool *pool = NULL, *none = NULL;
  RILL_TRY(create_pool(device, NULL, &pool));
  pool->base.borrowed = true; /* nobody has the handle yet */
  if (atomic_compare_exchange_strong(&device->default_pool, &none, pool)) {
    *out = pool;
  } else { /* another thread was first */
    rill__object_retire(&pool->base);
    *out = none;
  }
  return RILL_OK;
}

rill_status rill_pool_create(rill_device device, const rill_pool_options *options, rill_pool *out) {
  rill__reclaim();
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_POOL;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  struct rill__pool *pool = NULL;
  RILL_TRY(create_pool(d, options, &pool));
  out->id = pool->base.id;
  return RILL_OK;
}

rill_status rill_pool_default(rill_device device, rill_pool *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_POOL;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  RILL_TRY(rill__check_usable(d));
  struct rill__pool *pool = NULL;
  RILL_TRY(default_pool(d, &pool));
  out->id = pool->base.id;
  return RILL_OK;
}

rill_status rill_pool_retain(rill_pool pool) {
  RILL_ENTER();
  return rill__object_retain(pool.id, RILL__POOL);
}

rill_status rill_pool_release(rill_pool pool) {
  RILL_ENTER();
  struct rill__object *last = NULL;
  const rill_status status = rill__object_release(pool.id, RILL__POOL, &last);
  if (last != NULL) rill__object_retire(last);
  rill__leave(&self);
  rill__reclaim();
  return status;
}

rill_status rill_alloc_async(rill_stream stream, size_t size, void **out) {
  RILL_ENTER();
  if (out != NULL) *out = NULL;
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  struct rill__pool *pool = NULL;
  RILL_TRY(default_pool(s->base.device, &pool));
  return allocate(self, pool, s, size, out);
}

rill_status rill_pool_alloc_async(rill_pool pool, rill_stream stream, size_t size, void **out) {
  RILL_ENTER();
  if (out != NULL) *out = NULL;
  struct rill__pool *p;
  struct rill__stream *s;
  RILL_RESOLVE(RILL__POOL, pool, "pool", &p);
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  RILL_TRY(rill__check_same_device(&p->base, &s->base));
  return allocate(self, p, s, size, out);
}

rill_status rill_pool_trim(rill_pool pool, uint64_t keep) {
  rill__reclaim();
  RILL_ENTER();
  struct rill__pool *p;
  RILL_RESOLVE(RILL__POOL, pool, "pool", &p);
  RILL_TRY(rill__check_usable(p->base.device));
  rill__keep_and_leave(self, &p->base);
  const rill_status status = give_back(p, keep);
  rill__drop(&p->base);
  return status;
}

/* ---- what a pool tells ---- */

rill_status rill_pool_get_info(rill_pool pool, rill_pool_info *info) {
  RILL_ENTER();
  rill_pool_info now = RILL_POOL_INFO_INIT;
  if (info != NULL && info->struct_size >= sizeof(size_t)) rill__options_write(info, &now, sizeof now);
  struct rill__pool *p;
  RILL_RESOLVE(RILL__POOL, pool, "pool", &p);
  RILL_TRY(rill__options_check_output(info, "info"));
  /* In this order, used <= reserved and each <= its peak whatever others do meanwhile, but for frees. */
  now.used = atomic_load(&p->used);
  now.reserved = atomic_load(&p->reserved);
  now.used_peak = atomic_load(&p->used_peak);
  now.reserved_peak = atomic_load(&p->reserved_peak);
  rill__options_write(info, &now, sizeof now);
  return RILL_OK;
}

#define RILL_ENTER_POOL()                     \
  RILL_ENTER();                               \
  if (out != NULL) *out = 0;                  \
  struct rill__pool *p;                       \
  RILL_RESOLVE(RILL__POOL, pool, "pool", &p); \
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL")

rill_status rill_pool_max_size(rill_pool pool, uint64_t *out) {
  RILL_ENTER_POOL();
  *out = p->max_size;
  return RILL_OK;
}

rill_status rill_pool_release_threshold(rill_pool pool, uint64_t *out) {
  RILL_ENTER_POOL();
  *out = atomic_load(&p->threshold);
  return RILL_OK;
}

rill_status rill_pool_set_release_threshold(rill_pool pool, uint64_t bytes) {
  RILL_ENTER();
  struct rill__pool *p;
  RILL_RESOLVE(RILL__POOL, pool, "pool", &p);
  atomic_store(&p->threshold, bytes);
  if (bytes != 0) atomic_store(&p->base.device->pool_thresholds, true);
  return RILL_OK;
}

rill_status rill_memory_pool(const void *p, rill_pool *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_POOL;
  RILL_REQUIRE(p != NULL && out != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL", p == NULL ? "p" : "out");
  const struct rill__allocation *allocation = rill__ranges_find(p);
  uintptr_t begins = 0;
  size_t size = 0;
  RILL_REQUIRE(allocation != NULL && (!allocation->pooled || rill__pool_find(allocation, p, &begins, &size)),
               RILL_ERROR_NOT_FOUND, "%p is no allocation of rill, or has been freed", p);
  if (!allocation->pooled) return RILL_OK;
  out->id = ((const struct rill__lane *)atomic_load(&((const struct rill__segment *)allocation)->heap))->pool->base.id;
  return RILL_OK;
}
