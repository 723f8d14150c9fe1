/* rill_graph_get_node_params */
#include "graphs.h"

#include <rill/capture.h>
#include <rill/graph_compose.h>
#include <rill/graph_edit.h>

static rill_graph_node some_node;

static rill_status read_from(uint64_t id) {
  rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  return rill_graph_get_node_params((rill_graph){ id }, some_node, &params);
}

static rill_graph_node_params read_node(rill_graph graph, rill_graph_node node) {
  rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  assert_ok(rill_graph_get_node_params(graph, node, &params));
  return params;
}

/* Reads the parameters of the first node, and checks that a failed call leaves `params` unchanged. */
static rill_status read_first(rill_graph graph, const rill_graph_node *nodes, size_t count) {
  rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  params.arg_count = 7;
  params.width = 8;
  const rill_status status = rill_graph_get_node_params(graph, nodes[0], &params);
  assert_true(count == 1 && params.arg_count == 7 && params.width == 8);
  return status;
}

static void refuses_bad_arguments(void) {
  rill_graph graph = new_graph();
  rill_graph_node node = add_write(graph, NULL, 0, 0, 1);
  rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  rill_launch launch = RILL_LAUNCH_INIT;
  rill_copy_3d copy = RILL_COPY_3D_INIT;
  some_node = add_write(new_graph(), NULL, 0, 0, 1);
  refuses_bad_graphs("rill_graph_get_node_params", read_from);
  refuses_bad_nodes("rill_graph_get_node_params", read_first);
  assert_fails(rill_graph_get_node_params(graph, node, NULL), RILL_ERROR_INVALID_ARGUMENT);
  params.launch = &launch;
  launch.struct_size = 0;
  assert_fails(rill_graph_get_node_params(graph, node, &params), RILL_ERROR_INVALID_ARGUMENT);
  params.launch = NULL;
  params.copy = &copy;
  copy.struct_size = 0;
  assert_fails(rill_graph_get_node_params(graph, node, &params), RILL_ERROR_INVALID_ARGUMENT);
  params.struct_size = 0;
  assert_fails(rill_graph_get_node_params(graph, node, &params), RILL_ERROR_INVALID_ARGUMENT);
}

static void reads_kernels(void) {
  rill_graph graph = new_graph();
  rill_kernel kernel = new_kernel(&gate_bundle, "increment");
  rill_launch shape = rill_launch_1d(64, 16), launch = RILL_LAUNCH_INIT;
  rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  rill_graph_node node;
  rill_arg args[2] = { { NULL, 0 }, { NULL, 0 } };
  unsigned *counter = dut.memory;
  shape.label = "of a name";
  shape.shared_mem_bytes = 128;
  assert_ok(rill_graph_add_kernel(graph, NULL, 0, kernel, &shape, RILL_ARGS(counter), &node));
  shape.label = NULL;
  params.launch = &launch;
  params.args = args;
  params.arg_count = 2;
  assert_ok(rill_graph_get_node_params(graph, node, &params));
  assert_int_equal(params.kind, RILL_NODE_KERNEL);
  assert_int_equal(params.kernel.id, kernel.id);
  assert_int_equal(params.arg_count, 1);
  assert_int_equal(args[0].size, sizeof counter);
  assert_memory_equal(args[0].data, &counter, sizeof counter);
  assert_null(args[1].data);
  assert_int_equal(launch.struct_size, sizeof launch);
  assert_int_equal(launch.grid.x, 4);
  assert_int_equal(launch.grid.y, 1);
  assert_int_equal(launch.block.x, 16);
  assert_int_equal(launch.shared_mem_bytes, 128);
  assert_int_equal(launch.cluster.x, 0);
  assert_int_equal(launch.attribute_count, 0);
  assert_int_equal(launch.constant_count, 0);
  assert_string_equal(launch.label, "of a name");
  params = read_node(graph, node); /* without room for arguments */
  assert_int_equal(params.arg_count, 1);
  assert_null(params.launch);
}

static void counts_attributes(void) {
  rill_graph graph = new_graph();
  rill_kernel kernel = new_kernel(&gate_bundle, "increment");
  rill_launch shape = rill_launch_1d(1, 1), launch = RILL_LAUNCH_INIT;
  rill_launch_attribute priority = { .kind = RILL_ATTR_PRIORITY };
  rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  rill_graph_node node;
  unsigned *counter = dut.memory;
  shape.attributes = &priority;
  shape.attribute_count = 1;
  if (rill_graph_add_kernel(graph, NULL, 0, kernel, &shape, RILL_ARGS(counter), &node) != RILL_OK) {
    skip_because("no priorities of kernels here");
  }
  params.launch = &launch;
  assert_ok(rill_graph_get_node_params(graph, node, &params));
  assert_int_equal(launch.attribute_count, 1);
  assert_null(launch.attributes);
  /* writing the parameters back as they are is refused, so that nothing is lost silently */
  assert_fails_in("rill_graph_set_node_params", rill_graph_set_node_params(graph, node, &params),
                  RILL_ERROR_INVALID_ARGUMENT);
  params.launch = NULL;
  assert_fails_in("rill_graph_set_node_params", rill_graph_set_node_params(graph, node, &params),
                  RILL_ERROR_UNSUPPORTED);
}

