/* rill_graph_add_user_object */
#include "graphs.h"

static void count_release(void *user) { (void)atomic_fetch_add((_Atomic int *)user, 1); }

static _Atomic int released, others;

static void attach(rill_graph graph, _Atomic int *counter) {
  assert_ok(rill_graph_add_user_object(graph, count_release, counter));
}

static void start_counting(void) {
  needs_graphs();
  atomic_store(&released, 0);
  atomic_store(&others, 0);
}

static rill_status add_to(uint64_t id) {
  return rill_graph_add_user_object((rill_graph){ id }, count_release, &released);
}

static void refuses_bad_handles(void) {
  start_counting();
  rill_graph graph = new_graph();
  refuses_bad_graphs("rill_graph_add_user_object", add_to);
  assert_fails(rill_graph_add_user_object(graph, NULL, &released), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_graph_release(graph));
  assert_int_equal(atomic_load(&released), 0);
}

/* G29, G33: each is released once, by the call that releases the last graph. */
static void is_released_once(void) {
  enum { OBJECTS = 3 };
  start_counting();
  rill_graph graph = new_graph(), copy, parent = new_graph();
  rill_graph_node node;
  for (int i = 0; i < OBJECTS; i++) attach(graph, &released);
  assert_ok(rill_graph_clone(graph, &copy));
  assert_ok(rill_graph_add_child(parent, NULL, 0, copy, &node));
  run_graph(graph);
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_graph_release(copy));
  run_graph(parent);
  assert_int_equal(atomic_load(&released), 0);
  assert_ok(rill_graph_release(parent));
  assert_int_equal(atomic_load(&released), OBJECTS);
}

/* A user object is attached to the graph, but it is not listed as a node and does not change the shape of the graph. */
static void is_not_a_node(void) {
  start_counting();
  rill_graph graph = new_graph(), other = new_graph();
  size_t count = 0;
  add_write(graph, NULL, 0, 0, 1);
  add_write(other, NULL, 0, 0, 2);
  attach(graph, &released);
  assert_ok(rill_graph_get_nodes(graph, NULL, &count));
  assert_int_equal(count, 1);
  count = 0;
  assert_ok(rill_graph_get_edges(graph, NULL, NULL, &count));
  assert_int_equal(count, 0);
  rill_graph_exec exec = new_exec(other);
  assert_ok(rill_graph_update(exec, graph));
  assert_ok(rill_graph_update(exec, other));
  assert_ok(rill_graph_release(graph));
  assert_int_equal(atomic_load(&released), 1);
}

/* Attaches objects to a graph that a capture creates, and to a graph that a capture extends, whether the captured nodes
 * remain or not. */
static void is_added_during_a_capture(void) {
  start_counting();
  rill_stream stream = new_stream("capturing");
  rill_graph graph, into = new_graph();
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  write_cell(stream, 0, 7);
  assert_ok(rill_stream_capture_graph(stream, &graph));
  attach(graph, &released);
  write_cell(stream, 0, 8);
  assert_ok(rill_stream_capture_end(stream, &graph));
  run_graph(graph);
  assert_int_equal(atomic_load(&released), 0);
  assert_ok(rill_graph_release(graph));
  assert_int_equal(atomic_load(&released), 1);
  assert_ok(rill_stream_capture_begin_to_graph(stream, into, NULL, 0, RILL_CAPTURE_GLOBAL));
  write_cell(stream, 0, 9);
  attach(into, &released);
  assert_ok(rill_stream_capture_abort(stream));
  assert_int_equal(atomic_load(&released), 1);
  assert_ok(rill_graph_release(into));
  assert_int_equal(atomic_load(&released), 2);
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  assert_ok(rill_stream_capture_graph(stream, &graph));
  attach(graph, &released);
  assert_ok(rill_stream_capture_abort(stream));
  assert_int_equal(atomic_load(&released), 3);
}

/* A capture of a graph launch keeps the user objects of the execution object; an aborted capture does not. */
static void captured_launches_keep_it(void) {
  start_counting();
  rill_stream stream = new_stream("capturing");
  rill_graph graph = new_graph(), captured, into = new_graph();
  add_write(graph, NULL, 0, 0, 1);
  attach(graph, &released);
  rill_graph_exec exec = new_exec(graph);
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_stream_capture_end(stream, &captured));
  assert_ok(rill_stream_capture_begin_to_graph(stream, into, NULL, 0, RILL_CAPTURE_GLOBAL));
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_stream_capture_abort(stream));
  assert_ok(rill_graph_exec_release(exec));
  assert_int_equal(atomic_load(&released), 0);
  assert_ok(rill_graph_release(captured)); /* the objects of `into` have not been released */
  assert_int_equal(atomic_load(&released), 1);
}

