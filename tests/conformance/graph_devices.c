/* A graph belongs to one device (C1.8). Objects of another device are refused wherever they could enter a graph, with
 * both devices in the text, and the graph, the capture and the streams stay usable. */
#include "graphs.h"

#include <stdio.h>

static rill_graph here, there; /* graphs */
static char names[2][64];

static void set_scene(void) {
  needs_graphs();
  needs_second_device();
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  assert_ok(rill_device_get_info(dut.second, &info));
  (void)snprintf(names[0], sizeof names[0], "%s", dut.name);
  (void)snprintf(names[1], sizeof names[1], "%.*s:%d", (int)strcspn(dut.name, ":"), dut.name, info.ordinal);
  assert_ok(rill_graph_create(dut.device, &here));
  assert_ok(rill_graph_create(dut.second, &there));
}

static void end_scene(void) {
  assert_ok(rill_graph_release(here));
  assert_ok(rill_graph_release(there));
}

static void says_both_devices(const char *what) {
  assert_says(what);
  for (int i = 0; i < 2; i++) assert_says(names[i]);
}

/* `what`: the name of the other device's object in the text */
#define refused(call, what)                      \
  do {                                           \
    assert_fails(call, RILL_ERROR_WRONG_DEVICE); \
    says_both_devices(what);                     \
  } while (0)

static rill_kernel kernel_there(const char *name) {
  rill_module module;
  rill_kernel kernel;
  assert_ok(rill_module_load(dut.second, &gate_bundle, &module));
  assert_ok(rill_module_get_kernel(module, name, &kernel));
  assert_ok(rill_module_release(module));
  return kernel;
}

static void refuses_nodes(void) {
  const rill_launch launch = rill_launch_1d(1, 1);
  rill_event event;
  rill_graph_node node;
  size_t count = 0;
  set_scene();
  const rill_kernel kernel = kernel_there("increment");
  assert_ok(rill_event_create(dut.second, NULL, &event));
  refused(rill_graph_add_kernel(here, NULL, 0, kernel, &launch, RILL_ARGS(dut.host), &node), "increment");
  refused(rill_graph_add_event_record(here, NULL, 0, event, &node), "event");
  refused(rill_graph_add_child(here, NULL, 0, there, &node), "graph");
  assert_ok(rill_graph_get_nodes(here, NULL, &count));
  assert_int_equal(count, 0);
  (void)add_increment(here, NULL, 0, dut.host, "own");
  run_graph(here);
  assert_int_equal(dut.host[0], 1);
  assert_ok(rill_event_release(event));
  assert_ok(rill_kernel_release(kernel));
  end_scene();
}

/* C3.6: waits are accepted, as on a stream. */
static void waits_for_events_of_another_device(void) {
  const rill_event_options options = RILL_EVENT_OPTIONS_INIT;
  rill_event event;
  rill_graph_node wait;
  set_scene();
  assert_ok(rill_event_create(dut.second, &options, &event));
  assert_ok(rill_graph_add_event_wait(here, NULL, 0, event, &wait));
  (void)add_increment(here, &wait, 1, dut.host, "after the event");
  rill_stream stream = new_stream("here"), far = new_stream_on(dut.second, "there");
  rill_graph_exec exec = new_exec(here);
  struct gate *gate = gate_close(far);
  assert_ok(rill_stream_record_event(far, event, 0));
  assert_ok(rill_graph_launch(exec, stream));
  assert_false(is_complete(stream));
  assert_int_equal(__atomic_load_n(dut.host, __ATOMIC_SEQ_CST), 0);
  gate_open(gate);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 1);
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_event_release(event));
  end_scene();
}

/* C5.3: copies are accepted in any direction, as on a stream. */
static void copies_memory_of_another_device(void) {
  uint32_t *far;
  rill_graph_node write, copy;
  set_scene();
  assert_ok(RILL_NEW(dut.second, RILL_MEMORY_DEVICE, 4, &far));
  write = add_write(here, NULL, 0, 0, 7);
  assert_ok(rill_graph_add_copy(here, &write, 1, far, dut.memory, 4, &copy));
  assert_ok(rill_graph_add_copy(here, &copy, 1, dut.memory + 1, far, 4, &copy));
  (void)add_read(here, &copy, 1, 1);
  run_graph(here);
  assert_int_equal(dut.host[1], 7);
  assert_ok(rill_free(far));
  end_scene();
}

