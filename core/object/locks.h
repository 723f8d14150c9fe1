/* The core locks that the calling thread holds, for assertions.  Builds without assertions (core/object/assert.h)
 * record nothing.
 *
 * Invariants
 * - A thread takes these locks in the order of their numbers, so no two threads deadlock.
 * - Only the lock of graphs may be held across a call of a backend, because such a call may wait for the device. */
#ifndef RILL_CORE_OBJECT_LOCKS_H
#define RILL_CORE_OBJECT_LOCKS_H

#include "core/object/thread.h"

#include <stdint.h>

enum {
  RILL__LOCK_CLAIMS = 1,   /* core/graph/claims.c */
  RILL__LOCK_REGISTRY = 2, /* core/device/registry.c */
  RILL__LOCK_GRAPHS = 4,   /* core/graph/graph.h */
  RILL__LOCK_HELD = 8,     /* core/held/held.h */
};

#if RILL_CHECKS
extern _Thread_local uint32_t rill__locks __attribute__((tls_model("initial-exec")));
#endif

/* Returns true if the calling thread holds one of the locks.  Only for assertions: other builds always return false. */
static inline bool rill__has_lock(uint32_t locks) {
#if RILL_CHECKS
  return (rill__locks & locks) != 0;
#else
  (void)locks;
  return false;
#endif
}

static inline void rill__lock_taken(uint32_t lock) {
  RILL_ASSERT(!rill__has_lock(~(lock - 1)), "locks are taken in the order of core/object/locks.h");
#if RILL_CHECKS
  rill__locks |= lock;
#else
  (void)lock;
#endif
}

static inline void rill__lock_released(uint32_t lock) {
  RILL_ASSERT(rill__has_lock(lock), "a thread releases only locks that it holds");
#if RILL_CHECKS
  rill__locks &= ~lock;
#else
  (void)lock;
#endif
}

/* Returns true if the calling thread is outside epochs.  Inside an epoch it must not wait for another thread
 * (core/object/thread.h). */
static inline bool rill__is_outside_epochs(void) {
  return rill__self == NULL || atomic_load_explicit(&rill__self->epoch, memory_order_relaxed) == 0;
}

#endif
