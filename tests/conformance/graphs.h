/* Shared by the tests of graphs. */
#ifndef RILL_TESTS_CONFORMANCE_GRAPHS_H
#define RILL_TESTS_CONFORMANCE_GRAPHS_H

#include "support/testing.h"

#include "gate.rill.h"

#include <rill/bundle.h>
#include <rill/capture.h>
#include <rill/graph_compose.h>
#include <rill/graph_edit.h>
#include <stdio.h>

/* A device without graphs reports why, and its tests are skipped. */
static inline void needs_graphs(void) {
  const char *why = "";
  if (rill_device_supports(dut.device, RILL_FEATURE_GRAPH, &why)) return;
  rill_graph graph;
  assert_true(why[0] != '\0');
  assert_fails_in("rill_graph_create", rill_graph_create(dut.device, &graph), RILL_ERROR_UNSUPPORTED);
  skip_because(why);
}

static inline rill_graph new_graph(void) {
  rill_graph graph;
  needs_graphs();
  assert_ok(rill_graph_create(dut.device, &graph));
  keep_graph_until_end(graph);
  return graph;
}

static inline rill_graph_exec new_exec(rill_graph graph) {
  rill_graph_exec exec;
  assert_ok(rill_graph_instantiate(graph, &exec));
  keep_exec_until_end(exec);
  return exec;
}

/* Launches the graph once and waits for it. */
static inline void run_exec(rill_graph_exec exec) {
  rill_stream stream = new_stream("runs the graph");
  assert_ok(rill_graph_launch(exec, stream));
  assert_completes(stream);
}

static inline void run_graph(rill_graph graph) {
  rill_graph_exec exec = new_exec(graph);
  run_exec(exec);
  assert_ok(rill_graph_exec_release(exec));
}

/* Adds a node that writes `value` to cell `cell` of dut.memory, and a node that copies the cell to dut.host. */
static inline rill_graph_node add_write(rill_graph graph, const rill_graph_node *after, size_t count, unsigned cell,
                                        uint32_t value) {
  rill_graph_node node;
  assert_ok(rill_graph_add_fill(graph, after, count, dut.memory + cell, &value, sizeof value, 1, &node));
  return node;
}

static inline rill_graph_node add_read(rill_graph graph, const rill_graph_node *after, size_t count, unsigned cell) {
  rill_graph_node node;
  assert_ok(rill_graph_add_copy(graph, after, count, dut.host + cell, dut.memory + cell, sizeof *dut.host, &node));
  return node;
}

/* Adds a node that adds 1 to a cell of dut.host in each of `threads` threads. */
static inline rill_graph_node add_increment(rill_graph graph, const rill_graph_node *after, size_t count,
                                            unsigned *counter, const char *label) {
  rill_kernel kernel = new_kernel(&gate_bundle, "increment");
  rill_launch launch = rill_launch_1d(1, 1);
  rill_graph_node node;
  launch.label = label;
  assert_ok(rill_graph_add_kernel(graph, after, count, kernel, &launch, RILL_ARGS(counter), &node));
  return node;
}

/* Checks that invalid handles of graphs, execution objects and nodes are refused. */
static inline void refuses_bad_handle(const char *api, rill_status (*call)(uint64_t id), uint64_t live) {
  const uint64_t bad[] = { 0, 1, UINT64_MAX, dut.device.id, live | 0xffffffff, live ^ (UINT64_C(0x800000) << 32) };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_fails_in(api, call(bad[i]), RILL_ERROR_INVALID_HANDLE);
  }
}

static inline void refuses_bad_graphs(const char *api, rill_status (*call)(uint64_t id)) {
  rill_graph graph = new_graph();
  refuses_bad_handle(api, call, graph.id);
  assert_ok(rill_graph_release(graph));
  assert_fails_in(api, call(graph.id), RILL_ERROR_STALE_HANDLE);
}

static inline void refuses_bad_execs(const char *api, rill_status (*call)(uint64_t id)) {
  rill_graph graph = new_graph();
  rill_graph_exec exec = new_exec(graph);
  refuses_bad_handle(api, call, exec.id);
  assert_ok(rill_graph_exec_release(exec));
  assert_fails_in(api, call(exec.id), RILL_ERROR_STALE_HANDLE);
}

