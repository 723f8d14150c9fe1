/* rill_graph_add_event_record */
#include "graphs.h"

static rill_status add_to(uint64_t id) {
  rill_graph_node node;
  return rill_graph_add_event_record((rill_graph){ id }, NULL, 0, new_event("event"), &node);
}

static rill_status add_after(rill_graph graph, const rill_graph_node *after, size_t count) {
  rill_graph_node node;
  return rill_graph_add_event_record(graph, after, count, new_event("event"), &node);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_add_event_record", add_to);
  refuses_bad_after("rill_graph_add_event_record", add_after);
  rill_graph graph = new_graph();
  rill_graph_node node;
  rill_event cached;
  assert_fails(rill_graph_add_event_record(graph, NULL, 0, RILL_NULL_EVENT, &node), RILL_ERROR_INVALID_HANDLE);
  assert_ok(rill_stream_cached_event(new_stream("stream"), &cached));
  assert_fails(rill_graph_add_event_record(graph, NULL, 0, cached, &node), RILL_ERROR_INVALID_ARGUMENT);
}

/* C7.2, G30: each launch records the event, for streams that wait for it. */
static void marks_a_point_of_each_launch(void) {
  rill_graph graph = new_graph();
  rill_stream stream = new_stream("stream"), waiter = new_stream("waiter");
  rill_event event = new_event("point");
  bool recorded = true;
  rill_graph_node node = add_write(graph, NULL, 0, 0, 12);
  assert_ok(rill_graph_add_event_record(graph, &node, 1, event, &node));
  rill_graph_exec exec = new_exec(graph);
  assert_ok(rill_event_is_recorded(event, &recorded));
  assert_false(recorded);
  struct gate *gate = gate_close(stream);
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_event_is_recorded(event, &recorded));
  assert_true(recorded);
  assert_false(is_ready(event));
  assert_ok(rill_stream_wait_event(waiter, event, 0));
  read_cell(waiter, 0);
  assert_false(is_complete(waiter));
  gate_open(gate);
  assert_completes(waiter);
  assert_int_equal(dut.host[0], 12);
  assert_becomes_ready(event);
}

/* C3.8: a launch is also a first record. */
static void releases_streams_that_are_held(void) {
  rill_graph graph = new_graph();
  rill_stream held = new_stream("held");
  rill_event event = new_event("point");
  rill_graph_node node = add_write(graph, NULL, 0, 0, 13);
  assert_ok(rill_graph_add_event_record(graph, &node, 1, event, &node));
  assert_ok(rill_stream_wait_event(held, event, 0));
  read_cell(held, 0);
  run_graph(graph);
  assert_completes(held);
  assert_int_equal(dut.host[0], 13);
}

/* E22: the time between two points is valid after each launch. */
static void measures_the_time(void) {
  rill_graph graph = new_graph();
  rill_event start = new_timing_event("start"), end = new_timing_event("end");
  rill_kernel spin = new_kernel(&gate_bundle, "spin");
  const rill_launch launch = rill_launch_1d(1, 1);
  rill_graph_node node;
  assert_ok(rill_graph_add_event_record(graph, NULL, 0, start, &node));
  assert_ok(rill_graph_add_kernel(graph, &node, 1, spin, &launch, RILL_ARGS(UINT64_C(2000000)), &node));
  assert_ok(rill_graph_add_event_record(graph, &node, 1, end, &node));
  rill_graph_exec exec = new_exec(graph);
  for (int i = 0; i < 2; i++) {
    float ms = -1;
    run_exec(exec);
    assert_ok(rill_event_elapsed_time(start, end, &ms));
    assert_true(ms > 0.4f); /* a GPU's clock may deviate by a quarter */
  }
}

/* C7.2: several nodes record one event, with or without an edge between them. The event refers to one of these records;
 * which one is unspecified, but all of them come after the write. */
static void marks_one_of_several_points(void) {
  for (unsigned ordered = 0; ordered < 2; ordered++) {
    rill_graph graph = new_graph();
    rill_stream stream = new_stream("stream"), waiter = new_stream("waiter");
    rill_event event = new_timing_event("point"), before = new_timing_event("before");
    rill_graph_node write = add_write(graph, NULL, 0, 0, 15 + ordered), first, second;
    assert_ok(rill_graph_add_event_record(graph, &write, 1, event, &first));
    assert_ok(rill_graph_add_event_record(graph, ordered ? &first : &write, 1, event, &second));
    rill_graph_exec exec = new_exec(graph);
    for (unsigned launch = 0; launch < 3; launch++) {
      float ms = -1;
      dut.host[0] = 0;
      struct gate *gate = gate_close(stream);
      assert_ok(rill_stream_record_event(stream, before, 0));
      assert_ok(rill_graph_launch(exec, stream));
      assert_false(is_ready(event));
      assert_ok(rill_stream_wait_event(waiter, event, 0));
      read_cell(waiter, 0);
      assert_false(is_complete(waiter));
      gate_open(gate);
      assert_completes(waiter);
      assert_int_equal(dut.host[0], 15 + ordered);
      assert_completes(stream);
      assert_true(is_ready(event));
      assert_ok(rill_event_synchronize(event));
      assert_ok(rill_event_elapsed_time(before, event, &ms));
      assert_true(ms >= 0);
    }
    assert_ok(rill_graph_exec_release(exec));
  }
}

/* G28 */
static void keeps_its_event(void) {
  rill_graph graph = new_graph();
  rill_event event;
  rill_graph_node node;
  needs_graphs();
  assert_ok(rill_event_create(dut.device, NULL, &event));
  assert_ok(rill_graph_add_event_record(graph, NULL, 0, event, &node));
  assert_ok(rill_event_release(event));
  run_graph(graph);
}

TESTS_ON_EACH_DEVICE("rill_graph_add_event_record", TEST(refuses_bad_handles), TEST(marks_a_point_of_each_launch),
                     TEST(releases_streams_that_are_held), TEST(measures_the_time), TEST(marks_one_of_several_points),
                     TEST(keeps_its_event))
