/* rill_stream_capture_graph */
#include "graphs.h"

GETTER_TESTS(stream, rill_stream_capture_graph, rill_graph, new_stream("stream"))

/* C7.1: borrowed until the capture ends and returns the graph. */
static void is_the_graph_being_captured(void) {
  needs_graphs();
  rill_stream stream = new_stream("stream");
  rill_graph graph = { 1 }, given;
  size_t count = 0;
  assert_ok(rill_stream_capture_graph(stream, &graph));
  assert_int_equal(graph.id, 0);
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  write_cell(stream, 0, 1);
  assert_ok(rill_stream_capture_graph(stream, &graph));
  assert_ok(rill_graph_get_nodes(graph, NULL, &count));
  assert_int_equal(count, 1);
  assert_ok(rill_graph_release(graph)); /* releasing a borrowed handle does nothing */
  assert_ok(rill_stream_capture_end(stream, &given));
  assert_true(rill_graph_equal(graph, given));
  assert_ok(rill_graph_release(given));
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  assert_ok(rill_stream_capture_graph(stream, &graph));
  assert_ok(rill_stream_capture_abort(stream));
  count = 0;
  assert_fails(rill_graph_get_nodes(graph, NULL, &count), RILL_ERROR_STALE_HANDLE);
}

TESTS_ON_EACH_DEVICE("rill_stream_capture_graph", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(is_the_graph_being_captured))
