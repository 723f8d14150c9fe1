/* rill_version */
#include "support/testing.h"

static void matches_the_headers(void) {
  assert_int_equal(rill_version(), RILL_VERSION_MAJOR << 16 | RILL_VERSION_MINOR << 8 | RILL_VERSION_PATCH);
}

/* Compares in the preprocessor with versions before and after that of the headers. */
#if !RILL_VERSION_AT_LEAST(RILL_VERSION_MAJOR, RILL_VERSION_MINOR, RILL_VERSION_PATCH) || \
    RILL_VERSION_AT_LEAST(RILL_VERSION_MAJOR, RILL_VERSION_MINOR, RILL_VERSION_PATCH + 1)
#error "RILL_VERSION_AT_LEAST in #if"
#endif

static bool packed_at_least(uint32_t major, uint32_t minor, uint32_t patch) {
  return rill_version() >= (major << 16 | minor << 8 | patch);
}

/* Versions around the current one: each part smaller, equal and larger. */
static void at_least_follows_the_order_of_versions(void) {
  for (uint32_t i = 0; i < 27; i++) {
    const int32_t steps[] = { (int32_t)(i / 9) - 1, (int32_t)(i / 3 % 3) - 1, (int32_t)(i % 3) - 1 };
    const int32_t major = RILL_VERSION_MAJOR + steps[0], minor = RILL_VERSION_MINOR + steps[1],
                  patch = RILL_VERSION_PATCH + steps[2];
    if (major < 0 || minor < 0 || patch < 0) continue;
    assert_int_equal(RILL_VERSION_AT_LEAST(major, minor, patch),
                     packed_at_least((uint32_t)major, (uint32_t)minor, (uint32_t)patch));
  }
  assert_true(RILL_VERSION_AT_LEAST(RILL_VERSION_MAJOR, RILL_VERSION_MINOR - 1, 256));
  assert_false(RILL_VERSION_AT_LEAST(RILL_VERSION_MAJOR, RILL_VERSION_MINOR + 1, 0));
  assert_false(RILL_VERSION_AT_LEAST(255, 0, 0));
}

TESTS_ONCE("rill_version", TEST(matches_the_headers), TEST(at_least_follows_the_order_of_versions))
