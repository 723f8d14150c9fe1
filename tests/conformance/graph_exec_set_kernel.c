/* rill_graph_exec_set_kernel */
#include "graphs.h"

#include "launch.rill.h"

static rill_graph_node live;
static rill_status set(uint64_t id) {
  const rill_launch launch = rill_launch_1d(1, 1);
  return rill_graph_exec_set_kernel((rill_graph_exec){ id }, live, &launch, RILL_ARGS(1u, dut.host));
}

static rill_graph make(rill_graph_node *node) {
  rill_graph graph = new_graph();
  *node = add_increment(graph, NULL, 0, dut.host, "count");
  return graph;
}

static void refuses_bad_handles(void) {
  rill_graph graph = make(&live);
  refuses_bad_execs("rill_graph_exec_set_kernel", set);
  assert_ok(rill_graph_release(graph));
}

/* C7.1: changes the shape and the arguments. */
static void changes_a_launch(void) {
  rill_graph_node node;
  rill_graph graph = make(&node);
  rill_graph_exec exec = new_exec(graph);
  rill_launch launch = rill_launch_1d(32, 8);
  assert_ok(rill_graph_exec_set_kernel(exec, node, &launch, RILL_ARGS(dut.host + 1)));
  run_exec(exec);
  assert_int_equal(dut.host[0], 0);
  assert_int_equal(dut.host[1], 32);
  assert_ok(rill_graph_release(graph));
}

/* G24: an invalid launch leaves the node unchanged. */
static void checks_the_launch(void) {
  rill_graph_node node, fill;
  rill_graph graph = make(&node);
  fill = add_write(graph, NULL, 0, 0, 1);
  rill_graph_exec exec = new_exec(graph);
  rill_launch launch = rill_launch_1d(1, 1);
  assert_fails(rill_graph_exec_set_kernel(exec, fill, &launch, RILL_ARGS(dut.host)), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_exec_set_kernel(exec, node, NULL, RILL_ARGS(dut.host)), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_exec_set_kernel(exec, node, &launch, RILL_ARGS(1)), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_exec_set_kernel(exec, node, &launch, NULL, 0), RILL_ERROR_INVALID_ARGUMENT);
  launch.block.x = dut.info.max_threads_per_block + 1;
  assert_fails(rill_graph_exec_set_kernel(exec, node, &launch, RILL_ARGS(dut.host)), RILL_ERROR_OUT_OF_RANGE);
  run_exec(exec);
  assert_int_equal(dut.host[0], 1);
  assert_ok(rill_graph_release(graph));
}

/* C6.4: changes the constants. */
static void changes_constants(void) {
  rill_graph graph = new_graph();
  rill_graph_node node;
  const rill_kernel kernel = new_kernel(&launch_bundle, "give_constants");
  unsigned values[4] = { 1, 1, 1, 1 };
  const rill_constant constant = { "factors", values, sizeof values };
  rill_launch launch = rill_launch_1d(1, 1);
  double *offset = (double *)(void *)(dut.host + CELLS - 2);
  unsigned *out = dut.host;
  launch.constants = &constant;
  launch.constant_count = 1;
  assert_ok(rill_graph_add_kernel(graph, NULL, 0, kernel, &launch, RILL_ARGS(out, offset), &node));
  rill_graph_exec exec = new_exec(graph);
  for (unsigned i = 2; i < 5; i++) {
    for (unsigned k = 0; k < 4; k++) values[k] = i + k;
    assert_ok(rill_graph_exec_set_kernel(exec, node, &launch, RILL_ARGS(out, offset)));
    run_exec(exec);
    for (unsigned k = 0; k < 4; k++) assert_int_equal(dut.host[k], i + k);
  }
  assert_fails(rill_graph_exec_set_kernel_arg(exec, node, 0, &out, sizeof out), RILL_ERROR_UNSUPPORTED);
}

/* C7.1: a launch with constants runs after one without, although the driver may need a graph of another shape for it.
 */
static void constants_come_after_launches_without(void) {
  rill_graph graph = new_graph();
  rill_graph_node node;
  const rill_kernel kernel = new_kernel(&launch_bundle, "give_constants");
  const unsigned values[4] = { 1, 2, 3, 4 };
  const rill_constant constant = { "factors", values, sizeof values };
  rill_launch launch = rill_launch_1d(1, 1);
  double *offset = (double *)(void *)(dut.host + CELLS - 2);
  assert_ok(rill_graph_add_kernel(graph, NULL, 0, kernel, &launch, RILL_ARGS(dut.host, offset), &node));
  rill_graph_exec exec = new_exec(graph);
  rill_stream first = new_stream("first"), second = new_stream("second");
  struct gate *gate = gate_close(first);
  assert_ok(rill_graph_launch(exec, first));
  launch.constants = &constant;
  launch.constant_count = 1;
  const rill_status status = rill_graph_exec_set_kernel(exec, node, &launch, RILL_ARGS(dut.host, offset));
  /* if the change is refused, the launch is as before */
  if (status != RILL_OK) assert_int_equal(status, RILL_ERROR_UNSUPPORTED);
  assert_ok(rill_graph_launch(exec, second));
  assert_fails(rill_stream_synchronize_for(second, 20000000), RILL_ERROR_TIMEOUT);
  gate_open(gate);
  assert_completes(first);
  assert_completes(second);
  if (status == RILL_OK) assert_memory_equal(dut.host, values, sizeof values);
}

TESTS_ON_EACH_DEVICE("rill_graph_exec_set_kernel", TEST(refuses_bad_handles), TEST(changes_a_launch),
                     TEST(checks_the_launch), TEST(changes_constants), TEST(constants_come_after_launches_without))
