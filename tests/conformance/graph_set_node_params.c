/* rill_graph_set_node_params */
#include "graphs.h"

#include <rill/capture.h>
#include <rill/graph_compose.h>
#include <rill/graph_edit.h>
#include <rill/graph_exec.h>

static rill_graph_node some_node;

static rill_status set_in(uint64_t id) {
  const rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  return rill_graph_set_node_params((rill_graph){ id }, some_node, &params);
}

static rill_graph_node_params fill_of(unsigned cell, const uint32_t *value) {
  rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  params.dst = dut.memory + cell;
  params.pattern = value;
  params.pattern_size = sizeof *value;
  params.width = params.height = 1;
  return params;
}

static rill_status set_first(rill_graph graph, const rill_graph_node *nodes, size_t count) {
  const uint32_t four = 4;
  const rill_graph_node_params params = fill_of(0, &four);
  (void)count;
  return rill_graph_set_node_params(graph, nodes[0], &params);
}

static void refuses_bad_arguments(void) {
  rill_graph graph = new_graph();
  rill_graph_node node = add_write(graph, NULL, 0, 0, 1), empty;
  const uint32_t two = 2;
  rill_graph_node_params params = fill_of(0, &two);
  some_node = add_write(new_graph(), NULL, 0, 0, 1);
  refuses_bad_graphs("rill_graph_set_node_params", set_in);
  refuses_bad_nodes("rill_graph_set_node_params", set_first);
  assert_fails(rill_graph_set_node_params(graph, node, NULL), RILL_ERROR_INVALID_ARGUMENT);
  params.kind = RILL_NODE_COPY;
  assert_fails(rill_graph_set_node_params(graph, node, &params), RILL_ERROR_INVALID_ARGUMENT);
  params.kind = RILL_NODE_FILL;
  params.reserved = 1;
  assert_fails(rill_graph_set_node_params(graph, node, &params), RILL_ERROR_INVALID_ARGUMENT);
  params.reserved = 0;
  params.width = 0;
  assert_fails(rill_graph_set_node_params(graph, node, &params), RILL_ERROR_INVALID_ARGUMENT);
  params.width = 1;
  params.pattern_size = 3;
  assert_fails(rill_graph_set_node_params(graph, node, &params), RILL_ERROR_INVALID_ARGUMENT);
  params.struct_size = 0;
  assert_fails(rill_graph_set_node_params(graph, node, &params), RILL_ERROR_INVALID_ARGUMENT);
  params = fill_of(0, &two);
  assert_ok(rill_graph_add_empty(graph, NULL, 0, &empty));
  assert_fails(rill_graph_set_node_params(graph, empty, &params), RILL_ERROR_INVALID_ARGUMENT);
  rill_stream stream = new_stream("captures");
  assert_ok(rill_stream_capture_begin_to_graph(stream, graph, NULL, 0, RILL_CAPTURE_RELAXED));
  assert_fails(rill_graph_set_node_params(graph, node, &params), RILL_ERROR_CAPTURE_ACTIVE);
  assert_ok(rill_stream_capture_abort(stream));
}

/* Changes apply to later instantiations. */
static void changes_fills_and_copies(void) {
  rill_graph graph = new_graph();
  rill_graph_node write = add_write(graph, NULL, 0, 0, 1), read = add_read(graph, &write, 1, 0);
  rill_graph_exec before = new_exec(graph);
  const uint32_t five = 5;
  rill_graph_node_params params = fill_of(1, &five);
  rill_copy_3d copy = RILL_COPY_3D_INIT;
  assert_ok(rill_graph_set_node_params(graph, write, &params));
  params = (rill_graph_node_params)RILL_GRAPH_NODE_PARAMS_INIT;
  assert_fails(rill_graph_set_node_params(graph, read, &params), RILL_ERROR_INVALID_ARGUMENT); /* not a copy node */
  copy.dst = dut.host + 3;
  copy.src = dut.memory + 1;
  copy.width = copy.dst_pitch = copy.src_pitch = sizeof *dut.host;
  copy.height = copy.depth = 1;
  params.copy = &copy;
  assert_ok(rill_graph_set_node_params(graph, read, &params));
  run_graph(graph);
  assert_int_equal(dut.host[3], 5);
  dut.host[0] = dut.host[3] = 0;
  run_exec(before);
  assert_int_equal(dut.host[0], 1);
  assert_int_equal(dut.host[3], 0);
}

