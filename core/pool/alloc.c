/* Allocation from pools: first from the memory that the stream itself freed, then from complete memory, then from the
 * driver. */
#include "core/device/life.h"
#include "core/diagnose/inject.h"
#include "core/graph/capture.h"
#include "core/pool/cache.h"
#include "core/pool/check.h"
#include "core/pool/guarded.h"
#include "core/pool/pool.h"
#include "core/sync/streams.h"
#include "core/tracking/deferred_free.h"
#include "core/tracking/frees.h"
#include "core/tracking/map.h"

#include <rill/memory.h>
#include <rill/pool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

static rill_status fail_memory_of_pool(struct rill__pool *pool, size_t size) {
  const struct rill__injected injected = rill__injected();
  struct rill__device *device = pool->base.device;
  uint64_t free_bytes = 0, total_bytes = 0;
  if (RILL_DISPATCH(device, device, get_memory, device, &free_bytes, &total_bytes) != RILL_OK)
    free_bytes = total_bytes = 0;
  char limit[48] = "no limit";
  if (pool->max_size != 0) {
    (void)snprintf(limit, sizeof limit, "a limit of %llu", (unsigned long long)pool->max_size);
  }
  rill__pool_lock(pool);
  const uint64_t used = pool->used, reserved = atomic_load(&pool->reserved);
  rill__pool_unlock(pool);
  return rill__fail(RILL_ERROR_OUT_OF_MEMORY,
                    "%s%zu bytes requested; %s has %llu bytes free of %llu; %s has %s, reserves %llu bytes, and uses "
                    "%llu of them" RILL_HINT "free memory, or synchronize with the streams that still use freed memory",
                    injected.text, size, device->name, (unsigned long long)free_bytes, (unsigned long long)total_bytes,
                    rill__name_of(&pool->base).text, limit, (unsigned long long)reserved, (unsigned long long)used);
}

/* Returns memory to the driver and grows the pool.  If the pool's limit is the obstacle, its own memory is returned;
 * otherwise everything on the device that can be reclaimed. */
static rill_status reclaim_and_grow(struct rill__pool *pool, const struct rill__request *request,
                                    struct rill__block **out) {
  rill_status status = RILL_ERROR_OUT_OF_MEMORY;
  /* Repeats while memory is released: drivers wait for work while they free memory, so more may be unused afterwards.
   */
  for (bool more = true; more && status == RILL_ERROR_OUT_OF_MEMORY;) {
    const uint64_t before = atomic_load(&pool->reserved);
    const uint64_t limit = rill__pool_limit(pool);
    const bool limited = limit != 0 && request->rounded > limit - before;
    if (limited) {
      rill__reclaim_all();
      /* A failure to release does not fail this call: only the result of growing the pool counts. */
      rill__errors_suspend();
      (void)rill__pool_trim(pool, 0);
      rill__errors_resume();
      more = atomic_load(&pool->reserved) < before;
    } else {
      more = rill__pools_reclaim(pool->base.device);
    }
    status = rill__pool_grow(pool, request, out);
  }
  return status;
}

/* Finds memory after the limit or the driver has refused more: first complete memory, then memory that the stream can
 * be made to wait for on the device.  Only then is memory returned to the driver, since drivers wait for all work
 * meanwhile. */
static rill_status find_under_pressure(struct rill__pool *pool, struct rill__stream *stream,
                                       const struct rill__request *request, struct rill__block **out) {
  if (stream != NULL) rill__pool_free_kept(pool); /* without a stream the caller may be inside an epoch */
  rill__pool_lock(pool);
  *out = rill__pool_search(pool, stream, request, RILL__ALL_SEARCHES);
  if (*out == NULL && stream != NULL) {
    /* From now on every free records a batch: a stream that has to wait for a free then waits for no work after it. */
    atomic_store(&pool->batches_frees, true);
    *out = rill__pool_take_and_wait(pool, stream, request);
  }
  rill__pool_unlock(pool);
  if (*out != NULL) return RILL_OK;
  if (stream == NULL) return RILL_ERROR_OUT_OF_MEMORY; /* the call must not block */
  /* If the request exceeds all memory of the device, or the limit, releasing memory does not help. */
  if (pool->kind == RILL_MEMORY_DEVICE && request->rounded > pool->base.device->info.memory_total) {
    return RILL_ERROR_OUT_OF_MEMORY;
  }
  const uint64_t limit = rill__pool_limit(pool);
  if (limit != 0 && request->rounded > limit) return RILL_ERROR_OUT_OF_MEMORY;
  return reclaim_and_grow(pool, request, out);
}

