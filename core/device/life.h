/* Devices that can be used, and objects that go together. */
#ifndef RILL_CORE_DEVICE_LIFE_H
#define RILL_CORE_DEVICE_LIFE_H

#include "core/object/core.h"

static inline rill_status rill__check_usable(struct rill__device *device) {
  if (RILL__UNLIKELY(atomic_load_explicit(&device->lost, memory_order_acquire) != RILL_OK))
    return rill__fail_lost(device);
  return RILL_OK;
}

/* Makes a device ready for its first real use; nothing if it is. */
rill_status rill__device_activate(struct rill__device *device);

/* Set when a stream is first held: the device is lost, so what is held for it fails. */
extern void (*_Atomic rill__device_lost_held)(struct rill__device *device);

/* Set before the first search, for RILL_CHECK=memory: begins to watch a device that becomes active; false without host
 * memory. */
extern bool (*_Atomic rill__device_watch)(struct rill__device *device);

/* Refuses objects of two backends, or of two devices. */
rill_status rill__check_same_backend(const struct rill__object *a, const struct rill__object *b);
rill_status rill__fail_other_device(const struct rill__object *a, const struct rill__object *b) __attribute__((cold));

static inline rill_status rill__check_same_device(const struct rill__object *a, const struct rill__object *b) {
  return RILL__LIKELY(a->device == b->device) ? RILL_OK : rill__fail_other_device(a, b);
}

#endif
