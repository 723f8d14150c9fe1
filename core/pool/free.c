/* Frees of pool memory, and its last uses. */
#include "core/device/life.h"
#include "core/held/held.h"
#include "core/pool/cache.h"
#include "core/pool/guarded.h"
#include "core/pool/pool.h"
#include "core/sync/streams.h"
#include "core/tracking/deferred_free.h"
#include "core/tracking/frees.h"
#include "core/tracking/map.h"
#include "core/tracking/ranges.h"

#include <rill/pool.h>
#include <stdlib.h>

/* Records a free before it happens, so that a running kernel that checks its accesses finds the memory either allocated
 * or recorded as freed. */
static void note_free(const struct rill__segment *segment, const void *p) {
  uintptr_t begin = 0;
  size_t size = 0;
  if (!rill__segment_find(segment, p, &begin, &size)) return;
  rill__memory_lock();
  rill__frees_note(begin, size);
  rill__memory_unlock();
}

/* Ends the allocation that starts at `p`. */
static rill_status claim(struct rill__segment *segment, void *p, struct rill__block **block, uint64_t *live) {
  uintptr_t begin = 0;
  size_t size = 0;
  if (RILL__UNLIKELY(rill__is_checked(segment->allocation.base.device))) note_free(segment, p);
  *live = rill__segment_claim(segment, (uintptr_t)p, block);
  if (RILL__LIKELY(*live != 0 && (*block)->stream != RILL__OF_GRAPH)) return RILL_OK;
  if (*live != 0) {
    /* The graph still owns the allocation, so the claim is undone. */
    rill__segment_unclaim(segment, *block, *live);
    return rill__fail(RILL_ERROR_INVALID_ARGUMENT,
                      "%p was allocated in a capture: it is freed with the graph and its execution objects", p);
  }
  RILL_REQUIRE(!rill__segment_find(segment, p, &begin, &size) || begin == (uintptr_t)p, RILL_ERROR_INVALID_ARGUMENT,
               "%p lies inside an allocation, %zu bytes after its start" RILL_HINT "pass its first address", p,
               (size_t)((uintptr_t)p - begin));
  return rill__fail(RILL_ERROR_NOT_FOUND, "%p is not a rill allocation, or has been freed", p);
}

/* Returns the heap for a block that is freed on the stream: the complete heap if the stream has no work running, else
 * its cache.  Returns NULL if the stream cannot have a cache, or if the free is not ordered after the work that the
 * block names.  Call it under the lock. */
static struct rill__heap *heap_for(struct rill__pool *pool, struct rill__block *block, struct rill__stream *stream) {
  if (RILL__UNLIKELY(block->stream != stream->number) && !rill__block_is_complete(pool, block)) return NULL;
  if (rill__stream_is_drained(stream)) {
    rill__pool_cache_note(pool, rill__pool_cache_find(pool, stream));
    return &pool->complete;
  }
  struct rill__pool_cache *cache = rill__pool_cache_get(pool, stream);
  return RILL__LIKELY(cache != NULL) ? &cache->heap : NULL;
}

/* Numbers a free of `size` bytes into a heap. */
static uint64_t number_free(struct rill__pool *pool, struct rill__heap *heap, size_t size) {
  if (heap == &pool->complete) return 0;
  struct rill__pool_cache *cache = rill__pool_cache_of(heap);
  if (RILL__UNLIKELY(cache->largest < size)) {
    pool->largest_sum += size - cache->largest;
    cache->largest = size;
  }
  cache->unmarked += size;
  pool->unmarked += size;
  return ++cache->freed;
}

/* Puts a claimed block into a heap; `heap` NULL: into the heap that it names, after its last uses.  Call it under the
 * lock. */
static void put_block(struct rill__pool *pool, struct rill__block *block, struct rill__heap *heap) {
  rill__block_end(block);
  if (heap != NULL) rill__block_name(pool, block, heap, number_free(pool, heap, rill__block_size(block)));
  rill__pool_put(pool, block);
}

/* Returns true if a free into the cache records a batch.  In a pool under pressure every free does.  Otherwise a few
 * frees after each search for memory do, each when a sixteenth of the pool's memory has been freed without a batch. */
static bool records_batch(struct rill__pool *pool, struct rill__pool_cache *cache) {
  if (atomic_load_explicit(&pool->batches_frees, memory_order_relaxed)) return true;
  if (RILL__LIKELY(cache->marks == 0)) return false;
  if (pool->unmarked < atomic_load_explicit(&pool->reserved, memory_order_relaxed) / 16) return false;
  cache->marks--;
  return true;
}

/* Adds a use to a block that is being freed.  The event is recorded without the lock, because no other thread has the
 * block. */
