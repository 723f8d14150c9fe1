/* Launches and changes graphs repeatedly: neither the heap, nor the pool, nor the driver's memory may grow (C7.1).
 * RILL_STRESS=1000 runs 10,000 rounds. */
#include "support/testing.h"

#include "gate.rill.h"

#include <rill/bundle.h>
#include <rill/pool.h>

#include <malloc.h>

enum { IN_FLIGHT = 16 };

static rill_stream streams[2];
static rill_kernel increment;

/* Bytes in use when all work is complete. */
struct in_use {
  uint64_t heap, pool, reserved, device;
};

static struct in_use measure(void) {
  struct in_use now = { 0 };
  rill_pool pool;
  rill_pool_info info = RILL_POOL_INFO_INIT;
  uint64_t free_bytes = 0, total = 0;
  assert_ok(rill_device_synchronize(dut.device));
  assert_ok(rill_pool_default(dut.device, &pool));
  assert_ok(rill_pool_get_info(pool, &info));
  if (dut.gpu) assert_ok(rill_device_get_memory(dut.device, &free_bytes, &total));
  now.heap = mallinfo2().uordblks;
  now.pool = info.used;
  now.reserved = info.reserved;
  now.device = total - free_bytes;
  return now;
}

/* Returns the permitted growth of the heap. A real driver allocates some memory, and the allocator keeps some unless
 * its caches are off. A worker thread of the cpu device allocates a flight recorder (8 KiB) when it first needs one. */
static uint64_t heap_margin(void) {
  if (dut.gpu && getenv("RILL_FAKE_DEVICES") == NULL) return 4 << 20;
  return getenv("GLIBC_TUNABLES") == NULL ? 256 << 10 : 48 << 10;
}

/* Allows 16 MiB on the device, because other programs may use it. */
static void assert_no_growth(const struct in_use *before, struct in_use after) {
  print_message("heap %llu, later %llu; pool %llu, later %llu; device %llu, later %llu\n",
                (unsigned long long)before->heap, (unsigned long long)after.heap, (unsigned long long)before->pool,
                (unsigned long long)after.pool, (unsigned long long)before->device, (unsigned long long)after.device);
  assert_true(after.heap <= before->heap + heap_margin());
  assert_true(after.pool <= before->pool);
  assert_true(after.reserved <= before->reserved);
  assert_true(after.device <= before->device + (16 << 20));
}

static void set_scene(void) {
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  for (int i = 0; i < 2; i++) streams[i] = new_stream("of two");
  increment = new_kernel(&gate_bundle, "increment");
}

/* Measures a round while no other round is in progress, so that leftovers of earlier rounds are released. */
static struct in_use measure_round(void (*round)(unsigned number), unsigned number) {
  for (int i = 0; i < 2; i++) assert_completes(streams[i]);
  round(number);
  return measure();
}

/* After a quarter of the rounds, all caches are filled. */
static void run_rounds(void (*round)(unsigned number)) {
  const unsigned rounds = scaled(1000);
  struct in_use before = { 0 };
  for (unsigned i = 0; i + 1 < rounds; i++) {
    if (i == rounds / 4) before = measure_round(round, i);
    else round(i);
    if (i % IN_FLIGHT == 0) assert_completes(streams[i / IN_FLIGHT % 2]);
  }
  assert_no_growth(&before, measure_round(round, rounds - 1));
}

/* Launches of one object are ordered with each other. Launches of different objects are ordered only by their stream,
 * so the graphs of each stream write a word of their own. */
static int stream_of(unsigned number) { return number % 3 == 0; }

static rill_graph_exec exec;
static rill_graph_node node;

static void change_an_argument(unsigned number) {
  uint32_t *const to = dut.host + number % 2;
  assert_ok(rill_graph_exec_set_kernel_arg(exec, node, 0, &to, sizeof to));
  assert_ok(rill_graph_launch(exec, streams[stream_of(number)]));
}

static void argument_changes_do_not_grow(void) {
  const rill_launch launch = rill_launch_1d(1, 1);
  rill_graph graph;
  set_scene();
  assert_ok(rill_graph_create(dut.device, &graph));
  assert_ok(rill_graph_add_kernel(graph, NULL, 0, increment, &launch, RILL_ARGS(dut.host), &node));
  assert_ok(rill_graph_instantiate(graph, &exec));
  run_rounds(change_an_argument);
  assert_int_equal(dut.host[0] + dut.host[1], scaled(1000));
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
}

