/* core/object/handle.h with many threads: retain, release and find shared handles, while slots are reused constantly.
 */
#include "objects.h"

enum { THREADS = 8, SHARED = 16 };

/* A handle that all threads use; a thread that finds it stale replaces it. */
static _Atomic uint64_t ids[SHARED];
static _Atomic unsigned made;

/* Finds the object and checks its invariants. */
static const char *look(uint64_t id) {
  struct rill__thread *const self = rill__enter("look");
  const struct rill__object *object = rill__find(id, RILL__EVENT);
  const bool good = object == NULL || (object->id == id && object->destroy == destroy_thing);
  rill__leave(&self);
  REQUIRE(good);
  return NULL;
}

static bool is_fine(rill_status status) { return status == RILL_OK || status == RILL_ERROR_STALE_HANDLE; }

static const char *replace(unsigned place, uint64_t old) {
  struct thing *thing = make_thing("shared");
  REQUIRE(thing != NULL);
  atomic_fetch_add(&made, 1);
  const uint64_t id = thing->base.id;
  if (!atomic_compare_exchange_strong(&ids[place], &old, id)) REQUIRE(release_thing(id) == RILL_OK);
  return NULL;
}

static const char *storms(unsigned index, void *shared) {
  (void)shared;
  unsigned random = index * 2654435761u + 1;
  for (unsigned i = 0; i < scaled(20000); i++) {
    random = random * 1664525 + 1013904223;
    const unsigned place = (random >> 8) % SHARED, action = (random >> 24) % 4;
    const uint64_t id = atomic_load(&ids[place]);
    const char *failure = look(id);
    if (failure != NULL) return failure;
    if (action == 0) {
      REQUIRE(is_fine(release_thing(id)));
    } else if (action == 1) {
      const rill_status status = retain_thing(id);
      REQUIRE(is_fine(status));
      if (status == RILL_OK) REQUIRE(is_fine(release_thing(id)));
    }
    if (!is_found(id) && (failure = replace(place, id)) != NULL) return failure;
  }
  return NULL;
}

static void no_object_is_lost_or_confused(void) {
  const unsigned before = things_destroyed;
  atomic_store(&made, SHARED);
  for (unsigned i = 0; i < SHARED; i++) {
    struct thing *thing = make_thing("shared");
    assert_non_null(thing);
    atomic_store(&ids[i], thing->base.id);
  }
  run_threads(THREADS, storms, NULL);
  for (unsigned i = 0; i < SHARED; i++) {
    while (release_thing(atomic_load(&ids[i])) == RILL_OK) {
    }
  }
  /* not every call checks while a blocked thread delays the destruction of many objects */
  for (unsigned i = 0; i < made && things_destroyed - before != made; i++) rill__reclaim();
  assert_int_equal(things_destroyed - before, made);
}

/* Many threads release one reference: exactly one of them must learn that it was the last. */
static const char *releases_once(unsigned index, void *shared) {
  (void)index;
  struct {
    uint64_t id;
    _Atomic unsigned good;
  } *race = shared;
  const rill_status status = release_thing(race->id);
  REQUIRE(is_fine(status));
  if (status == RILL_OK) atomic_fetch_add(&race->good, 1);
  return NULL;
}

static void only_one_of_many_releases_is_the_last(void) {
  for (unsigned i = 0; i < scaled(200); i++) {
    struct {
      uint64_t id;
      _Atomic unsigned good;
    } race = { make_thing(NULL)->base.id, 0 };
    run_threads(4, releases_once, &race);
    assert_int_equal(race.good, 1);
  }
}

TESTS_ONCE("core/object/handle.h, under threads", TEST(no_object_is_lost_or_confused),
           TEST(only_one_of_many_releases_is_the_last))
