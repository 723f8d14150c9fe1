/* rill_graph_exec_set_fill */
#include "graphs.h"

static rill_graph_node live;
static rill_status set(uint64_t id) {
  const uint32_t value = 1;
  return rill_graph_exec_set_fill((rill_graph_exec){ id }, live, dut.memory, &value, 4, 1);
}

static void refuses_bad_handles(void) {
  rill_graph graph = new_graph();
  live = add_write(graph, NULL, 0, 0, 1);
  refuses_bad_execs("rill_graph_exec_set_fill", set);
}

static const uint64_t wide = UINT64_C(0x0000000500000006);
static rill_graph graph;
static rill_graph_exec exec;
static rill_graph_node write_node, read_node;

static void new_write_and_read(void) {
  graph = new_graph();
  write_node = add_write(graph, NULL, 0, 0, 8);
  assert_ok(rill_graph_add_copy(graph, &write_node, 1, dut.host, dut.memory, 32, &read_node));
  exec = new_exec(graph);
}

/* C7.1, G24 */
static void changes_pattern_and_place(void) {
  const uint32_t word = 6;
  new_write_and_read();
  assert_fails(rill_graph_exec_set_fill(exec, read_node, dut.memory, &wide, 8, 1), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_exec_set_fill(exec, write_node, dut.memory, &wide, 3, 1), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_exec_set_fill(exec, write_node, dut.memory, &wide, 8, 0), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_graph_exec_set_fill(exec, write_node, dut.memory + 2, &word, 4, 2));
  run_exec(exec);
  assert_int_equal(dut.host[2], 6);
  assert_int_equal(dut.host[3], 6);
  assert_ok(rill_graph_exec_set_fill(exec, write_node, dut.memory + 4, &wide, 8, 1));
  run_exec(exec);
  assert_int_equal(dut.host[4], 6);
  assert_int_equal(dut.host[5], 5);
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
}

/* C7.1: a pattern that needs several driver nodes replaces one that needs a single node, and the reverse. Earlier
 * launches keep their pattern, and later launches run after them. */
static void changes_size_while_launches_are_pending(void) {
  const uint32_t word = 7;
  new_write_and_read();
  rill_stream first = new_stream("first"), second = new_stream("second");
  struct gate *gate = gate_close(first);
  assert_ok(rill_graph_launch(exec, first));
  assert_ok(rill_copy_async(first, dut.host + CELLS - 2, dut.host + CELLS - 1, 4));
  assert_ok(rill_graph_exec_set_fill(exec, write_node, dut.memory, &wide, 8, 1));
  assert_ok(rill_graph_launch(exec, second));
  assert_false(is_complete(second));
  gate_open(gate);
  assert_completes(first);
  assert_completes(second);
  assert_int_equal(dut.host[0], 6);
  assert_int_equal(dut.host[1], 5);
  assert_ok(rill_graph_exec_set_fill(exec, write_node, dut.memory, &word, 4, 1));
  run_exec(exec);
  assert_int_equal(dut.host[0], 7);
  assert_int_equal(dut.host[1], 5);
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
}

TESTS_ON_EACH_DEVICE("rill_graph_exec_set_fill", TEST(refuses_bad_handles), TEST(changes_pattern_and_place),
                     TEST(changes_size_while_launches_are_pending))
