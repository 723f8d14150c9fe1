/* core/object/handle.h: generations, references, keeps, and destruction of objects. */
#include "objects.h"

#include <sched.h>

static struct thing *new_thing(const char *label) {
  struct thing *thing = make_thing(label);
  assert_non_null(thing);
  return thing;
}

static void ids_carry_their_kind(void) {
  const uint64_t id = new_thing(NULL)->base.id;
  assert_int_equal(id >> 56, RILL__EVENT);
  assert_true((uint32_t)id != 0);
  assert_true(is_found(id));
  assert_null(rill__find(id, RILL__STREAM));
  assert_int_equal(release_thing(id), RILL_OK);
}

/* C1.6 */
static void says_what_is_wrong_with_an_id(void) {
  const uint64_t id = new_thing("thing")->base.id;
  assert_int_equal(rill__fail_handle(0, RILL__EVENT, "event"), RILL_ERROR_INVALID_HANDLE);
  assert_int_equal(rill__fail_handle(UINT64_MAX, RILL__EVENT, "event"), RILL_ERROR_INVALID_HANDLE);
  assert_int_equal(rill__fail_handle(id, RILL__STREAM, "stream"), RILL_ERROR_INVALID_HANDLE);
  assert_says("event");
  assert_int_equal(rill__fail_handle(id + 1, RILL__EVENT, "event"), RILL_ERROR_INVALID_HANDLE);
  assert_int_equal(rill__fail_handle(id | UINT64_C(0xffffff) << 32, RILL__EVENT, "event"), RILL_ERROR_INVALID_HANDLE);
  assert_int_equal(release_thing(id), RILL_OK);
  assert_int_equal(rill__fail_handle(id, RILL__EVENT, "event"), RILL_ERROR_STALE_HANDLE);
}

static void the_last_release_ends_the_object(void) {
  const unsigned before = things_destroyed;
  const uint64_t id = new_thing(NULL)->base.id;
  assert_int_equal(retain_thing(id), RILL_OK);
  assert_int_equal(release_thing(id), RILL_OK);
  assert_true(is_found(id));
  assert_int_equal(things_destroyed, before);
  assert_int_equal(release_thing(id), RILL_OK);
  assert_false(is_found(id));
  rill__reclaim();
  assert_int_equal(things_destroyed, before + 1);
  assert_int_equal(release_thing(id), RILL_ERROR_STALE_HANDLE);
  assert_int_equal(retain_thing(id), RILL_ERROR_STALE_HANDLE);
}

static void releasing_zero_does_nothing(void) { assert_int_equal(release_thing(0), RILL_OK); }

static void borrowed_objects_are_not_counted(void) {
  struct thing *thing = new_thing(NULL);
  const uint64_t id = thing->base.id;
  thing->base.borrowed = true;
  for (int i = 0; i < 3; i++) assert_int_equal(release_thing(id), RILL_OK);
  assert_int_equal(retain_thing(id), RILL_OK);
  assert_true(is_found(id));
  rill__object_retire(&thing->base);
  assert_false(is_found(id));
  rill__reclaim();
}

static void a_slot_is_reused_with_the_next_generation(void) {
  const uint64_t first = new_thing(NULL)->base.id;
  assert_int_equal(release_thing(first), RILL_OK);
  rill__reclaim();
  const uint64_t second = new_thing(NULL)->base.id;
  assert_int_equal(slot_index(second), slot_index(first));
  assert_int_equal((uint32_t)second, (uint32_t)first + 1);
  assert_false(is_found(first));
  assert_true(is_found(second));
  assert_int_equal(retain_thing(first), RILL_ERROR_STALE_HANDLE);
  assert_int_equal(release_thing(second), RILL_OK);
}

/* Sets the slot's word by hand to the state after about four thousand million generations. */
static void a_slot_without_free_generations_is_retired(void) {
  const uint64_t first = new_thing(NULL)->base.id;
  assert_int_equal(release_thing(first), RILL_OK);
  rill__reclaim();
  atomic_store(&slot_of_id(first)->word, (uint64_t)(UINT32_MAX - 1) << 32);

  const uint64_t last = new_thing(NULL)->base.id;
  assert_int_equal(slot_index(last), slot_index(first));
  assert_int_equal((uint32_t)last, UINT32_MAX);
  assert_true(is_found(last));
  assert_int_equal(release_thing(last), RILL_OK);
  rill__reclaim();
  assert_false(is_found(last));

  for (int i = 0; i < 10; i++) {
    const uint64_t next = new_thing(NULL)->base.id;
    assert_int_not_equal(slot_index(next), slot_index(last));
    assert_int_equal(release_thing(next), RILL_OK);
    rill__reclaim();
  }
  assert_int_equal(retain_thing(last), RILL_ERROR_STALE_HANDLE);
}

