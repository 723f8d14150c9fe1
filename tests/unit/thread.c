/* core/object/thread.h: per-thread records and epochs. */
#include "core/object/thread.h"

#include "core/object/handle.h"
#include "support/testing.h"

static struct rill__thread *who;

static void an_epoch_shows_while_a_call_runs(void) {
  struct rill__thread *const self = rill__enter("rill_example");
  assert_non_null(self);
  assert_ptr_equal(self, rill__self);
  assert_string_equal(self->api, "rill_example");
  assert_int_equal(rill__oldest_epoch(&who), atomic_load(&rill__epoch));
  assert_ptr_equal(who, self);
  atomic_fetch_add(&rill__epoch, 1);
  assert_int_equal(rill__oldest_epoch(&who), atomic_load(&rill__epoch) - 1);
  rill__leave(&self);
  assert_int_equal(rill__oldest_epoch(&who), UINT64_MAX);
  assert_null(who);
}

enum { USED_ID = 77, OTHER_ID = 78 }; /* ids of handles; here just numbers */

static const char *enters_and_stays(unsigned index, void *shared) {
  (void)index;
  _Atomic unsigned *stage = shared;
  struct rill__thread *const self = rill__enter("rill_example");
  REQUIRE(self != NULL);
  rill__announce(self, USED_ID);
  atomic_store(stage, 1);
  while (atomic_load(stage) < 2) let_pass_ns(1000);
  rill__leave(&self);
  return NULL;
}

static void wait_for_stage(_Atomic unsigned *stage, unsigned value) {
  while (atomic_load(stage) < value) let_pass_ns(1000);
}

static void other_threads_epochs_are_seen(void) {
  _Atomic unsigned stage = 0;
  struct background *threads = start_threads(1, enters_and_stays, &stage);
  wait_for_stage(&stage, 1);
  assert_true(rill__oldest_epoch(&who) <= atomic_load(&rill__epoch));
  atomic_store(&stage, 2);
  join_threads(threads);
  assert_int_equal(rill__oldest_epoch(&who), UINT64_MAX);
}

static const char *lets_the_call_end(unsigned index, void *shared) {
  (void)index;
  let_pass_ns(MILLISECOND);
  atomic_store((_Atomic unsigned *)shared, 2);
  return NULL;
}

/* A wait for the users of a handle returns once the calls that were using it have ended, and does not wait for later
 * calls. */
static void waits_for_current_users_only(void) {
  _Atomic unsigned stage = 0;
  struct background *caller = start_threads(1, enters_and_stays, &stage);
  wait_for_stage(&stage, 1);
  rill__wait_for_users(OTHER_ID);
  assert_int_equal(atomic_load(&stage), 1);
  struct background *ender = start_threads(1, lets_the_call_end, &stage);
  rill__wait_for_users(USED_ID);
  assert_int_equal(atomic_load(&stage), 2);
  join_threads(caller);
  join_threads(ender);
}

static const char *notes_its_record(unsigned index, void *shared) {
  (void)index;
  struct rill__thread *const self = rill__enter("rill_example");
  rill__leave(&self);
  *(struct rill__thread **)shared = self;
  return self->error.status == RILL_OK ? NULL : "a new thread has an error already";
}

/* A record of a thread that ended is reused for a new thread, without its last error. */
static void records_are_reused(void) {
  struct rill__thread *first = NULL;
  run_threads(1, notes_its_record, &first);
  unsigned again = 0;
  for (int i = 0; i < 20; i++) {
    struct rill__thread *record = NULL;
    run_threads(1, notes_its_record, &record);
    again += record == first;
  }
  assert_true(again > 0);
}

TESTS_ONCE("core/object/thread.h", TEST(an_epoch_shows_while_a_call_runs), TEST(other_threads_epochs_are_seen),
           TEST(waits_for_current_users_only), TEST(records_are_reused))