static uint32_t pageable[2][64];

static void change_a_pageable_source(unsigned number) {
  assert_ok(rill_graph_exec_set_copy(exec, node, dut.memory, pageable[number % 2], sizeof pageable[0] - number % 3));
  assert_ok(rill_graph_launch(exec, streams[stream_of(number)]));
}

static void pageable_source_changes_do_not_grow(void) {
  rill_graph graph;
  set_scene();
  assert_ok(rill_graph_create(dut.device, &graph));
  assert_ok(rill_graph_add_copy(graph, NULL, 0, dut.memory, pageable[0], sizeof pageable[0], &node));
  assert_ok(rill_graph_instantiate(graph, &exec));
  run_rounds(change_a_pageable_source);
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
}

static void count_call(void *user, rill_status status) {
  (void)status;
  (void)__atomic_add_fetch((unsigned *)user, 1, __ATOMIC_SEQ_CST);
}

static unsigned calls, released;

static void count_release(void *user) { (*(unsigned *)user)++; }

static rill_graph new_child(void) {
  const rill_launch launch = rill_launch_1d(1, 1);
  rill_graph child;
  rill_graph_node last;
  assert_ok(rill_graph_create(dut.device, &child));
  assert_ok(rill_graph_add_kernel(child, NULL, 0, increment, &launch, RILL_ARGS(dut.host), &last));
  assert_ok(rill_graph_add_host_call(child, &last, 1, count_call, &calls, &last));
  return child;
}

/* Builds a graph with a child graph, a copy through graph memory to the host, and a user object that is released with
 * the graph. */
static rill_graph new_large_graph(uint32_t value) {
  rill_graph graph, child = new_child();
  rill_graph_node last;
  void *memory = NULL;
  assert_ok(rill_graph_create(dut.device, &graph));
  assert_ok(rill_graph_add_child(graph, NULL, 0, child, &last));
  assert_ok(rill_graph_add_alloc(graph, &last, 1, 4096, &memory, &last));
  assert_ok(rill_graph_add_fill(graph, &last, 1, memory, &value, sizeof value, 1024, &last));
  assert_ok(rill_graph_add_copy(graph, &last, 1, dut.host + 1 + stream_of(value), memory, sizeof value, &last));
  assert_ok(rill_graph_add_free(graph, &last, 1, memory, &last));
  assert_ok(rill_graph_add_user_object(graph, count_release, &released));
  assert_ok(rill_graph_release(child));
  return graph;
}

static void update_the_graph(unsigned number) {
  const rill_graph graph = new_large_graph(number);
  assert_ok(rill_graph_update(exec, graph));
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_graph_launch(exec, streams[stream_of(number)]));
}

static void check_launches(unsigned made) {
  for (int i = 0; i < 2; i++) assert_completes(streams[i]);
  assert_int_equal(dut.host[0], scaled(1000));
  assert_int_equal(calls, scaled(1000));
  assert_int_equal(dut.host[1 + stream_of(scaled(1000) - 1)], scaled(1000) - 1);
  (void)measure();
  assert_int_equal(released, made);
}

static void updates_do_not_grow(void) {
  set_scene();
  calls = released = 0;
  const rill_graph graph = new_large_graph(0);
  assert_ok(rill_graph_instantiate(graph, &exec));
  run_rounds(update_the_graph);
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
  check_launches(scaled(1000) + 1);
}

static void replace_the_object(unsigned number) {
  const rill_graph graph = new_large_graph(number);
  assert_ok(rill_graph_instantiate(graph, &exec));
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_graph_launch(exec, streams[stream_of(number)]));
  assert_ok(rill_graph_exec_release(exec));
}

static void replaced_objects_do_not_grow(void) {
  set_scene();
  calls = released = 0;
  run_rounds(replace_the_object);
  (void)measure();
  assert_int_equal(released, scaled(1000));
  assert_int_equal(calls, scaled(1000));
}

TESTS_ON_EACH_DEVICE("graph growth", TEST(argument_changes_do_not_grow), TEST(pageable_source_changes_do_not_grow),
                     TEST(updates_do_not_grow), TEST(replaced_objects_do_not_grow))
