/* RILL_CHECK=memory for pools: the guards of their allocations (core/tracking/guards.h).  A block whose allocation has
 * been freed and is kept back is TAKEN, and counts as freed. */
#ifndef RILL_CORE_POOL_GUARDED_H
#define RILL_CORE_POOL_GUARDED_H

#include "core/pool/cache.h"
#include "core/tracking/guards.h"

/* The limit on what the pool has from the driver; 0: none.  With guards it is one on what is allocated
 * (core/pool/alloc.c). */
static inline uint64_t rill__pool_limit(const struct rill__pool *pool) {
  return rill__is_guarded(pool->base.device) ? 0 : pool->max_size;
}

/* Gives the guard to a block that has just become an allocation, of which nobody else knows yet; `*taken` is then NULL.
 */
void rill__block_guard(struct rill__guard **taken, struct rill__block *block, struct rill__stream *stream, void *begins,
                       size_t size);

/* For who has claimed the block, without the lock.  drop_guard: it is freed without a look at its memory.
 * keep_in_order: it was freed on the stream; keep_unused: nobody uses it any more.  Both are true if the block is kept
 * back, and else have dropped the guard, if there is one. */
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

/* All that is kept back is the pool's again, without a wait: what is still to come is freed in the order of its stream.
 * Outside epochs. */
void rill__pool_give_kept_back(struct rill__pool *pool);

#endif
