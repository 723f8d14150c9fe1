#include "core/pool/uses.h"

#include "core/pool/cache.h"

#include <stdlib.h>
#include <string.h>

/* ---- queues ---- */

static struct rill__use_queue *queue_of(struct rill__ring_link *link) {
  return (struct rill__use_queue *)((char *)link - offsetof(struct rill__use_queue, link));
}

static bool make_room_for_queue(struct rill__uses *uses, size_t slot) {
  if (slot < uses->slots) return true;
  const size_t slots = slot < 8 ? 16 : 2 * slot;
  struct rill__use_queue **grown = realloc(uses->queues, slots * sizeof *grown);
  if (grown == NULL) return false;
  memset(grown + uses->slots, 0, (slots - uses->slots) * sizeof *grown);
  uses->queues = grown;
  uses->slots = slots;
  return true;
}

static void free_if_unused(struct rill__use_queue *queue) {
  if (!queue->listed && queue->first == NULL && queue->refs == 0) free(queue);
}

/* Returns the queue of the stream, or NULL if there is no host memory.  A stream without an order gets a new queue for
 * each use. */
static struct rill__use_queue *get_queue(struct rill__uses *uses, struct rill__stream *stream) {
  const uint32_t slot = rill__object_slot(&stream->base);
  const bool ordered = rill__stream_has_order(stream);
  if (ordered && !make_room_for_queue(uses, slot)) return NULL;
  struct rill__use_queue *const before = ordered ? uses->queues[slot] : NULL;
  if (before != NULL && before->stream == stream->number) return before;
  struct rill__use_queue *queue = calloc(1, sizeof *queue);
  if (queue == NULL) return NULL;
  queue->stream = stream->number;
  queue->listed = ordered;
  if (ordered) uses->queues[slot] = queue;
  if (before != NULL) {
    before->listed = false;
    free_if_unused(before);
  }
  return queue;
}

static void enter_queue(struct rill__uses *uses, struct rill__last_use *last_use, bool first) {
  struct rill__use_queue *queue = last_use->queue;
  last_use->earlier = first ? NULL : queue->last;
  last_use->later = first ? queue->first : NULL;
  *(last_use->earlier != NULL ? &last_use->earlier->later : &queue->first) = last_use;
  *(last_use->later != NULL ? &last_use->later->earlier : &queue->last) = last_use;
  rill__ring_enter(&uses->ring, &queue->link);
}

/* Removes a use from its queue.  Does not free the queue; the caller frees it if it is unused. */
static void leave_queue(struct rill__uses *uses, struct rill__last_use *last_use) {
  struct rill__use_queue *queue = last_use->queue;
  *(last_use->earlier != NULL ? &last_use->earlier->later : &queue->first) = last_use->later;
  *(last_use->later != NULL ? &last_use->later->earlier : &queue->last) = last_use->earlier;
  last_use->earlier = last_use->later = NULL;
  if (queue->first == NULL) rill__ring_leave(&uses->ring, &queue->link);
}

/* ---- the uses of a block ---- */

static void enter_block(struct rill__block *block, struct rill__last_use *last_use) {
  last_use->block = block;
  last_use->next = block->last_uses;
  last_use->link = &block->last_uses;
  if (last_use->next != NULL) last_use->next->link = &last_use->next;
  block->last_uses = last_use;
  block->uses++;
}

static void leave_block(struct rill__last_use *last_use) {
  *last_use->link = last_use->next;
  if (last_use->next != NULL) last_use->next->link = last_use->link;
  last_use->next = NULL;
  last_use->link = NULL;
  last_use->block->uses--;
}

static void end_use(struct rill__pool *pool, struct rill__last_use *last_use) {
  struct rill__use_queue *queue = last_use->queue;
  leave_queue(&pool->uses, last_use);
  leave_block(last_use);
  rill__last_uses_free(last_use);
  free_if_unused(queue);
}

/* Returns true if `last_use` can replace `before`, an earlier use of the same block by the same stream.  It can if the
 * earlier record had returned before the later one started. */
static bool stands_for(const struct rill__last_use *last_use, const struct rill__last_use *before) {
  return before != NULL && before->block == last_use->block && before->queue == last_use->queue &&
         last_use->started > before->recorded;
}

