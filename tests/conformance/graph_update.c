/* rill_graph_update */
#include "graphs.h"

static rill_graph_exec live;
static rill_graph live_graph;
static rill_status update_to(uint64_t id) { return rill_graph_update(live, (rill_graph){ id }); }
static rill_status update(uint64_t id) { return rill_graph_update((rill_graph_exec){ id }, live_graph); }

static void refuses_bad_handles(void) {
  live_graph = new_graph();
  live = new_exec(live_graph);
  refuses_bad_graphs("rill_graph_update", update_to);
  refuses_bad_execs("rill_graph_update", update);
  assert_ok(rill_graph_exec_release(live));
  assert_ok(rill_graph_release(live_graph));
}

/* Creates a graph of three nodes. */
static rill_graph make(uint32_t value, rill_graph_node nodes[3]) {
  rill_graph graph = new_graph();
  nodes[0] = add_write(graph, NULL, 0, 0, value);
  nodes[1] = add_read(graph, &nodes[0], 1, 0);
  nodes[2] = add_increment(graph, &nodes[1], 1, dut.host, "last");
  return graph;
}

/* C7.1: all parameters of the other graph are applied, and earlier single changes are discarded. */
static void applies_another_graph(void) {
  rill_graph_node nodes[3], others[3];
  rill_graph graph = make(10, nodes), other = make(20, others);
  rill_graph_exec exec = new_exec(graph);
  unsigned *elsewhere = dut.host + 3;
  assert_ok(rill_graph_exec_set_kernel_arg(exec, nodes[2], 0, &elsewhere, sizeof elsewhere));
  run_exec(exec);
  assert_int_equal(dut.host[0], 10);
  assert_int_equal(dut.host[3], 1);
  assert_ok(rill_graph_update(exec, other));
  assert_ok(rill_graph_release(other));
  run_exec(exec);
  assert_int_equal(dut.host[0], 21);
  assert_int_equal(dut.host[3], 1);
  /* node handles of its own graph still identify its nodes */
  assert_ok(rill_graph_exec_set_kernel_arg(exec, nodes[2], 0, &elsewhere, sizeof elsewhere));
  run_exec(exec);
  assert_int_equal(dut.host[3], 2);
  assert_ok(rill_graph_release(graph));
}

/* C7.1: every node is changed, including the last one, however many there are. */
static void changes_every_node(void) {
  enum { NODES = 150 };
  const size_t counts[] = { 1, 2, 16, 17, NODES };
  uint32_t *cells = NULL;
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, NODES, &cells));
  for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
    rill_graph graphs[2] = { new_graph(), new_graph() };
    for (uint32_t g = 0; g < 2; g++) {
      rill_graph_node node, before = RILL_NULL_GRAPH_NODE;
      for (uint32_t i = 0; i < counts[k]; i++, before = node) {
        const uint32_t value = 1000 * g + i;
        assert_ok(rill_graph_add_fill(graphs[g], &before, i > 0 ? 1 : 0, &cells[i], &value, sizeof value, 1, &node));
      }
    }
    rill_graph_exec exec = new_exec(graphs[0]);
    for (uint32_t g = 0; g < 2; g++) {
      if (g == 1) assert_ok(rill_graph_update(exec, graphs[1]));
      run_exec(exec);
      for (uint32_t i = 0; i < counts[k]; i++) assert_int_equal(cells[i], 1000 * g + i);
    }
    assert_ok(rill_graph_exec_release(exec));
    for (int g = 0; g < 2; g++) assert_ok(rill_graph_release(graphs[g]));
  }
  assert_ok(rill_free(cells));
}

/* G24: a graph of another shape is refused, with the node and the reason in the text, and the object stays usable. */
static void refuses_another_shape(void) {
  rill_graph_node nodes[3], others[3];
  rill_graph graph = make(10, nodes), more = make(11, others), kind = new_graph(), edges = new_graph(), order;
  rill_graph_exec exec = new_exec(graph);
  add_write(more, NULL, 0, 0, 1);
  assert_fails(rill_graph_update(exec, more), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("3 nodes, but the graph has 4");
  others[0] = add_read(kind, NULL, 0, 0);
  others[1] = add_read(kind, &others[0], 1, 0);
  add_increment(kind, &others[1], 1, dut.host, "last");
  assert_fails(rill_graph_update(exec, kind), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("node 0 is of kind \"fill\", but the graph's node is of kind \"copy\"");
  others[0] = add_write(edges, NULL, 0, 0, 12);
  others[1] = add_read(edges, &others[0], 1, 0);
  add_increment(edges, &others[0], 1, dut.host, "last");
  assert_fails(rill_graph_update(exec, edges), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("\"last\"");
  order = new_graph();
  assert_fails(rill_graph_update(exec, order), RILL_ERROR_INVALID_ARGUMENT);
  run_exec(exec);
  assert_int_equal(dut.host[0], 11);
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_graph_release(more));
  assert_ok(rill_graph_release(order));
}

/* G24 */
static void refuses_another_kernel(void) {
  rill_graph graph = new_graph(), other = new_graph();
  rill_graph_node node = add_increment(graph, NULL, 0, dut.host, NULL);
  rill_kernel kernel = new_kernel(&gate_bundle, "add_step");
  const rill_launch launch = rill_launch_1d(1, 1);
  assert_ok(rill_graph_add_kernel(other, NULL, 0, kernel, &launch, RILL_ARGS(dut.host), &node));
  rill_graph_exec exec = new_exec(graph);
  assert_fails(rill_graph_update(exec, other), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("\"add_step\"");
  run_exec(exec);
  assert_int_equal(dut.host[0], 1);
}

/* Earlier launches keep their values. */
static void changes_only_later_launches(void) {
  rill_graph_node nodes[3], others[3];
  rill_graph graph = make(10, nodes), other = make(20, others);
  rill_graph_exec exec = new_exec(graph);
  rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_copy_async(stream, dut.host + 1, dut.host, sizeof *dut.host));
  assert_ok(rill_graph_update(exec, other));
  assert_ok(rill_graph_launch(exec, stream));
  gate_open(gate);
  assert_completes(stream);
  assert_int_equal(dut.host[1], 11);
  assert_int_equal(dut.host[0], 21);
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_graph_release(other));
}

/* G25: a graph is incomplete while a capture adds to it. */
static void refuses_an_unfinished_graph(void) {
  rill_graph_node nodes[3];
  rill_graph graph = make(10, nodes), other = new_graph(), captured;
  rill_graph_exec exec = new_exec(graph);
  rill_stream stream = new_stream("capturing");
  assert_ok(rill_stream_capture_begin_to_graph(stream, other, NULL, 0, RILL_CAPTURE_RELAXED));
  write_cell(stream, 0, 20);
  assert_fails(rill_graph_update(exec, other), RILL_ERROR_CAPTURE_ACTIVE);
  assert_ok(rill_stream_capture_end(stream, &captured));
  run_exec(exec);
  assert_int_equal(dut.host[0], 11);
  assert_ok(rill_graph_release(captured));
  assert_ok(rill_graph_release(graph));
}

int main(void) {
  static const struct test tests[] = {
    TEST(refuses_bad_handles),         TEST(applies_another_graph),  TEST(changes_every_node),
    TEST(refuses_another_shape),       TEST(refuses_another_kernel), TEST(changes_only_later_launches),
    TEST(refuses_an_unfinished_graph),
  };
  return RUN_ON_EACH_DEVICE("rill_graph_update", tests);
}
