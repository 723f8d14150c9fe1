/* rill_order_access. The tests of the order check are in tests/order/. */
#include "support/testing.h"

#include <rill/order.h>

static rill_status call_with_handle(uint64_t id) {
  return rill_order_access((rill_stream){ id }, dut.memory, 4, RILL_ORDER_READ, NULL);
}

static void refuses_bad_handles(void) { refuses_bad_streams("rill_order_access", call_with_handle); }

static void refuses_bad_arguments(void) {
  const rill_stream stream = new_stream("stream");
  assert_fails(rill_order_access(stream, NULL, 4, RILL_ORDER_READ, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_order_access(stream, dut.memory, 4, 0, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_order_access(stream, dut.memory, 4, 4, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("access is 0x4");
  assert_fails(rill_order_access(stream, dut.memory, SIZE_MAX, RILL_ORDER_READ, NULL), RILL_ERROR_OUT_OF_RANGE);
  assert_ok(rill_order_access(stream, NULL, 0, RILL_ORDER_READ, NULL));
}

static void accepts_a_range(void) {
  const rill_stream stream = new_stream("stream");
  assert_ok(rill_order_access(stream, dut.memory, 4, RILL_ORDER_READ | RILL_ORDER_WRITE, "cell"));
  assert_ok(rill_order_access(stream, dut.host, 4, RILL_ORDER_WRITE, NULL));
  assert_true(is_complete(stream)); /* the declaration is not work of the stream */
}

static void refuses_capturing_and_held_streams(void) {
  const rill_stream stream = new_stream("stream"), held = new_stream("held");
  rill_graph graph;
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_THREAD));
  assert_fails(rill_order_access(stream, dut.memory, 4, RILL_ORDER_READ, NULL), RILL_ERROR_UNSUPPORTED);
  assert_ok(rill_stream_capture_end(stream, &graph));
  keep_graph_until_end(graph);
  const rill_event event = new_event("event");
  assert_ok(rill_stream_wait_event(held, event, 0));
  assert_fails(rill_order_access(held, dut.memory, 4, RILL_ORDER_READ, NULL), RILL_ERROR_NOT_READY);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_order_access(held, dut.memory, 4, RILL_ORDER_READ, NULL));
}

TESTS_ON_EACH_DEVICE("rill_order_access", TEST(refuses_bad_handles), TEST(refuses_bad_arguments), TEST(accepts_a_range),
                     TEST(refuses_capturing_and_held_streams))
