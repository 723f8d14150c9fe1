/* rill_graph_add_edge */
#include "graphs.h"

static rill_status add_to(uint64_t id) {
  return rill_graph_add_edge((rill_graph){ id }, RILL_NULL_GRAPH_NODE, RILL_NULL_GRAPH_NODE);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_add_edge", add_to);
  rill_graph graph = new_graph(), other = new_graph();
  rill_graph_node node = add_write(graph, NULL, 0, 0, 1), foreign = add_write(other, NULL, 0, 0, 1);
  assert_fails(rill_graph_add_edge(graph, node, RILL_NULL_GRAPH_NODE), RILL_ERROR_INVALID_HANDLE);
  assert_fails(rill_graph_add_edge(graph, (rill_graph_node){ graph.id }, node), RILL_ERROR_INVALID_HANDLE);
  assert_fails(rill_graph_add_edge(graph, node, foreign), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_add_edge(other, node, node), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_graph_release(other));
}

/* C7.1, G20 */
static void refuses_cycles(void) {
  enum { LENGTH = 50 };
  rill_graph graph = new_graph();
  rill_graph_node nodes[LENGTH];
  size_t edges = 0;
  for (unsigned i = 0; i < LENGTH; i++) nodes[i] = add_write(graph, i > 0 ? &nodes[i - 1] : NULL, i > 0, 0, i);
  assert_fails(rill_graph_add_edge(graph, nodes[3], nodes[3]), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_add_edge(graph, nodes[LENGTH - 1], nodes[0]), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("node 49 to node 0");
  assert_fails(rill_graph_add_edge(graph, nodes[7], nodes[6]), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_graph_get_edges(graph, NULL, NULL, &edges));
  assert_int_equal(edges, LENGTH - 1);
  assert_ok(rill_graph_release(graph));
}

/* G20: the same edge again, and one that others make superfluous. */
static void takes_superfluous_edges(void) {
  rill_graph graph = new_graph();
  size_t edges = 0;
  rill_graph_node first = add_write(graph, NULL, 0, 0, 1), second = add_write(graph, &first, 1, 0, 2);
  rill_graph_node third = add_read(graph, &second, 1, 0), twice[2] = { first, first }, fourth;
  assert_ok(rill_graph_add_edge(graph, first, second));
  assert_ok(rill_graph_add_edge(graph, first, third));
  assert_ok(rill_graph_add_empty(graph, twice, 2, &fourth));
  assert_ok(rill_graph_get_edges(graph, NULL, NULL, &edges));
  assert_int_equal(edges, 4);
  run_graph(graph);
  assert_int_equal(dut.host[0], 2);
  assert_ok(rill_graph_release(graph));
}

/* C7.1: an edge may lead from a node that was added later. */
static void orders_nodes_added_in_any_order(void) {
  enum { LENGTH = 40 };
  rill_graph graph = new_graph();
  rill_graph_node nodes[LENGTH];
  for (unsigned i = 0; i < LENGTH; i++) nodes[i] = add_write(graph, NULL, 0, 0, i);
  rill_graph_node last = add_read(graph, NULL, 0, 0);
  for (unsigned i = 0; i + 1 < LENGTH; i++) assert_ok(rill_graph_add_edge(graph, nodes[i + 1], nodes[i]));
  assert_ok(rill_graph_add_edge(graph, nodes[0], last));
  assert_fails(rill_graph_add_edge(graph, last, nodes[LENGTH - 1]), RILL_ERROR_INVALID_ARGUMENT);
  dut.host[0] = 99;
  run_graph(graph);
  assert_int_equal(dut.host[0], 0);
  assert_ok(rill_graph_release(graph));
}

TESTS_ON_EACH_DEVICE("rill_graph_add_edge", TEST(refuses_bad_handles), TEST(refuses_cycles),
                     TEST(takes_superfluous_edges), TEST(orders_nodes_added_in_any_order))
