#include "core/pool/cache.h"

#include <stdlib.h>
#include <string.h>

/* Tries several times before it sleeps: the lock is held for a few instructions only, and sleeping would take
 * longer. */
void rill__pool_lock(struct rill__pool *pool) {
  enum { TRIES = 100 };
  for (unsigned tries = 0; tries < TRIES; tries++) {
    if (RILL__LIKELY(pthread_mutex_trylock(&pool->lock) == 0)) return;
  }
  pthread_mutex_lock(&pool->lock);
}

/* ---- the streams' caches ---- */

/* The stream itself is compared, because a held stream outlives its handle, whose slot may then belong to another
 * stream. */
struct rill__pool_cache *rill__pool_cache_find(struct rill__pool *pool, struct rill__stream *stream) {
  const uint32_t slot = rill__object_slot(&stream->base);
  struct rill__pool_cache *cache = slot < pool->slots ? pool->caches[slot] : NULL;
  return RILL__LIKELY(cache != NULL) && RILL__LIKELY(cache->stream == stream) ? cache : NULL;
}

static bool make_room_for_cache(struct rill__pool *pool, size_t slot) {
  if (slot < pool->slots) return true;
  const size_t slots = slot < 8 ? 16 : 2 * slot;
  struct rill__pool_cache **grown = realloc(pool->caches, slots * sizeof *grown);
  if (grown == NULL) return false;
  memset(grown + pool->slots, 0, (slots - pool->slots) * sizeof *grown);
  pool->caches = grown;
  pool->slots = slots;
  return true;
}

struct rill__pool_cache *rill__pool_cache_get(struct rill__pool *pool, struct rill__stream *stream) {
  struct rill__pool_cache *cache = rill__pool_cache_find(pool, stream);
  const uint32_t slot = rill__object_slot(&stream->base);
  if (RILL__LIKELY(cache != NULL) || !rill__stream_has_order(stream) || !make_room_for_cache(pool, slot)) return cache;
  /* Incremented before pools_closed is read: rill__stream_end sets pools_closed before it reads the count. */
  atomic_fetch_add(&rill__core(stream)->caches, 1);
  if (!atomic_load(&rill__core(stream)->pools_closed)) cache = calloc(1, sizeof *cache);
  if (cache == NULL) {
    atomic_fetch_sub(&rill__core(stream)->caches, 1);
    return NULL;
  }
  rill__ref(&stream->base);
  cache->pool = pool;
  cache->heap.spares = &pool->spares;
  cache->heap.joins_from = 1;
  cache->stream = stream;
  cache->marks = RILL__MARKS;
  cache->last_batch = &cache->batches;
  pool->caches[slot] = cache;
  return cache;
}

/* ---- the ring ---- */

static struct rill__pool_cache *cache_of(struct rill__ring_link *link) {
  return (struct rill__pool_cache *)((char *)link - offsetof(struct rill__pool_cache, link));
}

/* Removes empty caches from the ring here, so that a stream that takes back its last block does not have to do it. */
struct rill__pool_cache *rill__pool_cache_visit(struct rill__pool *pool) {
  struct rill__ring *ring = &pool->ring;
  while (ring->first != NULL && cache_of(ring->first)->heap.count == 0) rill__ring_leave(ring, ring->first);
  if (ring->first == NULL) return NULL;
  struct rill__pool_cache *cache = cache_of(ring->first);
  rill__ring_turn(ring);
  cache->refs++;
  return cache;
}

static void free_cache(struct rill__pool *pool, struct rill__pool_cache *cache) {
  rill__ring_leave(&pool->ring, &cache->link);
  rill__pool_cache_mark(pool, cache);
  rill__last_uses_free(cache->batches);
  free(cache);
}

/* An ended cache drops its stream when a batch covers all frees, or when nothing needs the stream.  An imported stream
 * that rill does not own is dropped in any case, because its owner may destroy it; frees that no batch covers then wait
 * until the pool is destroyed. */
void rill__pool_cache_leave(struct rill__pool *pool, struct rill__pool_cache *cache) {
  struct rill__stream *stream = NULL;
  const bool unused = --cache->refs == 0 && cache->heap.count == 0;
  if (cache->ended && cache->stream != NULL) {
    const bool answered = cache->batched >= cache->freed || cache->complete >= cache->freed;
    if (unused || answered || !cache->postponed || (cache->stream->imported && !cache->stream->owned)) {
      stream = cache->stream;
      cache->stream = NULL;
    }
  }
  if (unused && cache->stream == NULL) free_cache(pool, cache);
  if (stream == NULL) return;
  /* Dropping the stream may destroy it, which must not happen under the pool's lock. */
  rill__pool_unlock(pool);
  rill__unref(&stream->base);
  rill__pool_lock(pool);
}

/* ---- blocks ---- */

void rill__block_name(struct rill__pool *pool, struct rill__block *block, struct rill__heap *heap, uint64_t freed) {
  struct rill__heap *const before = block->heap;
  block->heap = heap;
  block->freed = freed;
  /* The new heap's cache gets its reference first: both may be the same cache, which must not be freed in between. */
  if (heap != &pool->complete) rill__pool_cache_of(heap)->refs++;
  if (before == &pool->complete) return;
  struct rill__pool_cache *cache = rill__pool_cache_of(before);
  if (--cache->refs == 0 && cache->heap.count == 0 && cache->stream == NULL) free_cache(pool, cache);
}

bool rill__block_is_complete(struct rill__pool *pool, struct rill__block *block) {
  if (block->heap == &pool->complete) return true;
  const struct rill__pool_cache *cache = rill__pool_cache_of(block->heap);
  return block->freed <= cache->complete || (cache->stream != NULL && rill__stream_is_drained(cache->stream));
}

