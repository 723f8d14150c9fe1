/* Checks of the library's own invariants.
 *
 *   RILL_ASSERT(fence->waits > 0, "a fence counts the waits that are queued for it");
 *
 * A build with -Drill_checks (by default debug builds and those with a sanitizer) evaluates the condition and, if it is
 * false, prints the place, the condition and the invariant, and aborts.  Other builds contain nothing of it: they do
 * not evaluate the condition, so it must have no effect of its own.  A caller's mistake is a status in every build
 * (RILL_REQUIRE), never an assertion.
 *
 * Functions that only assertions call stand between #if RILL_CHECKS and #endif, and so do the calls of those that check
 * a structure as a whole. */
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

/* `invariant`: what always holds, as a sentence. */
#define RILL_ASSERT(condition, invariant) \
  (__builtin_expect(!!(condition), 1) ? (void)0 : rill__assertion_failed(__FILE__, __LINE__, #condition, (invariant)))
#else
/* The compiler still reads the condition, so that it cannot become outdated. */
#define RILL_ASSERT(condition, invariant) ((void)sizeof(!(condition)), (void)sizeof(invariant))
#endif

#endif
