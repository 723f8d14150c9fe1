/* rill_range_push */
#include "traces.h"

static void refuses_null(void) { assert_fails(rill_range_push(NULL), RILL_ERROR_INVALID_ARGUMENT); }

static void appears_in_a_trace(void) {
  start_trace();
  assert_ok(rill_range_push("outer"));
  assert_ok(rill_range_push("in\"ner\n"));
  assert_ok(rill_range_pop());
  assert_ok(rill_range_pop());
  assert_ok(rill_trace_stop());
  char *text = read_trace();
  assert_complete(text);
  assert_int_equal(count_of(text, "\"ph\":\"B\""), 2);
  assert_int_equal(count_of(text, "\"ph\":\"E\""), 2);
  assert_int_equal(count_of(text, "\"name\":\"in\\\"ner\\u000a\""), 1);
  free(text);
}

TESTS_ONCE("rill_range_push", TEST(refuses_null), TEST(appears_in_a_trace))
