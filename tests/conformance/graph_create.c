/* rill_graph_create */
#include "graphs.h"

static rill_status create(uint64_t id) {
  rill_graph graph = { 1 };
  const rill_status status = rill_graph_create((rill_device){ id }, &graph);
  assert_int_equal(graph.id, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_devices("rill_graph_create", create); }

static void refuses_null_out(void) {
  needs_graphs();
  assert_fails(rill_graph_create(dut.device, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* C7.1, G12: a graph without nodes can be launched, and is ordered like any other work. */
static void creates_an_empty_graph(void) {
  rill_graph graph = new_graph();
  rill_stream stream = new_stream("stream");
  size_t count = 0;
  assert_ok(rill_graph_get_nodes(graph, NULL, &count));
  assert_int_equal(count, 0);
  rill_graph_exec exec = new_exec(graph);
  struct gate *gate = gate_close(stream);
  assert_ok(rill_graph_launch(exec, stream));
  assert_false(is_complete(stream));
  gate_open(gate);
  assert_completes(stream);
}

TESTS_ON_EACH_DEVICE("rill_graph_create", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(creates_an_empty_graph))
