/* core/object/assert.h: a failed assertion prints the condition and the invariant, and aborts. */
#undef RILL_CHECKS
#define RILL_CHECKS 1
#include "core/object/assert.h"

#include "support/testing.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

/* Compiled without assertions; returns how often the condition was evaluated. */
unsigned count_evaluations_without_checks(void);

static unsigned evaluations;
static bool evaluate(bool result) {
  evaluations++;
  return result;
}

static void conditions_that_hold_are_evaluated_once(void) {
  evaluations = 0;
  RILL_ASSERT(evaluate(true), "it holds");
  assert_int_equal(evaluations, 1);
}

static void failure_names_the_condition_and_aborts(void) {
  int ends[2], status = 0;
  char text[1024] = "";
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    (void)signal(SIGABRT, SIG_DFL);
    (void)dup2(ends[1], STDERR_FILENO);
    RILL_ASSERT(evaluate(false) && 1 < 2, "one of two is always true");
    _exit(0);
  }
  close(ends[1]);
  for (size_t used = 0; used < sizeof text - 1;) {
    const ssize_t got = read(ends[0], text + used, sizeof text - 1 - used);
    if (got <= 0) break;
    used += (size_t)got;
  }
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  assert_non_null(strstr(text, "unit/assert.c:"));
  assert_non_null(strstr(text, "evaluate(false) && 1 < 2"));
  assert_non_null(strstr(text, "one of two is always true"));
}

static void builds_without_checks_evaluate_nothing(void) { assert_int_equal(count_evaluations_without_checks(), 0); }

TESTS_ONCE("core/object/assert.h", TEST(conditions_that_hold_are_evaluated_once),
           TEST(failure_names_the_condition_and_aborts), TEST(builds_without_checks_evaluate_nothing))
