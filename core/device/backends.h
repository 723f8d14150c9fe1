/* The backends of this build, and the devices that have been found. core/device/registry.c searches for them. */
#ifndef RILL_CORE_DEVICE_BACKENDS_H
#define RILL_CORE_DEVICE_BACKENDS_H

#include "core/object/core.h"

enum rill__search_state { RILL__UNKNOWN, RILL__SEARCHING, RILL__KNOWN };

enum {
#define BACKEND(name) RILL__INDEX_OF_##name,
#define ABSENT(name, id)
#include "rill_backends.inc"
#undef BACKEND
#undef ABSENT
  RILL__BACKENDS
};

/* The searches, in the order in which the devices of the backends are numbered. */
extern struct rill__search {
  const struct rill__backend *backend;
  /* changes under the lock; the fields below are constant once the search is done */
  _Atomic enum rill__search_state state;
  struct rill__device **devices;
  uint32_t count;
  uint32_t reported;  /* number of devices reported by the vendor; more than count if one could not be set up */
  char why[1024];     /* the reason why there are no more devices, if it is known; the first line is a sentence */
  rill_status failed; /* why a device could not be set up; else RILL_OK */
} rill__searches[RILL__BACKENDS];

static inline bool rill__search_is_done(const struct rill__search *search) {
  return atomic_load_explicit(&search->state, memory_order_acquire) == RILL__KNOWN;
}

/* Returns backend number `i` of this build, in that order, or NULL past the last. */
const struct rill__backend *rill__backend_at(size_t i);

bool rill__backend_is_known(const struct rill__backend *backend);

/* Returns a device of a backend; NULL past the last one, or if the backend has not been searched yet. */
struct rill__device *rill__device_at(const struct rill__backend *backend, uint32_t ordinal);

#endif
