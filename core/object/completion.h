/* The completion cache: an object that was once seen complete answers queries without the driver until more work is
 * submitted to it.
 *
 * Work is counted when it is submitted, before the driver call and again after it.  One thread, the owner (the first
 * that submits), counts with plain stores in `own`, which is odd while the owner is in the driver.  All other threads
 * count with atomic additions in `started` and `finished`.  For the events that a graph records, the owner counts there
 * as well.
 *
 * Invariant: known_own and known_started are counts at which no thread was in the driver and at which the driver
 * answered a query with "complete".  Counts only grow.  So while both known counts equal the current counts, no work
 * has been submitted since the query and none is being submitted: a thread that observed the work also observes its
 * count.
 *
 * The two known counts may come from different queries.  Each query showed that the work up to its count was complete,
 * so together they show it for all work. */
#ifndef RILL_CORE_OBJECT_COMPLETION_H
#define RILL_CORE_OBJECT_COMPLETION_H

#include "core/object/thread.h"

#include <stdbool.h>

struct rill__completion {
  _Atomic(struct rill__thread *) owner;
  _Atomic uint64_t own, started, finished;
  _Atomic uint64_t known_own, known_started;
};

/* The counts at the time of a query to the driver. */
struct rill__completion_query {
  uint64_t own, started;
  bool quiet; /* no thread was in the driver */
};

/* Makes the calling thread the owner if there is none.  Called when the thread is not known to be the owner. */
static __attribute__((noinline, unused)) bool rill__submission_claim(struct rill__completion *work,
                                                                     struct rill__thread *self) {
  struct rill__thread *none = NULL;
  return atomic_compare_exchange_strong(&work->owner, &none, self);
}

/* Count a submission, before and after the driver call that submits.  rill__submission_end returns the number of
 * submissions that had ended before: if the program orders two submissions, the later one gets the larger number. */
static inline void rill__submission_begin(struct rill__completion *work, struct rill__thread *self) {
  if (RILL__LIKELY(atomic_load_explicit(&work->owner, memory_order_relaxed) == self) ||
      rill__submission_claim(work, self)) {
    const uint64_t own = atomic_load_explicit(&work->own, memory_order_relaxed);
    RILL_ASSERT(own % 2 == 0, "the owner starts one submission at a time");
    atomic_store_explicit(&work->own, own + 1, memory_order_relaxed);
    /* orders the store before everything that the driver call makes visible */
    atomic_thread_fence(memory_order_release);
  } else {
    atomic_fetch_add(&work->started, 1);
  }
}

static inline uint64_t rill__submission_end(struct rill__completion *work, struct rill__thread *self) {
  if (RILL__LIKELY(atomic_load_explicit(&work->owner, memory_order_relaxed) == self)) {
    const uint64_t own = atomic_load_explicit(&work->own, memory_order_relaxed);
    RILL_ASSERT(own % 2 == 1, "`own` is odd while the owner is in the driver");
    atomic_store_explicit(&work->own, own + 1, memory_order_release);
    return own / 2 + atomic_load_explicit(&work->finished, memory_order_relaxed);
  }
  const uint64_t own = atomic_load_explicit(&work->own, memory_order_relaxed);
  /* Not the owner: the owner may be in the driver at the same time, so only the shared counter is changed. */
  const uint64_t finished = atomic_fetch_add(&work->finished, 1);
  RILL_ASSERT(finished < atomic_load(&work->started), "every submission that has finished was counted as started");
  return finished + own / 2;
}

/* Do the same for each object of a driver call that submits work to several objects.  An object may occur more than
 * once, because a graph can record an event at several nodes.  The shared counters nest, `own` does not. */
static inline void rill__submission_begin_nested(struct rill__completion *work) { atomic_fetch_add(&work->started, 1); }

static inline void rill__submission_end_nested(struct rill__completion *work) {
  const uint64_t finished = atomic_fetch_add(&work->finished, 1);
  RILL_ASSERT(finished < atomic_load(&work->started), "what is counted as finished was counted as started");
  (void)finished;
}

/* Return the number of submissions that have ended, and the number that is known to be complete. */
static inline uint64_t rill__submission_count(const struct rill__completion *work) {
  return atomic_load_explicit(&work->own, memory_order_relaxed) / 2 +
         atomic_load_explicit(&work->finished, memory_order_relaxed);
}
static inline uint64_t rill__submission_known(const struct rill__completion *work) {
  return atomic_load_explicit(&work->known_own, memory_order_relaxed) / 2 +
         atomic_load_explicit(&work->known_started, memory_order_relaxed);
}

/* Returns true if no thread has ever submitted.  The first thread that submits becomes the owner. */
static inline bool rill__completion_is_unused(const struct rill__completion *work) {
  return atomic_load_explicit(&work->owner, memory_order_acquire) == NULL;
}

/* Returns whether all counted work is known to be complete.  The current counts may change between the loads.  That is
 * harmless: a submission that another thread starts meanwhile is concurrent with the query, which may then return
 * either answer. */
static inline bool rill__completion_is_known(const struct rill__completion *work) {
  return atomic_load_explicit(&work->own, memory_order_acquire) ==
             atomic_load_explicit(&work->known_own, memory_order_acquire) &&
         atomic_load_explicit(&work->started, memory_order_acquire) ==
             atomic_load_explicit(&work->known_started, memory_order_acquire);
}

/* Reads the counts before the driver is queried.  `finished` is read before `started`: if both are equal then, no
 * counted submission was in progress. */
static inline struct rill__completion_query rill__query_completion(const struct rill__completion *work) {
  const uint64_t finished = atomic_load_explicit(&work->finished, memory_order_acquire);
  const uint64_t started = atomic_load_explicit(&work->started, memory_order_acquire);
  const uint64_t own = atomic_load_explicit(&work->own, memory_order_acquire);
  return (struct rill__completion_query){ own, started, started == finished && own % 2 == 0 };
}

/* Stores the answer "complete" after the query.  Returns false if work was submitted meanwhile: the answer may not
 * include that work. */
static inline bool rill__completion_remember(struct rill__completion *work,
                                             const struct rill__completion_query *query) {
  /* Orders the query before the loads below, so that they see any submission that the driver could have missed. */
  atomic_thread_fence(memory_order_acquire);
  if (!query->quiet || atomic_load_explicit(&work->own, memory_order_relaxed) != query->own ||
      atomic_load_explicit(&work->started, memory_order_relaxed) != query->started) {
    return false;
  }
  RILL_ASSERT(query->own % 2 == 0 && atomic_load(&work->finished) <= atomic_load(&work->started),
              "a result is cached only for counts at which no thread was in the driver");
  atomic_store_explicit(&work->known_own, query->own, memory_order_release);
  atomic_store_explicit(&work->known_started, query->started, memory_order_release);
  return true;
}

/* Treats the work as not known to be complete.  No other thread may have the object. */
static inline void rill__completion_forget(struct rill__completion *work) {
  atomic_store_explicit(&work->own, atomic_load_explicit(&work->own, memory_order_relaxed) + 2, memory_order_relaxed);
}

#endif
