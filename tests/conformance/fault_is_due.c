/* rill_fault_is_due */
#include "support/testing.h"

static void counts_only_caller_defined_words(void) {
  int64_t value = 7;
  assert_false(rill_fault_is_due(NULL, NULL, &value));
  assert_int_equal(value, 0);
  assert_ok(rill_fault_set("comm_late@1:2=250ms,comm_count:p=1=-3,comm_die:2+,alloc:1,any:1+"));
  assert_false(rill_fault_is_due("alloc", NULL, NULL));
  assert_false(rill_fault_is_due("comm", NULL, NULL));
  assert_false(rill_fault_is_due("any", NULL, NULL));
  assert_int_equal(rill_fault_count(), 0);
  assert_false(rill_fault_is_due("comm_late", "1", NULL));
  assert_false(rill_fault_is_due("comm_late", "2", &value));
  assert_false(rill_fault_is_due("comm_late", NULL, &value));
  assert_int_equal(value, 0);
  assert_true(rill_fault_is_due("comm_late", "1", &value));
  assert_int_equal(value, 250000000);
  assert_false(rill_fault_is_due("comm_late", "1", &value));
  assert_true(rill_fault_is_due("comm_count", "5", &value));
  assert_int_equal(value, -3);
  assert_false(rill_fault_is_due("comm_die", NULL, &value));
  assert_true(rill_fault_is_due("comm_die", NULL, &value));
  assert_true(rill_fault_is_due("comm_die", NULL, NULL));
  assert_int_equal(value, 0);
  assert_int_equal(rill_fault_count(), 4);
  rill_fault_clear();
  assert_false(rill_fault_is_due("comm_die", NULL, NULL));
}

TESTS_ONCE("rill_fault_is_due", TEST(counts_only_caller_defined_words))
