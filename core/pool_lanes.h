/* The lanes of a pool: for each stream that uses the pool, memory that only this stream's allocations take from.
 *
 * Invariants
 * - A lane's lock guards its heap, marks and waiting blocks, and is held for a look through its lists at most: never
 *   across a call into a backend, another lock or a wait.  The warm path of an allocation and of a free takes the lock
 *   of one lane, its own stream's or the block's, and no other: no stream's allocation waits for another stream's.
 *   Only who finds nothing in his own lane takes the others' locks, one at a time; who makes the first allocation of
 *   a stream takes the pool's, and who gets memory from the driver the map's (core/memory.c), each for a few stores.
 * - A FREE block of a lane may be used at once by work of the lane's stream: every use of it is ordered before, in that
 *   stream, or complete.
 * - Frees of a lane are numbered.  `done` is such that all uses before the frees up to that number are complete; any
 *   stream may take FREE blocks that were last freed at `done` or before.  Joined blocks have the greater number.
 * - A mark is an event that was recorded on the lane's stream when all frees up to its number had been made.
 * - A WAITING block has uses (events) that its free did not order, or that were recorded on another stream than the
 *   lane's.  It becomes FREE when all of them are complete.
 * - A block that stream B took from the lane of stream A by waiting for A keeps that dependency as an `inherited` use:
 *   a free on B is behind it, a free on any other stream has to wait for it.
 * - When a stream ends its lane has no number and no stream, and a mark behind all frees; a later stream may adopt it
 *   when that mark is complete.  Lanes live as long as their pool. */
#ifndef RILL_CORE_POOL_LANES_H
#define RILL_CORE_POOL_LANES_H

#include "core/pool_blocks.h"
#include "core/use.h"

#include <sched.h>

struct rill__lane {
  struct rill__heap heap; /* first: a segment knows its lane by it */
  _Atomic bool locked;
  _Atomic uint64_t number;     /* of its stream; 0: none */
  struct rill__stream *stream; /* may be set without a number: then it is kept, until a mark can be recorded */
  struct rill__pool *pool;     /* the lane's */
  struct rill__lane *next;     /* of the pool's bucket; constant */
  uint64_t freed, done;
  struct rill__use *marks, **last_mark; /* in order of their numbers */
  unsigned mark_count;
  struct rill__block *waiting; /* linked by next */
  size_t grown;                /* bytes of the last segment made for it */
};

enum { RILL__LANE_BUCKETS = 16 };
#define RILL__FOR_EACH_LANE(pool, lane)                               \
  for (unsigned bucket_ = 0; bucket_ < RILL__LANE_BUCKETS; bucket_++) \
    for (struct rill__lane *lane = atomic_load(&(pool)->lanes[bucket_]); lane != NULL; lane = lane->next)

struct rill__pool {
  struct rill__object base;
  struct rill__pool *next, **link; /* of device->pools */
  pthread_mutex_t lock;            /* of those who make, adopt and end lanes */
  _Atomic(struct rill__lane *) lanes[RILL__LANE_BUCKETS];
  uint64_t max_size;
  uint32_t kind; /* of its memory */
  _Atomic uint64_t threshold;
  _Atomic bool marks_frees; /* each free records a mark */
  _Alignas(64) _Atomic uint64_t reserved, used, reserved_peak, used_peak;
};

/* Few instructions are ever inside, so waiting asleep would cost more. */
static inline void rill__lane_lock(struct rill__lane *lane) {
  for (unsigned tries = 0; atomic_exchange_explicit(&lane->locked, true, memory_order_acquire); tries++) {
    if (tries >= 100) (void)sched_yield();
  }
}

static inline void rill__lane_unlock(struct rill__lane *lane) {
  atomic_store_explicit(&lane->locked, false, memory_order_release);
}

static inline struct rill__lane *rill__lane_of(const struct rill__block *block) {
  return (struct rill__lane *)atomic_load_explicit(&block->segment->heap, memory_order_acquire);
}

