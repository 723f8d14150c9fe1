/* A source built without assertions (tests/unit/assert.c). */
#undef RILL_CHECKS
#include "core/object/assert.h"

static unsigned evaluations;
static int fail_and_count(void) {
  evaluations++;
  return 0;
}

unsigned count_evaluations_without_checks(void);
unsigned count_evaluations_without_checks(void) {
  RILL_ASSERT(fail_and_count(), "nobody evaluates this");
  return evaluations;
}