static void references_do_not_overflow(void) {
  const uint64_t id = new_thing(NULL)->base.id;
  struct rill__slot *slot = slot_of_id(id);
  const uint64_t word = atomic_load(&slot->word);
  atomic_store(&slot->word, word | UINT32_MAX);
  assert_int_equal(retain_thing(id), RILL_ERROR_OUT_OF_RANGE);
  assert_true(is_found(id));
  atomic_store(&slot->word, word);
  assert_int_equal(release_thing(id), RILL_OK);
}

static void only_live_objects_can_be_revived(void) {
  struct thing *thing = new_thing(NULL);
  const uint64_t id = thing->base.id;
  assert_true(rill__object_is_live(&thing->base));
  assert_true(rill__object_try_ref(&thing->base));
  assert_int_equal(release_thing(id), RILL_OK);
  rill__ref(&thing->base); /* keeps the object's memory */
  assert_int_equal(release_thing(id), RILL_OK);
  assert_false(rill__object_is_live(&thing->base));
  assert_false(rill__object_try_ref(&thing->base));
  rill__unref(&thing->base);
}

static void refs_hold_the_memory(void) {
  const unsigned before = things_destroyed;
  struct thing *thing = new_thing("kept");
  const uint64_t id = thing->base.id;
  rill__ref(&thing->base);
  assert_int_equal(release_thing(id), RILL_OK);
  rill__reclaim();
  assert_int_equal(things_destroyed, before);
  assert_string_equal(thing->base.label, "kept");
  rill__unref(&thing->base);
  assert_int_equal(things_destroyed, before + 1);
}

struct other_thread {
  uint64_t id;
  unsigned destroyed;
};

static const char *releases_and_reclaims(unsigned index, void *shared) {
  (void)index;
  struct other_thread *other = shared;
  REQUIRE(release_thing(other->id) == RILL_OK);
  for (int i = 0; i < 5; i++) rill__reclaim();
  other->destroyed = things_destroyed;
  return NULL;
}

/* A call that has found an object keeps it alive, whatever other threads do with it. */
static void nothing_is_destroyed_inside_an_epoch(void) {
  const unsigned before = things_destroyed;
  struct other_thread other = { new_thing("found")->base.id, 0 };
  struct rill__thread *const self = rill__enter("test");
  struct thing *found = rill__find(other.id, RILL__EVENT);
  assert_non_null(found);
  run_threads(1, releases_and_reclaims, &other);
  assert_int_equal(other.destroyed, before);
  assert_string_equal(found->base.label, "found");
  assert_null(rill__find(other.id, RILL__EVENT));
  rill__leave(&self);
  rill__reclaim();
  assert_int_equal(things_destroyed, before + 1);
}

/* A call that starts after the last release does not delay the destruction. */
static const char *reclaims_in_an_epoch_of_its_own(unsigned index, void *shared) {
  (void)index;
  const unsigned *before = shared;
  rill__reclaim();
  REQUIRE(things_destroyed == *before + 1);
  return NULL;
}

static void later_calls_do_not_delay_destruction(void) {
  unsigned before = things_destroyed;
  struct thing *thing = new_thing(NULL);
  rill__object_retire(&thing->base);
  struct rill__thread *const self = rill__enter("test");
  run_threads(1, reclaims_in_an_epoch_of_its_own, &before);
  rill__leave(&self);
}

enum { MANY_RETIRED = 1000 };

/* Stays inside an epoch, which delays the destruction of everything that is retired meanwhile. */
static const char *stays_inside(unsigned index, void *shared) {
  (void)index;
  atomic_uint *const step = shared;
  struct rill__thread *const self = rill__enter("test");
  REQUIRE(self != NULL);
  atomic_store(step, 1);
  while (atomic_load(step) != 2) (void)sched_yield();
  rill__leave(&self);
  atomic_store(step, 3);
  while (atomic_load(step) != 4) (void)sched_yield(); /* until then no other thread may reuse this thread's record */
  return NULL;
}

