#include "core/pool/check.h"

#if RILL_CHECKS

/* Sums over the blocks of all segments, for each state. */
struct totals {
  uint64_t complete, cached, waiting, taken, all;
  size_t complete_count, cached_count, waiting_count, uses;
};

void rill__block_check(const struct rill__block *block) {
  const struct rill__block *const left = block->left, *const right = block->right;
  const struct rill__segment *const segment = block->segment;
  RILL_ASSERT(block->count > 0, "no block is empty");
  RILL_ASSERT(left == NULL ? block->first == 0 && segment->leftmost == block
                           : left->right == block && left->first + left->count == block->first,
              "the blocks of a segment follow one another without gaps or overlaps");
  RILL_ASSERT(right == NULL ? block->first + block->count == segment->granules
                            : right->left == block && block->first + block->count == right->first,
              "the blocks of a segment cover it to its end");
  if (block->state != RILL__BLOCK_FREE || right == NULL || right->state != RILL__BLOCK_FREE) return;
  RILL_ASSERT(block->heap != right->heap || block->freed < block->heap->joins_from ||
                  right->freed < block->heap->joins_from,
              "two free neighbours of one heap that complete together are joined");
}

/* ---- uses ---- */

static size_t check_uses_of(const struct rill__block *block) {
  size_t count = 0;
  struct rill__last_use *const *link = &block->last_uses;
  for (const struct rill__last_use *last_use = block->last_uses; last_use != NULL; last_use = last_use->next, count++) {
    RILL_ASSERT(last_use->link == link && last_use->block == block, "the uses of a block are linked both ways");
    link = (struct rill__last_use *const *)&last_use->next;
  }
  RILL_ASSERT(count == block->uses, "a block counts its uses");
  return count;
}

static size_t check_queue(const struct rill__use_queue *queue) {
  size_t count = 0;
  const struct rill__last_use *earlier = NULL;
  for (const struct rill__last_use *last_use = queue->first; last_use != NULL;
       earlier = last_use, last_use = last_use->later, count++) {
    RILL_ASSERT(last_use->earlier == earlier && last_use->queue == queue, "the uses of a queue are linked both ways");
    RILL_ASSERT(last_use->stream == queue->stream, "a queue has the uses of one stream");
  }
  RILL_ASSERT(queue->last == earlier, "a queue ends with its last use");
  RILL_ASSERT(count > 0, "a queue in the ring is not empty");
  return count;
}

/* Returns the number of uses in queues. */
static size_t check_queues(const struct rill__pool *pool) {
  const struct rill__ring *ring = &pool->uses.ring;
  const struct rill__ring_link *link = ring->first;
  size_t uses = 0;
  for (size_t i = 0; i < ring->count; i++, link = link->next) {
    RILL_ASSERT(link->next->prev == link, "a ring is linked both ways");
    uses += check_queue((const struct rill__use_queue *)((const char *)link - offsetof(struct rill__use_queue, link)));
  }
  RILL_ASSERT(link == ring->first, "a ring has as many links as it counts");
  return uses;
}

/* ---- heaps ---- */

static void check_heap(const struct rill__heap *heap) {
  uint64_t bytes = 0;
  size_t count = 0;
  const struct rill__block *older = NULL;
  for (const struct rill__block *block = heap->oldest; block != NULL; older = block, block = block->newer, count++) {
    RILL_ASSERT(block->state == RILL__BLOCK_FREE && block->heap == heap, "the blocks of a heap are free in it");
    RILL_ASSERT(block->older == older && (older == NULL || older->freed <= block->freed),
                "the blocks of a heap are in the order of their frees");
    RILL_ASSERT(*block->link == block && (block->next == NULL || block->next->link == &block->next),
                "the blocks of a bin are linked both ways");
    bytes += rill__block_size(block);
  }
  RILL_ASSERT(heap->newest == older, "a heap ends with its newest block");
  RILL_ASSERT(heap->count == count && heap->bytes == bytes, "a heap counts its blocks and their bytes");
}