/* Keeps only one of several uses by the same stream.  It runs each time the list is twice as long as after the last
 * run, so each use is visited about once. */
static void shorten_uses(struct rill__pool *pool, struct rill__block *block) {
  enum { LEAST = 4 };
  const uint64_t pass = ++pool->uses.passes;
  struct rill__last_use *next;
  for (struct rill__last_use *last_use = block->last_uses; last_use != NULL; last_use = next) {
    struct rill__use_queue *queue = last_use->queue;
    next = last_use->next;
    if (queue->pass == pass && stands_for(queue->newest, last_use)) {
      end_use(pool, last_use);
    } else if (queue->pass != pass) {
      queue->pass = pass;
      queue->newest = last_use;
    }
  }
  block->most_uses = block->uses < LEAST ? 2 * LEAST : 2 * block->uses;
}

bool rill__block_add_use(struct rill__pool *pool, struct rill__block *block, struct rill__stream *stream,
                         struct rill__last_use *last_use) {
  last_use->queue = get_queue(&pool->uses, stream);
  if (last_use->queue == NULL) return false;
  struct rill__last_use *const last = last_use->queue->last, *const newest = block->last_uses;
  enter_queue(&pool->uses, last_use, false);
  enter_block(block, last_use);
  /* A stream that uses a block repeatedly, alone or alternating with other streams, leaves a single use. */
  if (stands_for(last_use, last)) {
    end_use(pool, last);
  } else if (stands_for(last_use, newest)) {
    end_use(pool, newest);
  }
  if (block->uses >= block->most_uses) shorten_uses(pool, block);
  return true;
}

void rill__block_unqueue_uses(struct rill__pool *pool, struct rill__block *block) {
  for (struct rill__last_use *last_use = block->last_uses; last_use != NULL; last_use = last_use->next) {
    last_use->queue->refs++;
    leave_queue(&pool->uses, last_use);
  }
  block->unqueued = true;
}

void rill__block_queue_uses(struct rill__pool *pool, struct rill__block *block) {
  for (struct rill__last_use *last_use = block->last_uses; last_use != NULL; last_use = last_use->next) {
    enter_queue(&pool->uses, last_use, true);
    last_use->queue->refs--;
  }
  block->unqueued = false;
}

void rill__block_drop_uses(struct rill__block *block) {
  for (struct rill__last_use *last_use; (last_use = block->last_uses) != NULL;) {
    struct rill__use_queue *queue = last_use->queue;
    leave_block(last_use);
    rill__last_uses_free(last_use);
    queue->refs--;
    free_if_unused(queue);
  }
  block->unqueued = false;
}

/* ---- searching ---- */

/* Queries the first use and ends it if it is complete.  The caller has a reference to the queue. */
static bool end_first_use(struct rill__pool *pool, struct rill__use_queue *queue) {
  struct rill__last_use *last_use = queue->first;
  if (last_use == NULL) return false;
  const uint64_t started = last_use->started;
  struct rill__event *event = last_use->event;
  rill__ref(&event->base);
  rill__pool_unlock(pool);
  const bool complete = rill__last_use_is_complete(event);
  rill__unref(&event->base);
  rill__pool_lock(pool);
  /* Other threads may have ended it meanwhile, and its struct may have been recycled for another use. */
  if (!complete || queue->first != last_use || last_use->started != started) return complete;
  struct rill__block *block = last_use->block;
  end_use(pool, last_use);
  if (block->state == RILL__BLOCK_WAITING && block->last_uses == NULL) rill__pool_stop_waiting(pool, block);
  return true;
}

void rill__uses_search(struct rill__pool *pool) {
  if (pool->uses.ring.first == NULL) return;
  struct rill__use_queue *queue = queue_of(pool->uses.ring.first);
  rill__ring_turn(&pool->uses.ring);
  queue->refs++;
  while (end_first_use(pool, queue)) {
  }
  queue->refs--;
  free_if_unused(queue);
}

void rill__uses_free(struct rill__uses *uses) {
  for (size_t i = 0; i < uses->slots; i++) free(uses->queues[i]);
  free(uses->queues);
}