static rill_status add_use(struct rill__pool *pool, struct rill__block *block, struct rill__stream *stream) {
  struct rill__last_use *last_use = NULL;
  RILL_TRY(rill__last_use_new(stream, &last_use));
  rill__pool_lock(pool);
  const bool added = rill__block_add_use(pool, block, stream, last_use);
  rill__pool_unlock(pool);
  if (!added) rill__last_uses_free(last_use);
  RILL_REQUIRE(added, RILL_ERROR_OUT_OF_MEMORY, "no host memory to record a use of memory");
  return RILL_OK;
}

/* Frees a block in the order of the stream.  `recorded`: set if an event was recorded, so that complete events may be
 * ready for recycling. */
static rill_status free_in_order(struct rill__pool *pool, struct rill__block *block, struct rill__stream *stream,
                                 bool *recorded) {
  rill__pool_lock(pool);
  struct rill__heap *heap = heap_for(pool, block, stream);
  if (RILL__UNLIKELY(heap == NULL)) {
    rill__pool_unlock(pool);
    /* The block waits for this free as it would for a use by another stream. */
    RILL_TRY(add_use(pool, block, stream));
    rill__pool_lock(pool);
  }
  pool->used -= rill__block_used(block);
  put_block(pool, block, heap);
  *recorded = heap == NULL || (heap != &pool->complete && records_batch(pool, rill__pool_cache_of(heap)));
  if (RILL__UNLIKELY(*recorded) && heap != NULL) rill__pool_cache_record(pool, rill__pool_cache_of(heap));
  rill__pool_unlock(pool);
  return RILL_OK;
}

/* Finds the pool's segment that contains `p`.  Call it inside an epoch. */
static rill_status find_segment(void *p, struct rill__segment **out) {
  struct rill__allocation *allocation = rill__ranges_find(p);
  RILL_REQUIRE(allocation != NULL && !allocation->variable, RILL_ERROR_NOT_FOUND,
               "%p is not a rill allocation, or has been freed", p);
  RILL_REQUIRE(allocation->pooled, RILL_ERROR_INVALID_ARGUMENT,
               "%p was allocated by rill_alloc, not from a pool" RILL_HINT "free it with rill_free", p);
  *out = (struct rill__segment *)allocation;
  return RILL_OK;
}

/* ---- in captures ---- */

struct captured_free {
  struct rill__captured_free base;
  struct rill__block *block;
};

/* Frees the block after the capture.  If the driver cannot mark the place in the stream, the memory is never reused,
 * unless the device is lost and no work can use it. */
static void end_captured_free(struct rill__stream *stream, struct rill__captured_free *base) {
  struct rill__block *block = ((struct captured_free *)base)->block;
  struct rill__pool *pool = block->segment->pool;
  bool recorded = false;
  rill__errors_suspend();
  const rill_status status = free_in_order(pool, block, stream, &recorded);
  rill__errors_resume();
  if (status != RILL_OK && atomic_load(&pool->base.device->lost) != RILL_OK) {
    rill__pool_lock(pool);
    pool->used -= rill__block_used(block);
    put_block(pool, block, &pool->complete);
    rill__pool_unlock(pool);
  }
  free(base);
}

