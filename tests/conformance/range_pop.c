/* rill_range_pop */
#include "support/testing.h"

static const char *pop(unsigned index, void *shared) {
  (void)index;
  (void)shared;
  REQUIRE(rill_range_pop() == RILL_ERROR_INVALID_ARGUMENT);
  return NULL;
}

static void needs_a_range_of_this_thread(void) {
  assert_fails(rill_range_pop(), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_range_push("of the first thread"));
  run_threads(1, pop, NULL);
  assert_ok(rill_range_pop());
  assert_fails(rill_range_pop(), RILL_ERROR_INVALID_ARGUMENT);
}

TESTS_ONCE("rill_range_pop", TEST(needs_a_range_of_this_thread))
