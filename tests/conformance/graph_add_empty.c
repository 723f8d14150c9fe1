/* rill_graph_add_empty */
#include "graphs.h"

static rill_status add_to(uint64_t id) {
  rill_graph_node node;
  return rill_graph_add_empty((rill_graph){ id }, NULL, 0, &node);
}

static rill_status add_after(rill_graph graph, const rill_graph_node *after, size_t count) {
  rill_graph_node node;
  return rill_graph_add_empty(graph, after, count, &node);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_add_empty", add_to);
  refuses_bad_after("rill_graph_add_empty", add_after);
  rill_graph graph = new_graph();
  assert_fails(rill_graph_add_empty(graph, NULL, 0, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* C7.1: nodes after an empty node run after all nodes before it. */
static void joins_paths(void) {
  enum { PATHS = 8 };
  rill_graph graph = new_graph();
  rill_graph_node before[PATHS], meeting, node;
  for (unsigned i = 0; i < PATHS; i++) before[i] = add_write(graph, NULL, 0, i, 60 + i);
  assert_ok(rill_graph_add_empty(graph, before, PATHS, &meeting));
  assert_ok(rill_graph_add_copy(graph, &meeting, 1, dut.host, dut.memory, PATHS * sizeof *dut.host, &node));
  run_graph(graph);
  for (unsigned i = 0; i < PATHS; i++) assert_int_equal(dut.host[i], 60 + i);
}

TESTS_ON_EACH_DEVICE("rill_graph_add_empty", TEST(refuses_bad_handles), TEST(joins_paths))