/* Takes over a claimed block.  `taken` is false if the stream is no longer capturing. */
static rill_status free_after_capture(struct rill__block *block, struct rill__stream *stream, bool *taken) {
  struct captured_free *deferred = malloc(sizeof *deferred);
  RILL_REQUIRE(deferred != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a free in a capture");
  *deferred = (struct captured_free){ { NULL, end_captured_free }, block };
  *taken = rill__capture_defer(stream, &deferred->base);
  if (!*taken) free(deferred);
  return RILL_OK;
}

rill_status rill__pool_free_async(struct rill__thread *self, struct rill__stream *stream, void *p) {
  struct rill__segment *segment = NULL;
  struct rill__block *block = NULL;
  uint64_t live = 0;
  RILL_TRY(rill__check_usable(stream->base.device));
  RILL_TRY(find_segment(p, &segment));
  struct rill__pool *pool = segment->pool;
  RILL_TRY(rill__check_same_device(&pool->base, &stream->base));
  bool taken = false, recorded = false;
  if (rill__is_captured(stream)) RILL_TRY(rill__capture_free(stream, p, &taken));
  if (taken) return RILL_OK;
  if (!rill__is_captured(stream)) RILL_TRY(rill__pool_check_capture(stream));
  RILL_TRY(claim(segment, p, &block, &live));
  rill_status status = RILL_OK;
  if (rill__block_keep_in_order(pool, block, stream)) {
    rill__leave(&self);
    rill__guards_trim(segment->allocation.base.device, RILL__WAITS_FOR_NOTHING);
    return RILL_OK;
  }
  if (rill__is_captured(stream)) status = free_after_capture(block, stream, &taken);
  if (taken) return RILL_OK;
  if (RILL__LIKELY(status == RILL_OK)) status = free_in_order(pool, block, stream, &recorded);
  /* The allocation continues to exist, as if it had not been freed. */
  if (RILL__UNLIKELY(status != RILL_OK)) {
    rill__segment_unclaim(segment, block, live);
    return status;
  }
  if (RILL__UNLIKELY(recorded)) {
    rill__leave(&self);
    rill__reclaim(); /* events that were recorded here may have made others ready for recycling, and there may be no
                        later call that recycles them */
  }
  return RILL_OK;
}

bool rill__pool_find(const struct rill__allocation *segment, const void *p, uintptr_t *begins, size_t *size) {
  return rill__segment_find((const struct rill__segment *)segment, p, begins, size);
}

bool rill__pool_nearest(const struct rill__allocation *segment, uintptr_t p, uintptr_t *begin, size_t *size) {
  return rill__segment_nearest((const struct rill__segment *)segment, p, begin, size);
}

/* ---- rill_free ---- */

/* Waits for the work that may use the memory.  For pinned and managed memory that may be work of all devices of the
 * backend. */
static rill_status wait_for_work(struct rill__pool *pool) {
  struct rill__device *device = pool->base.device;
  RILL_TRY(rill__check_usable(device));
  return pool->kind == RILL_MEMORY_DEVICE ? RILL_DISPATCH(device, device, synchronize, device)
                                          : rill__backend_synchronize(device);
}

struct deferred {
  struct rill__deferred_free base;
  struct rill__block *block;
};

static bool end_deferred_block(struct rill__deferred_free *base) {
  struct deferred *deferred = (struct deferred *)base;
  struct rill__block *block = deferred->block;
  struct rill__pool *pool = block->segment->pool;
  if (block->guard != NULL) (void)rill__guard_end(block->guard, false);
  rill__block_drop_guard(block);
  rill__pool_lock(pool);
  put_block(pool, block, &pool->complete);
  rill__pool_unlock(pool);
  free(deferred);
  return true;
}

/* Defers a free while streams are held: held work may use the memory later, and may itself wait for the caller. The
 * block stops counting as in use before the free is deferred, because from that point on another thread may finish the
 * free. */
static rill_status defer(struct rill__pool *pool, struct rill__block *block, bool *out) {
  struct rill__device *device = pool->base.device;
  const size_t size = rill__block_used(block);
  *out = false;
  if (atomic_load(&rill__held_count) == 0 || atomic_load(&device->lost) != RILL_OK) return RILL_OK;
  struct deferred *deferred = malloc(sizeof *deferred);
  RILL_REQUIRE(deferred != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a free while work is held");
  deferred->block = block;
  rill__pool_lock(pool);
  pool->used -= size;
  rill__pool_unlock(pool);
  *out = rill__free_defer(device, &deferred->base, size, end_deferred_block);
  if (*out) return RILL_OK;
  free(deferred);
  rill__pool_lock(pool);
  pool->used += size;
  rill__pool_unlock(pool);
  return RILL_OK;
}

rill_status rill__pool_free(struct rill__thread *self, struct rill__allocation *allocation, void *p) {
  struct rill__segment *segment = (struct rill__segment *)allocation;
  struct rill__device *device = allocation->base.device;
  struct rill__block *block = NULL;
  uint64_t live = 0;
  bool deferred = false;
  RILL_TRY(claim(segment, p, &block, &live));
  rill__leave(&self); /* the block keeps its segment and pool alive */
  struct rill__pool *pool = segment->pool;
  rill_status status = defer(pool, block, &deferred);
  if (deferred) return RILL_OK;
  if (status == RILL_OK) status = wait_for_work(pool);
  if (status != RILL_OK && atomic_load(&device->lost) == RILL_OK) {
    rill__segment_unclaim(segment, block, live);
    return status;
  }
  /* On a lost device the block is freed in spite of the failure, because no work can use it. */
  const bool guarded = block->guard != NULL;
  if (status == RILL_OK && rill__block_keep_unused(pool, block)) return rill__guards_report(device);
  rill__block_drop_guard(block);
  rill__pool_lock(pool);
  pool->used -= rill__block_used(block);
  put_block(pool, block, &pool->complete);
  rill__pool_unlock(pool);
  return status == RILL_OK && RILL__UNLIKELY(guarded) ? rill__guards_report(device) : status;
}

/* ---- last uses ---- */

/* Notes that the stream uses the pool memory that starts at `begin` up to this point. */
rill_status rill__pool_note_last_use(struct rill__allocation *allocation, uintptr_t begin, struct rill__stream *stream,
                                     struct rill__last_use *last_use) {
  struct rill__segment *segment = (struct rill__segment *)allocation;
  struct rill__pool *pool = segment->pool;
  rill__pool_lock(pool);
  struct rill__block *block = rill__segment_block(segment, begin);
  const bool added = block != NULL && rill__block_add_use(pool, block, stream, last_use);
  rill__pool_unlock(pool);
  if (!added) rill__last_uses_free(last_use);
  RILL_REQUIRE(block != NULL, RILL_ERROR_NOT_FOUND, "%p was freed during the call", (void *)begin);
  RILL_REQUIRE(added, RILL_ERROR_OUT_OF_MEMORY, "no host memory to record a use of memory");
  return RILL_OK;
}
