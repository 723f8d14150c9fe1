/* The latest frees, for kernels that check what they access: whether memory was freed before a kernel was launched, or
 * after, when the kernel may still be using it.
 *
 * Frees are noted while a device has modules with such kernels.  Each has a number; a launch notes how many there have
 * been.  Only some thousands are remembered. */
#ifndef RILL_CORE_TRACKING_FREES_H
#define RILL_CORE_TRACKING_FREES_H

#include "core/object/core.h"

/* Whether frees are to be noted, and red zones to be left. */
static inline bool rill__is_checked(const struct rill__device *device) {
  return atomic_load_explicit(&device->checked, memory_order_relaxed) != 0;
}
static inline size_t rill__red_zone(const struct rill__device *device) {
  return RILL__UNLIKELY(rill__is_checked(device)) ? RILL__RED_ZONE : 0;
}

/* Both under the lock of the map (core/tracking/map.h). */
void rill__frees_note(uintptr_t begin, size_t size);

/* Whether some are forgotten that were later than so many. */
bool rill__frees_are_forgotten(uint64_t frees);

/* LATE or FREED, with the memory; or RIGHT if no free that is remembered was of `p`. */
void rill__frees_find(uintptr_t p, uint64_t frees, struct rill__access *out);

#endif
