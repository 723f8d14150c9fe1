/* Memory that was freed while held work may still use it.
 *
 * Such a free cannot wait for held work: the thread that would release the work may be the caller.  So the free is
 * deferred until all work that was held at that time has been submitted to the driver or has failed.  The memory is
 * then freed in a call that may block, or when no device has work, since drivers wait for all work when they free
 * memory.  Records and waits never free it.
 *
 * Invariants
 * - Held operations that may use memory, which are all but waits, are in two lists in the order of submission until
 *   they have been submitted or have failed (rill__held_oldest).  A deferred free has the serial number of the last
 *   held operation before it, so comparing it with the oldest operation shows whether the free is due.
 * - The deferred frees of a device are in its list, ordered by serial number.
 * - The lock of held work (core/held/held.h) guards the lists.
 */
#ifndef RILL_CORE_TRACKING_DEFERRED_FREE_H
#define RILL_CORE_TRACKING_DEFERRED_FREE_H

#include "core/object/core.h"
#include "core/tracking/ranges.h"

/* Defers a free of `bytes` bytes to a later call of `end`.  Returns false if no held operation may use memory. */
bool rill__free_defer(struct rill__device *device, struct rill__deferred_free *deferred, uint64_t bytes,
                      rill__end_free_fn *end);

/* Finishes the frees that are due.  Call it outside epochs.  `may_block` false: only if no device of the backend has
 * work. */
void rill__deferred_frees_end(struct rill__device *device, bool may_block);

/* Return whether frees are deferred, and finish them only if that does not block, for calls that must not wait or are
 * frequent.  Call the second function outside epochs. */
static inline bool rill__frees_are_deferred(const struct rill__device *device) {
  return atomic_load_explicit(&rill__core(device)->deferred_bytes, memory_order_relaxed) != 0;
}
static inline void rill__deferred_frees_end_idle(struct rill__device *device) {
  if (RILL__UNLIKELY(rill__frees_are_deferred(device))) rill__deferred_frees_end(device, false);
}

/* Fails if so much memory waits for its free on the device that `size` more bytes must not be allocated. */
rill_status rill__deferred_frees_check(struct rill__device *device, size_t size);

#endif
