/* Memory that one stream has freed and another stream takes. */
#include "core/held/held.h"
#include "core/pool/cache.h"
#include "core/sync/streams.h"

/* ---- batches ---- */

/* Returns whether an event can be recorded on the cache's stream.  Returns false for an imported stream that has ended:
 * its owner may destroy it, and the call that ended the cache has already recorded a batch. */
static bool may_record(const struct rill__pool_cache *cache) {
  const struct rill__stream *stream = cache->stream;
  return stream != NULL && !(cache->ended && stream->imported && !stream->owned);
}

/* Queries the oldest batch.  The caller has a reference to the cache. */
static bool query_oldest_batch(struct rill__pool *pool, struct rill__pool_cache *cache) {
  if (cache->batches == NULL) return false;
  const uint64_t number = cache->batches->freed;
  struct rill__event *event = cache->batches->event;
  rill__ref(&event->base);
  rill__pool_unlock(pool);
  const bool complete = rill__last_use_is_complete(event);
  rill__unref(&event->base);
  rill__pool_lock(pool);
  if (complete) rill__pool_cache_complete(pool, cache, number);
  return complete;
}

void rill__pool_cache_record(struct rill__pool *pool, struct rill__pool_cache *cache) {
  enum { MAX_BATCHES = 64 };
  const uint64_t number = cache->freed;
  struct rill__last_use *batch = NULL;
  /* The reference keeps the cache while the query releases the lock. */
  cache->refs++;
  while (cache->batch_count >= MAX_BATCHES && query_oldest_batch(pool, cache)) {
  }
  struct rill__stream *stream = cache->stream;
  const bool queried = cache->batched >= number || cache->complete >= number || cache->batch_count >= MAX_BATCHES;
  if (!queried && stream != NULL) {
    rill__stream_visit(stream);
    rill__pool_unlock(pool);
    rill__errors_suspend(); /* a batch that cannot be recorded now is recorded later, when it is needed */
    (void)rill__last_use_new(stream, &batch);
    rill__errors_resume();
    rill__stream_leave(stream);
    rill__pool_lock(pool);
  }
  if (batch != NULL) {
    batch->freed = number;
    *cache->last_batch = batch;
    cache->last_batch = &batch->next;
    cache->batch_count++;
    if (cache->batched < number) cache->batched = number;
    cache->heap.joins_from = cache->batched + 1;
    rill__pool_cache_mark(pool, cache);
  }
  rill__pool_cache_leave(pool, cache);
}

/* ---- memory that is complete ---- */

void rill__pool_cache_update(struct rill__pool *pool, struct rill__pool_cache *cache) {
  if (cache->stream != NULL && rill__stream_is_drained(cache->stream)) {
    rill__pool_cache_complete(pool, cache, cache->freed);
    return;
  }
  if ((cache->batches == NULL || cache->ended) && may_record(cache)) rill__pool_cache_record(pool, cache);
  while (query_oldest_batch(pool, cache)) {
  }
}

static void update_cache(struct rill__pool *pool, const struct rill__stream *own) {
  struct rill__pool_cache *cache = rill__pool_cache_visit(pool);
  if (cache == NULL) return;
  const size_t before = cache->heap.count;
  if (own != NULL) cache->marks = RILL__MARKS; /* memory was searched for: the next frees record batches */
  rill__pool_cache_update(pool, cache);
  if (cache->heap.count < before && cache->stream != own) cache->drained = true;
  rill__pool_cache_leave(pool, cache);
}

struct rill__block *rill__pool_search(struct rill__pool *pool, struct rill__stream *stream,
                                      const struct rill__request *request, size_t searches) {
  const bool thorough = searches == RILL__ALL_SEARCHES;
  const size_t all = pool->ring.count > pool->uses.ring.count ? pool->ring.count : pool->uses.ring.count;
  if (searches > all) searches = all;
  struct rill__block *block = NULL;
  for (; searches > 0 && block == NULL; searches--) {
    update_cache(pool, stream);
    rill__uses_search(pool);
    if (request == NULL) continue;
    struct rill__pool_cache *own = stream != NULL ? rill__pool_cache_find(pool, stream) : NULL;
    block = rill__pool_take(pool, own, request, thorough);
  }
  return block;
}

