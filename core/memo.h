/* Remembered completion: an object once seen complete answers without the driver until it gets new work.
 *
 * Invariant.  `state` is COMPLETE only if a question to the driver, begun after the last call that gave the object
 * work had returned, was answered "complete".  Whoever asks writes a token that is his alone, asks, and turns
 * exactly that token into COMPLETE; a call that gives work writes CHANGED after the driver has the work.  If such a
 * call wrote in between, or another thread began to ask, the token is gone and nothing is remembered.
 *
 * A call that gives work and has not yet returned may be overlooked: it and the question run at the same time, and
 * either may be said to come first.
 *
 * Giving work costs one plain store, and a known answer one load. */
#ifndef RILL_CORE_MEMO_H
#define RILL_CORE_MEMO_H

#include "core/thread.h"

struct rill__memo {
  _Atomic uint64_t state;
};

enum { RILL__MEMO_CHANGED = 0, RILL__MEMO_COMPLETE = 1 };

static inline bool rill__memo_knows(const struct rill__memo *memo) {
  return atomic_load_explicit(&memo->state, memory_order_acquire) == RILL__MEMO_COMPLETE;
}

static inline void rill__memo_changed(struct rill__memo *memo) {
  atomic_store_explicit(&memo->state, RILL__MEMO_CHANGED, memory_order_release);
}

/* Before asking the driver; gives the token for rill__memo_seen. */
static inline uint64_t rill__memo_ask(struct rill__memo *memo, struct rill__thread *self) {
  const uint64_t token = self->next_token++;
  atomic_store(&memo->state, token);
  return token;
}

/* The driver said "complete". */
static inline void rill__memo_seen(struct rill__memo *memo, uint64_t token) {
  atomic_compare_exchange_strong(&memo->state, &token, RILL__MEMO_COMPLETE);
}

#endif