/* Searches for complete memory, in a few places while the pool may grow, and otherwise in all places.  After a full
 * search, all freed memory that was not found complete is known to be in use by pending work, so `needed` can be
 * updated.  Call it under the lock. */
static struct rill__block *look_for_memory(struct rill__pool *pool, struct rill__stream *stream,
                                           const struct rill__request *request) {
  struct rill__block *block = rill__pool_search(pool, stream, request, RILL__SEARCHES);
  if (block != NULL || rill__pool_may_grow(pool, request)) return block;
  block = rill__pool_search(pool, stream, request, RILL__ALL_SEARCHES);
#if RILL_CHECKS
  rill__pool_check(pool);
#endif
  const uint64_t needed = pool->used + rill__pool_waiting(pool) + (block == NULL ? request->rounded : 0);
  if (block == NULL && pool->needed < needed) pool->needed = needed;
  return block;
}

/* Releases segments that are too small for the request, but only as many as the pool has to release to stay within its
 * bound.  Drivers wait for all work meanwhile, so this is done only if the device has none. */
static void release_unfit(struct rill__pool *pool, const struct rill__request *request) {
  rill__pool_lock(pool);
  const uint64_t bound = rill__pool_bound(pool, request->rounded), reserved = atomic_load(&pool->reserved);
  const bool over = pool->complete.segments != NULL && reserved > bound - request->rounded;
  rill__pool_unlock(pool);
  if (!over || !rill__device_is_idle(pool->base.device)) return;
  rill__errors_suspend();
  (void)rill__pool_shrink(pool, bound - request->rounded);
  rill__errors_resume();
}

rill_status rill__pool_find_memory(struct rill__pool *pool, struct rill__stream *stream,
                                   const struct rill__request *request, struct rill__block **out) {
  bool grows = false; /* allocate a segment before searching other caches, because other streams have drained this one
                         (core/pool/cache.h) */
  rill__pool_lock(pool);
  /* If the device reuses memory early, everything complete is moved to the complete heap before each allocation. */
  if (pool->base.device->reuses_early) (void)rill__pool_search(pool, stream, NULL, RILL__ALL_SEARCHES);
  struct rill__pool_cache *cache = stream != NULL ? rill__pool_cache_find(pool, stream) : NULL;
  if (cache != NULL) {
    grows = cache->drained && atomic_load(&pool->reserved) < pool->largest_sum + pool->used_peak;
    cache->drained = false;
  }
  *out = rill__pool_take(pool, cache, request, false);
  if (*out == NULL && !(grows && rill__pool_may_grow(pool, request))) *out = look_for_memory(pool, stream, request);
  rill__pool_unlock(pool);
  if (*out != NULL) return RILL_OK;
  if (stream != NULL) release_unfit(pool, request);
  const rill_status status = rill__pool_grow(pool, request, out);
  return status == RILL_ERROR_OUT_OF_MEMORY ? find_under_pressure(pool, stream, request, out) : status;
}

/* Makes the block an allocation, and returns its address.  Call it under the lock. */
static void *begin(struct rill__pool *pool, const struct rill__stream *stream, struct rill__block *block,
                   const struct rill__request *request) {
  block->stream = stream->number;
  void *const begins = rill__block_begin(block, request);
  pool->used += rill__block_used(block);
  if (pool->used_peak < pool->used) pool->used_peak = pool->used;
  if (pool->shown_used_peak < pool->used) pool->shown_used_peak = pool->used;
  return begins;
}

