/* rill_graph_exec_set_enabled */
#include "graphs.h"

static rill_graph_node live;
static rill_status set(uint64_t id) { return rill_graph_exec_set_enabled((rill_graph_exec){ id }, live, false); }

static void refuses_bad_handles(void) {
  const rill_graph graph = new_graph();
  live = add_write(graph, NULL, 0, 0, 1);
  refuses_bad_execs("rill_graph_exec_set_enabled", set);
}

/* C7.1 */
static void refuses_other_kinds(void) {
  const rill_graph graph = new_graph(), foreign = new_graph();
  rill_graph_node empty;
  assert_ok(rill_graph_add_empty(graph, NULL, 0, &empty));
  const rill_graph_node elsewhere = add_write(foreign, NULL, 0, 0, 1);
  const rill_graph_exec exec = new_exec(graph);
  assert_fails(rill_graph_exec_set_enabled(exec, empty, false), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("\"empty\"");
  assert_fails(rill_graph_exec_set_enabled(exec, elsewhere, false), RILL_ERROR_INVALID_ARGUMENT);
}

/* C7.1: a graph of kernels that has been launched before, which is the hardest case for a driver. */
static void disables_a_kernel(void) {
  const rill_graph graph = new_graph();
  const rill_graph_node first = add_increment(graph, NULL, 0, dut.host, "first");
  const rill_graph_node second = add_increment(graph, &first, 1, dut.host + 1, "second");
  const rill_stream stream = new_stream("stream");
  const rill_graph_exec exec = new_exec(graph);
  struct gate *gate = gate_close(stream);
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_graph_exec_set_enabled(exec, first, false));
  assert_ok(rill_graph_exec_set_enabled(exec, first, false));
  assert_ok(rill_graph_launch(exec, stream));
  gate_open(gate);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 1);
  assert_int_equal(dut.host[1], 2);
  assert_ok(rill_graph_exec_set_enabled(exec, first, true));
  assert_ok(rill_graph_exec_set_enabled(exec, second, false));
  run_exec(exec);
  assert_int_equal(dut.host[0], 2);
  assert_int_equal(dut.host[1], 2);
}

/* C7.1: changes to a disabled node take effect when it is enabled. */
static void keeps_changes_of_a_disabled_node(void) {
  const rill_graph graph = new_graph();
  const rill_graph_node write = add_write(graph, NULL, 0, 0, 1);
  const rill_graph_node read = add_read(graph, &write, 1, 0);
  const rill_graph_node count = add_increment(graph, &read, 1, dut.host + 1, "count");
  const rill_graph_exec exec = new_exec(graph);
  const uint32_t value = 6;
  unsigned *const place = dut.host + 2;
  assert_ok(rill_graph_exec_set_enabled(exec, write, false));
  assert_ok(rill_graph_exec_set_enabled(exec, count, false));
  assert_ok(rill_graph_exec_set_fill(exec, write, dut.memory, &value, sizeof value, 1));
  assert_ok(rill_graph_exec_set_kernel_arg(exec, count, 0, &place, sizeof place));
  run_exec(exec);
  assert_int_equal(dut.host[0], 0);
  assert_int_equal(dut.host[1], 0);
  assert_int_equal(dut.host[2], 0);
  assert_ok(rill_graph_exec_set_enabled(exec, write, true));
  assert_ok(rill_graph_exec_set_enabled(exec, count, true));
  run_exec(exec);
  assert_int_equal(dut.host[0], 6);
  assert_int_equal(dut.host[1], 0);
  assert_int_equal(dut.host[2], 1);
}

/* C7.1: successors of a disabled node still run after its predecessors. */
static void keeps_the_order(void) {
  const rill_graph graph = new_graph();
  const rill_event event = new_event("event");
  const rill_stream gated = new_stream("gated"), stream = new_stream("stream");
  rill_graph_node wait;
  assert_ok(rill_graph_add_event_wait(graph, NULL, 0, event, &wait));
  const rill_graph_node write = add_write(graph, &wait, 1, 0, 1);
  (void)add_increment(graph, &write, 1, dut.host + 1, "last");
  const rill_graph_exec exec = new_exec(graph);
  struct gate *gate = gate_close(gated);
  assert_ok(rill_stream_record_event(gated, event, 0));
  assert_ok(rill_graph_exec_set_enabled(exec, write, false));
  assert_ok(rill_graph_launch(exec, stream));
  assert_false(is_complete(stream));
  assert_int_equal(dut.host[1], 0);
  gate_open(gate);
  assert_completes(stream);
  assert_int_equal(dut.host[1], 1);
}

/* C7.1: an update discards single changes. */
static void an_update_enables_all(void) {
  const rill_graph graph = new_graph();
  const rill_graph_node write = add_write(graph, NULL, 0, 0, 3);
  const rill_graph_node read = add_read(graph, &write, 1, 0);
  const rill_graph_exec exec = new_exec(graph);
  bool enabled = false;
  assert_ok(rill_graph_exec_set_enabled(exec, write, false));
  assert_ok(rill_graph_exec_set_enabled(exec, read, false));
  run_exec(exec);
  assert_ok(rill_graph_update(exec, graph));
  assert_ok(rill_graph_exec_is_enabled(exec, write, &enabled));
  assert_true(enabled);
  run_exec(exec);
  assert_int_equal(dut.host[0], 3);
}

TESTS_ON_EACH_DEVICE("rill_graph_exec_set_enabled", TEST(refuses_bad_handles), TEST(refuses_other_kinds),
                     TEST(disables_a_kernel), TEST(keeps_changes_of_a_disabled_node), TEST(keeps_the_order),
                     TEST(an_update_enables_all))
