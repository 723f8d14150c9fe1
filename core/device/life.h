/* The state of devices, and checks that objects belong together. */
#ifndef RILL_CORE_DEVICE_LIFE_H
#define RILL_CORE_DEVICE_LIFE_H

#include "core/object/core.h"

static inline rill_status rill__check_usable(struct rill__device *device) {
  if (RILL__UNLIKELY(atomic_load_explicit(&device->lost, memory_order_acquire) != RILL_OK))
    return rill__fail_lost(device);
  return RILL_OK;
}

/* Prepares a device for its first real use; does nothing if it is prepared. */
rill_status rill__device_activate(struct rill__device *device);

/* Set when a stream is first held.  Fails the held work of a lost device. */
extern void (*_Atomic rill__device_lost_held)(struct rill__device *device);

/* Set before the first search, for RILL_CHECK=memory.  Starts to check a device that becomes active; returns false if
 * there is no host memory. */
extern bool (*_Atomic rill__device_watch)(struct rill__device *device);

/* Refuse objects of two backends, or of two devices. */
rill_status rill__fail_other_backend(const struct rill__object *a, const struct rill__object *b) __attribute__((cold));
rill_status rill__fail_other_device(const struct rill__object *a, const struct rill__object *b) __attribute__((cold));

static inline rill_status rill__check_same_backend(const struct rill__object *a, const struct rill__object *b) {
  return RILL__LIKELY(a->device->backend == b->device->backend) ? RILL_OK : rill__fail_other_backend(a, b);
}

static inline rill_status rill__check_same_device(const struct rill__object *a, const struct rill__object *b) {
  return RILL__LIKELY(a->device == b->device) ? RILL_OK : rill__fail_other_device(a, b);
}

#endif
