/* rill_graph_get_edges */
#include "graphs.h"

static rill_status list(uint64_t id) {
  size_t count = 0;
  return rill_graph_get_edges((rill_graph){ id }, NULL, NULL, &count);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_get_edges", list);
  rill_graph graph = new_graph();
  rill_graph_node node;
  size_t count = 1;
  assert_fails(rill_graph_get_edges(graph, &node, &node, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_get_edges(graph, NULL, &node, &count), RILL_ERROR_INVALID_ARGUMENT);
}

/* G35 */
static void lists_edges(void) {
  rill_graph graph = new_graph();
  rill_graph_node from[4] = { { 0 } }, to[4] = { { 0 } };
  size_t count = 4;
  rill_graph_node first = add_write(graph, NULL, 0, 0, 1), second = add_read(graph, &first, 1, 0);
  rill_graph_node third = add_read(graph, &first, 1, 1);
  assert_ok(rill_graph_get_edges(graph, from, to, &count));
  assert_int_equal(count, 2);
  assert_true(rill_graph_node_equal(from[0], first) && rill_graph_node_equal(to[0], second));
  assert_true(rill_graph_node_equal(from[1], first) && rill_graph_node_equal(to[1], third));
  count = 1;
  memset(from, 0, sizeof from);
  assert_ok(rill_graph_get_edges(graph, from, to, &count));
  assert_int_equal(count, 2);
  assert_int_equal(from[1].id, 0);
}

TESTS_ON_EACH_DEVICE("rill_graph_get_edges", TEST(refuses_bad_handles), TEST(lists_edges))
