/* rill_stream_launch with attributes: each attribute works or is refused with UNSUPPORTED and the reason (C1.8). */
#include "support/testing.h"

#include "launch.rill.h"

#include <math.h>
#include <stdio.h>

static rill_stream stream;
static rill_kernel store;

static void set_scene(void) {
  stream = new_stream("stream");
  store = new_kernel(&launch_bundle, "store");
}

static rill_status launch_grid(rill_dim3 grid, const rill_launch_attribute *attributes, size_t count) {
  rill_launch launch = rill_launch_1d(1, 1);
  unsigned *out = dut.memory;
  launch.grid = grid;
  launch.attributes = attributes;
  launch.attribute_count = count;
  return rill_stream_launch(stream, store, &launch, RILL_ARGS(7u, out));
}

static rill_status launch(const rill_launch_attribute *attributes, size_t count) {
  return launch_grid((rill_dim3){ 1, 1, 1 }, attributes, count);
}

static rill_launch_attribute number(uint32_t kind, int32_t value) {
  rill_launch_attribute attribute = { kind, 0, { 0 } };
  attribute.value.i32 = value;
  return attribute;
}

static void refuses(rill_launch_attribute attribute, rill_status status, const char *text) {
  assert_fails_in("rill_stream_launch", launch(&attribute, 1), status);
  assert_says(text);
}

/* Checks that the launch runs, or that the refusal names the attribute and the device; returns false for a refusal. */
static bool works(rill_launch_attribute attribute, const char *name) {
  const uint32_t zero = 0;
  assert_ok(rill_fill_async(stream, dut.memory, &zero, sizeof zero, 1));
  spoil_last_error();
  const rill_status status = launch(&attribute, 1);
  if (status == RILL_OK) {
    read_cell(stream, 0);
    assert_completes(stream);
    assert_int_equal(dut.host[0], 7);
    return true;
  }
  if (status != RILL_ERROR_UNSUPPORTED) print_error("%s: %s\n", name, rill_last_error_text());
  assert_int_equal(status, RILL_ERROR_UNSUPPORTED);
  assert_says(name);
  assert_says(dut.name);
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 0); /* the kernel did not run */
  return false;
}

