/* Resources of released objects are freed when the releasing call returns, or by the later call that the contract names
 * (C1.3). The same holds for resources that an update replaces (C7.1). */
#include "graphs.h"

#include <rill/pool.h>

#include <sched.h>

enum { MIB = 1 << 20 };

static _Atomic unsigned released;

static void count_release(void *user) { (void)atomic_fetch_add((_Atomic unsigned *)user, 1); }

/* Returns the bytes in use of the default pool. */
static uint64_t used(void) {
  rill_pool pool;
  rill_pool_info info = RILL_POOL_INFO_INIT;
  assert_ok(rill_pool_default(dut.device, &pool));
  assert_ok(rill_pool_get_info(pool, &info));
  return info.used;
}

/* Returns the used bytes of the device, or 0 if other programs may use the device. */
static uint64_t taken(void) {
  uint64_t free_bytes = 0, total = 0;
  assert_ok(rill_device_get_memory(dut.device, &free_bytes, &total));
  const char *known = getenv(dut.gpu ? "RILL_FAKE_DEVICES" : "RILL_CPU_MEMORY");
  return known != NULL ? total - free_bytes : 0;
}

/* Returns more than half of the memory of a device with 1 GiB. */
static size_t large(void) { return dut.info.memory_total == (uint64_t)1024 * MIB ? (size_t)600 * MIB : 40 * MIB; }

/* Creates a graph with its own memory and a user object, which writes to a cell on the host. */
static rill_graph graph_with_cell(size_t bytes, unsigned cell) {
  rill_graph graph = new_graph();
  rill_graph_node node, write;
  void *p = NULL;
  const uint32_t value = 3;
  assert_ok(rill_graph_add_alloc(graph, NULL, 0, bytes, &p, &node));
  assert_ok(rill_graph_add_fill(graph, &node, 1, p, &value, sizeof value, 16, &write));
  assert_ok(rill_graph_add_copy(graph, &write, 1, dut.host + cell, p, sizeof value, &node));
  assert_ok(rill_graph_add_user_object(graph, count_release, &released));
  return graph;
}

static rill_graph graph_with(size_t bytes) { return graph_with_cell(bytes, 0); }

static void start(void) {
  needs_graphs();
  atomic_store(&released, 0);
}

static void memory_is_freed_with_the_graph(void) {
  start();
  const uint64_t before = taken();
  const uint64_t used_before = used();
  for (int i = 0; i < 3; i++) {
    rill_graph graph = graph_with(large());
    void *p = NULL;
    assert_true(used() >= used_before + large());
    assert_ok(rill_graph_release(graph));
    assert_int_equal(taken(), before);
    assert_int_equal(used(), used_before);
    assert_ok(rill_alloc(dut.device, large(), RILL_MEMORY_DEVICE, &p));
    assert_ok(rill_free(p));
  }
}

static void memory_is_freed_after_a_host_wait(void) {
  start();
  rill_stream stream = new_stream("stream");
  const uint64_t before = taken(), used_before = used();
  for (unsigned i = 0; i < 3; i++) {
    rill_graph graph = graph_with(large());
    rill_graph_exec exec = new_exec(graph);
    struct gate *gate = gate_close(stream);
    assert_ok(rill_graph_launch(exec, stream));
    assert_ok(rill_graph_exec_release(exec));
    assert_ok(rill_graph_release(graph));
    assert_int_equal(atomic_load(&released), i);
    assert_true(used() >= used_before + large());
    gate_open(gate);
    assert_ok(rill_stream_synchronize(stream));
    assert_int_equal(atomic_load(&released), i + 1);
    assert_int_equal(taken(), before);
    assert_int_equal(used(), used_before);
  }
}

/* No release and no synchronize waits for other streams. A GPU driver would wait when memory is freed, so the pool
 * keeps the memory until then. */
