/* rill_device_count */
#include "support/testing.h"

static void refuses_null(void) { assert_fails(rill_device_count(NULL), RILL_ERROR_INVALID_ARGUMENT); }

/* C1.9, T10: the CPU is always present. */
static void is_at_least_one(void) {
  int32_t count = 0;
  assert_ok(rill_device_count(&count));
  assert_true(count >= 1);
}

static void never_changes(void) {
  int32_t first = 0, second = 0;
  assert_ok(rill_device_count(&first));
  assert_ok(rill_device_count(&second));
  assert_int_equal(first, second);
}

TESTS_ONCE("rill_device_count", TEST(refuses_null), TEST(is_at_least_one), TEST(never_changes))
