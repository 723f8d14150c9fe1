/* rill_graph_find_node */
#include "graphs.h"

static rill_status find_in(uint64_t id) {
  rill_graph_node node = { 1 };
  const rill_status status = rill_graph_find_node((rill_graph){ id }, "name", 0, &node);
  assert_int_equal(node.id, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_graphs("rill_graph_find_node", find_in); }

/* C7.1 */
static void finds_by_label_and_number(void) {
  rill_graph graph = new_graph();
  rill_graph_node first = add_increment(graph, NULL, 0, dut.host, "add"), found = RILL_NULL_GRAPH_NODE;
  rill_graph_node other = add_increment(graph, NULL, 0, dut.host, "other");
  rill_graph_node second = add_increment(graph, &first, 1, dut.host, "add");
  rill_graph_node bare = add_increment(graph, NULL, 0, dut.host, NULL);
  assert_ok(rill_graph_find_node(graph, "add", 0, &found));
  assert_true(rill_graph_node_equal(found, first));
  assert_ok(rill_graph_find_node(graph, "add", 1, &found));
  assert_true(rill_graph_node_equal(found, second));
  assert_ok(rill_graph_find_node(graph, "other", 0, &found));
  assert_true(rill_graph_node_equal(found, other));
  assert_ok(rill_graph_find_node(graph, "increment", 0, &found));
  assert_true(rill_graph_node_equal(found, bare));
  assert_fails(rill_graph_find_node(graph, "add", 2, &found), RILL_ERROR_NOT_FOUND);
  assert_int_equal(found.id, 0);
  assert_fails(rill_graph_find_node(graph, "ad", 0, &found), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_graph_find_node(graph, NULL, 0, &found), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_find_node(graph, "add", 0, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

TESTS_ON_EACH_DEVICE("rill_graph_find_node", TEST(refuses_bad_handles), TEST(finds_by_label_and_number))
