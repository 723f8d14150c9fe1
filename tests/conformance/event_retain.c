/* rill_event_retain */
#include "support/testing.h"

static rill_status call_with_event(uint64_t id) { return rill_event_retain((rill_event){ id }); }

static void refuses_bad_handles(void) { refuses_bad_events("rill_event_retain", call_with_event); }

/* C1.3 */
static void counts_references(void) {
  rill_event event = new_event("counted");
  assert_ok(rill_event_retain(event));
  assert_ok(rill_event_retain(event));
  assert_ok(rill_event_release(event));
  assert_ok(rill_event_release(event));
  assert_ok(rill_event_synchronize(event));
  assert_ok(rill_event_release(event));
  assert_fails(rill_event_synchronize(event), RILL_ERROR_STALE_HANDLE);
}

static const char *retains_and_releases(unsigned index, void *shared) {
  (void)index;
  const rill_event event = *(const rill_event *)shared;
  for (unsigned i = 0; i < 500; i++) {
    REQUIRE_OK(rill_event_retain(event));
    REQUIRE_OK(rill_event_release(event));
  }
  return NULL;
}

static void counts_right_from_many_threads(void) {
  rill_event event = new_event("shared");
  run_threads(8, retains_and_releases, &event);
  assert_ok(rill_event_release(event));
  assert_fails(rill_event_retain(event), RILL_ERROR_STALE_HANDLE);
}

TESTS_ON_EACH_DEVICE("rill_event_retain", TEST(refuses_bad_handles), TEST(counts_references),
                     TEST(counts_right_from_many_threads))
