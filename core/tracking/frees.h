/* The latest frees, for kernels that check their accesses: they show whether memory was freed before a kernel was
 * launched, or afterwards, when the kernel may still have been using it.
 *
 * Frees are recorded while a device has modules with such kernels.  Each free has a number, and a launch stores the
 * number of frees so far.  Only the last few thousand are kept.
 */
#ifndef RILL_CORE_TRACKING_FREES_H
#define RILL_CORE_TRACKING_FREES_H

#include "core/object/core.h"

/* Return whether frees are recorded, and the size of a red zone in bytes. */
static inline bool rill__is_checked(const struct rill__device *device) {
  return atomic_load_explicit(&device->checked, memory_order_relaxed) != 0;
}
static inline size_t rill__red_zone(const struct rill__device *device) {
  return RILL__UNLIKELY(rill__is_checked(device)) ? RILL__RED_ZONE : 0;
}

/* Call this and the functions below under the lock of the map (core/tracking/map.h). */
void rill__frees_note(uintptr_t begin, size_t size);

/* Returns true if frees after number `frees` are no longer recorded. */
bool rill__frees_are_forgotten(uint64_t frees);

/* Returns LATE or FREED with the memory, or RIGHT if no recorded free contains `p`. */
void rill__frees_find(uintptr_t p, uint64_t frees, struct rill__access *out);

#endif