static void reads_copies(void) {
  rill_graph graph = new_graph();
  rill_copy_3d copy = RILL_COPY_3D_INIT;
  rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  rill_graph_node line, rows;
  params.copy = &copy;
  assert_ok(rill_graph_add_copy(graph, NULL, 0, dut.host, dut.memory, 12, &line));
  assert_ok(rill_graph_add_copy_2d(graph, NULL, 0, dut.host, 8, dut.memory, 16, 4, 3, &rows));
  assert_ok(rill_graph_get_node_params(graph, line, &params));
  assert_int_equal(params.kind, RILL_NODE_COPY);
  assert_ptr_equal(copy.dst, dut.host);
  assert_ptr_equal(copy.src, dut.memory);
  assert_int_equal(copy.width, 12);
  assert_int_equal(copy.height, 1);
  assert_int_equal(copy.depth, 1);
  assert_int_equal(copy.dst_pitch, 12);
  assert_ok(rill_graph_get_node_params(graph, rows, &params));
  assert_int_equal(copy.width, 4);
  assert_int_equal(copy.height, 3);
  assert_int_equal(copy.dst_pitch, 8);
  assert_int_equal(copy.src_pitch, 16);
  assert_int_equal(copy.src_slice_pitch, 48);
  assert_int_equal(read_node(graph, rows).kind, RILL_NODE_COPY);
}

static void reads_fills(void) {
  rill_graph graph = new_graph();
  const uint16_t pattern = 0x1234;
  rill_graph_node line = add_write(graph, NULL, 0, 2, 77), rows;
  assert_ok(rill_graph_add_fill_2d(graph, NULL, 0, dut.memory, 16, &pattern, sizeof pattern, 3, 2, &rows));
  rill_graph_node_params params = read_node(graph, line);
  assert_int_equal(params.kind, RILL_NODE_FILL);
  assert_ptr_equal(params.dst, dut.memory + 2);
  assert_int_equal(params.pattern_size, sizeof(uint32_t));
  assert_int_equal(*(const uint32_t *)params.pattern, 77);
  assert_int_equal(params.width, 1);
  assert_int_equal(params.height, 1);
  params = read_node(graph, rows);
  assert_int_equal(params.dst_pitch, 16);
  assert_int_equal(params.width, 3);
  assert_int_equal(params.height, 2);
  assert_memory_equal(params.pattern, &pattern, sizeof pattern);
}

static void do_nothing(void *user, rill_status status) { (void)user, (void)status; }

static void reads_all_other_kinds(void) {
  rill_graph graph = new_graph();
  rill_event event = new_event("of a node"), lost;
  rill_graph_node node;
  void *p = NULL;
  assert_ok(rill_graph_add_host_call(graph, NULL, 0, do_nothing, &node, &node));
  rill_graph_node_params params = read_node(graph, node);
  assert_int_equal(params.kind, RILL_NODE_HOST_CALL);
  assert_true(params.fn == do_nothing);
  assert_ptr_equal(params.user, &node);
  assert_int_equal(params.kernel.id, 0);
  assert_ok(rill_graph_add_empty(graph, NULL, 0, &node));
  assert_int_equal(read_node(graph, node).kind, RILL_NODE_EMPTY);
  if (rill_graph_add_event_record(graph, NULL, 0, event, &node) == RILL_OK) {
    params = read_node(graph, node);
    assert_int_equal(params.kind, RILL_NODE_EVENT_RECORD);
    assert_int_equal(params.event.id, event.id);
    assert_ok(rill_event_create(dut.device, NULL, &lost));
    assert_ok(rill_graph_add_event_wait(graph, NULL, 0, lost, &node));
    assert_int_equal(read_node(graph, node).event.id, lost.id);
    assert_ok(rill_event_release(lost));
    params = read_node(graph, node); /* the node has the only reference; no handle exists */
    assert_int_equal(params.kind, RILL_NODE_EVENT_WAIT);
    assert_int_equal(params.event.id, 0);
  }
  if (rill_device_supports(dut.device, RILL_FEATURE_POOL, NULL)) {
    assert_ok(rill_graph_add_alloc(graph, NULL, 0, 64, &p, &node));
    params = read_node(graph, node);
    assert_int_equal(params.kind, RILL_NODE_ALLOC);
    assert_ptr_equal(params.memory, p);
  }
}

/* Reads nodes while a capture adds to the graph. */
static void reads_during_captures(void) {
  rill_graph graph = new_graph();
  rill_stream stream = new_stream("captures");
  rill_graph_node nodes[2];
  size_t count = 2;
  assert_ok(rill_stream_capture_begin_to_graph(stream, graph, NULL, 0, RILL_CAPTURE_RELAXED));
  write_cell(stream, 0, 9);
  assert_ok(rill_graph_get_nodes(graph, nodes, &count));
  assert_int_equal(count, 1);
  assert_int_equal(read_node(graph, nodes[0]).kind, RILL_NODE_FILL);
  assert_ok(rill_stream_capture_abort(stream));
  rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  assert_fails(rill_graph_get_node_params(graph, nodes[0], &params), RILL_ERROR_STALE_HANDLE);
}

TESTS_ON_EACH_DEVICE("rill_graph_get_node_params", TEST(refuses_bad_arguments), TEST(reads_kernels),
                     TEST(counts_attributes), TEST(reads_copies), TEST(reads_fills), TEST(reads_all_other_kinds),
                     TEST(reads_during_captures))