/* However many objects are delayed, the first check after the call has ended destroys them. */
static void objects_in_use_are_destroyed_right_after_the_call(void) {
  const unsigned before = things_destroyed;
  atomic_uint step = 0;
  struct background *inside = start_threads(1, stays_inside, &step);
  while (atomic_load(&step) != 1) (void)sched_yield();
  for (unsigned i = 0; i < MANY_RETIRED; i++) assert_int_equal(release_thing(new_thing(NULL)->base.id), RILL_OK);
  assert_int_equal(things_destroyed, before);
  atomic_store(&step, 2);
  while (atomic_load(&step) != 3) (void)sched_yield();
  rill__reclaim();
  assert_int_equal(things_destroyed, before + MANY_RETIRED);
  atomic_store(&step, 4);
  join_threads(inside);
}

static void an_object_may_postpone_its_destruction(void) {
  const unsigned before = things_destroyed;
  struct thing *thing = new_thing(NULL);
  const uint64_t id = thing->base.id;
  thing->refusals = 3;
  assert_int_equal(release_thing(id), RILL_OK); /* tried when it is released, and again at the end of that call */
  assert_int_equal(things_destroyed, before);
  rill__reclaim();
  assert_false(is_found(id));
  assert_int_equal(things_destroyed, before);
  rill__reclaim();
  assert_int_equal(things_destroyed, before + 1);
}

/* If few objects are postponed, each call retries all of them. */
static void a_few_postponed_objects_are_all_retried(void) {
  enum { REFUSALS = 40 };
  const unsigned before = things_destroyed;
  struct thing *things[RILL__POSTPONED_FEW];
  for (unsigned i = 0; i < RILL__POSTPONED_FEW; i++) {
    things[i] = new_thing(NULL);
    things[i]->refusals = 1 + REFUSALS;
    rill__object_retire(&things[i]->base);
  }
  rill__reclaim(); /* the objects are postponed, and then retried */
  for (unsigned i = 1; i < REFUSALS; i++) {
    rill__reclaim();
    assert_int_equal(things_destroyed, before);
  }
  rill__reclaim();
  assert_int_equal(things_destroyed, before + RILL__POSTPONED_FEW);
}

/* If many objects are postponed, those of a synchronized stream are retried, and the others a few at a time. */
static void many_postponed_objects_are_retried_by_stream(void) {
  enum { MANY = 300, STREAMS = 3, ENDLESS = 1 << 30 };
  const unsigned before = things_destroyed;
  static struct thing *things[MANY];
  for (unsigned i = 0; i < MANY; i++) {
    things[i] = new_thing(NULL);
    things[i]->refusals = ENDLESS;
    things[i]->base.after = 1 + i % STREAMS * 64; /* all in the same list */
    rill__object_retire(&things[i]->base);
  }
  for (unsigned i = 0; i < 1000; i++) rill__reclaim();
  for (unsigned i = 0; i < MANY; i++) assert_true(things[i]->refusals > ENDLESS - 200);
  for (unsigned stream = 0; stream < STREAMS; stream++) {
    for (unsigned i = stream; i < MANY; i += STREAMS) things[i]->refusals = 0;
    rill__reclaim_after(1 + stream * 64);
    assert_int_equal(things_destroyed, before + (stream + 1) * MANY / STREAMS);
  }
}

/* All objects whose work is complete are destroyed, at the latest by later calls. */
static void many_postponed_objects_are_all_destroyed(void) {
  enum { MANY = 300 };
  const unsigned before = things_destroyed;
  for (unsigned i = 0; i < MANY; i++) {
    struct thing *thing = new_thing(NULL);
    thing->refusals = 1 + i % 3;
    rill__object_retire(&thing->base);
  }
  for (unsigned i = 0; i < 100 * MANY && things_destroyed - before < MANY; i++) rill__reclaim();
  assert_int_equal(things_destroyed, before + MANY);
  for (unsigned i = 0; i < MANY; i++) {
    struct thing *thing = new_thing(NULL);
    thing->refusals = 2 + i % 3;
    rill__object_retire(&thing->base);
  }
  rill__reclaim_all();
  rill__reclaim_all();
  rill__reclaim_all();
  assert_int_equal(things_destroyed, before + 2 * MANY);
}

static struct thing *retired_inside;