static inline struct rill__lane *rill__lane_find(struct rill__pool *pool, const struct rill__stream *stream) {
  struct rill__lane *lane =
      atomic_load_explicit(&pool->lanes[stream->number % RILL__LANE_BUCKETS], memory_order_acquire);
  while (lane != NULL && atomic_load_explicit(&lane->number, memory_order_relaxed) != stream->number) {
    lane = lane->next;
  }
  return lane;
}

/* The lane of the stream, made or adopted. */
rill_status rill__lane_get(struct rill__pool *pool, struct rill__stream *stream, struct rill__lane **out);

/* The stream's last reference has gone; it can still be recorded on. */
void rill__lane_end(struct rill__pool *pool, struct rill__stream *stream);

/* Frees the lanes of a pool whose segments are gone. */
void rill__lanes_free(struct rill__pool *pool);

/* Adds a mark for the frees up to `number`.  Under the lock. */
void rill__lane_add_mark(struct rill__lane *lane, struct rill__use *mark, uint64_t number);

/* The rest is called outside epochs or on a path that is not hot, without locks; all but `take` ask the driver. */

/* The lane's stream, kept, if it can be asked or recorded on; with the number of the last free, and whether it has left
 * the lane. */
struct rill__stream *rill__lane_keep_stream(struct rill__lane *lane, uint64_t *number, bool *left);

/* Takes a block that is waiting for nothing but its own free on `stream`. */
struct rill__block *rill__lanes_take_own_free(struct rill__pool *pool, const struct rill__stream *stream,
                                              const struct rill__wish *wish);

/* Takes a block for the lane's stream that other lanes have; `ask`: whether to ask the driver what is complete.  A
 * whole segment comes over to the lane. */
struct rill__block *rill__lanes_take_complete(struct rill__pool *pool, struct rill__lane *own,
                                              const struct rill__wish *wish, bool ask);
/* The same, but the stream is made to wait for it. */
struct rill__block *rill__lanes_take_and_wait(struct rill__pool *pool, struct rill__stream *stream,
                                              const struct rill__wish *wish);

/* Makes those waiting blocks FREE that need not wait any more. */
void rill__lane_poll(struct rill__lane *lane);

/* Finds out which marks are complete. */
void rill__lane_poll_marks(struct rill__lane *lane, bool ask);

/* Takes segments out that are free and whose uses are complete, until `enough` bytes; linked by next. */
struct rill__segment *rill__lanes_take_segments(struct rill__pool *pool, uint64_t enough);

/* ---- what a pool has from the driver: core/pool_segments.c ---- */

/* Gives unused memory back until the pool has no more than `keep` bytes, as far as it can be. */
rill_status rill__pool_give_back(struct rill__pool *pool, uint64_t keep);

/* Memory of the driver for the lane, and a block of it; OUT_OF_MEMORY, without a text, if the driver has no more or the
 * limit is reached. */
rill_status rill__pool_grow(struct rill__pool *pool, struct rill__lane *lane, const struct rill__wish *wish,
                            struct rill__block **out);

/* Counts `size` bytes as used while the pool is kept otherwise; and as unused: true if the caller has to drop the pool
 * then, outside epochs. */
void rill__pool_note_used(struct rill__pool *pool, uint64_t size);
static inline bool rill__pool_note_unused(struct rill__pool *pool, uint64_t size) {
  return atomic_fetch_sub_explicit(&pool->used, size, memory_order_acq_rel) == size;
}

/* The device's pools that are not being destroyed, each kept; NULL if memory ran out. */
struct rill__pool **rill__pools_keep(struct rill__device *device, size_t *count);
void rill__pools_drop(struct rill__pool **pools, size_t count);

/* The device's default pool, made at the first use. */
rill_status rill__pool_default(struct rill__device *device, struct rill__pool **out);

#endif
