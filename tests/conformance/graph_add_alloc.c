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
}

/* G31: the memory exists during every launch, whether a node frees it or not. */
static void memory_serves_all_launches(void) {
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
}

static rill_graph graph_with_memory(uint32_t value) {
  rill_graph graph = new_graph();
  rill_graph_node allocated, node;
  uint32_t *p = NULL;
  assert_ok(rill_graph_add_alloc(graph, NULL, 0, sizeof value, (void **)&p, &allocated));
  assert_ok(rill_graph_add_fill(graph, &allocated, 1, p, &value, sizeof value, 1, &node));
  return graph;
}

/* One execution object owns the memory until its last launch has ended. */
static void one_object_owns_it_at_a_time(void) {
  rill_graph graph = graph_with_memory(1);
  rill_graph_exec exec = new_exec(graph), second;
  rill_stream stream = new_stream("stream");
  assert_fails(rill_graph_instantiate(graph, &second), RILL_ERROR_UNSUPPORTED);
  struct gate *gate = gate_close(stream);
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_graph_exec_release(exec));
  assert_fails(rill_graph_instantiate(graph, &second), RILL_ERROR_UNSUPPORTED);
  gate_open(gate);
  assert_completes(stream);
  assert_ok(rill_graph_instantiate(graph, &second));
  run_exec(second);
  assert_ok(rill_graph_exec_release(second));
  assert_ok(rill_graph_release(graph));
}

/* The same holds for memory that an update has replaced. */
static void launches_before_an_update_keep_it(void) {
  rill_graph graph = graph_with_memory(1), other = graph_with_memory(2);
  rill_graph_exec exec = new_exec(graph), second;
  rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_graph_update(exec, other));
  assert_fails(rill_graph_instantiate(graph, &second), RILL_ERROR_UNSUPPORTED);
  assert_fails(rill_graph_instantiate(other, &second), RILL_ERROR_UNSUPPORTED);
  gate_open(gate);
  assert_completes(stream);
  assert_ok(rill_graph_launch(exec, stream)); /* this launch uses only the new memory */
  assert_completes(stream);
  assert_ok(rill_graph_update(exec, other));
  assert_ok(rill_graph_instantiate(graph, &second));
  assert_fails(rill_graph_update(exec, graph), RILL_ERROR_UNSUPPORTED);
  assert_ok(rill_graph_exec_release(second));
  assert_ok(rill_graph_update(exec, graph));
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_graph_release(other));
}

TESTS_ON_EACH_DEVICE("rill_graph_add_alloc", TEST(refuses_bad_handles), TEST(memory_serves_all_launches),
                     TEST(one_object_owns_it_at_a_time), TEST(launches_before_an_update_keep_it))
