/* rill_graph_remove_edge */
#include "graphs.h"

static rill_graph_node some_node;

static rill_status remove_from(uint64_t id) { return rill_graph_remove_edge((rill_graph){ id }, some_node, some_node); }

static void refuses_bad_handles(void) {
  rill_graph graph = new_graph(), other = new_graph();
  rill_graph_node node = add_write(graph, NULL, 0, 0, 1);
  some_node = add_write(other, NULL, 0, 0, 1);
  refuses_bad_graphs("rill_graph_remove_edge", remove_from);
  assert_fails(rill_graph_remove_edge(graph, node, some_node), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_remove_edge(graph, some_node, node), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_remove_edge(graph, node, RILL_NULL_GRAPH_NODE), RILL_ERROR_INVALID_HANDLE);
  assert_ok(rill_graph_release(other));
  assert_fails(rill_graph_remove_edge(graph, node, some_node), RILL_ERROR_STALE_HANDLE);
}

/* G35: an edge that closed a cycle can be added once the other edge is removed. */
static void removes_one_edge(void) {
  rill_graph graph = new_graph();
  rill_graph_node read = add_read(graph, NULL, 0, 0), write = add_write(graph, NULL, 0, 0, 3), from[4], to[4];
  rill_graph_node other = add_write(graph, &read, 1, 1, 1);
  size_t count = 4;
  assert_ok(rill_graph_add_edge(graph, read, write));
  assert_fails(rill_graph_add_edge(graph, write, read), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_graph_remove_edge(graph, read, write));
  assert_fails(rill_graph_remove_edge(graph, read, write), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_graph_remove_edge(graph, other, read), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_graph_add_edge(graph, write, read));
  assert_ok(rill_graph_get_edges(graph, from, to, &count));
  assert_int_equal(count, 2);
  run_graph(graph);
  assert_int_equal(dut.host[0], 3);
}

TESTS_ON_EACH_DEVICE("rill_graph_remove_edge", TEST(refuses_bad_handles), TEST(removes_one_edge))
