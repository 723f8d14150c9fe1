/* Memory that rill_free was given while held work may be going to use it.
 *
 * Nobody can wait for held work there: whoever would release it may be the caller.  So the memory is put off until all
 * that was held when it was freed, and may use it, has been handed to the driver or has failed; then it goes, in a call
 * that may block or when the device has no work, since drivers wait for all work when they take memory back.  Records
 * and waits never do that.
 *
 * Invariants
 * - Every held operation has a serial number, in the order of submission; memory that is put off has that of the last
 *   one before.  No operation with a greater number keeps it.
 * - One lock, that of what is held (core/held/held.h), guards the lists. */
#ifndef RILL_CORE_PUT_OFF_H
#define RILL_CORE_PUT_OFF_H

#include "core/backend.h"
#include "core/ranges.h"

/* Puts memory that was taken out of the map off; false if no held work may use it. */
bool rill__put_off(struct rill__allocation *allocation);

/* Frees what waits for nothing any more; outside epochs.  `may_block`: else only if no device of the backend has work.
 */
void rill__put_off_free(struct rill__device *device, bool may_block);

/* Whether there may be any: a look that costs nothing, for calls that are hot. */
extern _Atomic bool rill__any_put_off;

/* Where waiting is out of place; outside epochs. */
static inline void rill__put_off_free_idle(struct rill__device *device) {
  if (RILL__UNLIKELY(atomic_load_explicit(&rill__any_put_off, memory_order_relaxed))) {
    rill__put_off_free(device, false);
  }
}

/* Fails if so much is put off for the device that `size` more bytes must not be allocated. */
rill_status rill__put_off_check(struct rill__device *device, size_t size);

#endif