/* Takes the better fit of the two blocks found: splitting a large block of one heap while the other has a small one
 * would fragment the heap. */
struct rill__block *rill__pool_take(struct rill__pool *pool, struct rill__pool_cache *cache,
                                    const struct rill__request *request, bool thorough) {
  struct rill__block *own = cache != NULL ? rill__heap_find(&cache->heap, request, thorough) : NULL, *block = own;
  if (own == NULL || rill__block_size(own) > request->rounded) {
    block = rill__heap_find(&pool->complete, request, thorough);
    if (block == NULL || (own != NULL && own->count <= block->count)) block = own;
  }
  if (block == NULL) return NULL;
  /* The block is TAKEN from here on but still names the cache's heap. */
  if (block == own) cache->refs++;
  return rill__block_take(block, request);
}

void rill__pool_put(struct rill__pool *pool, struct rill__block *block) {
  if (RILL__UNLIKELY(block->last_uses != NULL)) {
    block->state = RILL__BLOCK_WAITING;
    block->next = NULL;
    block->link = pool->last_waiting;
    *pool->last_waiting = block;
    pool->last_waiting = &block->next;
    pool->waiting_count++;
    return;
  }
  if (rill__block_is_complete(pool, block)) {
    rill__block_name(pool, block, &pool->complete, 0);
    rill__heap_put(&pool->complete, block, 0);
    return;
  }
  /* From here on the block keeps the cache by being in its heap, no longer by naming the heap. */
  struct rill__pool_cache *cache = rill__pool_cache_of(block->heap);
  cache->refs--;
  rill__heap_put(&cache->heap, block, block->freed);
  rill__ring_enter(&pool->ring, &cache->link);
}

void rill__pool_take_waiting(struct rill__pool *pool, struct rill__block *block) {
  *block->link = block->next;
  *(block->next != NULL ? &block->next->link : &pool->last_waiting) = block->link;
  pool->waiting_count--;
  block->state = RILL__BLOCK_TAKEN;
}

void rill__pool_stop_waiting(struct rill__pool *pool, struct rill__block *block) {
  rill__pool_take_waiting(pool, block);
  rill__pool_put(pool, block);
}

/* ---- completion ---- */

void rill__pool_cache_complete(struct rill__pool *pool, struct rill__pool_cache *cache, uint64_t number) {
  if (cache->complete < number) cache->complete = number;
  if (cache->complete >= cache->freed) rill__pool_cache_mark(pool, cache);
  for (struct rill__last_use *batch; (batch = cache->batches) != NULL && batch->freed <= cache->complete;) {
    cache->batches = batch->next;
    if (batch->next == NULL) cache->last_batch = &cache->batches;
    cache->batch_count--;
    batch->next = NULL;
    rill__last_uses_free(batch);
  }
  for (struct rill__block *block; (block = cache->heap.oldest) != NULL && block->freed <= cache->complete;) {
    rill__heap_detach(block);
    rill__heap_put(&pool->complete, block, 0);
  }
}

/* ---- the end ---- */

/* Finishes an ended cache, with a reference to it.  Postpones this if a batch still has to be queried or recorded. */
static void finish_or_postpone(struct rill__object *object) {
  struct rill__pool_cache *cache = (struct rill__pool_cache *)object;
  struct rill__pool *pool = cache->pool;
  rill__pool_lock(pool);
  rill__pool_cache_update(pool, cache);
  const bool waits = cache->complete < cache->freed && (cache->batches != NULL || cache->stream != NULL);
  cache->postponed = waits;
  if (!waits) rill__pool_cache_leave(pool, cache);
  rill__pool_unlock(pool);
  if (waits) {
    rill__object_postpone(object);
  } else {
    rill__unref(&pool->base);
  }
}

/* If the pool is being destroyed, the cache is not postponed, because the pool queries it itself. */
void rill__pool_cache_end(struct rill__pool *pool, struct rill__stream *stream) {
  rill__pool_lock(pool);
  struct rill__pool_cache *cache = rill__pool_cache_find(pool, stream);
  bool waits = false;
  if (cache != NULL) {
    pool->caches[rill__object_slot(&stream->base)] = NULL;
    pool->largest_sum -= cache->largest;
    atomic_fetch_sub(&rill__core(stream)->caches, 1);
    rill__object_init(&cache->base, pool->base.device, finish_or_postpone);
    cache->base.after = stream->number;
    cache->ended = true;
    /* The reference keeps the cache while rill__pool_cache_record releases the lock. */
    const bool unused = cache->refs++ == 0 && cache->heap.count == 0;
    if (rill__stream_is_drained(stream)) rill__pool_cache_complete(pool, cache, cache->freed);
    if (!unused) rill__pool_cache_record(pool, cache);
    waits = !unused && cache->complete < cache->freed && rill__ref_if_alive(&pool->base);
    cache->postponed = waits;
    if (waits) cache->refs++;
    rill__pool_cache_leave(pool, cache);
  }
  rill__pool_unlock(pool);
  if (waits) rill__object_postpone(&cache->base);
}

void rill__pool_caches_free(struct rill__pool *pool) {
  for (size_t i = 0; i < pool->slots; i++) {
    if (pool->caches[i] == NULL) continue;
    atomic_fetch_sub(&rill__core(pool->caches[i]->stream)->caches, 1);
    rill__ring_enter(&pool->ring, &pool->caches[i]->link);
  }
  for (struct rill__ring_link *link; (link = pool->ring.first) != NULL;) {
    struct rill__pool_cache *cache = cache_of(link);
    if (cache->stream != NULL) rill__unref(&cache->stream->base);
    free_cache(pool, cache);
  }
  free(pool->caches);
}
