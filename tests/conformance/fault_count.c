/* rill_fault_count, with the rules of RILL_FAULT */
#include "support/testing.h"

static const uint32_t zeros[1];

static void counts_failed_calls(void) {
  assert_int_equal(rill_fault_count(), 0);
  rill_stream stream = new_stream("only here");
  assert_fails(rill_fill_async(stream, dut.memory, zeros, 4, 1), RILL_ERROR_NOT_READY);
  assert_says("fill@only here:1=not_ready");
  assert_int_equal(rill_fault_count(), 1);
  assert_ok(rill_fill_async(stream, dut.memory, zeros, 4, 1));
  assert_int_equal(rill_fault_count(), 1);
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_fault_set("fill@only here:1=not_ready")); /* a rule for the next device */
  assert_int_equal(rill_fault_count(), 0);
}

int main(void) {
  if (setenv("RILL_FAULT", "fill@only here:1=not_ready", 1) != 0) return EXIT_FAILURE;
  static const struct test tests[] = { TEST(counts_failed_calls) };
  return RUN_ON_EACH_DEVICE("rill_fault_count", tests);
}
