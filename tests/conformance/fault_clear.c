/* rill_fault_clear */
#include "support/testing.h"

static const uint32_t zeros[1];

static void removes_all_rules(void) {
  rill_stream stream = new_stream("stream");
  assert_ok(rill_fault_set("fill:1+"));
  assert_fails(rill_fill_async(stream, dut.memory, zeros, 4, 1), RILL_ERROR_BACKEND);
  rill_fault_clear();
  assert_ok(rill_fill_async(stream, dut.memory, zeros, 4, 1));
  assert_int_equal(rill_fault_count(), 1);
  rill_fault_clear();
  assert_int_equal(rill_fault_count(), 1);
  assert_ok(rill_stream_synchronize(stream));
}

TESTS_ON_EACH_DEVICE("rill_fault_clear", TEST(removes_all_rules))
