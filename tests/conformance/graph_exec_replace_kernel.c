/* rill_graph_exec_replace_kernel */
#include "graphs.h"

static rill_graph_node live;
static rill_kernel other;

/* Adds a kernel node that adds 1 to a counter; its replacement writes 5 to it. */
static rill_graph_node add_counter(rill_graph graph) { return add_increment(graph, NULL, 0, dut.host, "count"); }

static rill_status replace(uint64_t id) {
  const rill_launch launch = rill_launch_1d(1, 1);
  return rill_graph_exec_replace_kernel((rill_graph_exec){ id }, live, other, &launch, RILL_ARGS(dut.host, 5u));
}

static void refuses_bad_handles(void) {
  const rill_graph graph = new_graph();
  const rill_launch launch = rill_launch_1d(1, 1);
  live = add_counter(graph);
  other = new_kernel(&gate_bundle, "set_flag");
  refuses_bad_execs("rill_graph_exec_replace_kernel", replace);
  const rill_graph_exec exec = new_exec(graph);
  assert_fails(rill_graph_exec_replace_kernel(exec, live, RILL_NULL_KERNEL, &launch, RILL_ARGS(dut.host, 5u)),
               RILL_ERROR_INVALID_HANDLE);
}

/* C7.1: later launches run the other kernel, earlier launches the first. */
static void launches_another_kernel(void) {
  const rill_graph graph = new_graph();
  const rill_stream stream = new_stream("stream");
  live = add_counter(graph);
  other = new_kernel(&gate_bundle, "set_flag");
  const rill_graph_exec exec = new_exec(graph);
  struct gate *gate = gate_close(stream);
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(replace(exec.id));
  gate_open(gate);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 1);
  run_exec(exec);
  assert_int_equal(dut.host[0], 5);
  const unsigned seven = 7;
  assert_ok(rill_graph_exec_set_kernel_arg(exec, live, 1, &seven, sizeof seven));
  run_exec(exec);
  assert_int_equal(dut.host[0], 7);
  assert_ok(rill_graph_update(exec, graph)); /* restores the first kernel */
  run_exec(exec);
  assert_int_equal(dut.host[0], 8);
}

/* C7.1: an invalid launch is refused and leaves the node unchanged. */
static void checks_the_launch(void) {
  const rill_graph graph = new_graph();
  const rill_graph_node fill = add_write(graph, NULL, 0, 0, 1);
  live = add_counter(graph);
  other = new_kernel(&gate_bundle, "set_flag");
  const rill_graph_exec exec = new_exec(graph);
  const rill_launch launch = rill_launch_1d(1, 1);
  assert_fails(rill_graph_exec_replace_kernel(exec, fill, other, &launch, RILL_ARGS(dut.host, 5u)),
               RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_exec_replace_kernel(exec, live, other, &launch, RILL_ARGS(dut.host)),
               RILL_ERROR_INVALID_ARGUMENT);
  run_exec(exec);
  assert_int_equal(dut.host[0], 1);
}

TESTS_ON_EACH_DEVICE("rill_graph_exec_replace_kernel", TEST(refuses_bad_handles), TEST(launches_another_kernel),
                     TEST(checks_the_launch))
