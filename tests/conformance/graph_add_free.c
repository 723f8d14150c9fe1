/* rill_graph_add_free */
#include "graphs.h"

static rill_status add_to(uint64_t id) {
  rill_graph_node node;
  return rill_graph_add_free((rill_graph){ id }, NULL, 0, NULL, &node);
}

static rill_status add_after(rill_graph graph, const rill_graph_node *after, size_t count) {
  rill_graph_node node;
  return rill_graph_add_free(graph, after, count, NULL, &node);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_add_free", add_to);
  refuses_bad_after("rill_graph_add_free", add_after);
}

/* G31: memory of the graph can be freed once. */
static void frees_memory_of_the_graph_once(void) {
  rill_graph graph = new_graph(), other = new_graph();
  rill_graph_node allocated, node;
  rill_stream stream = new_stream("stream");
  void *p = NULL, *outside = NULL;
  uint32_t kind = 0;
  assert_ok(rill_alloc_async(stream, 64, &outside));
  assert_ok(rill_graph_add_alloc(graph, NULL, 0, 64, &p, &allocated));
  assert_fails(rill_graph_add_free(other, NULL, 0, p, &node), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_graph_add_free(graph, &allocated, 1, outside, &node), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_graph_add_free(graph, &allocated, 1, dut.host, &node), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_graph_add_free(graph, &allocated, 1, p, &node));
  assert_ok(rill_graph_node_kind(node, &kind));
  assert_int_equal(kind, RILL_NODE_FREE);
  assert_fails(rill_graph_add_free(graph, &allocated, 1, p, &node), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_free_async(stream, p), RILL_ERROR_INVALID_ARGUMENT);
  run_graph(graph);
  run_graph(graph);
  assert_ok(rill_free_async(stream, outside));
}

/* Frees some of many allocations in any order, between other nodes. A graph that has this graph as a child also knows
 * its allocations. */
static void frees_some_of_many(void) {
  enum { MOST = 300 };
  rill_graph graph = new_graph(), parent = new_graph();
  rill_graph_node node, child, written;
  void *memory[MOST];
  bool freed[MOST] = { false };
  for (unsigned i = 0; i < MOST; i++) {
    assert_ok(rill_graph_add_alloc(graph, NULL, 0, 64, &memory[i], &node));
    const unsigned some = i * 7919 % (i + 1);
    written = add_write(graph, &written, i > 0 ? 1 : 0, 0, i);
    assert_int_equal(rill_graph_add_free(graph, &node, 1, memory[some], &node),
                     freed[some] ? RILL_ERROR_NOT_FOUND : RILL_OK);
    freed[some] = true;
  }
  assert_ok(rill_graph_add_child(parent, NULL, 0, graph, &child));
  for (unsigned i = 0; i < MOST; i++) {
    assert_int_equal(rill_graph_add_free(parent, &child, 1, memory[i], &node),
                     freed[i] ? RILL_ERROR_NOT_FOUND : RILL_OK);
    assert_fails(rill_graph_add_free(parent, &child, 1, memory[i], &node), RILL_ERROR_NOT_FOUND);
  }
  run_graph(parent);
}

TESTS_ON_EACH_DEVICE("rill_graph_add_free", TEST(refuses_bad_handles), TEST(frees_memory_of_the_graph_once),
                     TEST(frees_some_of_many))
