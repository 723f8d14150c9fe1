/* Objects for tests of core/object/handle.h, which count how often they are destroyed. They use the kind of events. */
#ifndef RILL_TESTS_UNIT_OBJECTS_H
#define RILL_TESTS_UNIT_OBJECTS_H

#include "core/object/handle.h"
#include "support/testing.h"

struct thing {
  struct rill__object base;
  unsigned refusals; /* number of times that `destroy` postpones */
};

static _Atomic unsigned things_destroyed;

static void destroy_thing(struct rill__object *object) {
  struct thing *thing = (struct thing *)object;
  if (thing->refusals > 0) {
    thing->refusals--;
    rill__object_postpone(object);
    return;
  }
  atomic_fetch_add(&things_destroyed, 1);
  rill__object_free(object);
}

/* Returns NULL if the object cannot be created. */
static inline struct thing *make_thing(const char *label) {
  struct thing *thing = NULL;
  if (rill__object_new(sizeof *thing, NULL, label, destroy_thing, &thing) != RILL_OK) return NULL;
  if (rill__object_publish(&thing->base, RILL__EVENT) == RILL_OK) return thing;
  rill__unref(&thing->base);
  return NULL;
}

/* Does the same as rill_event_release. */
static inline rill_status release_thing(uint64_t id) {
  struct rill__thread *const self = rill__enter("release_thing");
  struct rill__object *last = NULL;
  const rill_status status = rill__object_release(id, RILL__EVENT, &last);
  if (last != NULL) rill__object_retire(last);
  rill__leave(&self);
  rill__reclaim();
  return status;
}

static inline rill_status retain_thing(uint64_t id) {
  struct rill__thread *const self = rill__enter("retain_thing");
  const rill_status status = rill__object_retain(id, RILL__EVENT);
  rill__leave(&self);
  return status;
}

static inline bool is_found(uint64_t id) {
  struct rill__thread *const self = rill__enter("is_found");
  const bool found = rill__find(id, RILL__EVENT) != NULL;
  rill__leave(&self);
  return found;
}

static inline uint32_t slot_index(uint64_t id) { return (uint32_t)(id >> 32) & 0xffffff; }

static inline struct rill__slot *slot_of_id(uint64_t id) {
  const uint32_t index = slot_index(id);
  return &atomic_load(&rill__chunks[RILL__EVENT][index / RILL__CHUNK_SLOTS])[index % RILL__CHUNK_SLOTS];
}

#endif
