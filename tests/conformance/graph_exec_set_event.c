/* rill_graph_exec_set_event */
#include "graphs.h"

static rill_graph_node live;
static rill_event other;
static rill_status set(uint64_t id) { return rill_graph_exec_set_event((rill_graph_exec){ id }, live, other); }

static rill_graph make(rill_event event) {
  const rill_graph graph = new_graph();
  assert_ok(rill_graph_add_event_record(graph, NULL, 0, event, &live));
  return graph;
}

static void refuses_bad_handles(void) {
  const rill_graph graph = make(new_event("first"));
  other = new_event("other");
  refuses_bad_execs("rill_graph_exec_set_event", set);
  const rill_graph_exec exec = new_exec(graph);
  assert_fails(rill_graph_exec_set_event(exec, live, RILL_NULL_EVENT), RILL_ERROR_INVALID_HANDLE);
}

/* C7.1 */
static void refuses_other_nodes_and_cached_events(void) {
  const rill_graph graph = make(new_event("first"));
  const rill_graph_node fill = add_write(graph, NULL, 0, 0, 1);
  const rill_graph_exec exec = new_exec(graph);
  rill_event cached;
  assert_fails(rill_graph_exec_set_event(exec, fill, new_event("other")), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_stream_cached_event(new_stream("stream"), &cached));
  assert_fails(rill_graph_exec_set_event(exec, live, cached), RILL_ERROR_INVALID_ARGUMENT);
}

static bool is_recorded(rill_event event) {
  bool recorded = false;
  assert_ok(rill_event_is_recorded(event, &recorded));
  return recorded;
}

/* C7.1: later launches record the new event. */
static void records_another_event(void) {
  const rill_event first = new_event("first");
  const rill_graph graph = make(first);
  const rill_stream stream = new_stream("stream");
  const rill_graph_exec exec = new_exec(graph);
  other = new_event("other");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_graph_launch(exec, stream));
  assert_true(is_recorded(first));
  assert_false(is_ready(first));
  assert_ok(set(exec.id));
  assert_false(is_recorded(other));
  assert_ok(rill_graph_launch(exec, stream));
  assert_true(is_recorded(other));
  assert_false(is_ready(other));
  gate_open(gate);
  assert_becomes_ready(first);
  assert_becomes_ready(other);
}

/* C7.1: later launches wait for the new event. */
static void waits_for_another_event(void) {
  const rill_graph graph = new_graph();
  const rill_event first = new_event("first"), second = new_event("second");
  const rill_stream gated = new_stream("gated"), stream = new_stream("stream");
  rill_graph_node wait;
  assert_ok(rill_graph_add_event_wait(graph, NULL, 0, first, &wait));
  (void)add_write(graph, &wait, 1, 0, 1);
  const rill_graph_exec exec = new_exec(graph);
  struct gate *gate = gate_close(gated);
  assert_ok(rill_stream_record_event(gated, first, 0));
  assert_ok(rill_graph_exec_set_event(exec, wait, second));
  assert_ok(rill_graph_launch(exec, stream)); /* the new event was never recorded */
  assert_completes(stream);
  assert_ok(rill_graph_exec_set_event(exec, wait, first));
  assert_ok(rill_graph_launch(exec, stream));
  assert_false(is_complete(stream));
  gate_open(gate);
  assert_completes(stream);
}

TESTS_ON_EACH_DEVICE("rill_graph_exec_set_event", TEST(refuses_bad_handles),
                     TEST(refuses_other_nodes_and_cached_events), TEST(records_another_event),
                     TEST(waits_for_another_event))
