/* Freeing of pools' memory, and what is told of its uses. */
#include "core/held/held.h"
#include "core/pool.h"
#include "core/pool_lanes.h"

#include <rill/pool.h>

/* Ends the allocation that begins at `p`. */
static rill_status claim(struct rill__segment *segment, void *p, struct rill__block **block, uint64_t *live) {
  uintptr_t begins = 0;
  size_t is = 0;
  const bool found = rill__segment_find(segment, p, &begins, &is);
  if (found && begins == (uintptr_t)p) {
    *live = rill__segment_claim(segment, begins, block);
    if (*live != 0) return RILL_OK;
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

/* Whether there is room for a mark of the stream's frees in its lane, and up to which of them.  Of a stream that is
 * being released the lane may be another one's by now. */
static bool may_mark(struct rill__lane *lane, const struct rill__stream *stream, uint64_t *number, bool *full) {
  enum { MOST = 64 };
  rill__lane_lock(lane);
  *number = lane->freed;
  *full = lane->mark_count >= MOST;
  const bool own = atomic_load_explicit(&lane->number, memory_order_relaxed) == stream->number;
  rill__lane_unlock(lane);
  return own && !*full;
}

/* Records where the last frees of the lane are, so that another stream waits for no more than that. */
static void mark_free(struct rill__lane *lane, struct rill__stream *stream) {
  struct rill__use *mark = NULL;
  uint64_t number = 0;
  bool full = false;
  bool may = may_mark(lane, stream, &number, &full);
  if (full) {
    rill__lane_poll_marks(lane, false);
    may = may_mark(lane, stream, &number, &full);
  }
  rill__errors_aside(); /* without it, a later point is marked when it is needed */
  if (may && rill__use_new(stream, &mark) == RILL_OK) {
    rill__lane_lock(lane);
    rill__lane_add_mark(lane, mark, number);
    rill__lane_unlock(lane);
  }
  rill__errors_back();
}

/* Inside an epoch. */
static rill_status find_segment(void *p, struct rill__segment **out) {
  struct rill__allocation *allocation = rill__ranges_find(p);
  RILL_REQUIRE(allocation != NULL && !allocation->variable, RILL_ERROR_NOT_FOUND,
               "%p is no allocation of rill, or has been freed", p);
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
  uint64_t live = 0;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  if (p == NULL) return RILL_OK;
  RILL_TRY(rill__check_usable(s->base.device));
  RILL_TRY(find_segment(p, &segment));
  RILL_TRY(rill__check_same_device(&((struct rill__lane *)atomic_load(&segment->heap))->pool->base, &s->base));
  RILL_TRY(rill__pool_check_capture(s));
  RILL_TRY(claim(segment, p, &block, &live));
  struct rill__lane *lane = rill__lane_of(block);
  struct rill__pool *pool = lane->pool;
  const bool own = atomic_load_explicit(&lane->number, memory_order_relaxed) == s->number;
  struct rill__use *use = NULL;
  if (!own) {
    const rill_status status = rill__use_new(s, &use);
    if (status != RILL_OK) {
      rill__segment_unclaim(segment, block, live);
      return status;
    }
  }
  const uint64_t bytes = rill__block_size(block);
  if (RILL__UNLIKELY(!put_back(lane, block, use, s->number))) { /* the stream is being released meanwhile */
    const rill_status status = rill__use_new(s, &use);
    if (status != RILL_OK) {
      rill__segment_unclaim(segment, block, live);
      return status;
    }
    (void)put_back(lane, block, use, s->number);
  }
  if (use == NULL && RILL__UNLIKELY(atomic_load_explicit(&pool->marks_frees, memory_order_relaxed))) mark_free(lane, s);
  if (rill__pool_note_unused(pool, bytes)) {
    rill__leave(&self);
    rill__drop(&pool->base);
  }
  return RILL_OK;
}

bool rill__pool_find(const struct rill__allocation *segment, const void *p, uintptr_t *begins, size_t *size) {
  return rill__segment_find((const struct rill__segment *)segment, p, begins, size);
}

/* What submitted work may use pinned and managed memory on: all devices of the backend. */
static rill_status use_everywhere(struct rill__pool *pool, struct rill__use **list) {
  if (pool->kind == RILL_MEMORY_DEVICE) return rill__use_everywhere(pool->base.device, list);
  RILL__FOR_EACH_ACTIVE(pool->base.device, device) { RILL_TRY(rill__use_everywhere(device, list)); }
  return RILL_OK;
}

/* While streams are held, what they hold may be going to use the memory, and may be waiting for the caller: it then
 * goes when all streams have passed this point. */
static rill_status wait_or_note(struct rill__pool *pool, struct rill__use **list) {
  struct rill__device *device = pool->base.device;
  RILL_TRY(rill__check_usable(device));
  const bool wide = pool->kind != RILL_MEMORY_DEVICE;
  const bool held = wide ? rill__backend_holds(device) : atomic_load(&device->held_streams) != 0;
  if (held) return use_everywhere(pool, list);
  return wide ? rill__backend_synchronize(device) : RILL_DOOR(device, device, synchronize, device);
}

rill_status rill__pool_free(struct rill__thread *self, struct rill__allocation *allocation, void *p) {
  struct rill__segment *segment = (struct rill__segment *)allocation;
  struct rill__device *device = allocation->base.device;
  struct rill__block *block = NULL;
  struct rill__use *uses = NULL;
  uint64_t live = 0;
  RILL_TRY(claim(segment, p, &block, &live));
  rill__leave(&self); /* the block keeps its segment and pool */
  struct rill__lane *lane = rill__lane_of(block);
  struct rill__pool *pool = lane->pool;
  const rill_status status = wait_or_note(pool, &uses);
  if (status != RILL_OK && atomic_load(&device->lost) == RILL_OK) {
    rill__uses_free(uses);
    rill__segment_unclaim(segment, block, live);
    return status;
  }
  const uint64_t bytes = rill__block_size(block);
  rill__lane_lock(lane);
  struct rill__use **end = &block->uses;
  while (*end != NULL) end = &(*end)->next;
  *end = uses;
  rill__lane_unlock(lane);
  (void)put_back(lane, block, NULL, 0);
  if (rill__pool_note_unused(pool, bytes)) rill__drop(&pool->base);
  return status;
}

/* The pool's memory that begins at `begins` is used by the stream up to here. */
rill_status rill__pool_note_use(struct rill__allocation *allocation, uintptr_t begins, struct rill__use *use) {
  struct rill__segment *segment = (struct rill__segment *)allocation;
  struct rill__lane *lane = (struct rill__lane *)atomic_load(&segment->heap);
  const uint32_t granule = (uint32_t)((begins - allocation->begin) >> segment->shift);
  struct rill__use *dead = use;
  rill__lane_lock(lane);
  const bool still = atomic_load(&segment->heap) == &lane->heap && atomic_load(&segment->live[granule]) != 0;
  if (still) dead = rill__use_note(&segment->block[granule]->uses, use);
  rill__lane_unlock(lane);
  rill__uses_free(dead);
  RILL_REQUIRE(still, RILL_ERROR_NOT_FOUND, "%p was freed during the call", (void *)begins);
  return RILL_OK;
}
