/* Every operation on graphs, with graphs of no node and of one node: the order of launches and the lifetimes do not
 * depend on the number of nodes (C7.1). */
#include "graphs.h"

#include <rill/capture.h>
#include <rill/graph_compose.h>

enum { SIZES = 2 }; /* graphs with 0 nodes and with 1 node */

static rill_graph graph_of(unsigned nodes) {
  rill_graph graph = new_graph();
  for (unsigned i = 0; i < nodes; i++) add_increment(graph, NULL, 0, dut.host, NULL);
  return graph;
}

static void release(rill_graph_exec exec, rill_graph graph) {
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
}

static void launches_on_two_streams_do_not_overlap(void) {
  for (unsigned nodes = 0; nodes < SIZES; nodes++) {
    rill_graph graph = graph_of(nodes);
    rill_graph_exec exec = new_exec(graph);
    rill_stream first = new_stream("first"), second = new_stream("second");
    rill_event after = new_event("after the second launch");
    dut.host[0] = 0;
    struct gate *gate = gate_close(first);
    assert_ok(rill_graph_launch(exec, first));
    assert_ok(rill_graph_launch(exec, second));
    assert_ok(rill_stream_record_event(second, after, 0));
    assert_fails(rill_event_synchronize_for(after, 10 * MILLISECOND), RILL_ERROR_TIMEOUT);
    assert_int_equal(dut.host[0], 0);
    gate_open(gate);
    assert_completes(second);
    assert_completes(first);
    assert_int_equal(dut.host[0], 2 * nodes);
    release(exec, graph);
  }
}

static void graphs_are_released_while_they_run(void) {
  for (unsigned nodes = 0; nodes < SIZES; nodes++) {
    rill_graph graph = graph_of(nodes);
    rill_graph_exec exec = new_exec(graph);
    rill_stream stream = new_stream("stream");
    dut.host[0] = 0;
    struct gate *gate = gate_close(stream);
    assert_ok(rill_graph_launch(exec, stream));
    release(exec, graph);
    /* each call may destroy some retired objects */
    for (int i = 0; i < 10; i++) assert_ok(rill_graph_release(graph_of(0)));
    gate_open(gate);
    assert_completes(stream);
    assert_int_equal(dut.host[0], nodes);
  }
}

static void graphs_are_updated_while_they_run(void) {
  for (unsigned nodes = 0; nodes < SIZES; nodes++) {
    rill_graph graph = graph_of(nodes), other = graph_of(nodes);
    rill_graph_exec exec = new_exec(graph);
    rill_graph_update_result result = RILL_GRAPH_UPDATE_RESULT_INIT;
    rill_stream first = new_stream("first"), second = new_stream("second");
    dut.host[0] = 0;
    struct gate *gate = gate_close(first);
    assert_ok(rill_graph_launch(exec, first));
    assert_ok(rill_graph_update(exec, other));
    assert_ok(rill_graph_launch(exec, second));
    assert_ok(rill_graph_update_with_result(exec, graph, &result));
    assert_false(is_complete(second));
    gate_open(gate);
    assert_completes(second);
    assert_int_equal(dut.host[0], 2 * nodes);
    release(exec, graph);
    assert_ok(rill_graph_release(other));
  }
}

static void graphs_are_updated_only_to_their_size(void) {
  rill_graph none = graph_of(0), one = graph_of(1);
  rill_graph_exec exec = new_exec(none);
  assert_fails(rill_graph_update(exec, one), RILL_ERROR_INVALID_ARGUMENT);
  run_exec(exec);
  release(exec, none);
  exec = new_exec(one);
  assert_fails(rill_graph_update(exec, graph_of(0)), RILL_ERROR_INVALID_ARGUMENT);
  dut.host[0] = 0;
  run_exec(exec);
  assert_int_equal(dut.host[0], 1);
  release(exec, one);
}