/* C1.6: refuses the same attribute twice, and unknown flags. */
static void refuses_duplicates_and_unknown_flags(void) {
  set_scene();
  const rill_launch_attribute twice[] = { number(RILL_ATTR_COOPERATIVE, 0), number(RILL_ATTR_COOPERATIVE, 0) };
  assert_fails_in("rill_stream_launch", launch(twice, 2), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("twice");
  for (uint32_t kind = RILL_ATTR_COOPERATIVE; kind < RILL_ATTR_END_; kind++) {
    rill_launch_attribute attribute = number(kind, 0);
    attribute.flags = 2;
    refuses(attribute, RILL_ERROR_INVALID_ARGUMENT, "flags");
    attribute.flags = RILL_ATTR_TRIGGER_AT_BLOCK_START;
    if (kind != RILL_ATTR_PROGRAMMATIC_EVENT) refuses(attribute, RILL_ERROR_INVALID_ARGUMENT, "flags");
  }
  const uint32_t switches[] = { RILL_ATTR_COOPERATIVE, RILL_ATTR_PROGRAMMATIC_SERIALIZATION };
  for (int i = 0; i < 2; i++) {
    refuses(number(switches[i], 2), RILL_ERROR_INVALID_ARGUMENT, "2");
    refuses(number(switches[i], -1), RILL_ERROR_INVALID_ARGUMENT, "-1");
    assert_ok(launch((const rill_launch_attribute[]){ number(switches[i], 0) }, 1)); /* the value 0 requests nothing */
  }
  refuses(number(RILL_ATTR_MEMORY_SYNC_DOMAIN, 2), RILL_ERROR_OUT_OF_RANGE, "2");
  refuses(number(RILL_ATTR_CARVEOUT, 101), RILL_ERROR_OUT_OF_RANGE, "101");
  refuses(number(RILL_ATTR_CARVEOUT, -2), RILL_ERROR_OUT_OF_RANGE, "-2");
  assert_completes(stream);
}

/* L9: as RILL_FEATURE_COOPERATIVE says; a grid whose blocks cannot be resident together is refused, with the largest
 * possible number of blocks. */
static void cooperative_launches_work_if_supported(void) {
  set_scene();
  const rill_launch_attribute on = number(RILL_ATTR_COOPERATIVE, 1);
  uint32_t most = 0;
  const bool supported = rill_device_supports(dut.device, RILL_FEATURE_COOPERATIVE, NULL);
  assert_int_equal(works(on, "RILL_ATTR_COOPERATIVE"), supported);
  if (!supported) return;
  assert_ok(rill_kernel_cooperative_blocks(store, 1, 0, &most));
  assert_ok(launch_grid((rill_dim3){ most, 1, 1 }, &on, 1));
  assert_fails_in("rill_stream_launch", launch_grid((rill_dim3){ most + 1, 1, 1 }, &on, 1), RILL_ERROR_OUT_OF_RANGE);
  char text[16];
  (void)snprintf(text, sizeof text, "%u", most);
  assert_says(text);
  assert_fails_in("rill_stream_launch", launch_grid((rill_dim3){ dut.info.max_grid_dim[0], 65535, 65535 }, &on, 1),
                  RILL_ERROR_OUT_OF_RANGE);
  assert_completes(stream);
}

static void numeric_attributes_work_or_say_why_not(void) {
  set_scene();
  const int32_t priorities[] = { 0, -1, RILL_PRIORITY_HIGH, RILL_PRIORITY_LOW, INT32_MIN, INT32_MAX };
  for (size_t i = 0; i < sizeof priorities / sizeof *priorities; i++) {
    (void)works(number(RILL_ATTR_PRIORITY, priorities[i]), "RILL_ATTR_PRIORITY"); /* clamped */
  }
  (void)works(number(RILL_ATTR_PROGRAMMATIC_SERIALIZATION, 1), "RILL_ATTR_PROGRAMMATIC_SERIALIZATION");
  for (int32_t i = 0; i < 2; i++) (void)works(number(RILL_ATTR_MEMORY_SYNC_DOMAIN, i), "RILL_ATTR_MEMORY_SYNC_DOMAIN");
  const int32_t carveouts[] = { -1, 0, 50, 100 };
  for (int i = 0; i < 4; i++) (void)works(number(RILL_ATTR_CARVEOUT, carveouts[i]), "RILL_ATTR_CARVEOUT");
}

static rill_launch_attribute access_to(void *base, size_t size, float ratio, uint32_t hit, uint32_t miss) {
  rill_launch_attribute attribute = { RILL_ATTR_ACCESS_POLICY, 0, { 0 } };
  attribute.value.access.base = base;
  attribute.value.access.size = size;
  attribute.value.access.hit_ratio = ratio;
  attribute.value.access.hit = hit;
  attribute.value.access.miss = miss;
  return attribute;
}

static void access_policies_work_or_say_why_not(void) {
  set_scene();
  const size_t size = CELLS * sizeof(uint32_t);
  uint32_t *memory = dut.memory;
  refuses(access_to(memory, size, -0.5f, 0, 0), RILL_ERROR_OUT_OF_RANGE, "-0.5");
  refuses(access_to(memory, size, 1.5f, 0, 0), RILL_ERROR_OUT_OF_RANGE, "1.5");
  refuses(access_to(memory, size, NAN, 0, 0), RILL_ERROR_OUT_OF_RANGE, "hit_ratio");
  refuses(access_to(memory, size, 1, 3, 0), RILL_ERROR_INVALID_ARGUMENT, "3");
  refuses(access_to(memory, size, 1, 0, RILL_ACCESS_PERSISTING), RILL_ERROR_INVALID_ARGUMENT, "PERSISTING");
  refuses(access_to(NULL, size, 1, 0, 0), RILL_ERROR_INVALID_ARGUMENT, "NULL");
  if (!works(access_to(memory, size, 0.5f, RILL_ACCESS_PERSISTING, RILL_ACCESS_STREAMING), "RILL_ATTR_ACCESS_POLICY"))
    return;
  assert_true(works(access_to(NULL, 0, 0, 0, 0), "RILL_ATTR_ACCESS_POLICY"));
  refuses(access_to(memory, size + 1, 1, 0, 0), RILL_ERROR_OUT_OF_RANGE, "extend past the end");
  refuses(access_to(memory, SIZE_MAX / 2, 1, 0, 0), RILL_ERROR_OUT_OF_RANGE, "limit");
}

static rill_launch_attribute event_of(rill_event event) {
  rill_launch_attribute attribute = { RILL_ATTR_PROGRAMMATIC_EVENT, 0, { 0 } };
  attribute.value.event = event;
  return attribute;
}

static rill_status call_with_event(uint64_t id) {
  const rill_launch_attribute attribute = event_of((rill_event){ id });
  set_scene();
  return launch(&attribute, 1);
}

static void refuses_bad_event_handles(void) { refuses_bad_events("rill_stream_launch", call_with_event); }

/* The event is recorded as by rill_stream_record_event. */
static void events_are_recorded_or_say_why_not(void) {
  set_scene();
  rill_event event = new_event("event"), cached;
  rill_stream other = new_stream("other");
  assert_ok(rill_stream_cached_event(stream, &cached));
  refuses(event_of(cached), RILL_ERROR_INVALID_ARGUMENT, "cached");
  refuses(event_of(new_timing_event("timing")), RILL_ERROR_INVALID_ARGUMENT, "timing");
  if (dut.second.id != 0) {
    const rill_launch_attribute far = event_of(new_event_on(dut.second, "far"));
    assert_fails_in("rill_stream_launch", launch(&far, 1), RILL_ERROR_WRONG_DEVICE);
  }
  rill_launch_attribute attribute = event_of(event);
  bool recorded = true;
  if (!works(attribute, "RILL_ATTR_PROGRAMMATIC_EVENT")) {
    assert_ok(rill_event_is_recorded(event, &recorded));
    assert_false(recorded);
    return;
  }
  assert_ok(rill_event_is_recorded(event, &recorded));
  assert_true(recorded);
  assert_becomes_ready(event);
  assert_true(is_ready(event));
  struct gate *gate = gate_close(stream); /* queried again, because the first completion is cached */
  attribute.flags = RILL_ATTR_TRIGGER_AT_BLOCK_START;
  assert_ok(launch(&attribute, 1));
  assert_false(is_ready(event));
  assert_ok(rill_stream_wait_event(other, event, 0));
  read_cell(other, 0);
  assert_false(is_complete(other));
  gate_open(gate);
  assert_completes(other);
  assert_becomes_ready(event);
  assert_completes(stream);
}

/* C3.8: it releases streams that are held for its first record; on a held stream it is refused. */
static void events_release_held_streams(void) {
  set_scene();
  rill_event event = new_event("event"), first = new_event("first");
  const rill_launch_attribute attribute = event_of(event);
  if (!works(event_of(new_event("try")), "RILL_ATTR_PROGRAMMATIC_EVENT")) return;
  rill_stream held = new_stream("held");
  assert_ok(rill_stream_wait_event(held, event, 0));
  write_cell(held, 1, 5);
  read_cell(held, 1);
  assert_ok(launch(&attribute, 1));
  assert_completes(held);
  assert_int_equal(dut.host[1], 5);
  stream = new_stream("held too");
  assert_ok(rill_stream_wait_event(stream, first, 0));
  assert_fails_in("rill_stream_launch", launch(&attribute, 1), RILL_ERROR_UNSUPPORTED);
  assert_says("held");
  assert_ok(rill_stream_record_event(new_stream("recorder"), first, 0));
  assert_completes(stream);
}

/* In a capture, another stream can join through the event; its work comes after the kernel at every launch of the
 * graph. */
static void events_fork_captures(void) {
  set_scene();
  if (!works(event_of(new_event("try")), "RILL_ATTR_PROGRAMMATIC_EVENT")) return;
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) return;
  rill_event event = new_event("event"), back = new_event("back");
  rill_stream other = new_stream("other");
  rill_graph graph;
  rill_graph_exec exec;
  const rill_launch_attribute attributes[] = { event_of(event), number(RILL_ATTR_PROGRAMMATIC_SERIALIZATION, 1) };
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_THREAD));
  write_cell(stream, 0, 0);
  assert_ok(launch(attributes, 1));
  assert_ok(launch(attributes, 2)); /* it follows a kernel that may let it start early */
  assert_ok(rill_stream_wait_event(other, event, 0));
  read_cell(other, 0);
  assert_ok(rill_stream_record_event(other, back, 0));
  assert_ok(rill_stream_wait_event(stream, back, 0));
  assert_ok(rill_stream_capture_end(stream, &graph));
  assert_ok(rill_graph_instantiate(graph, &exec));
  for (int i = 0; i < 2; i++) {
    dut.host[0] = 0;
    assert_ok(rill_graph_launch(exec, stream));
    assert_completes(stream);
    assert_int_equal(dut.host[0], 7);
  }
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
}