static void does_not_wait_for_other_streams(void) {
  start();
  rill_stream stream = new_stream("stream"), other = new_stream("other");
  const uint64_t before = taken(), used_before = used();
  struct gate *gate = gate_close(other);
  rill_graph graph = graph_with(large());
  rill_graph_exec exec = new_exec(graph);
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_stream_synchronize(stream));
  assert_int_equal(atomic_load(&released), 1);
  assert_int_equal(used(), used_before);
  if (!dut.gpu) assert_int_equal(taken(), before);
  graph = graph_with(large()); /* on a GPU the memory is from the pool */
  assert_ok(rill_graph_release(graph));
  if (!dut.gpu) assert_int_equal(taken(), before);
  assert_false(is_complete(other));
  gate_open(gate);
  assert_ok(rill_stream_synchronize(other));
  assert_int_equal(taken(), before);
}

/* ---- the first later call ---- */

static rill_stream a_stream;
static rill_event an_event;

static void create_event(void) {
  rill_event event;
  assert_ok(rill_event_create(dut.device, NULL, &event));
  keep_event_until_end(event);
}
static void query_event(void) {
  bool ready = false;
  assert_ok(rill_event_is_ready(an_event, &ready));
}
static void query_stream(void) {
  bool complete = false;
  assert_ok(rill_stream_is_complete(a_stream, &complete));
}
static void get_priority(void) {
  int32_t priority = 0;
  assert_ok(rill_stream_priority(a_stream, &priority));
}
static void get_info(void) {
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  assert_ok(rill_device_get_info(dut.device, &info));
}
static void get_memory(void) {
  uint64_t free_bytes = 0, total = 0;
  assert_ok(rill_device_get_memory(dut.device, &free_bytes, &total));
}
static void fail_query(void) {
  bool ready = false;
  assert_fails(rill_event_is_ready(RILL_NULL_EVENT, &ready), RILL_ERROR_INVALID_HANDLE);
}
static void release_nothing(void) { assert_ok(rill_stream_release(RILL_NULL_STREAM)); }
static void synchronize_event(void) { assert_ok(rill_event_synchronize(an_event)); }
static void synchronize_for(void) { assert_ok(rill_stream_synchronize_for(a_stream, 0)); }
static void synchronize_device(void) { assert_ok(rill_device_synchronize(dut.device)); }

static void raise_flag(void *user, rill_status status) {
  (void)status;
  atomic_store((_Atomic bool *)user, true);
}

/* Once the work is complete, any call except a submission frees the resources; the host learns of the completion
 * without a rill call. */
static void any_later_call_frees_it(void) {
  static void (*const calls[])(void) = { create_event,      query_event,     query_stream,      get_priority,
                                         get_info,          get_memory,      fail_query,        release_nothing,
                                         synchronize_event, synchronize_for, synchronize_device };
  start();
  a_stream = new_stream("stream");
  an_event = new_event("event");
  for (unsigned i = 0; i < sizeof calls / sizeof *calls; i++) {
    static _Atomic bool done;
    rill_graph graph = graph_with(4096);
    rill_graph_exec exec = new_exec(graph);
    atomic_store(&done, false);
    struct gate *gate = gate_close(a_stream);
    assert_ok(rill_graph_launch(exec, a_stream));
    assert_ok(rill_graph_exec_release(exec));
    assert_ok(rill_graph_release(graph));
    assert_ok(rill_stream_record_event(a_stream, an_event, 0));
    assert_ok(rill_stream_host_call(a_stream, raise_flag, &done));
    gate_open(gate);
    while (!atomic_load(&done)) (void)sched_yield();
    assert_int_equal(atomic_load(&released), i);
    calls[i]();
    assert_int_equal(atomic_load(&released), i + 1);
    assert_ok(rill_stream_synchronize(a_stream));
  }
}

/* If many objects are pending, those for which the host has waited are freed. With about thirty executable graphs in
 * use, NVIDIA's driver makes cuGraphInstantiate wait for the device (580.159). */
static void completed_ones_of_many_are_freed(void) {
  const unsigned many = dut.gpu && getenv("RILL_FAKE_DEVICES") == NULL ? 16 : 200;
  start();
  rill_stream streams[2] = { new_stream("first"), new_stream("second") };
  const uint64_t used_before = used();
  struct gate *gates[2] = { gate_close(streams[0]), gate_close(streams[1]) };
  for (unsigned i = 0; i < many; i++) {
    rill_graph graph = graph_with_cell(4096, i % 2);
    rill_graph_exec exec = new_exec(graph);
    assert_ok(rill_graph_release(graph));
    assert_ok(rill_graph_launch(exec, streams[i % 2]));
    assert_ok(rill_graph_exec_release(exec));
  }
  assert_int_equal(atomic_load(&released), 0);
  for (unsigned i = 0; i < 2; i++) {
    gate_open(gates[i]);
    assert_ok(rill_stream_synchronize(streams[i]));
    assert_int_equal(atomic_load(&released), many / 2 * (i + 1));
  }
  assert_int_equal(used(), used_before);
}

