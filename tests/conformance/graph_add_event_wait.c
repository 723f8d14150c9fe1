/* rill_graph_add_event_wait */
#include "graphs.h"

static rill_status add_to(uint64_t id) {
  rill_graph_node node;
  return rill_graph_add_event_wait((rill_graph){ id }, NULL, 0, new_event("event"), &node);
}

static rill_status add_after(rill_graph graph, const rill_graph_node *after, size_t count) {
  rill_graph_node node;
  return rill_graph_add_event_wait(graph, after, count, new_event("event"), &node);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_add_event_wait", add_to);
  refuses_bad_after("rill_graph_add_event_wait", add_after);
  rill_graph graph = new_graph();
  rill_graph_node node;
  assert_fails(rill_graph_add_event_wait(graph, NULL, 0, RILL_NULL_EVENT, &node), RILL_ERROR_INVALID_HANDLE);
}

/* C7.2, G30 */
static void waits_at_each_launch(void) {
  rill_graph graph = new_graph();
  rill_stream producer = new_stream("producer"), stream = new_stream("stream");
  rill_event event = new_event("produced");
  rill_graph_node node;
  assert_ok(rill_graph_add_event_wait(graph, NULL, 0, event, &node));
  add_read(graph, &node, 1, 0);
  rill_graph_exec exec = new_exec(graph);
  for (uint32_t i = 1; i < 4; i++) {
    struct gate *gate = gate_close(producer);
    write_cell(producer, 0, i);
    assert_ok(rill_stream_record_event(producer, event, 0));
    assert_ok(rill_graph_launch(exec, stream));
    assert_false(is_complete(stream));
    gate_open(gate);
    assert_completes(stream);
    assert_int_equal(dut.host[0], i);
  }
}

static void passes_an_event_never_recorded(void) {
  rill_graph graph = new_graph();
  rill_graph_node node;
  assert_ok(rill_graph_add_event_wait(graph, NULL, 0, new_event("never"), &node));
  run_graph(graph);
}

TESTS_ON_EACH_DEVICE("rill_graph_add_event_wait", TEST(refuses_bad_handles), TEST(waits_at_each_launch),
                     TEST(passes_an_event_never_recorded))