/* ---- in captures ---- */

struct graph_memory {
  struct rill__payload payload;
  struct rill__object base; /* deferred when the memory is dropped, in order to return memory to the driver */
  struct rill__pool *pool;  /* referenced once the memory is dropped */
  struct rill__block *block;
  void *begins;
};

static void return_graph_memory(struct rill__object *object) {
  struct graph_memory *memory = (struct graph_memory *)((char *)object - offsetof(struct graph_memory, base));
  if (!rill__pool_may_release(memory->pool)) {
    rill__object_postpone(object); /* freeing now would wait for work */
    return;
  }
  rill__pool_return_of_graphs(memory->pool);
  rill__unref(&memory->pool->base);
  free(memory);
}

/* Returns true if a segment that was allocated for a graph is otherwise unused.  The first caller that gets true has to
 * return all such segments and gets a reference to the pool; a pool that is being destroyed returns them itself. Call
 * it under the lock. */
static bool is_to_return(struct rill__pool *pool, const struct rill__segment *segment) {
  const struct rill__block *block = segment->leftmost;
  if (!segment->of_graph || block->right != NULL || block->state != RILL__BLOCK_FREE || pool->returns) return false;
  pool->returns = rill__ref_if_alive(&pool->base);
  return pool->returns;
}

/* Drops memory that no launch uses any more.  This may run inside an epoch or under the lock of graphs, so the driver
 * is called later. */
static void drop_graph_memory(struct rill__payload *payload) {
  struct graph_memory *memory = (struct graph_memory *)payload;
  struct rill__block *block = memory->block;
  struct rill__segment *const segment = block->segment;
  struct rill__pool *pool = segment->pool;
  (void)rill__segment_claim(segment, (uintptr_t)memory->begins, &block);
  rill__block_drop_guard(block);
  rill__pool_lock(pool);
  rill__block_end(block);
  rill__block_name(pool, block, &pool->complete, 0);
  pool->used -= rill__block_used(block);
  rill__pool_put(pool, block);
  const bool returns = is_to_return(pool, segment);
  rill__pool_unlock(pool);
  if (!returns) {
    free(memory);
    return;
  }
  memory->pool = pool;
  rill__object_init(&memory->base, pool->base.device, return_graph_memory);
  rill__object_defer(&memory->base);
}