/* ---- updates ---- */

/* After an update the object keeps only what its steps use now, and the node names of the graph from which it was
 * created. */
static void an_update_releases_the_first_graph(void) {
  start();
  rill_stream stream = new_stream("stream");
  const uint64_t used_before = used();
  rill_graph first = graph_with(4 * MIB);
  rill_graph_node nodes[3];
  size_t count = 3;
  uint32_t kind = 0;
  assert_ok(rill_graph_get_nodes(first, nodes, &count));
  rill_graph_exec exec = new_exec(first);
  run_exec(exec);
  assert_ok(rill_graph_release(first));
  assert_int_equal(atomic_load(&released), 0);
  assert_true(used() >= used_before + 4 * MIB);
  for (unsigned i = 0; i < 5; i++) {
    rill_graph next = graph_with(MIB);
    const bool busy = i % 2 == 1;
    struct gate *gate = busy ? gate_close(stream) : NULL;
    if (busy) assert_ok(rill_graph_launch(exec, stream));
    assert_ok(rill_graph_update(exec, next));
    assert_ok(rill_graph_release(next));
    assert_int_equal(atomic_load(&released), busy ? i : i + 1);
    if (busy) gate_open(gate);
    assert_ok(rill_stream_synchronize(stream));
    assert_int_equal(atomic_load(&released), i + 1);
    assert_in_range(used(), used_before + MIB, used_before + 2 * MIB);
    run_exec(exec);
    assert_int_equal(dut.host[0], 3);
  }
  const uint32_t value = 9;
  assert_ok(rill_graph_node_kind(nodes[1], &kind)); /* node handles of the first graph are still valid */
  assert_int_equal(kind, RILL_NODE_FILL);
  assert_ok(rill_graph_exec_set_copy(exec, nodes[2], dut.host + 1, dut.memory, sizeof value));
  assert_ok(rill_graph_exec_set_fill(exec, nodes[1], dut.memory, &value, sizeof value, 1));
  run_exec(exec);
  assert_int_equal(dut.host[1], 9);
  assert_ok(rill_graph_exec_release(exec));
  assert_int_equal(atomic_load(&released), 6);
  assert_int_equal(used(), used_before);
  assert_fails(rill_graph_node_kind(nodes[1], &kind), RILL_ERROR_STALE_HANDLE);
}

/* Several execution objects share the node names, and each keeps what it uses. */
static void names_stay_with_the_last_object(void) {
  start();
  rill_graph graph = new_graph();
  rill_graph_node node = add_increment(graph, NULL, 0, dut.host, NULL);
  rill_graph_exec first = new_exec(graph), second = new_exec(graph);
  unsigned *const to = dut.host + 2;
  const rill_launch launch = rill_launch_1d(1, 1);
  uint32_t kind = 0;
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_graph_exec_release(first));
  assert_ok(rill_graph_exec_set_kernel_arg(second, node, 0, &to, sizeof to));
  run_exec(second);
  assert_ok(rill_graph_exec_set_kernel(second, node, &launch, RILL_ARGS(to)));
  run_exec(second);
  assert_int_equal(dut.host[2], 2);
  assert_ok(rill_graph_exec_release(second));
  assert_fails(rill_graph_node_kind(node, &kind), RILL_ERROR_STALE_HANDLE);
}

TESTS_ON_EACH_DEVICE("releases", TEST(memory_is_freed_with_the_graph), TEST(memory_is_freed_after_a_host_wait),
                     TEST(does_not_wait_for_other_streams), TEST(any_later_call_frees_it),
                     TEST(completed_ones_of_many_are_freed), TEST(an_update_releases_the_first_graph),
                     TEST(names_stay_with_the_last_object))
