/* rill_graph_exec_set_kernel_arg */
#include "graphs.h"

#include "launch.rill.h"

static rill_graph_node live;
static rill_status set(uint64_t id) {
  const unsigned value = 1;
  return rill_graph_exec_set_kernel_arg((rill_graph_exec){ id }, live, 0, &value, sizeof value);
}

static rill_graph make(rill_graph_node *node) {
  rill_graph graph = new_graph();
  const rill_launch launch = rill_launch_1d(1, 1);
  assert_ok(rill_graph_add_kernel(graph, NULL, 0, new_kernel(&launch_bundle, "store"), &launch, RILL_ARGS(1u, dut.host),
                                  node));
  return graph;
}

static void refuses_bad_handles(void) {
  rill_graph graph = make(&live);
  refuses_bad_execs("rill_graph_exec_set_kernel_arg", set);
  assert_ok(rill_graph_release(graph));
}

static void refuses_unknown_arguments(void) {
  rill_graph_node node, foreign, fill;
  rill_graph graph = make(&node), other = make(&foreign);
  const unsigned value = 1;
  fill = add_write(graph, NULL, 0, 0, 1);
  rill_graph_exec exec = new_exec(graph);
  assert_fails(rill_graph_exec_set_kernel_arg(exec, foreign, 0, &value, 4), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_exec_set_kernel_arg(exec, fill, 0, &value, 4), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("kind \"fill\"");
  assert_fails(rill_graph_exec_set_kernel_arg(exec, RILL_NULL_GRAPH_NODE, 0, &value, 4), RILL_ERROR_INVALID_HANDLE);
  assert_fails(rill_graph_exec_set_kernel_arg(exec, node, 2, &value, 4), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_graph_exec_set_kernel_arg(exec, node, 0, &value, 8), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_exec_set_kernel_arg(exec, node, 0, NULL, 4), RILL_ERROR_INVALID_ARGUMENT);
  run_exec(exec);
  assert_int_equal(dut.host[0], 1);
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_graph_release(other));
}

/* C7.1: it applies to later launches; earlier launches and the graph keep the old value. */
static void changes_one_argument(void) {
  rill_graph_node node;
  rill_graph graph = make(&node);
  rill_graph_exec exec = new_exec(graph), untouched = new_exec(graph);
  rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  for (unsigned i = 0; i < 10; i++) {
    unsigned *out = dut.host + i;
    assert_ok(rill_graph_exec_set_kernel_arg(exec, node, 0, &i, sizeof i));
    assert_ok(rill_graph_exec_set_kernel_arg(exec, node, 1, &out, sizeof out));
    assert_ok(rill_graph_launch(exec, stream));
  }
  gate_open(gate);
  assert_completes(stream);
  for (unsigned i = 0; i < 10; i++) assert_int_equal(dut.host[i], i);
  run_exec(untouched);
  assert_int_equal(dut.host[0], 1);
  assert_ok(rill_graph_release(graph));
}

TESTS_ON_EACH_DEVICE("rill_graph_exec_set_kernel_arg", TEST(refuses_bad_handles), TEST(refuses_unknown_arguments),
                     TEST(changes_one_argument))