/* Takes a block for all launches of the graph, from memory that no stream uses. */
static rill_status take_graph_memory(struct rill__pool *pool, struct rill__stream *stream,
                                     const struct rill__request *request, struct graph_memory **out) {
  struct graph_memory *memory = calloc(1, sizeof *memory);
  RILL_REQUIRE(memory != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for an allocation in a capture");
  const rill_status status = rill__pool_find_memory(pool, NULL, request, &memory->block);
  if (status != RILL_OK) {
    free(memory);
    return status == RILL_ERROR_OUT_OF_MEMORY ? fail_memory_of_pool(pool, request->size) : status;
  }
  memory->payload.drop = drop_graph_memory;
  rill__pool_lock(pool);
  memory->begins = begin(pool, stream, memory->block, request);
  memory->block->stream = RILL__OF_GRAPH;
  rill__pool_unlock(pool);
  *out = memory;
  return RILL_OK;
}

static rill_status alloc_captured(struct rill__pool *pool, struct rill__stream *stream,
                                  const struct rill__request *request, struct rill__guard **guard, void **out,
                                  bool *taken) {
  struct graph_memory *memory = NULL;
  struct rill__operation *operation = NULL;
  RILL_TRY(take_graph_memory(pool, stream, request, &memory));
  /* If the stream's native handle was returned, the driver itself may be capturing, and must not be waited for. */
  const bool may_wait = !stream->base.device->backend->gpu || !atomic_load(&rill__is_shared);
  if (RILL__UNLIKELY(*guard != NULL) && may_wait)
    rill__block_guard_of_graph(guard, memory->block, memory->begins, request->size);
  void *const begins = memory->begins;
  const rill_status status =
      rill__operation_memory(stream->base.device, RILL_NODE_ALLOC, begins, &memory->payload, &operation);
  if (status != RILL_OK) {
    drop_graph_memory(&memory->payload);
    return status;
  }
  RILL_TRY(rill__capture_add(stream, operation, taken));
  if (*taken) *out = begins;
  return RILL_OK;
}

/* Allocates a block.  `guard`: the guard for the allocation; `*guard` is NULL if there is none, and is set to NULL when
 * the allocation has taken over the guard. */
static inline rill_status allocate_block(struct rill__thread *self, struct rill__pool *pool,
                                         struct rill__stream *stream, struct rill__request *request,
                                         struct rill__guard **guard, void **out) {
  RILL_TRY(rill__check_usable(stream->base.device));
  const bool captured = rill__is_captured(stream);
  if (!captured) RILL_TRY(rill__pool_check_capture(stream));
  if (request->size == 0) return RILL_OK;
  request->zone = rill__red_zone(stream->base.device);
  if (!rill__request_round(request)) return fail_memory_of_pool(pool, request->size);
  if (captured) {
    bool taken = false;
    request->of_graph = true;
    RILL_TRY(alloc_captured(pool, stream, request, guard, out, &taken));
    if (taken) return RILL_OK;
    request->of_graph = false;
  }
  struct rill__block *block = NULL;
  rill__pool_lock(pool);
  if (RILL__LIKELY(!stream->base.device->reuses_early)) {
    struct rill__pool_cache *cache = rill__pool_cache_find(pool, stream);
    rill__pool_cache_note(pool, cache);
    block = rill__pool_take(pool, cache, request, false);
  }
  if (RILL__LIKELY(block != NULL)) *out = begin(pool, stream, block, request);
  rill__pool_unlock(pool);
  if (RILL__LIKELY(block != NULL)) {
    if (RILL__UNLIKELY(*guard != NULL)) rill__block_guard(guard, block, stream, *out, request->size);
    return RILL_OK;
  }
  /* The search may block, so the epoch is left, and references keep the pool and the stream. */
  rill__ref(&pool->base);
  rill__ref_and_leave(self, &stream->base);
  rill_status status = rill__pool_find_memory(pool, stream, request, &block);
  if (status == RILL_OK) {
    rill__pool_lock(pool);
    *out = begin(pool, stream, block, request);
    rill__pool_unlock(pool);
    if (*guard != NULL) rill__block_guard(guard, block, stream, *out, request->size);
  } else if (status == RILL_ERROR_OUT_OF_MEMORY) {
    status = fail_memory_of_pool(pool, request->size);
  }
  rill__unref(&stream->base);
  rill__unref(&pool->base);
  rill__reclaim(); /* recycles the events that were queried */
  return status;
}

/* Returns true, with guards, if the allocation would exceed the limit.  Zones and memory that is kept back do not
 * count, so that a program that stays within the limit also does so with RILL_CHECK=memory.  Threads that allocate at
 * the same moment may exceed it. */
static bool passes_limit(struct rill__pool *pool, size_t size) {
  if (pool->max_size == 0) return false;
  rill__pool_lock(pool);
  const bool passes = size > pool->max_size || pool->used > pool->max_size - size;
  rill__pool_unlock(pool);
  return passes;
}

rill_status rill__pool_alloc(struct rill__thread *self, struct rill__pool *pool, struct rill__stream *stream,
                             struct rill__request *request, void **out) {
  struct rill__guard *guard = NULL;
  request->front = rill__front_zone(stream->base.device);
  if (RILL__LIKELY(request->front == 0)) return allocate_block(self, pool, stream, request, &guard, out);
  if (passes_limit(pool, request->size)) return fail_memory_of_pool(pool, request->size);
  RILL_TRY(rill__guard_new(stream->base.device, &guard));
  const rill_status status = allocate_block(self, pool, stream, request, &guard, out);
  if (guard != NULL) rill__guard_free(guard);
  return status;
}
