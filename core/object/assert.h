/* Checks of the library's own invariants.
 *
 *   RILL_ASSERT(fence->waits > 0, "a fence counts the waits that are queued for it");
 *
 * A build with -Drill_checks (by default debug builds and builds with a sanitizer) evaluates the condition.  If it is
 * false, the build prints the place, the condition and the invariant, and aborts.  Other builds do not evaluate the
 * condition and contain no code for it, so the condition must have no side effect.  A caller's mistake returns a status
 * in every build (RILL_REQUIRE); it is never an assertion.
 *
 * Functions that only assertions call, and calls of functions that check an entire structure, stand between #if
 * RILL_CHECKS and #endif.
 */
#ifndef RILL_CORE_OBJECT_ASSERT_H
#define RILL_CORE_OBJECT_ASSERT_H

#ifndef RILL_CHECKS
#define RILL_CHECKS 0
#endif

#if RILL_CHECKS
#include <stdio.h>
#include <stdlib.h>

static inline __attribute__((cold, noreturn, unused)) void
rill__assertion_failed(const char *file, int line, const char *condition, const char *invariant) {
  (void)fprintf(stderr, "%s:%d: rill: assertion failed: %s\n  invariant: %s\n", file, line, condition, invariant);
  abort();
}

/* `invariant`: a sentence that states what always holds. */
#define RILL_ASSERT(condition, invariant) \
  (__builtin_expect(!!(condition), 1) ? (void)0 : rill__assertion_failed(__FILE__, __LINE__, #condition, (invariant)))
#else
/* The compiler still parses the condition, so that it cannot become outdated. */
#define RILL_ASSERT(condition, invariant) ((void)sizeof(!(condition)), (void)sizeof(invariant))
#endif

#endif
