/* rill_graph_update_with_result */
#include "graphs.h"

static rill_graph a_graph;

static rill_status update(uint64_t id) {
  rill_graph_update_result result = RILL_GRAPH_UPDATE_RESULT_INIT;
  return rill_graph_update_with_result((rill_graph_exec){ id }, a_graph, &result);
}

static void refuses_bad_handles(void) {
  a_graph = new_graph();
  refuses_bad_execs("rill_graph_update_with_result", update);
  rill_graph_exec exec = new_exec(a_graph);
  rill_graph_update_result result = RILL_GRAPH_UPDATE_RESULT_INIT;
  assert_fails(rill_graph_update_with_result(exec, a_graph, NULL), RILL_ERROR_INVALID_ARGUMENT);
  result.struct_size = 0;
  assert_fails(rill_graph_update_with_result(exec, a_graph, &result), RILL_ERROR_INVALID_ARGUMENT);
  result.struct_size = sizeof result;
  assert_fails(rill_graph_update_with_result(exec, RILL_NULL_GRAPH, &result), RILL_ERROR_INVALID_HANDLE);
  assert_int_equal(result.reason, RILL_UPDATE_NONE);
  assert_int_equal(result.struct_size, sizeof result);
  assert_ok(rill_graph_release(a_graph));
}

static void refused(rill_graph_exec exec, rill_graph graph, uint32_t reason, rill_graph_node node) {
  rill_graph_update_result result = RILL_GRAPH_UPDATE_RESULT_INIT;
  result.reason = 99;
  assert_fails(rill_graph_update_with_result(exec, graph, &result), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(result.reason, reason);
  assert_int_equal(result.node.id, node.id);
  assert_ok(rill_graph_release(graph));
}

/* G24: reports the first node that differs, and the difference. */
static void names_the_node_and_the_reason(void) {
  rill_graph graph = new_graph(), other;
  rill_graph_node write = add_write(graph, NULL, 0, 0, 1), node, first;
  add_increment(graph, &write, 1, dut.memory, NULL);
  rill_graph_exec exec = new_exec(graph);

  other = new_graph();
  add_write(other, NULL, 0, 0, 1);
  refused(exec, other, RILL_UPDATE_COUNT, RILL_NULL_GRAPH_NODE);

  other = new_graph();
  first = add_write(other, NULL, 0, 0, 1);
  node = add_read(other, &first, 1, 0);
  refused(exec, other, RILL_UPDATE_KIND, node);

  other = new_graph();
  add_write(other, NULL, 0, 0, 1);
  node = add_increment(other, NULL, 0, dut.memory, NULL);
  refused(exec, other, RILL_UPDATE_EDGES, node);

  rill_kernel kernel = new_kernel(&gate_bundle, "add_step");
  rill_launch launch = rill_launch_1d(1, 1);
  uint32_t *to = dut.memory;
  other = new_graph();
  first = add_write(other, NULL, 0, 0, 1);
  assert_ok(rill_graph_add_kernel(other, &first, 1, kernel, &launch, RILL_ARGS(to), &node));
  refused(exec, other, RILL_UPDATE_KERNEL, node);
  run_exec(exec);
}

static void says_that_nothing_was_refused(void) {
  rill_graph graph = new_graph(), other = new_graph();
  rill_graph_node write = add_write(graph, NULL, 0, 0, 1);
  rill_graph_update_result result = RILL_GRAPH_UPDATE_RESULT_INIT;
  add_read(graph, &write, 1, 0);
  write = add_write(other, NULL, 0, 0, 2);
  add_read(other, &write, 1, 0);
  rill_graph_exec exec = new_exec(graph);
  result.reason = 99;
  const rill_status status = rill_graph_update_with_result(exec, other, &result);
  const bool updates = rill_device_supports(dut.device, RILL_FEATURE_GRAPH_UPDATE, NULL);
  assert_int_equal(status, updates ? RILL_OK : RILL_ERROR_UNSUPPORTED);
  assert_int_equal(result.reason, updates ? RILL_UPDATE_NONE : RILL_UPDATE_DRIVER);
  assert_int_equal(result.node.id, 0);
  run_exec(exec);
  assert_int_equal(dut.host[0], updates ? 2 : 1);
}

/* The memory of the graph is in use by another execution object. */
static void refuses_memory_of_other_objects(void) {
  rill_graph graphs[2];
  rill_graph_node nodes[2];
  rill_graph_exec execs[2];
  rill_graph_update_result result = RILL_GRAPH_UPDATE_RESULT_INIT;
  void *p;
  for (int i = 0; i < 2; i++) {
    graphs[i] = new_graph();
    assert_ok(rill_graph_add_alloc(graphs[i], NULL, 0, 64, &p, &nodes[i]));
    execs[i] = new_exec(graphs[i]);
  }
  assert_fails(rill_graph_update_with_result(execs[0], graphs[1], &result), RILL_ERROR_UNSUPPORTED);
  assert_int_equal(result.reason, RILL_UPDATE_MEMORY);
  assert_int_equal(result.node.id, nodes[1].id);
  assert_ok(rill_graph_exec_release(execs[1]));
  run_exec(execs[0]);
  assert_ok(rill_graph_exec_release(execs[0]));
  for (int i = 0; i < 2; i++) run_graph(graphs[i]);
  for (int i = 0; i < 2; i++) assert_ok(rill_graph_release(graphs[i]));
}

TESTS_ON_EACH_DEVICE("rill_graph_update_with_result", TEST(refuses_bad_handles), TEST(names_the_node_and_the_reason),
                     TEST(says_that_nothing_was_refused), TEST(refuses_memory_of_other_objects))