static void check_cache(const struct rill__pool_cache *cache) {
  check_heap(&cache->heap);
  RILL_ASSERT(cache->heap.oldest == NULL || cache->heap.oldest->freed > cache->complete,
              "complete memory is in no cache");
  RILL_ASSERT(cache->complete <= cache->freed && cache->batched <= cache->freed,
              "batches cover only frees that have been made");
  unsigned batches = 0;
  for (const struct rill__last_use *batch = cache->batches; batch != NULL; batch = batch->next) batches++;
  RILL_ASSERT(batches == cache->batch_count, "a cache counts its batches");
}

/* ---- all ---- */

static void add_block(struct totals *totals, const struct rill__pool *pool, const struct rill__block *block) {
  const uint64_t size = rill__block_size(block);
  const bool complete = block->state == RILL__BLOCK_FREE && block->heap == &pool->complete;
  totals->all += size;
  if (complete) totals->complete += size, totals->complete_count++;
  if (block->state == RILL__BLOCK_FREE && !complete) totals->cached += size, totals->cached_count++;
  if (block->state == RILL__BLOCK_WAITING) totals->waiting += size, totals->waiting_count++;
  if (block->state == RILL__BLOCK_TAKEN) totals->taken += size;
  if (block->state == RILL__BLOCK_FREE) {
    RILL_ASSERT(block->last_uses == NULL, "a free block has no uses to wait for");
    return;
  }
  RILL_ASSERT(block->state != RILL__BLOCK_WAITING || block->last_uses != NULL, "a waiting block has uses to wait for");
  const size_t uses = check_uses_of(block);
  if (!block->unqueued) totals->uses += uses;
}

static void check_waiting(const struct rill__pool *pool, const struct totals *totals) {
  size_t count = 0;
  struct rill__block *const *link = &pool->waiting;
  for (const struct rill__block *block = pool->waiting; block != NULL; block = block->next, count++) {
    RILL_ASSERT(block->link == link && block->state == RILL__BLOCK_WAITING, "waiting blocks are linked both ways");
    link = (struct rill__block *const *)&block->next;
  }
  RILL_ASSERT(pool->last_waiting == link, "the list of waiting blocks ends with the last one");
  RILL_ASSERT(count == pool->waiting_count && count == totals->waiting_count, "all waiting blocks are in the list");
}

void rill__pool_check(struct rill__pool *pool) {
  struct totals totals = { .all = 0 };
  for (const struct rill__segment *segment = pool->segments; segment != NULL; segment = segment->other) {
    RILL_ASSERT(*segment->at == segment, "the segments of a pool are linked both ways");
    for (const struct rill__block *block = segment->leftmost; block != NULL; block = block->right) {
      rill__block_check(block);
      add_block(&totals, pool, block);
    }
  }
  check_heap(&pool->complete);
  RILL_ASSERT(totals.complete == pool->complete.bytes && totals.complete_count == pool->complete.count,
              "all complete blocks are in the complete heap");
  uint64_t unmarked = 0, cached = 0;
  size_t caches = 0;
  const struct rill__ring_link *link = pool->ring.first;
  for (size_t i = 0; i < pool->ring.count; i++, link = link->next) {
    const struct rill__pool_cache *cache =
        (const struct rill__pool_cache *)((const char *)link - offsetof(struct rill__pool_cache, link));
    check_cache(cache);
    unmarked += cache->unmarked;
    cached += cache->heap.bytes;
    caches += cache->heap.count;
  }
  RILL_ASSERT(link == pool->ring.first, "a ring has as many links as it counts");
  RILL_ASSERT(totals.cached == cached && totals.cached_count == caches, "caches with blocks are in the ring");
  RILL_ASSERT(unmarked <= pool->unmarked,
              "the bytes that a pool counts as freed since the last batch include those of its caches");
  check_waiting(pool, &totals);
  RILL_ASSERT(totals.uses == check_queues(pool), "each use of a block is in one queue");
  RILL_ASSERT(pool->used <= totals.taken, "the memory in use is in taken blocks");
  RILL_ASSERT(totals.all + pool->transit == atomic_load(&pool->reserved),
              "the reserved memory of a pool is its segments and the memory in transit");
}

#endif