static void refuses_updates_and_launches(void) {
  rill_graph_update_result result = RILL_GRAPH_UPDATE_RESULT_INIT;
  set_scene();
  (void)add_increment(here, NULL, 0, dut.host, "own");
  rill_graph_exec exec = new_exec(here), other = new_exec(there);
  rill_stream stream = new_stream("near"), far = new_stream_on(dut.second, "far");
  refused(rill_graph_update(exec, there), "graph");
  refused(rill_graph_update_with_result(exec, there, &result), "graph");
  refused(rill_graph_launch(exec, far), "far");
  refused(rill_graph_launch(other, stream), "near");
  refused(rill_stream_capture_begin_to_graph(stream, there, NULL, 0, RILL_CAPTURE_THREAD), "near");
  run_exec(exec);
  assert_int_equal(dut.host[0], 1);
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_exec_release(other));
  end_scene();
}

/* G14: the capture continues, and the other stream does not join it. */
static void refuses_foreign_work_in_captures(void) {
  const rill_launch launch = rill_launch_1d(1, 1);
  rill_event inside = new_event("inside"), event;
  rill_graph graph;
  rill_stream stream = new_stream("capturing"), far;
  bool capturing = true;
  set_scene();
  far = new_stream_on(dut.second, "far");
  const rill_kernel kernel = kernel_there("increment");
  const rill_graph_exec exec = new_exec(there);
  assert_ok(rill_event_create(dut.second, NULL, &event));
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_THREAD));
  write_cell(stream, 0, 1);
  assert_ok(rill_stream_record_event(stream, inside, 0));
  assert_fails(rill_stream_wait_event(far, inside, 0), RILL_ERROR_UNSUPPORTED);
  says_both_devices("\"capturing\"");
  assert_fails(rill_stream_wait_stream(far, stream), RILL_ERROR_UNSUPPORTED);
  says_both_devices("\"far\"");
  assert_ok(rill_stream_is_capturing(far, &capturing));
  assert_false(capturing);
  refused(rill_stream_record_event(stream, event, 0), "event");
  refused(rill_stream_record_event(stream, event, RILL_EVENT_EXTERNAL), "event");
  refused(rill_stream_launch(stream, kernel, &launch, RILL_ARGS(dut.host)), "increment");
  refused(rill_graph_launch(exec, stream), "capturing");
  read_cell(stream, 0);
  assert_ok(rill_stream_capture_end(stream, &graph));
  run_graph(graph);
  assert_int_equal(dut.host[0], 1);
  assert_completes(far);
  assert_completes(stream);
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_event_release(event));
  assert_ok(rill_kernel_release(kernel));
  end_scene();
}

/* The alternative from docs/guides/GRAPHS.md: one graph for each device, with events that order their launches. */
static void graphs_of_two_devices_are_ordered_by_events(void) {
  uint32_t *far;
  rill_graph_node node;
  const uint32_t value = 5;
  set_scene();
  assert_ok(RILL_NEW(dut.second, RILL_MEMORY_DEVICE, 4, &far));
  assert_ok(rill_graph_add_fill(here, NULL, 0, dut.memory, &value, 4, 1, &node));
  assert_ok(rill_graph_add_copy(here, &node, 1, far, dut.memory, 4, &node));
  assert_ok(rill_graph_add_copy(there, NULL, 0, dut.host, far, 4, &node));
  rill_graph_exec first = new_exec(here), second = new_exec(there);
  rill_stream stream = new_stream("near"), other = new_stream_on(dut.second, "far");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_graph_launch(first, stream));
  assert_ok(rill_stream_wait_stream(other, stream));
  assert_ok(rill_graph_launch(second, other));
  assert_false(is_complete(other));
  gate_open(gate);
  assert_completes(other);
  assert_int_equal(dut.host[0], 5);
  assert_ok(rill_graph_exec_release(first));
  assert_ok(rill_graph_exec_release(second));
  assert_ok(rill_free(far));
  end_scene();
}

TESTS_ON_EACH_DEVICE("graphs and devices", TEST(refuses_nodes), TEST(waits_for_events_of_another_device),
                     TEST(copies_memory_of_another_device), TEST(refuses_updates_and_launches),
                     TEST(refuses_foreign_work_in_captures), TEST(graphs_of_two_devices_are_ordered_by_events))
