/* rill_graph_remove_edge */
#include "graphs.h"

static rill_graph_node some_node;

static rill_status remove_from(uint64_t id) { return rill_graph_remove_edge((rill_graph){ id }, some_node, some_node); }

static rill_graph_node first_of(rill_graph graph) {
  rill_graph_node first = RILL_NULL_GRAPH_NODE;
  size_t count = 1;
  assert_ok(rill_graph_get_nodes(graph, &first, &count));
  assert_true(count > 0);
  return first;
}

static rill_status remove_bad_from(rill_graph graph, const rill_graph_node *nodes, size_t count) {
  (void)count;
  return rill_graph_remove_edge(graph, nodes[0], first_of(graph));
}

static rill_status remove_to_bad(rill_graph graph, const rill_graph_node *nodes, size_t count) {
  (void)count;
  return rill_graph_remove_edge(graph, first_of(graph), nodes[0]);
}

static void refuses_bad_handles(void) {
  some_node = add_write(new_graph(), NULL, 0, 0, 1);
  refuses_bad_graphs("rill_graph_remove_edge", remove_from);
  refuses_bad_nodes("rill_graph_remove_edge", remove_bad_from);
  refuses_bad_nodes("rill_graph_remove_edge", remove_to_bad);
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