/* C3.8: attributes are copied at the call. */
static void held_launches_keep_attributes(void) {
  set_scene();
  rill_launch_attribute attribute = number(RILL_ATTR_PRIORITY, RILL_PRIORITY_HIGH);
  const bool supported = works(attribute, "RILL_ATTR_PRIORITY");
  rill_event event = new_event("event");
  assert_ok(rill_stream_wait_event(stream, event, 0));
  write_cell(stream, 0, 0);
  assert_int_equal(launch(&attribute, 1), supported ? RILL_OK : RILL_ERROR_UNSUPPORTED);
  memset(&attribute, 0x5a, sizeof attribute);
  read_cell(stream, 0);
  assert_ok(rill_stream_record_event(new_stream("other"), event, 0));
  assert_completes(stream);
  assert_int_equal(dut.host[0], supported ? 7 : 0);
}

/* G38: captured nodes have the attributes. */
static void captured_nodes_keep_attributes(void) {
  set_scene();
  const rill_launch_attribute attribute = number(RILL_ATTR_PRIORITY, RILL_PRIORITY_HIGH);
  rill_graph graph;
  rill_graph_exec exec;
  if (!works(attribute, "RILL_ATTR_PRIORITY") || !rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) return;
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_THREAD));
  write_cell(stream, 0, 0);
  assert_ok(launch(&attribute, 1));
  read_cell(stream, 0);
  assert_ok(rill_stream_capture_end(stream, &graph));
  assert_ok(rill_graph_instantiate(graph, &exec));
  assert_ok(rill_graph_launch(exec, stream));
  assert_completes(stream);
  assert_int_equal(dut.host[0], 7);
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
}

