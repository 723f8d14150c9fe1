/* A source built without assertions (tests/unit/assert.c). */
#undef RILL_CHECKS
#include "core/object/assert.h"

unsigned count_evaluations_without_checks(void);
unsigned count_evaluations_without_checks(void) {
  unsigned evaluations = 0;
  RILL_ASSERT(++evaluations == 0, "nobody evaluates this");
  return evaluations;
}
