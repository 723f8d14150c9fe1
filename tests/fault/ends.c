/* The vendor's objects of released and changed objects are destroyed by one named call (C1.3, C7.1). */
#include "vendor.h"

#include "gate.rill.h"

#include <rill/bundle.h>

static rill_stream stream;
static uint32_t *cells;

static void begin(void) {
  vendor_begin();
  if (!vendor.has_kernels) skip_because("no kernels for this vendor");
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_PINNED, 4, &cells));
  assert_ok(rill_device_synchronize(vendor.device));
}

static void end(void) {
  assert_ok(rill_free(cells));
  assert_ok(rill_stream_release(stream));
}

/* A graph that alone keeps a module, and an event. */
static rill_graph keeping_graph(void) {
  const rill_launch shape = rill_launch_1d(1, 1);
  rill_graph graph;
  rill_graph_node node;
  rill_module module;
  rill_kernel kernel;
  rill_event event;
  assert_ok(rill_graph_create(vendor.device, &graph));
  assert_ok(rill_module_load(vendor.device, &gate_bundle, &module));
  assert_ok(rill_module_get_kernel(module, "increment", &kernel));
  assert_ok(rill_event_create(vendor.device, RILL_EVENT_OPTIONS(.label = "kept by a node"), &event));
  assert_ok(rill_graph_add_kernel(graph, NULL, 0, kernel, &shape, RILL_ARGS(cells), &node));
  assert_ok(rill_graph_add_event_record(graph, &node, 1, event, &node));
  assert_ok(rill_event_release(event));
  assert_ok(rill_kernel_release(kernel));
  assert_ok(rill_module_release(module));
  return graph;
}

static void modules_and_events_are_released_with_the_graph(void) {
  begin();
  const size_t modules = vendor.fake->live("module"), events = vendor.fake->live("event");
  for (int i = 0; i < 3; i++) {
    const rill_graph graph = keeping_graph();
    assert_int_equal(vendor.fake->live("module"), modules + 1);
    assert_int_equal(vendor.fake->live("event"), events + 1);
    assert_ok(rill_graph_release(graph));
    assert_int_equal(vendor.fake->live("module"), modules);
    assert_int_equal(vendor.fake->live("event"), events);
  }
  end();
}

static void modules_are_unloaded_after_a_host_wait(void) {
  begin();
  rill_graph_exec exec;
  const size_t modules = vendor.fake->live("module"), graphs = vendor.fake->live("graph");
  for (int i = 0; i < 3; i++) {
    const rill_graph graph = keeping_graph();
    assert_ok(rill_graph_instantiate(graph, &exec));
    vendor.fake->pause(0);
    assert_ok(rill_graph_launch(exec, stream));
    assert_ok(rill_graph_exec_release(exec));
    assert_ok(rill_graph_release(graph));
    assert_int_equal(vendor.fake->live("module"), modules + 1);
    vendor.fake->resume(0);
    assert_ok(rill_stream_synchronize(stream));
    assert_int_equal(vendor.fake->live("module"), modules);
    assert_int_equal(vendor.fake->live("graph"), graphs);
  }
  end();
}

static void do_nothing(void *user, rill_status status) { (void)user, (void)status; }

/* Each change of such a size replaces the driver's object, on CUDA, while a launch of the one before is under way. */
static void replaced_objects_are_destroyed_after_their_launches(void) {
  const uint32_t value = 1;
  const uint64_t wide = UINT64_C(0x100000002);
  rill_graph graph;
  rill_graph_node fill, call;
  rill_graph_exec exec;
  begin();
  assert_ok(rill_graph_create(vendor.device, &graph));
  assert_ok(rill_graph_add_fill(graph, NULL, 0, cells, &value, sizeof value, 2, &fill));
  assert_ok(rill_graph_add_host_call(graph, &fill, 1, do_nothing, NULL, &call));
  assert_ok(rill_graph_instantiate(graph, &exec));
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_stream_synchronize(stream));
  const size_t live = vendor.fake->live("*");
  for (int i = 0; i < 5; i++) {
    vendor.fake->pause(0);
    assert_ok(rill_graph_launch(exec, stream));
    assert_ok(rill_graph_exec_set_fill(exec, fill, cells, &wide, sizeof wide, 1));
    assert_ok(rill_graph_launch(exec, stream));
    assert_ok(rill_graph_exec_set_fill(exec, fill, cells, &value, sizeof value, 2));
    assert_ok(rill_graph_update(exec, graph));
    assert_ok(rill_graph_launch(exec, stream));
    assert_true(vendor.fake->live("*") > live);
    vendor.fake->resume(0);
    assert_ok(rill_stream_synchronize(stream));
    assert_int_equal(vendor.fake->live("*"), live);
  }
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
  end();
}

TESTS_ONCE("destruction of vendor objects", TEST(modules_and_events_are_released_with_the_graph),
           TEST(modules_are_unloaded_after_a_host_wait), TEST(replaced_objects_are_destroyed_after_their_launches))
