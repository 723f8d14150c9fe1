/* rill_order_host_access. The tests of the order check are in tests/order/. */
#include "support/testing.h"

#include <rill/order.h>

static void refuses_bad_arguments(void) {
  assert_fails(rill_order_host_access(NULL, 4, RILL_ORDER_READ, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_order_host_access(dut.host, 4, 0, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_order_host_access(dut.host, 4, 8, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("access is 0x8");
  assert_fails(rill_order_host_access(dut.host, SIZE_MAX, RILL_ORDER_READ, NULL), RILL_ERROR_OUT_OF_RANGE);
  assert_ok(rill_order_host_access(NULL, 0, RILL_ORDER_READ, NULL));
}

static void accepts_any_memory(void) {
  int local = 0;
  assert_ok(rill_order_host_access(dut.host, 4, RILL_ORDER_READ | RILL_ORDER_WRITE, "cell"));
  assert_ok(rill_order_host_access(&local, sizeof local, RILL_ORDER_WRITE, NULL));
}

TESTS_ON_EACH_DEVICE("rill_order_host_access", TEST(refuses_bad_arguments), TEST(accepts_any_memory))