static void changes_kernels(void) {
  rill_graph graph = new_graph();
  rill_graph_node node = add_increment(graph, NULL, 0, dut.memory, "first");
  rill_kernel step = new_kernel(&gate_bundle, "add_step");
  rill_launch launch = RILL_LAUNCH_INIT;
  rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  rill_arg arg;
  unsigned *cell = dut.memory + 1;
  add_read(graph, &node, 1, 0);
  add_read(graph, &node, 1, 1);

  arg = (rill_arg){ &cell, sizeof cell }; /* another argument with the same shape */
  params.args = &arg;
  params.arg_count = 1;
  assert_ok(rill_graph_set_node_params(graph, node, &params));
  run_graph(graph);
  assert_int_equal(dut.host[0], 0);
  assert_int_equal(dut.host[1], 1);

  params = (rill_graph_node_params)RILL_GRAPH_NODE_PARAMS_INIT; /* another shape with the same argument */
  params.launch = &launch;
  assert_ok(rill_graph_get_node_params(graph, node, &params));
  assert_string_equal(launch.label, "first");
  launch.grid.x = 3;
  launch.label = "second";
  assert_int_equal(params.arg_count, 1); /* which is ignored if args is NULL */
  assert_ok(rill_graph_set_node_params(graph, node, &params));
  run_graph(graph);
  assert_int_equal(dut.host[1], 4);
  assert_ok(rill_graph_find_node(graph, "second", 0, &some_node));
  assert_int_equal(some_node.id, node.id);

  arg.size = 1;
  params.args = &arg;
  params.arg_count = 1;
  assert_fails(rill_graph_set_node_params(graph, node, &params), RILL_ERROR_INVALID_ARGUMENT);
  arg.size = sizeof cell;
  launch.block.x = 0;
  assert_fails(rill_graph_set_node_params(graph, node, &params), RILL_ERROR_INVALID_ARGUMENT);
  params.launch = NULL;
  params.kernel = step;
  assert_fails(rill_graph_set_node_params(graph, node, &params), RILL_ERROR_INVALID_ARGUMENT); /* not a launch */
  launch = rill_launch_1d(1, 1);
  params.launch = &launch;
  assert_ok(rill_graph_set_node_params(graph, node, &params));
  params.args = NULL;
  params.arg_count = 0;
  assert_ok(rill_graph_get_node_params(graph, node, &params));
  assert_int_equal(params.kernel.id, step.id);
}

static void count_call(void *user, rill_status status) {
  assert_int_equal(status, RILL_OK);
  ++*(unsigned *)user;
}

static void changes_host_calls(void) {
  rill_graph graph = new_graph();
  rill_graph_node node;
  unsigned calls[2] = { 0, 0 };
  rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  assert_ok(rill_graph_add_host_call(graph, NULL, 0, count_call, &calls[0], &node));
  assert_fails(rill_graph_set_node_params(graph, node, &params), RILL_ERROR_INVALID_ARGUMENT);
  params.fn = count_call;
  params.user = &calls[1];
  assert_ok(rill_graph_set_node_params(graph, node, &params));
  run_graph(graph);
  assert_int_equal(calls[0], 0);
  assert_int_equal(calls[1], 1);
}

static void changes_events(void) {
  rill_graph graph = new_graph();
  rill_event first = new_event("first"), second = new_event("second"), cached;
  rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  rill_graph_node record, wait;
  bool recorded = true;
  if (rill_graph_add_event_record(graph, NULL, 0, first, &record) != RILL_OK) skip_because("no events in graphs here");
  assert_ok(rill_graph_add_event_wait(graph, NULL, 0, first, &wait));
  assert_fails(rill_graph_set_node_params(graph, record, &params), RILL_ERROR_INVALID_HANDLE);
  assert_ok(rill_stream_cached_event(new_stream("of the event"), &cached));
  params.event = cached;
  assert_fails(rill_graph_set_node_params(graph, record, &params), RILL_ERROR_INVALID_ARGUMENT);
  params.event = second;
  assert_ok(rill_graph_set_node_params(graph, record, &params));
  assert_ok(rill_graph_set_node_params(graph, wait, &params));
  run_graph(graph);
  assert_ok(rill_event_is_recorded(first, &recorded));
  assert_false(recorded);
  assert_ok(rill_event_is_recorded(second, &recorded));
  assert_true(recorded);
}

/* Writing back what was read changes nothing. */
static void accepts_what_was_read(void) {
  rill_graph graph = new_graph();
  rill_graph_node nodes[3];
  rill_launch launch = RILL_LAUNCH_INIT;
  rill_copy_3d copy = RILL_COPY_3D_INIT;
  rill_arg args[4];
  nodes[0] = add_write(graph, NULL, 0, 0, 40);
  nodes[1] = add_increment(graph, nodes, 1, dut.memory, NULL);
  nodes[2] = add_read(graph, nodes + 1, 1, 0);
  for (int i = 0; i < 3; i++) {
    rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
    params.launch = &launch;
    params.copy = &copy;
    params.args = args;
    params.arg_count = 4;
    assert_ok(rill_graph_get_node_params(graph, nodes[i], &params));
    assert_ok(rill_graph_set_node_params(graph, nodes[i], &params));
  }
  run_graph(graph);
  assert_int_equal(dut.host[0], 41);
}

TESTS_ON_EACH_DEVICE("rill_graph_set_node_params", TEST(refuses_bad_arguments), TEST(changes_fills_and_copies),
                     TEST(changes_kernels), TEST(changes_host_calls), TEST(changes_events), TEST(accepts_what_was_read))
