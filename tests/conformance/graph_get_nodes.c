/* rill_graph_get_nodes */
#include "graphs.h"

static rill_status list(uint64_t id) {
  size_t count = 0;
  return rill_graph_get_nodes((rill_graph){ id }, NULL, &count);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_get_nodes", list);
  rill_graph graph = new_graph();
  size_t count = 1;
  assert_fails(rill_graph_get_nodes(graph, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_get_nodes(graph, NULL, &count), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(count, 0);
}

/* G35: with too little room, and with more room than needed. */
static void lists_as_many_as_fit(void) {
  rill_graph graph = new_graph();
  rill_graph_node nodes[3], listed[5] = { { 0 } };
  for (unsigned i = 0; i < 3; i++) nodes[i] = add_write(graph, NULL, 0, i, i);
  size_t count = 2;
  assert_ok(rill_graph_get_nodes(graph, listed, &count));
  assert_int_equal(count, 3);
  assert_int_equal(listed[2].id, 0);
  count = 5;
  assert_ok(rill_graph_get_nodes(graph, listed, &count));
  assert_int_equal(count, 3);
  for (unsigned i = 0; i < 3; i++) assert_true(rill_graph_node_equal(nodes[i], listed[i]));
  assert_int_equal(listed[3].id, 0);
}

TESTS_ON_EACH_DEVICE("rill_graph_get_nodes", TEST(refuses_bad_handles), TEST(lists_as_many_as_fit))
