/* rill_graph_add_alloc */
#include "graphs.h"

static void *a_pointer;

static rill_status add_to(uint64_t id) {
  rill_graph_node node;
  return rill_graph_add_alloc((rill_graph){ id }, NULL, 0, 16, &a_pointer, &node);
}

static rill_status add_after(rill_graph graph, const rill_graph_node *after, size_t count) {
  rill_graph_node node;
  return rill_graph_add_alloc(graph, after, count, 16, &a_pointer, &node);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_add_alloc", add_to);
  refuses_bad_after("rill_graph_add_alloc", add_after);
  rill_graph graph = new_graph();
  rill_graph_node node;
  assert_fails(rill_graph_add_alloc(graph, NULL, 0, 16, NULL, &node), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_add_alloc(graph, NULL, 0, 16, &a_pointer, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_null(a_pointer);
  assert_fails(rill_graph_add_alloc(graph, NULL, 0, SIZE_MAX - 4096, &a_pointer, &node), RILL_ERROR_OUT_OF_MEMORY);
  assert_ok(rill_graph_add_alloc(graph, NULL, 0, 0, &a_pointer, &node));
  assert_null(a_pointer);
  assert_ok(rill_graph_release(graph));
}

/* G31: the memory is there at every launch, whether a node frees it or not. */
static void gives_memory_for_all_launches(void) {
  rill_graph graph = new_graph();
  rill_graph_node allocated, node;
  uint32_t *p = NULL, kind = 0;
  const uint32_t value = 11;
  assert_ok(rill_graph_add_alloc(graph, NULL, 0, 1024 * sizeof value, (void **)&p, &allocated));
  assert_ok(rill_graph_node_kind(allocated, &kind));
  assert_int_equal(kind, RILL_NODE_ALLOC);
  assert_ok(rill_graph_add_fill(graph, &allocated, 1, p, &value, sizeof value, 1024, &node));
  assert_fails(rill_graph_add_fill(graph, &allocated, 1, p, &value, sizeof value, 1025, &node),
               RILL_ERROR_OUT_OF_RANGE);
  rill_graph_node nodes[2];
  size_t count = 2;
  assert_ok(rill_graph_get_nodes(graph, nodes, &count));
  assert_ok(rill_graph_add_copy(graph, &nodes[1], 1, dut.host, p + 1023, sizeof value, &node));
  rill_graph_exec exec = new_exec(graph);
  assert_ok(rill_graph_release(graph));
  for (int i = 0; i < 3; i++) {
    dut.host[0] = 0;
    run_exec(exec);
    assert_int_equal(dut.host[0], 11);
  }
  assert_ok(rill_graph_exec_release(exec));
}

TESTS_ON_EACH_DEVICE("rill_graph_add_alloc", TEST(refuses_bad_handles), TEST(gives_memory_for_all_launches))
