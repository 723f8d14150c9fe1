/* RILL_CHECK=memory for pools: the guards of their allocations (core/tracking/guards.h).  A block whose allocation has
 * been freed and is kept back stays TAKEN, but does not count as in use. */
#ifndef RILL_CORE_POOL_GUARDED_H
#define RILL_CORE_POOL_GUARDED_H

#include "core/pool/cache.h"
#include "core/tracking/guards.h"

/* Returns the limit on the memory that the pool has from the driver; 0: no limit.  With guards, the limit applies to
 * allocations instead (core/pool/alloc.c). */
static inline uint64_t rill__pool_limit(const struct rill__pool *pool) {
  return rill__is_guarded(pool->base.device) ? 0 : pool->max_size;
}

/* Moves the guard to a block that has just become an allocation that no other thread knows yet, and sets `*taken` to
 * NULL. */
void rill__block_guard(struct rill__guard **taken, struct rill__block *block, struct rill__stream *stream, void *begins,
                       size_t size);

/* Does the same for memory of a graph, which no work uses yet. */
void rill__block_guard_of_graph(struct rill__guard **taken, struct rill__block *block, void *begins, size_t size);

/* Called by the thread that has claimed the block, without the lock.  rill__block_drop_guard: the memory is freed
 * without checking it.  rill__block_keep_in_order: it was freed on the stream.  rill__block_keep_unused: no work uses
 * it any more.  The last two return true if the block is kept back; otherwise they have dropped the guard, if there was
 * one. */
void rill__block_drop_guard_(struct rill__block *block);
bool rill__block_keep_in_order_(struct rill__pool *pool, struct rill__block *block, struct rill__stream *stream);
bool rill__block_keep_unused_(struct rill__pool *pool, struct rill__block *block);

static inline void rill__block_drop_guard(struct rill__block *block) {
  if (RILL__UNLIKELY(block->guard != NULL)) rill__block_drop_guard_(block);
}
static inline bool rill__block_keep_in_order(struct rill__pool *pool, struct rill__block *block,
                                             struct rill__stream *stream) {
  return RILL__UNLIKELY(block->guard != NULL) && rill__block_keep_in_order_(pool, block, stream);
}
static inline bool rill__block_keep_unused(struct rill__pool *pool, struct rill__block *block) {
  return RILL__UNLIKELY(block->guard != NULL) && rill__block_keep_unused_(pool, block);
}

/* Returns everything that is kept back to the pool without waiting.  Memory that work may still use is freed in the
 * order of its stream.  Call it outside epochs. */
void rill__pool_free_kept(struct rill__pool *pool);

#endif
