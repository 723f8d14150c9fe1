/* Where things were made: the calls that were under way then, for RILL_CHECK=memory. */
#ifndef RILL_CORE_OBJECT_ORIGIN_H
#define RILL_CORE_OBJECT_ORIGIN_H

#include "core/object/handle.h"

enum { RILL__FRAMES = 10 };

/* Return addresses, the innermost call first. */
struct rill__origin {
  uint32_t count;
  void *frames[RILL__FRAMES];
};

/* The calls that the thread is in now, without those of this library where it is a library of its own. */
void rill__origin_take(struct rill__origin *out);

/* Writes up to `most` calls as "module+0xoffset (function+0xoffset)", each between `before` and `after`, as far as
 * there is room for whole ones; "" if none is known. */
void rill__origin_write(const struct rill__origin *origin, uint32_t most, const char *before, const char *after,
                        char *text, size_t size);

/* ---- origins of objects that the user made ---- */

extern bool rill__notes_origins; /* constant once a device has been found */
void rill__origins_start(void);

/* Called where a public function gives a new handle to the user: only those objects are found below. */
void rill__origin_note_(const struct rill__object *object) __attribute__((cold));
static inline void rill__origin_note(const struct rill__object *object) {
  if (RILL__UNLIKELY(rill__notes_origins)) rill__origin_note_(object);
}

/* Calls `visit` for each such object of the device that is still alive.  Under a lock: `visit` calls nothing of core.
 * Without an epoch: `label` is a copy. */
struct rill__live_object {
  enum rill__kind kind;
  const char *label; /* "" if there is none */
  const struct rill__origin *origin;
};
typedef void rill__visit_object(const struct rill__live_object *object, void *user);
void rill__origins_visit(const struct rill__device *device, rill__visit_object *visit, void *user);

/* For fork. */
void rill__origins_lock(void);
void rill__origins_unlock(void);

#endif