static void graph_launches_are_held(void) {
  for (unsigned nodes = 0; nodes < SIZES; nodes++) {
    rill_graph graph = graph_of(nodes);
    rill_graph_exec exec = new_exec(graph);
    rill_stream held = new_stream("held"), other = new_stream("other");
    rill_event event = new_event("to come");
    dut.host[0] = 0;
    assert_ok(rill_stream_wait_event(held, event, 0));
    assert_ok(rill_graph_launch(exec, held));
    assert_ok(rill_graph_launch(exec, held));
    assert_ok(rill_stream_record_event(other, event, 0));
    assert_ok(rill_graph_launch(exec, other));
    assert_completes(held);
    assert_completes(other);
    assert_int_equal(dut.host[0], 3 * nodes);
    release(exec, graph);
  }
}

/* Checks the number of nodes and edges of `graph`. */
static void assert_count(rill_graph graph, size_t expected) {
  size_t count = 0, edges = 0, size = 0;
  assert_ok(rill_graph_get_nodes(graph, NULL, &count));
  assert_ok(rill_graph_get_edges(graph, NULL, NULL, &edges));
  assert_ok(rill_graph_get_dot(graph, NULL, &size));
  assert_int_equal(count, expected);
  assert_int_equal(edges, expected > 0 ? expected - 1 : 0);
  assert_true(size > 0);
}

static void graphs_are_cloned_and_become_children(void) {
  for (unsigned nodes = 0; nodes < SIZES; nodes++) {
    rill_graph graph = graph_of(nodes), clone, parent = graph_of(0);
    rill_graph_node child;
    assert_count(graph, nodes);
    assert_ok(rill_graph_clone(graph, &clone));
    assert_count(clone, nodes);
    assert_ok(rill_graph_add_child(parent, NULL, 0, clone, &child));
    assert_count(parent, nodes + 1);
    assert_ok(rill_graph_release(clone));
    assert_ok(rill_graph_release(graph));
    dut.host[0] = 0;
    run_graph(parent);
    assert_int_equal(dut.host[0], nodes);
    assert_ok(rill_graph_release(parent));
  }
}

static void graph_launches_are_captured(void) {
  for (unsigned nodes = 0; nodes < SIZES; nodes++) {
    rill_graph graph = graph_of(nodes), captured;
    rill_graph_exec exec = new_exec(graph);
    rill_stream stream = new_stream("stream");
    assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
    assert_ok(rill_graph_launch(exec, stream));
    assert_ok(rill_stream_capture_end(stream, &captured));
    assert_count(captured, nodes);
    release(exec, graph);
    dut.host[0] = 0;
    run_graph(captured);
    assert_int_equal(dut.host[0], nodes);
    assert_ok(rill_graph_release(captured));
  }
}

static void graphs_are_uploaded(void) {
  for (unsigned nodes = 0; nodes < SIZES; nodes++) {
    rill_graph graph = graph_of(nodes);
    rill_graph_exec exec = new_exec(graph);
    rill_stream first = new_stream("first"), second = new_stream("second");
    uintptr_t native = 0;
    const rill_status status = rill_graph_upload(exec, first);
    assert_true(status == RILL_OK || status == RILL_ERROR_UNSUPPORTED);
    assert_ok(rill_graph_exec_native(exec, &native));
    dut.host[0] = 0;
    assert_ok(rill_graph_launch(exec, first));
    assert_ok(rill_graph_launch(exec, second));
    assert_completes(second);
    assert_completes(first);
    assert_int_equal(dut.host[0], 2 * nodes);
    release(exec, graph);
  }
}

TESTS_ON_EACH_DEVICE("small graphs", TEST(launches_on_two_streams_do_not_overlap),
                     TEST(graphs_are_released_while_they_run), TEST(graphs_are_updated_while_they_run),
                     TEST(graphs_are_updated_only_to_their_size), TEST(graph_launches_are_held),
                     TEST(graphs_are_cloned_and_become_children), TEST(graph_launches_are_captured),
                     TEST(graphs_are_uploaded))
