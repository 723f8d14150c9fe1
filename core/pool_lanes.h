/* The lanes of a pool: for each stream that uses the pool, memory that only this stream's allocations take from.
 *
 * Invariants
 * - A lane's lock guards its heap, marks and waiting blocks, and is held for a few stores: never across a call into a
 *   backend.  The warm path takes the lock of its own stream's lane and no other.
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

#include "core/call.h"
#include "core/pool_blocks.h"

#include <sched.h>

struct rill__use {
  struct rill__event *event; /* owned */
  struct rill__use *next;
  uint64_t number; /* of a mark */
  bool inherited;
};

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

struct rill__pool {
  struct rill__object base;
  struct rill__pool *next, **link; /* of device->pools */
  pthread_mutex_t lock;            /* of those who make, adopt and end lanes */
  _Atomic(struct rill__lane *) lanes[RILL__LANE_BUCKETS];
  uint64_t max_size;
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

/* An event recorded on the stream now; and its end. */
rill_status rill__use_new(struct rill__stream *stream, struct rill__use **out);
void rill__uses_free(struct rill__use *list);

/* Refuses a stream that is capturing: memory of a captured free would be used again while the graph can still run. */
rill_status rill__pool_check_capture(struct rill__stream *stream);

/* Adds a mark for the frees up to `number`.  Under the lock. */
void rill__lane_add_mark(struct rill__lane *lane, struct rill__use *mark, uint64_t number);

/* The rest is called outside epochs or on a path that is not hot, without locks; all but `take` ask the driver. */

/* Takes a block that is waiting for nothing but its own free on `stream`. */
struct rill__block *rill__lanes_take_own_free(struct rill__pool *pool, const struct rill__stream *stream, bool large,
                                              size_t rounded);

/* Takes a block for the lane's stream that other lanes have; `ask`: whether to ask the driver what is complete.  A
 * whole segment comes over to the lane. */
struct rill__block *rill__lanes_take_complete(struct rill__pool *pool, struct rill__lane *own, bool large,
                                              size_t rounded, bool ask);
/* The same, but the stream is made to wait for it. */
struct rill__block *rill__lanes_take_and_wait(struct rill__pool *pool, struct rill__stream *stream, bool large,
                                              size_t rounded);

/* Makes those waiting blocks FREE that need not wait any more. */
void rill__lane_poll(struct rill__lane *lane);

/* Finds out which marks are complete. */
void rill__lane_poll_marks(struct rill__lane *lane, bool ask);

/* Takes segments out that are free and whose uses are complete, until `enough` bytes; linked by next. */
struct rill__segment *rill__lanes_take_segments(struct rill__pool *pool, uint64_t enough);

#endif
