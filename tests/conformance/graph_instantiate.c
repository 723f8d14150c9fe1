/* rill_graph_instantiate */
#include "graphs.h"

static rill_status instantiate(uint64_t id) {
  rill_graph_exec exec = { 1 };
  const rill_status status = rill_graph_instantiate((rill_graph){ id }, &exec);
  assert_int_equal(exec.id, 0);
  return status;
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_instantiate", instantiate);
  rill_graph graph = new_graph();
  assert_fails(rill_graph_instantiate(graph, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* G21: each object has the values with which it was created, and its own changes. */
static void creates_independent_objects(void) {
  rill_graph graph = new_graph();
  rill_graph_node write = add_write(graph, NULL, 0, 0, 1);
  add_read(graph, &write, 1, 0);
  rill_graph_exec one = new_exec(graph), other = new_exec(graph);
  const uint32_t value = 2;
  assert_ok(rill_graph_exec_set_fill(other, write, dut.memory, &value, sizeof value, 1));
  run_exec(one);
  assert_int_equal(dut.host[0], 1);
  run_exec(other);
  assert_int_equal(dut.host[0], 2);
  assert_ok(rill_graph_exec_release(one));
  run_exec(other);
}

/* Nodes added later affect only later objects. */
static void ignores_later_changes_of_the_graph(void) {
  rill_graph graph = new_graph();
  rill_graph_node write = add_write(graph, NULL, 0, 0, 1), later;
  add_read(graph, &write, 1, 0);
  rill_graph_exec exec = new_exec(graph);
  later = add_increment(graph, NULL, 0, dut.host + 1, NULL);
  run_exec(exec);
  assert_int_equal(dut.host[1], 0);
  unsigned *out = dut.host;
  assert_fails(rill_graph_exec_set_kernel_arg(exec, later, 0, &out, sizeof out), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_graph_exec_release(exec));
  run_graph(graph);
  assert_int_equal(dut.host[1], 1);
}

TESTS_ON_EACH_DEVICE("rill_graph_instantiate", TEST(refuses_bad_handles), TEST(creates_independent_objects),
                     TEST(ignores_later_changes_of_the_graph))
