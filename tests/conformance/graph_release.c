/* rill_graph_release */
#include "graphs.h"

static rill_status release(uint64_t id) {
  return id == 0 ? RILL_ERROR_INVALID_HANDLE : rill_graph_release((rill_graph){ id });
}

static void refuses_bad_handles(void) {
  rill_graph graph = new_graph();
  assert_ok(rill_graph_release(RILL_NULL_GRAPH));
  assert_fails_in("rill_graph_release", release(UINT64_MAX), RILL_ERROR_INVALID_HANDLE);
  assert_ok(rill_graph_release(graph));
  assert_fails_in("rill_graph_release", release(graph.id), RILL_ERROR_STALE_HANDLE);
}

/* C7.1, G28: the execution object keeps everything that it needs, and node handles still identify its nodes. */
static void leaves_execution_objects_as_they_are(void) {
  rill_graph graph = new_graph();
  rill_graph_node write = add_write(graph, NULL, 0, 0, 5), again;
  add_read(graph, &write, 1, 0);
  rill_graph_exec exec = new_exec(graph);
  assert_ok(rill_graph_release(graph));
  run_exec(exec);
  assert_int_equal(dut.host[0], 5);
  const uint32_t value = 6;
  assert_ok(rill_graph_exec_set_fill(exec, write, dut.memory, &value, sizeof value, 1));
  run_exec(exec);
  assert_int_equal(dut.host[0], 6);
  assert_fails(rill_graph_find_node(graph, "store", 0, &again), RILL_ERROR_STALE_HANDLE);
  assert_ok(rill_graph_exec_release(exec));
  uint32_t kind;
  assert_fails(rill_graph_node_kind(write, &kind), RILL_ERROR_STALE_HANDLE);
}

TESTS_ON_EACH_DEVICE("rill_graph_release", TEST(refuses_bad_handles), TEST(leaves_execution_objects_as_they_are))
