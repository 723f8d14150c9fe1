/* rill_check_is_on */
#include "support/testing.h"

#include <unistd.h>

static void names_unknown_checks_once(void) {
  char said[512] = "";
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  const int standard_error = dup(STDERR_FILENO);
  assert_true(standard_error >= 0);
  assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
  const bool first = rill_check_is_on("comm"), again = rill_check_is_on("comm");
  assert_true(dup2(standard_error, STDERR_FILENO) >= 0);
  assert_int_equal(close(standard_error), 0);
  assert_int_equal(close(ends[1]), 0);
  assert_true(first && again);
  assert_true(read(ends[0], said, sizeof said - 1) > 0);
  assert_ptr_equal(strstr(said, "rill: RILL_CHECK: \"com\" is not a check; the checks are comm"), said);
  assert_string_equal(strchr(said, '\n'), "\n"); /* one line */
  assert_int_equal(close(ends[0]), 0);
}

static void knows_the_listed_checks(void) {
  assert_true(rill_check_is_on("comm"));
  assert_false(rill_check_is_on("com"));
  assert_false(rill_check_is_on("memory"));
  assert_false(rill_check_is_on(""));
  assert_false(rill_check_is_on(NULL));
}

static void stays_as_it_was_read(void) {
  assert_int_equal(setenv("RILL_CHECK", "memory", 1), 0);
  assert_true(rill_check_is_on("comm"));
  assert_false(rill_check_is_on("memory"));
}

int main(void) {
  if (setenv("RILL_CHECK", "com,,comm,", 1) != 0) return EXIT_FAILURE;
  static const struct test tests[] = { TEST(names_unknown_checks_once), TEST(knows_the_listed_checks),
                                       TEST(stays_as_it_was_read) };
  return RUN_ONCE("rill_check_is_on", tests);
}
