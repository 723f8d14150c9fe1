/* rill_graph_find_in_clone */
#include "graphs.h"

static rill_graph_node some_node;

static rill_status find_in(uint64_t id) {
  rill_graph_node out;
  return rill_graph_find_in_clone((rill_graph){ id }, some_node, &out);
}

static void refuses_bad_handles(void) {
  rill_graph graph = new_graph(), copy;
  rill_graph_node out;
  some_node = add_write(graph, NULL, 0, 0, 1);
  assert_ok(rill_graph_clone(graph, &copy));
  refuses_bad_graphs("rill_graph_find_in_clone", find_in);
  assert_fails(rill_graph_find_in_clone(copy, RILL_NULL_GRAPH_NODE, &out), RILL_ERROR_INVALID_HANDLE);
  assert_fails(rill_graph_find_in_clone(copy, some_node, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_graph_release(graph));
  assert_fails(rill_graph_find_in_clone(copy, some_node, &out), RILL_ERROR_STALE_HANDLE);
  assert_ok(rill_graph_release(copy));
}

/* G35 */
static void finds_only_copies(void) {
  rill_graph graph = new_graph(), copy, again;
  rill_graph_node first = add_write(graph, NULL, 0, 0, 1), second = add_read(graph, &first, 1, 0), nodes[2], out, later;
  size_t count = 2;
  assert_ok(rill_graph_clone(graph, &copy));
  assert_ok(rill_graph_clone(copy, &again));
  later = add_write(graph, NULL, 0, 1, 2);
  assert_ok(rill_graph_get_nodes(copy, nodes, &count));
  assert_ok(rill_graph_find_in_clone(copy, first, &out));
  assert_int_equal(out.id, nodes[0].id);
  assert_ok(rill_graph_find_in_clone(copy, second, &out));
  assert_int_equal(out.id, nodes[1].id);
  assert_fails(rill_graph_find_in_clone(copy, later, &out), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_graph_find_in_clone(graph, first, &out), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_graph_find_in_clone(again, first, &out), RILL_ERROR_NOT_FOUND); /* not in a clone of the clone */
  assert_ok(rill_graph_release(copy));
  assert_ok(rill_graph_release(again));
}

TESTS_ON_EACH_DEVICE("rill_graph_find_in_clone", TEST(refuses_bad_handles), TEST(finds_only_copies))