/* A user's function that is called during destruction and releases another object. */
static void release_another(struct rill__object *object) {
  (void)release_thing(retired_inside->base.id);
  rill__object_free(object);
}

static void destroyed_objects_may_release_others(void) {
  const unsigned before = things_destroyed;
  struct thing *thing = new_thing(NULL);
  retired_inside = new_thing(NULL);
  thing->base.destroy = release_another;
  assert_int_equal(release_thing(thing->base.id), RILL_OK);
  assert_int_equal(things_destroyed, before + 1);
}

static struct rill__object *recycled;

static bool keep_for_later(struct rill__object *object) {
  recycled = object;
  return true;
}

/* A recycled object gets a new id, and the old id stays stale. */
static void recycled_objects_have_new_ids(void) {
  const unsigned before = things_destroyed;
  struct thing *thing = new_thing(NULL), *urgent = new_thing(NULL);
  const uint64_t first = thing->base.id;
  thing->base.recycle = keep_for_later;
  recycled = NULL;
  assert_int_equal(release_thing(first), RILL_OK);
  /* recyclable objects alone may be kept until there are more of them */
  assert_int_equal(release_thing(urgent->base.id), RILL_OK);
  rill__reclaim();
  assert_ptr_equal(recycled, &thing->base);
  assert_false(is_found(first));
  rill__object_republish(recycled);
  assert_int_equal(thing->base.id, first + 1);
  assert_true(is_found(thing->base.id));
  assert_false(is_found(first));
  assert_int_equal(retain_thing(first), RILL_ERROR_STALE_HANDLE);
  assert_int_equal(things_destroyed, before + 1); /* the object that is not recyclable */
  thing->base.recycle = NULL;
  assert_int_equal(release_thing(thing->base.id), RILL_OK);
  rill__reclaim();
  assert_int_equal(things_destroyed, before + 2);
}

/* Needs more than one chunk of slots: all objects are found, then all are destroyed. */
static void many_exist_at_once(void) {
  enum { MANY = 3 * RILL__CHUNK_SLOTS };
  static uint64_t ids[MANY];
  const unsigned before = things_destroyed;
  for (unsigned i = 0; i < MANY; i++) ids[i] = new_thing(NULL)->base.id;
  for (unsigned i = 0; i < MANY; i++) assert_true(is_found(ids[i]));
  for (unsigned i = 0; i < MANY; i++) assert_int_equal(release_thing(ids[i]), RILL_OK);
  rill__reclaim();
  for (unsigned i = 0; i < MANY; i++) assert_false(is_found(ids[i]));
  assert_int_equal(things_destroyed, before + MANY);
}

static void names_are_labels_or_ids(void) {
  struct thing *named = new_thing("copy"), *plain = new_thing(NULL), *empty = new_thing("");
  assert_string_equal(rill__name_of(&named->base).text, "event \"copy\"");
  assert_non_null(strstr(rill__name_of(&plain->base).text, "event 0x"));
  assert_non_null(strstr(rill__name_of(&empty->base).text, "event 0x"));
  assert_int_equal(release_thing(named->base.id), RILL_OK);
  assert_int_equal(release_thing(plain->base.id), RILL_OK);
  assert_int_equal(release_thing(empty->base.id), RILL_OK);
}

TESTS_ONCE("core/object/handle.h", TEST(ids_carry_their_kind), TEST(says_what_is_wrong_with_an_id),
           TEST(the_last_release_ends_the_object), TEST(releasing_zero_does_nothing),
           TEST(borrowed_objects_are_not_counted), TEST(a_slot_is_reused_with_the_next_generation),
           TEST(a_slot_without_free_generations_is_retired), TEST(references_do_not_overflow),
           TEST(only_live_objects_can_be_revived), TEST(refs_hold_the_memory),
           TEST(nothing_is_destroyed_inside_an_epoch), TEST(later_calls_do_not_delay_destruction),
           TEST(objects_in_use_are_destroyed_right_after_the_call), TEST(an_object_may_postpone_its_destruction),
           TEST(a_few_postponed_objects_are_all_retried), TEST(many_postponed_objects_are_retried_by_stream),
           TEST(many_postponed_objects_are_all_destroyed), TEST(destroyed_objects_may_release_others),
           TEST(recycled_objects_have_new_ids), TEST(many_exist_at_once), TEST(names_are_labels_or_ids))