void rill__pool_drain(struct rill__pool *pool) {
  struct rill__pool_cache *cache;
  for (size_t searches = pool->ring.count; searches > 0 && (cache = rill__pool_cache_visit(pool)) != NULL; searches--) {
    rill__pool_cache_complete(pool, cache, cache->freed);
    rill__pool_cache_leave(pool, cache);
  }
  (void)rill__pool_search(pool, NULL, NULL, RILL__ALL_SEARCHES);
}

/* ---- memory to wait for ---- */

/* Makes the stream wait for the cache's frees up to `number`, through the first batch that covers them or one that is
 * recorded now.  The caller has a reference to the cache. */
static bool order_after(struct rill__pool *pool, struct rill__pool_cache *cache, uint64_t number,
                        struct rill__stream *stream) {
  if (cache->stream == stream) return true;
  /* On a held stream the record would be queued, and on a capturing stream it would become part of the graph. */
  if (cache->batched < number && may_record(cache) && !rill__is_diverted(cache->stream)) {
    rill__pool_cache_record(pool, cache);
  }
  const struct rill__last_use *batch = cache->batches;
  while (batch != NULL && batch->freed < number) batch = batch->next;
  if (batch == NULL) return number <= cache->complete;
  struct rill__event *event = batch->event;
  rill__ref(&event->base);
  rill__pool_unlock(pool);
  const bool ordered = rill__last_use_order(stream, event);
  rill__unref(&event->base);
  rill__pool_lock(pool);
  return ordered;
}

/* Makes the stream wait for everything that a block waits for; no other thread has the block.  Afterwards the block
 * names the stream's own cache, as if the stream had freed it.  If this fails, the block is returned to its heap. */
static bool take_over(struct rill__pool *pool, struct rill__block *block, struct rill__stream *stream) {
  bool ordered = true;
  if (!rill__block_is_complete(pool, block)) {
    ordered = order_after(pool, rill__pool_cache_of(block->heap), block->freed, stream);
  }
  /* The uses leave their queues before the lock is released, so that no other thread can end them while this one waits
   * for their events. */
  rill__block_unqueue_uses(pool, block);
  rill__pool_unlock(pool);
  for (struct rill__last_use *last_use = block->last_uses; last_use != NULL && ordered; last_use = last_use->next) {
    ordered = rill__last_use_order(stream, last_use->event);
  }
  rill__pool_lock(pool);
  struct rill__pool_cache *own = ordered ? rill__pool_cache_get(pool, stream) : NULL;
  if (own == NULL) {
    rill__block_queue_uses(pool, block);
    rill__pool_put(pool, block);
    return false;
  }
  rill__block_drop_uses(block);
  rill__block_name(pool, block, &own->heap, ++own->freed);
  return true;
}

struct rill__block *rill__pool_take_and_wait(struct rill__pool *pool, struct rill__stream *stream,
                                             const struct rill__request *request) {
  for (size_t searches = pool->ring.count; searches > 0; searches--) {
    struct rill__pool_cache *cache = rill__pool_cache_visit(pool);
    if (cache == NULL) break;
    struct rill__block *block = rill__heap_find(&cache->heap, request, true);
    if (block != NULL) cache->refs++; /* the TAKEN block still names the cache's heap */
    if (block != NULL) block = rill__block_take(block, request);
    rill__pool_cache_leave(pool, cache);
    if (block != NULL && take_over(pool, block, stream)) return block;
  }
  for (size_t searches = pool->waiting_count; searches > 0; searches--) {
    struct rill__block *block = pool->waiting;
    if (block == NULL) break;
    rill__pool_take_waiting(pool, block);
    if (!rill__block_fits(block, request)) {
      rill__pool_put(pool, block);
    } else if (take_over(pool, block, stream)) {
      return block;
    }
  }
  return NULL;
}
