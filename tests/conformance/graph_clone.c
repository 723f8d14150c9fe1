/* rill_graph_clone */
#include "graphs.h"

static rill_status clone(uint64_t id) {
  rill_graph out;
  return rill_graph_clone((rill_graph){ id }, &out);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_clone", clone);
  rill_graph graph = new_graph();
  assert_fails(rill_graph_clone(graph, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* G35: the clone has the same nodes in the same order with the same edges, including edges that lead backwards; each
 * graph is changed independently. */
static void copies_the_graph(void) {
  rill_graph graph = new_graph(), copy;
  rill_graph_node read = add_read(graph, NULL, 0, 0), write = add_write(graph, NULL, 0, 0, 7), nodes[8], from[8], to[8];
  size_t count = 8;
  uint32_t kind = 0;
  assert_ok(rill_graph_add_edge(graph, write, read));
  assert_ok(rill_graph_clone(graph, &copy));
  assert_int_not_equal(copy.id, graph.id);
  add_write(graph, NULL, 0, 1, 1);
  assert_ok(rill_graph_get_nodes(copy, nodes, &count));
  assert_int_equal(count, 2);
  assert_ok(rill_graph_node_kind(nodes[0], &kind));
  assert_int_equal(kind, RILL_NODE_COPY);
  count = 8;
  assert_ok(rill_graph_get_edges(copy, from, to, &count));
  assert_int_equal(count, 1);
  assert_true(from[0].id == nodes[1].id && to[0].id == nodes[0].id);
  assert_fails(rill_graph_add_edge(copy, nodes[0], nodes[1]), RILL_ERROR_INVALID_ARGUMENT); /* would close a cycle */
  assert_ok(rill_graph_release(graph));
  dut.host[0] = 0;
  run_graph(copy);
  assert_int_equal(dut.host[0], 7);
  assert_ok(rill_graph_release(copy));
}

/* Execution objects of the two graphs are changed independently. */
static void has_execution_objects_of_its_own(void) {
  rill_graph graph = new_graph(), copy;
  rill_graph_node write = add_write(graph, NULL, 0, 0, 1), copied;
  const uint32_t value = 2;
  add_read(graph, &write, 1, 0);
  assert_ok(rill_graph_clone(graph, &copy));
  assert_ok(rill_graph_find_in_clone(copy, write, &copied));
  rill_graph_exec first = new_exec(graph), second = new_exec(copy);
  assert_fails(rill_graph_exec_set_fill(second, write, dut.memory, &value, sizeof value, 1),
               RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_graph_exec_set_fill(second, copied, dut.memory, &value, sizeof value, 1));
  run_exec(second);
  assert_int_equal(dut.host[0], 2);
  run_exec(first);
  assert_int_equal(dut.host[0], 1);
  assert_ok(rill_graph_update(second, graph)); /* both graphs have the same shape */
  run_exec(second);
  assert_int_equal(dut.host[0], 1);
  assert_ok(rill_graph_release(copy));
}

/* C7.1: both graphs share the graph's memory. */
static void shares_memory(void) {
  rill_graph graph = new_graph(), copy;
  rill_graph_node node;
  rill_graph_exec second;
  void *p = NULL;
  assert_ok(rill_graph_add_alloc(graph, NULL, 0, 64, &p, &node));
  assert_ok(rill_graph_clone(graph, &copy));
  rill_graph_exec first = new_exec(graph);
  assert_fails(rill_graph_instantiate(copy, &second), RILL_ERROR_UNSUPPORTED);
  assert_says("the graph owns memory");
  assert_ok(rill_graph_exec_release(first));
  assert_ok(rill_graph_release(graph));
  run_graph(copy);
  assert_ok(rill_graph_release(copy));
}

static void refuses_a_graph_that_a_capture_adds_to(void) {
  rill_graph graph = new_graph(), copy;
  rill_stream stream = new_stream("capturing");
  assert_ok(rill_stream_capture_begin_to_graph(stream, graph, NULL, 0, RILL_CAPTURE_THREAD));
  assert_fails(rill_graph_clone(graph, &copy), RILL_ERROR_CAPTURE_ACTIVE);
  assert_ok(rill_stream_capture_abort(stream));
}

TESTS_ON_EACH_DEVICE("rill_graph_clone", TEST(refuses_bad_handles), TEST(copies_the_graph),
                     TEST(has_execution_objects_of_its_own), TEST(shares_memory),
                     TEST(refuses_a_graph_that_a_capture_adds_to))