/* ---- bad nodes ---- */

/* Calls a function with a graph and nodes of it, the first of which is invalid. */
typedef rill_status (*node_call)(rill_graph graph, const rill_graph_node *nodes, size_t count);

enum { DOT_BYTES = 2000 };
static inline void read_dot(rill_graph graph, char *text) {
  size_t size = DOT_BYTES;
  assert_ok(rill_graph_get_dot(graph, text, &size));
  assert_true(size <= DOT_BYTES);
}

/* Checks that the call fails, names the node, and does not change the graph. */
static inline void refuses_node(const char *api, node_call call, rill_graph graph, uint64_t id, rill_status status) {
  const rill_graph_node node = { id };
  char before[DOT_BYTES], after[DOT_BYTES], number[24];
  read_dot(graph, before);
  assert_fails_in(api, call(graph, &node, 1), status);
  (void)snprintf(number, sizeof number, "0x%llx", (unsigned long long)id);
  assert_says(id == 0 ? "null" : number);
  read_dot(graph, after);
  assert_string_equal(before, after);
}

/* Checks that nodes which do not exist, or no longer exist, are refused. */
static inline void refuses_dead_nodes(const char *api, node_call call) {
  enum { MANY = 70 };
  rill_graph graph = new_graph(), other = new_graph();
  const rill_graph_node node = add_write(graph, NULL, 0, 0, 1), gone = add_write(graph, &node, 1, 0, 2);
  const rill_graph_node foreign = add_write(other, NULL, 0, 0, 1);
  const uint64_t never[] = {
    0, 1, UINT64_MAX, dut.device.id, graph.id, node.id | 0xffffffff, node.id + 32, node.id ^ (UINT64_C(0x800000) << 32)
  };
  rill_graph_node many[MANY], captured[2];
  rill_stream stream = new_stream("captures");
  size_t count = 2;
  for (size_t i = 0; i < sizeof never / sizeof *never; i++)
    refuses_node(api, call, graph, never[i], RILL_ERROR_INVALID_HANDLE);
  assert_ok(rill_graph_remove_node(graph, gone));
  refuses_node(api, call, graph, gone.id, RILL_ERROR_STALE_HANDLE);
  for (unsigned i = 0; i < MANY; i++) assert_ok(rill_graph_add_empty(graph, NULL, 0, &many[i]));
  for (unsigned i = 0; i < MANY; i++) assert_ok(rill_graph_remove_node(graph, many[i]));
  for (unsigned i = 0; i < MANY; i += 10) refuses_node(api, call, graph, many[i].id, RILL_ERROR_STALE_HANDLE);
  assert_ok(rill_stream_capture_begin_to_graph(stream, graph, NULL, 0, RILL_CAPTURE_RELAXED));
  write_cell(stream, 0, 3);
  assert_ok(rill_graph_get_nodes(graph, captured, &count));
  assert_int_equal(count, 2);
  assert_ok(rill_stream_capture_abort(stream));
  refuses_node(api, call, graph, captured[1].id, RILL_ERROR_STALE_HANDLE);
  assert_ok(rill_graph_release(other));
  refuses_node(api, call, graph, foreign.id, RILL_ERROR_STALE_HANDLE);
}

/* Checks the same, and that nodes of another graph are refused. */
static inline void refuses_bad_nodes(const char *api, node_call call) {
  rill_graph graph = new_graph(), other = new_graph();
  char numbers[2][24];
  refuses_dead_nodes(api, call);
  add_write(graph, NULL, 0, 0, 1);
  refuses_node(api, call, graph, add_write(other, NULL, 0, 0, 1).id, RILL_ERROR_INVALID_ARGUMENT);
  (void)snprintf(numbers[0], sizeof numbers[0], "0x%llx", (unsigned long long)graph.id);
  (void)snprintf(numbers[1], sizeof numbers[1], "0x%llx", (unsigned long long)other.id);
  for (int i = 0; i < 2; i++) assert_says(numbers[i]);
}

/* Checks the parameter `after` of a function that adds a node, by call(graph, after, count). */
static inline void refuses_bad_after(const char *api, node_call call) {
  rill_graph graph = new_graph();
  assert_fails_in(api, call(graph, NULL, 1), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("after_count is 1");
  refuses_bad_nodes(api, call);
}

#endif
