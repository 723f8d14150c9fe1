/* rill_stream_capture_get_dependencies */
#include "graphs.h"

static rill_status list(uint64_t id) {
  size_t count = 0;
  return rill_stream_capture_get_dependencies((rill_stream){ id }, NULL, &count);
}

static void refuses_bad_handles(void) { refuses_bad_streams("rill_stream_capture_get_dependencies", list); }

static void refuses_null(void) {
  const rill_stream stream = new_stream("stream");
  size_t count = 1;
  assert_fails(rill_stream_capture_get_dependencies(stream, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_capture_get_dependencies(stream, NULL, &count), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(count, 0);
}

/* C7.1: no nodes at first, then the last node, and after a wait the last nodes of both streams. */
static void lists_the_current_dependencies(void) {
  needs_graphs();
  const rill_stream first = new_stream("first"), second = new_stream("second");
  rill_graph graph;
  rill_graph_node nodes[4], listed[4];
  size_t count = 4;
  assert_ok(rill_stream_capture_get_dependencies(first, listed, &count));
  assert_int_equal(count, 0);
  assert_ok(rill_stream_capture_begin(first, RILL_CAPTURE_GLOBAL));
  count = 4;
  assert_ok(rill_stream_capture_get_dependencies(first, listed, &count));
  assert_int_equal(count, 0);
  write_cell(first, 0, 1);
  assert_ok(rill_stream_wait_stream(second, first));
  write_cell(first, 1, 1);
  write_cell(second, 2, 1);
  count = 1;
  assert_ok(rill_stream_capture_get_dependencies(first, listed, &count));
  assert_int_equal(count, 1);
  assert_ok(rill_stream_wait_stream(first, second));
  count = 1;
  assert_ok(rill_stream_capture_get_dependencies(first, listed + 1, &count));
  assert_int_equal(count, 2);
  count = 4;
  assert_ok(rill_stream_capture_get_dependencies(first, listed, &count));
  assert_int_equal(count, 2);
  assert_ok(rill_stream_capture_end(first, &graph));
  keep_graph_until_end(graph);
  count = 4;
  assert_ok(rill_graph_get_nodes(graph, nodes, &count));
  assert_int_equal(count, 3);
  assert_true(rill_graph_node_equal(listed[0], nodes[1]) || rill_graph_node_equal(listed[0], nodes[2]));
  assert_true(rill_graph_node_equal(listed[1], nodes[1]) || rill_graph_node_equal(listed[1], nodes[2]));
  assert_false(rill_graph_node_equal(listed[0], listed[1]));
}

TESTS_ON_EACH_DEVICE("rill_stream_capture_get_dependencies", TEST(refuses_bad_handles), TEST(refuses_null),
                     TEST(lists_the_current_dependencies))
