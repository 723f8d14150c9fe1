/* rill_graph_exec_release */
#include "graphs.h"

static void count_call(void *user, rill_status status) {
  (void)status;
  (void)__atomic_add_fetch((unsigned *)user, 1, __ATOMIC_SEQ_CST);
}

static void refuses_bad_handles(void) {
  rill_graph graph = new_graph();
  rill_graph_exec exec = new_exec(graph);
  assert_ok(rill_graph_exec_release(RILL_NULL_GRAPH_EXEC));
  assert_fails(rill_graph_exec_release((rill_graph_exec){ graph.id }), RILL_ERROR_INVALID_HANDLE);
  assert_ok(rill_graph_exec_release(exec));
  assert_fails(rill_graph_exec_release(exec), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_graph_launch(exec, new_stream("stream")), RILL_ERROR_STALE_HANDLE);
}

/* C1.3, G28: everything is released right after the launch, which still completes. */
static void does_not_touch_launches(void) {
  unsigned calls = 0;
  rill_graph graph = new_graph();
  rill_stream stream;
  rill_graph_node node;
  assert_ok(rill_stream_create(dut.device, NULL, &stream));
  struct gate *gate = gate_close(stream);
  rill_graph_node write = add_write(graph, NULL, 0, 0, 44);
  write = add_read(graph, &write, 1, 0);
  write = add_increment(graph, &write, 1, dut.host, NULL);
  assert_ok(rill_graph_add_host_call(graph, &write, 1, count_call, &calls, &node));
  rill_graph_exec exec = new_exec(graph);
  assert_ok(rill_graph_launch(exec, stream));
  rill_event event;
  assert_ok(rill_stream_record_new_event(stream, NULL, &event));
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_stream_release(stream));
  assert_int_equal(calls, 0);
  gate_open(gate);
  assert_becomes_ready(event);
  assert_int_equal(dut.host[0], 45);
  assert_int_equal(calls, 1);
  assert_ok(rill_event_release(event));
}

TESTS_ON_EACH_DEVICE("rill_graph_exec_release", TEST(refuses_bad_handles), TEST(does_not_touch_launches))
