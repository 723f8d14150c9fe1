/* Records where objects were created, as the call stack at that time, for RILL_CHECK=memory. */
#ifndef RILL_CORE_OBJECT_ORIGIN_H
#define RILL_CORE_OBJECT_ORIGIN_H

#include "core/object/handle.h"

enum { RILL__FRAMES = 10 };

/* Return addresses, the innermost call first. */
struct rill__origin {
  uint32_t count;
  void *frames[RILL__FRAMES];
};

/* Records the current call stack of the thread, without the calls inside this library if it is a shared library. */
void rill__origin_take(struct rill__origin *out);

/* Writes up to `most` calls as "module+0xoffset (function+0xoffset)", each between `before` and `after`.  Writes only
 * complete entries that fit, and "" if no call is known. */
void rill__origin_write(const struct rill__origin *origin, uint32_t most, const char *before, const char *after,
                        char *text, size_t size);

/* ---- origins of objects that the user created ---- */

extern bool rill__notes_origins; /* constant once a device has been found */
void rill__origins_start(void);

/* Records the origin of an object, where a public function returns a new handle to the user: rill__origins_visit visits
 * only these objects. */
void rill__origin_note_(const struct rill__object *object) __attribute__((cold));
static inline void rill__origin_note(const struct rill__object *object) {
  if (RILL__UNLIKELY(rill__notes_origins)) rill__origin_note_(object);
}

/* Calls `visit` for each such object of the device that is still alive.  A lock is held, so `visit` calls nothing in
 * core.  No epoch is needed, because `label` is a copy. */
struct rill__live_object {
  enum rill__kind kind;
  const char *label; /* "" if there is none */
  const struct rill__origin *origin;
};
typedef void rill__visit_object(const struct rill__live_object *object, void *user);
void rill__origins_visit(const struct rill__device *device, rill__visit_object *visit, void *user);

/* Lock and unlock the list, around a fork. */
void rill__origins_lock(void);
void rill__origins_unlock(void);

#endif
