/* rill_stream_capture_begin_to_graph */
#include "graphs.h"

static rill_graph live;
static rill_status begin(uint64_t id) {
  return rill_stream_capture_begin_to_graph((rill_stream){ id }, live, NULL, 0, RILL_CAPTURE_GLOBAL);
}
static rill_status begin_to(uint64_t id) {
  return rill_stream_capture_begin_to_graph(new_stream("stream"), (rill_graph){ id }, NULL, 0, RILL_CAPTURE_GLOBAL);
}

static void refuses_bad_handles(void) {
  live = new_graph();
  refuses_bad_streams("rill_stream_capture_begin_to_graph", begin);
  refuses_bad_graphs("rill_stream_capture_begin_to_graph", begin_to);
  rill_graph other = new_graph();
  rill_graph_node foreign = add_write(other, NULL, 0, 0, 1);
  rill_stream stream = new_stream("stream");
  assert_fails(rill_stream_capture_begin_to_graph(stream, live, &foreign, 1, RILL_CAPTURE_GLOBAL),
               RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_capture_begin_to_graph(stream, live, NULL, 1, RILL_CAPTURE_GLOBAL),
               RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_capture_begin_to_graph(stream, live, NULL, 0, 7), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_graph_release(live));
}

/* G19: the captured nodes come after the given nodes. */
static void adds_to_a_graph(void) {
  rill_graph graph = new_graph(), same = RILL_NULL_GRAPH;
  rill_stream stream = new_stream("stream");
  rill_graph_node write = add_write(graph, NULL, 0, 0, 17), found;
  rill_graph_exec exec;
  assert_ok(rill_stream_capture_begin_to_graph(stream, graph, &write, 1, RILL_CAPTURE_GLOBAL));
  read_cell(stream, 0);
  /* no other call can add nodes during the capture */
  assert_fails(rill_graph_add_empty(graph, NULL, 0, &found), RILL_ERROR_CAPTURE_ACTIVE);
  assert_fails(rill_graph_instantiate(graph, &exec), RILL_ERROR_CAPTURE_ACTIVE);
  assert_fails(rill_stream_capture_begin_to_graph(new_stream("other"), graph, NULL, 0, RILL_CAPTURE_GLOBAL),
               RILL_ERROR_CAPTURE_ACTIVE);
  assert_ok(rill_stream_capture_end(stream, &same));
  assert_true(rill_graph_equal(graph, same));
  run_graph(graph);
  assert_int_equal(dut.host[0], 17);
  assert_ok(rill_graph_release(same));
}

/* C7.3: nodes that a failed capture added are removed. */
static void leaves_the_graph_when_it_fails(void) {
  rill_graph graph = new_graph(), none;
  rill_stream stream = new_stream("origin"), lost = new_stream("lost");
  size_t count = 0;
  add_write(graph, NULL, 0, 0, 1);
  assert_ok(rill_stream_capture_begin_to_graph(stream, graph, NULL, 0, RILL_CAPTURE_GLOBAL));
  read_cell(stream, 0);
  assert_ok(rill_stream_wait_stream(lost, stream));
  read_cell(lost, 0);
  assert_fails(rill_stream_capture_end(stream, &none), RILL_ERROR_CAPTURE_INVALID);
  assert_ok(rill_graph_get_nodes(graph, NULL, &count));
  assert_int_equal(count, 1);
  add_write(graph, NULL, 0, 1, 2);
  run_graph(graph);
}

/* C1.1, C7.3: a destroyed graph cannot be returned. */
static void fails_when_the_graph_was_released(void) {
  rill_graph graph = new_graph(), none = graph;
  rill_stream stream = new_stream("origin");
  add_write(graph, NULL, 0, 0, 1);
  assert_ok(rill_stream_capture_begin_to_graph(stream, graph, NULL, 0, RILL_CAPTURE_GLOBAL));
  read_cell(stream, 0);
  assert_ok(rill_graph_release(graph));
  assert_fails(rill_stream_capture_end(stream, &none), RILL_ERROR_CAPTURE_INVALID);
  assert_says("\"origin\" adds to has been released");
  assert_true(rill_graph_equal(none, RILL_NULL_GRAPH));
  read_cell(stream, 0);
  assert_completes(stream);
}

TESTS_ON_EACH_DEVICE("rill_stream_capture_begin_to_graph", TEST(fails_when_the_graph_was_released),
                     TEST(refuses_bad_handles), TEST(adds_to_a_graph), TEST(leaves_the_graph_when_it_fails))
