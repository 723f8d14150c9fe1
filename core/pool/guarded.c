#include "core/pool/guarded.h"

#include "core/sync/submit.h"

#include <stdio.h>

/* ---- live ---- */

static void release_kept_block(struct rill__guard *guard) {
  struct rill__block *block = guard->memory;
  struct rill__pool *pool = block->segment->pool;
  rill__pool_lock(pool);
  rill__block_end(block);
  rill__block_name(pool, block, &pool->complete, 0);
  rill__pool_put(pool, block);
  rill__pool_unlock(pool);
}

/* Returns true if the zones are written in the order of the stream.  A held or capturing stream cannot write them; if
 * no work uses the memory, including earlier work of this stream, they are written immediately instead. */
static bool orders_zones(struct rill__pool *pool, struct rill__block *block, struct rill__stream *stream) {
  if (stream == NULL || !rill__is_diverted(stream)) return true;
  rill__pool_lock(pool);
  const bool unused = block->last_uses == NULL && rill__block_is_complete(pool, block);
  rill__pool_unlock(pool);
  return !unused;
}

void rill__block_guard(struct rill__guard **taken, struct rill__block *block, struct rill__stream *stream, void *begins,
                       size_t size) {
  struct rill__pool *pool = block->segment->pool;
  struct rill__guard *const guard = *taken;
  *taken = NULL;
  guard->begin = (uintptr_t)begins;
  guard->size = size;
  guard->kind = pool->kind;
  guard->zoned = true;
  guard->pool = &pool->base;
  guard->memory = block;
  guard->release = release_kept_block;
  (void)snprintf(guard->label, sizeof guard->label, "%s", pool->base.label != NULL ? pool->base.label : "");
  block->guard = guard;
  rill__guard_enter(guard, orders_zones(pool, block, stream) ? stream : NULL);
}

void rill__block_guard_of_graph(struct rill__guard **taken, struct rill__block *block, void *begins, size_t size) {
  (*taken)->of_graph = true;
  rill__block_guard(taken, block, NULL, begins, size);
}

void rill__block_drop_guard_(struct rill__block *block) {
  rill__guard_drop(block->guard);
  block->guard = NULL;
}

/* ---- freed ---- */

/* Takes the guard off the block before the block is kept back, because the thread that has the turn may release the
 * block from then on. */
static struct rill__guard *take_guard(struct rill__pool *pool, struct rill__block *block) {
  struct rill__guard *const guard = block->guard;
  block->guard = NULL;
  rill__pool_lock(pool);
  pool->used -= rill__block_used(block);
  rill__pool_unlock(pool);
  return guard;
}

static void undo_take(struct rill__pool *pool, const struct rill__block *block, struct rill__guard *guard) {
  rill__pool_lock(pool);
  pool->used += rill__block_used(block);
  rill__pool_unlock(pool);
  rill__guard_drop(guard);
}

bool rill__block_keep_in_order_(struct rill__pool *pool, struct rill__block *block, struct rill__stream *stream) {
  const bool used = block->last_uses != NULL; /* by other streams, possibly after this free */
  struct rill__guard *const guard = take_guard(pool, block);
  const bool kept = !used && rill__guard_keep_in_order(guard, stream);
  if (!kept) undo_take(pool, block, guard);
  return kept;
}

bool rill__block_keep_unused_(struct rill__pool *pool, struct rill__block *block) {
  const bool used = block->last_uses != NULL;
  struct rill__guard *const guard = take_guard(pool, block);
  const bool kept = rill__guard_end(guard, !used);
  if (!kept) undo_take(pool, block, guard);
  return kept;
}

/* ---- under pressure ---- */

/* Turns memory that is kept back, and whose event is not complete, into memory that was freed in the order of its
 * stream. */
static void yield_kept(struct rill__guard *guard) {
  struct rill__block *block = guard->memory;
  struct rill__pool *pool = block->segment->pool;
  struct rill__last_use *const use = guard->pending;
  guard->pending = NULL;
  rill__pool_lock(pool);
  rill__block_end(block);
  const bool waits = rill__block_add_use(pool, block, guard->stream, use);
  if (waits) rill__pool_put(pool, block);
  rill__pool_unlock(pool);
  if (!waits) rill__last_uses_free(use); /* without host memory the block is never reused */
  rill__guard_free(guard);
}

void rill__pool_free_kept(struct rill__pool *pool) {
  if (!rill__is_guarded(pool->base.device)) return;
  (void)rill__guards_flush(pool->base.device, &pool->base, RILL__WAITS_FOR_NOTHING);
  rill__guards_yield(pool->base.device, &pool->base, yield_kept);
}
