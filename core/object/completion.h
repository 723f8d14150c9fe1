/* Completion cache: an object once seen complete answers without the driver until it gets new work.
 *
 * Work is counted as it is submitted, before the driver call and after it.  One thread, the owner (the first that
 * submits), counts with plain stores in `own`, which is odd while it is in the driver; all others count with locked
 * additions in `started` and `finished`.
 *
 * Invariant.  known_own and known_started are counts at which nobody was in the driver and a question to the driver,
 * asked at those very counts, was answered "complete".  Counts only grow, so as long as both are the present ones, no
 * work has been submitted since, nor is any being submitted: whoever has seen work run finds its count.
 *
 * The two known counts may be of different questions.  Each says that the work up to it is complete, so both together
 * say it of all. */
#ifndef RILL_CORE_OBJECT_COMPLETION_H
#define RILL_CORE_OBJECT_COMPLETION_H

#include "core/object/thread.h"

#include <stdbool.h>

struct rill__completion {
  _Atomic(struct rill__thread *) owner;
  _Atomic uint64_t own, started, finished;
  _Atomic uint64_t known_own, known_started;
};

/* The counts at which the driver is asked. */
struct rill__question {
  uint64_t own, started;
  bool quiet; /* nobody was in the driver */
};

/* Of a thread that is not known to be the owner: it becomes the owner if there is none. */
static __attribute__((noinline, unused)) bool rill__submission_claim(struct rill__completion *work,
                                                                     struct rill__thread *self) {
  struct rill__thread *none = NULL;
  return atomic_compare_exchange_strong(&work->owner, &none, self);
}

/* Around the driver call that submits.  The end returns how many submissions had ended before: a number that grows
 * along each order of two submissions that the program makes certain. */
static inline void rill__submission_begin(struct rill__completion *work, struct rill__thread *self) {
  if (RILL__LIKELY(atomic_load_explicit(&work->owner, memory_order_relaxed) == self) ||
      rill__submission_claim(work, self)) {
    const uint64_t own = atomic_load_explicit(&work->own, memory_order_relaxed);
    RILL_ASSERT(own % 2 == 0, "the owner starts one submission at a time");
    atomic_store_explicit(&work->own, own + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release); /* before anything that the driver call makes visible */
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
  const uint64_t finished = atomic_fetch_add(&work->finished, 1);
  RILL_ASSERT(finished < atomic_load(&work->started), "what is counted as finished was counted as started");
  return finished + own / 2;
}

/* How many submissions have ended; and how many of them are known to be complete. */
static inline uint64_t rill__submission_count(const struct rill__completion *work) {
  return atomic_load_explicit(&work->own, memory_order_relaxed) / 2 +
         atomic_load_explicit(&work->finished, memory_order_relaxed);
}
static inline uint64_t rill__submission_known(const struct rill__completion *work) {
  return atomic_load_explicit(&work->known_own, memory_order_relaxed) / 2 +
         atomic_load_explicit(&work->known_started, memory_order_relaxed);
}

/* Nobody has ever submitted: the first who does is the owner. */
static inline bool rill__completion_is_unused(const struct rill__completion *work) {
  return atomic_load_explicit(&work->owner, memory_order_acquire) == NULL;
}

static inline bool rill__completion_is_known(const struct rill__completion *work) {
  return atomic_load_explicit(&work->own, memory_order_acquire) ==
             atomic_load_explicit(&work->known_own, memory_order_acquire) &&
         atomic_load_explicit(&work->started, memory_order_acquire) ==
             atomic_load_explicit(&work->known_started, memory_order_acquire);
}

/* Before the driver is asked ... */
static inline struct rill__question rill__completion_ask(const struct rill__completion *work) {
  const uint64_t finished = atomic_load_explicit(&work->finished, memory_order_acquire);
  const uint64_t started = atomic_load_explicit(&work->started, memory_order_acquire);
  const uint64_t own = atomic_load_explicit(&work->own, memory_order_acquire);
  return (struct rill__question){ own, started, started == finished && own % 2 == 0 };
}

/* ... and when it has said "complete".  False if work was submitted meanwhile. */
static inline bool rill__completion_remember(struct rill__completion *work, const struct rill__question *asked) {
  atomic_thread_fence(memory_order_acquire);
  if (!asked->quiet || atomic_load_explicit(&work->own, memory_order_relaxed) != asked->own ||
      atomic_load_explicit(&work->started, memory_order_relaxed) != asked->started) {
    return false;
  }
  RILL_ASSERT(asked->own % 2 == 0 && atomic_load(&work->finished) <= atomic_load(&work->started),
              "an answer is remembered for counts at which nobody was in the driver");
  atomic_store_explicit(&work->known_own, asked->own, memory_order_release);
  atomic_store_explicit(&work->known_started, asked->started, memory_order_release);
  return true;
}

/* For an object that only the caller has: its work is not known to be complete. */
static inline void rill__completion_forget(struct rill__completion *work) {
  atomic_store_explicit(&work->own, atomic_load_explicit(&work->own, memory_order_relaxed) + 2, memory_order_relaxed);
}

#endif
