#include "core/device/backends.h"

#define BACKEND(name) extern const struct rill__backend rill__##name##_backend;
#define ABSENT(name, id)
#include "rill_backends.inc"
#undef BACKEND
#undef ABSENT

struct rill__search rill__searches[RILL__BACKENDS] = {
#define BACKEND(name) { .backend = &rill__##name##_backend },
#define ABSENT(name, id)
#include "rill_backends.inc"
#undef BACKEND
#undef ABSENT
};

static const struct rill__search *search_of(const struct rill__backend *backend) {
  size_t i = 0;
  while (rill__searches[i].backend != backend) i++;
  return &rill__searches[i];
}

const struct rill__backend *rill__backend_at(size_t i) { return i < RILL__BACKENDS ? rill__searches[i].backend : NULL; }

bool rill__backend_is_known(const struct rill__backend *backend) { return rill__search_is_done(search_of(backend)); }

struct rill__device *rill__device_at(const struct rill__backend *backend, uint32_t ordinal) {
  const struct rill__search *search = search_of(backend);
  return rill__search_is_done(search) && ordinal < search->count ? search->devices[ordinal] : NULL;
}
