/* rill_graph_node_kind */
#include "graphs.h"

static rill_status kind_of_first(rill_graph graph, const rill_graph_node *nodes, size_t count) {
  uint32_t kind = 1;
  const rill_status status = rill_graph_node_kind(nodes[0], &kind);
  assert_true(graph.id != 0 && count == 1 && kind == 0);
  return status;
}

static void refuses_bad_handles(void) {
  refuses_dead_nodes("rill_graph_node_kind", kind_of_first);
  rill_graph graph = new_graph();
  rill_graph_node node = add_write(graph, NULL, 0, 0, 1);
  uint32_t kind = 1;
  assert_fails(rill_graph_node_kind(node, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_graph_release(graph));
  assert_fails(rill_graph_node_kind(node, &kind), RILL_ERROR_STALE_HANDLE);
}

static void returns_the_kind_of_each_node(void) {
  rill_graph graph = new_graph();
  rill_graph_node nodes[4];
  uint32_t kind = 0;
  nodes[0] = add_increment(graph, NULL, 0, dut.host, NULL);
  nodes[1] = add_read(graph, NULL, 0, 0);
  nodes[2] = add_write(graph, NULL, 0, 0, 1);
  assert_ok(rill_graph_add_empty(graph, NULL, 0, &nodes[3]));
  const uint32_t kinds[4] = { RILL_NODE_KERNEL, RILL_NODE_COPY, RILL_NODE_FILL, RILL_NODE_EMPTY };
  for (int i = 0; i < 4; i++) {
    assert_ok(rill_graph_node_kind(nodes[i], &kind));
    assert_int_equal(kind, kinds[i]);
  }
}

/* Each of ten thousand nodes is found only by its own handle, and all handles become stale with the graph. */
static void distinguishes_nodes(void) {
  enum { NODES = 10000 };
  static rill_graph_node nodes[NODES], listed[NODES];
  rill_graph graph = new_graph();
  size_t count = NODES;
  uint32_t kind = 0, random = 1;
  for (unsigned i = 0; i < NODES; i++) {
    if (i % 3 != 0) {
      assert_ok(rill_graph_add_empty(graph, NULL, 0, &nodes[i]));
    } else {
      nodes[i] = add_write(graph, NULL, 0, 0, 1);
    }
  }
  assert_ok(rill_graph_get_nodes(graph, listed, &count));
  assert_int_equal(count, NODES);
  for (unsigned i = 0; i < NODES; i++) {
    assert_int_equal(listed[i].id, nodes[i].id);
    assert_ok(rill_graph_node_kind(nodes[i], &kind));
    assert_int_equal(kind, i % 3 != 0 ? RILL_NODE_EMPTY : RILL_NODE_FILL);
  }
  for (unsigned i = 0; i < NODES; i++) {
    random = random * 1664525 + 1013904223;
    const rill_graph_node guessed = { nodes[random % NODES].id + (UINT64_C(1) << random / NODES % 48) };
    bool known = false;
    for (unsigned k = 0; k < NODES && !known; k++) known = nodes[k].id == guessed.id;
    const rill_status status = rill_graph_node_kind(guessed, &kind);
    assert_true(known ? status == RILL_OK : status == RILL_ERROR_INVALID_HANDLE || status == RILL_ERROR_STALE_HANDLE);
  }
  assert_ok(rill_graph_release(graph));
  for (unsigned i = 0; i < NODES; i++) assert_int_equal(rill_graph_node_kind(nodes[i], &kind), RILL_ERROR_STALE_HANDLE);
}

TESTS_ON_EACH_DEVICE("rill_graph_node_kind", TEST(refuses_bad_handles), TEST(returns_the_kind_of_each_node),
                     TEST(distinguishes_nodes))
