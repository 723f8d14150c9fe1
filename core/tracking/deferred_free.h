/* Memory that was freed while work is held that may be going to use it.
 *
 * Nobody can wait for held work there: whoever would release it may be the caller.  So the free is deferred until all
 * that was held when it was made has been handed to the driver or has failed; then the memory goes, in a call that may
 * block or when no device has work, since drivers wait for all work when they take memory back.  Records and waits
 * never do that.
 *
 * Invariants
 * - Held operations that may use memory, all but waits, are in two lists in the order of submission, until they have
 *   been handed over or have failed (rill__held_oldest).  A deferred free has the serial number of the last held
 *   operation before it, so the oldest operation alone tells whether its turn has come.
 * - Those of a device are in its list by serial number.
 * - One lock, that of what is held (core/held/held.h), guards the lists. */
#ifndef RILL_CORE_TRACKING_DEFERRED_FREE_H
#define RILL_CORE_TRACKING_DEFERRED_FREE_H

#include "core/object/core.h"
#include "core/tracking/ranges.h"

/* Defers a free of so many bytes, until `end`; false if no held operation may use memory. */
bool rill__free_defer(struct rill__device *device, struct rill__deferred_free *deferred, uint64_t bytes,
                      rill__end_free_fn *end);

/* Ends frees whose turn has come; outside epochs.  `may_block`: else only if no device of the backend has work. */
void rill__deferred_frees_end(struct rill__device *device, bool may_block);

/* Where waiting is out of place, or for calls that are hot; outside epochs. */
static inline bool rill__frees_are_deferred(const struct rill__device *device) {
  return atomic_load_explicit(&rill__core(device)->deferred_bytes, memory_order_relaxed) != 0;
}
static inline void rill__deferred_frees_end_idle(struct rill__device *device) {
  if (RILL__UNLIKELY(rill__frees_are_deferred(device))) rill__deferred_frees_end(device, false);
}

/* Fails if so much is deferred for the device that `size` more bytes must not be allocated. */
rill_status rill__deferred_frees_check(struct rill__device *device, size_t size);

#endif
