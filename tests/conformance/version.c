/* rill_version */
#include "support/testing.h"

static void is_that_of_the_headers(void) {
  assert_int_equal(rill_version(), RILL_VERSION_MAJOR << 16 | RILL_VERSION_MINOR << 8 | RILL_VERSION_PATCH);
}

TESTS_ONCE("rill_version", TEST(is_that_of_the_headers))
