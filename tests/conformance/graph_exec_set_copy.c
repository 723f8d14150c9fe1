/* rill_graph_exec_set_copy */
#include "graphs.h"

static rill_graph_node live;
static rill_status set(uint64_t id) {
  return rill_graph_exec_set_copy((rill_graph_exec){ id }, live, dut.host, dut.memory, 4);
}

static void refuses_bad_handles(void) {
  rill_graph graph = new_graph();
  live = add_read(graph, NULL, 0, 0);
  refuses_bad_execs("rill_graph_exec_set_copy", set);
}

/* C7.1, G24 */
static void changes_ends_and_size(void) {
  rill_graph graph = new_graph();
  rill_graph_node write = add_write(graph, NULL, 0, 1, 8), read = add_read(graph, &write, 1, 0);
  rill_graph_exec exec = new_exec(graph);
  assert_fails(rill_graph_exec_set_copy(exec, write, dut.host, dut.memory, 4), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_exec_set_copy(exec, read, dut.host, NULL, 4), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_exec_set_copy(exec, read, dut.host, dut.memory, 0), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_exec_set_copy(exec, read, dut.host, dut.memory, CELLS * 4 + 4), RILL_ERROR_OUT_OF_RANGE);
  run_exec(exec);
  assert_int_equal(dut.host[1], 0);
  assert_ok(rill_graph_exec_set_copy(exec, read, dut.host + 4, dut.memory, 8));
  run_exec(exec);
  assert_int_equal(dut.host[5], 8);
}

TESTS_ON_EACH_DEVICE("rill_graph_exec_set_copy", TEST(refuses_bad_handles), TEST(changes_ends_and_size))
