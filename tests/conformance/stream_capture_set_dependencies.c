/* rill_stream_capture_set_dependencies */
#include "graphs.h"

static rill_status set(uint64_t id) { return rill_stream_capture_set_dependencies((rill_stream){ id }, NULL, 0, true); }

static void refuses_bad_handles(void) { refuses_bad_streams("rill_stream_capture_set_dependencies", set); }

static rill_graph_node place_of(rill_stream stream) {
  rill_graph_node node = RILL_NULL_GRAPH_NODE;
  size_t count = 1;
  assert_ok(rill_stream_capture_get_dependencies(stream, &node, &count));
  assert_int_equal(count, 1);
  return node;
}

/* C7.1: a refused call does not change the capture. */
static void refuses_nodes_outside_the_capture(void) {
  const rill_graph other = new_graph();
  const rill_stream stream = new_stream("stream");
  const rill_graph_node foreign = add_write(other, NULL, 0, 0, 1), none = RILL_NULL_GRAPH_NODE;
  rill_graph graph;
  assert_fails(rill_stream_capture_set_dependencies(stream, &foreign, 1, false), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  write_cell(stream, 0, 1);
  const rill_graph_node node = place_of(stream);
  assert_fails(rill_stream_capture_set_dependencies(stream, NULL, 1, false), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_capture_set_dependencies(stream, &foreign, 1, false), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_capture_set_dependencies(stream, &none, 1, false), RILL_ERROR_INVALID_HANDLE);
  assert_true(rill_graph_node_equal(place_of(stream), node));
  assert_ok(rill_stream_capture_end(stream, &graph));
  keep_graph_until_end(graph);
}

/* C7.1: captures two parallel nodes on one stream, and a node after both. */
static void captures_branches(void) {
  needs_graphs();
  const rill_stream stream = new_stream("stream");
  rill_graph graph;
  rill_graph_node nodes[4], from[8], to[8];
  size_t count = 4, edges = 8;
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  write_cell(stream, 0, 1);
  const rill_graph_node root = place_of(stream);
  write_cell(stream, 1, 2);
  const rill_graph_node left = place_of(stream);
  assert_ok(rill_stream_capture_set_dependencies(stream, &root, 1, false));
  write_cell(stream, 2, 3);
  assert_ok(rill_stream_capture_set_dependencies(stream, &left, 1, true));
  read_cell(stream, 1);
  assert_ok(rill_stream_capture_end(stream, &graph));
  keep_graph_until_end(graph);
  assert_ok(rill_graph_get_nodes(graph, nodes, &count));
  assert_ok(rill_graph_get_edges(graph, from, to, &edges));
  assert_int_equal(count, 4);
  assert_int_equal(edges, 4);
  unsigned seen = 0;
  for (unsigned i = 0; i < 4; i++) {
    for (unsigned a = 0; a < 4; a++) {
      for (unsigned b = 0; b < 4; b++) {
        if (rill_graph_node_equal(from[i], nodes[a]) && rill_graph_node_equal(to[i], nodes[b]))
          seen |= 1u << (4 * a + b);
      }
    }
  }
  assert_int_equal(seen, 1u << 1 | 1u << 2 | 1u << (4 + 3) | 1u << (8 + 3));
  run_graph(graph);
  assert_int_equal(dut.host[1], 2);
}

/* C7.1, C7.3: if a node is unjoined, the capture fails; the stream stays usable. */
static void an_unjoined_node_fails_the_capture(void) {
  needs_graphs();
  const rill_stream stream = new_stream("stream");
  rill_graph graph;
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  write_cell(stream, 0, 1);
  assert_ok(rill_stream_capture_set_dependencies(stream, NULL, 0, false));
  write_cell(stream, 1, 1);
  assert_fails(rill_stream_capture_end(stream, &graph), RILL_ERROR_CAPTURE_INVALID);
  write_cell(stream, 0, 4);
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 4);
}

TESTS_ON_EACH_DEVICE("rill_stream_capture_set_dependencies", TEST(refuses_bad_handles),
                     TEST(refuses_nodes_outside_the_capture), TEST(captures_branches),
                     TEST(an_unjoined_node_fails_the_capture))