/* Several attributes together, and with a cluster. */
static void several_attributes_combine(void) {
  set_scene();
  const rill_launch_attribute attributes[] = { number(RILL_ATTR_PRIORITY, 0), number(RILL_ATTR_MEMORY_SYNC_DOMAIN, 1),
                                               number(RILL_ATTR_COOPERATIVE, 1) };
  for (int i = 0; i < 3; i++) {
    const char *const names[] = { "RILL_ATTR_PRIORITY", "RILL_ATTR_MEMORY_SYNC_DOMAIN", "RILL_ATTR_COOPERATIVE" };
    if (!works(attributes[i], names[i])) return;
  }
  rill_launch launch_of_pairs = rill_launch_1d(2, 1);
  unsigned *out = dut.memory;
  launch_of_pairs.cluster.x = 2;
  launch_of_pairs.attributes = attributes;
  launch_of_pairs.attribute_count = 3;
  write_cell(stream, 0, 0);
  assert_ok(rill_stream_launch(stream, store, &launch_of_pairs, RILL_ARGS(7u, out)));
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 7);
}

TESTS_ON_EACH_DEVICE("rill_stream_launch with attributes", TEST(refuses_duplicates_and_unknown_flags),
                     TEST(cooperative_launches_work_if_supported), TEST(numeric_attributes_work_or_say_why_not),
                     TEST(access_policies_work_or_say_why_not), TEST(refuses_bad_event_handles),
                     TEST(events_are_recorded_or_say_why_not), TEST(events_release_held_streams),
                     TEST(events_fork_captures), TEST(captured_nodes_keep_attributes),
                     TEST(held_launches_keep_attributes), TEST(several_attributes_combine))