/* G28, G29: it is released after the last launch has ended, by the call that waited for it. */
static void is_kept_until_launches_end(void) {
  start_counting();
  rill_graph graph = new_graph();
  rill_graph_node write = add_write(graph, NULL, 0, 0, 4);
  rill_stream stream = new_stream("stream");
  attach(graph, &released);
  add_read(graph, &write, 1, 0);
  rill_graph_exec exec = new_exec(graph);
  assert_ok(rill_graph_release(graph));
  struct gate *gate = gate_close(stream);
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_graph_exec_release(exec));
  for (int i = 0; i < 100; i++) {
    rill_event event;
    assert_ok(rill_event_create(dut.device, NULL, &event));
    assert_ok(rill_event_release(event));
  }
  assert_int_equal(atomic_load(&released), 0);
  gate_open(gate);
  assert_ok(rill_stream_synchronize(stream));
  assert_int_equal(atomic_load(&released), 1);
  assert_int_equal(dut.host[0], 4);
}

/* An update takes over the user objects of the new graph, and releases the old ones with the earlier launches. */
static void an_update_releases_it(void) {
  start_counting();
  rill_graph first = new_graph(), second = new_graph();
  rill_stream stream = new_stream("stream");
  add_write(first, NULL, 0, 0, 1);
  add_write(second, NULL, 0, 0, 2);
  attach(first, &released);
  attach(second, &others);
  rill_graph_exec exec = new_exec(first);
  assert_ok(rill_graph_release(first));
  struct gate *gate = gate_close(stream);
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_graph_update(exec, second));
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_graph_release(second));
  assert_int_equal(atomic_load(&released), 0);
  gate_open(gate);
  assert_ok(rill_stream_synchronize(stream));
  assert_int_equal(atomic_load(&released), 1);
  assert_int_equal(atomic_load(&others), 0);
  rill_graph third = new_graph();
  add_write(third, NULL, 0, 0, 3);
  assert_ok(rill_graph_update(exec, third)); /* no launch is in progress */
  assert_int_equal(atomic_load(&others), 1);
  assert_ok(rill_graph_release(third));
  assert_ok(rill_graph_exec_release(exec));
  assert_int_equal(atomic_load(&released), 1);
  assert_int_equal(atomic_load(&others), 1);
}

/* An execution object keeps the user objects that its graph had at instantiation. */
static void only_later_execution_objects_keep_it(void) {
  start_counting();
  rill_graph graph = new_graph();
  add_write(graph, NULL, 0, 0, 1);
  (void)new_exec(graph);
  attach(graph, &released);
  assert_ok(rill_graph_release(graph));
  assert_int_equal(atomic_load(&released), 1);
}

struct things {
  rill_graph graph;
  rill_event event;
  void *memory;
  rill_status statuses[3];
};

static void release_things(void *user) {
  struct things *things = user;
  things->statuses[0] = rill_graph_release(things->graph);
  things->statuses[1] = rill_event_release(things->event);
  things->statuses[2] = rill_free(things->memory);
}

/* `release` may release other objects, at any depth: they are destroyed when the outermost call returns. */
static void may_release_others(void) {
  enum { DEPTH = 1000 };
  static struct things things[DEPTH];
  start_counting();
  uint64_t before = 0, after = 0, total = 0;
  assert_ok(rill_device_get_memory(dut.device, &before, &total));
  rill_graph graph = new_graph(), outer;
  attach(graph, &released);
  for (int i = 0; i < DEPTH; i++) {
    outer = new_graph();
    things[i] = (struct things){ .graph = graph, .statuses = { 1, 1, 1 } };
    assert_ok(rill_event_create(dut.device, NULL, &things[i].event));
    assert_ok(rill_alloc(dut.device, 4096, RILL_MEMORY_DEVICE, &things[i].memory));
    assert_ok(rill_graph_add_user_object(outer, release_things, &things[i]));
    graph = outer;
  }
  assert_ok(rill_graph_release(graph));
  assert_int_equal(atomic_load(&released), 1);
  for (int i = 0; i < DEPTH; i++) {
    bool ready = false;
    rill_memory_info info = RILL_MEMORY_INFO_INIT;
    for (int k = 0; k < 3; k++) assert_ok(things[i].statuses[k]);
    assert_fails(rill_event_is_ready(things[i].event, &ready), RILL_ERROR_STALE_HANDLE);
    assert_fails(rill_graph_release(things[i].graph), RILL_ERROR_STALE_HANDLE);
    assert_fails(rill_memory_get_info(things[i].memory, &info), RILL_ERROR_NOT_FOUND);
  }
  assert_ok(rill_device_get_memory(dut.device, &after, &total));
  const bool exact = (!dut.gpu || getenv("RILL_FAKE_DEVICES") != NULL) && !rill_check_is_on("memory");
  if (exact) assert_true(after >= before);
}

TESTS_ON_EACH_DEVICE("rill_graph_add_user_object", TEST(refuses_bad_handles), TEST(is_released_once),
                     TEST(is_not_a_node), TEST(is_added_during_a_capture), TEST(captured_launches_keep_it),
                     TEST(is_kept_until_launches_end), TEST(an_update_releases_it),
                     TEST(only_later_execution_objects_keep_it), TEST(may_release_others))
