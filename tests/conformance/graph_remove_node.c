/* rill_graph_remove_node */
#include "graphs.h"

#include <rill/capture.h>
#include <rill/graph_compose.h>
#include <rill/graph_edit.h>
#include <rill/graph_exec.h>

static rill_graph_node some_node;

static rill_status remove_from(uint64_t id) { return rill_graph_remove_node((rill_graph){ id }, some_node); }

static rill_status remove_first(rill_graph graph, const rill_graph_node *nodes, size_t count) {
  (void)count;
  return rill_graph_remove_node(graph, nodes[0]);
}

static void refuses_bad_handles(void) {
  some_node = add_write(new_graph(), NULL, 0, 0, 1);
  refuses_bad_graphs("rill_graph_remove_node", remove_from);
  refuses_bad_nodes("rill_graph_remove_node", remove_first);
}

static void assert_counts(rill_graph graph, size_t nodes, size_t edges) {
  size_t count = 0;
  assert_ok(rill_graph_get_nodes(graph, NULL, &count));
  assert_int_equal(count, nodes);
  count = 0;
  assert_ok(rill_graph_get_edges(graph, NULL, NULL, &count));
  assert_int_equal(count, edges);
}

/* Removing a node does not connect its predecessor and its successor. */
static void removes_its_edges(void) {
  rill_graph graph = new_graph();
  rill_graph_node first = add_write(graph, NULL, 0, 0, 5), middle = add_write(graph, &first, 1, 0, 6), nodes[2];
  rill_graph_node last = add_read(graph, &middle, 1, 0);
  size_t count = 2;
  assert_counts(graph, 3, 2);
  assert_ok(rill_graph_remove_node(graph, middle));
  assert_counts(graph, 2, 0);
  assert_ok(rill_graph_get_nodes(graph, nodes, &count));
  assert_int_equal(nodes[0].id, first.id);
  assert_int_equal(nodes[1].id, last.id);
  assert_ok(rill_graph_add_edge(graph, last, first)); /* would have closed a cycle before the removal */
  assert_ok(rill_graph_remove_edge(graph, last, first));
  assert_ok(rill_graph_add_edge(graph, first, last));
  run_graph(graph);
  assert_int_equal(dut.host[0], 5);
}

static void its_handle_becomes_stale(void) {
  rill_graph graph = new_graph(), clone;
  rill_graph_node gone = add_write(graph, NULL, 0, 0, 1), stays = add_read(graph, &gone, 1, 0), node;
  rill_graph_exec exec = new_exec(graph);
  rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  rill_stream stream = new_stream("captures");
  const uint32_t zero = 0;
  uint32_t kind = 99;
  assert_ok(rill_graph_clone(graph, &clone));
  assert_ok(rill_graph_remove_node(graph, gone));
  assert_fails(rill_graph_remove_node(graph, gone), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_graph_node_kind(gone, &kind), RILL_ERROR_STALE_HANDLE);
  assert_int_equal(kind, 0);
  assert_fails(rill_graph_get_node_params(graph, gone, &params), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_graph_set_node_params(graph, gone, &params), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_graph_add_edge(graph, gone, stays), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_graph_add_edge(graph, stays, gone), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_graph_remove_edge(graph, gone, stays), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_graph_add_empty(graph, &gone, 1, &node), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_graph_find_in_clone(clone, gone, &node), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_graph_exec_set_fill(exec, gone, dut.memory, &zero, sizeof zero, 1), RILL_ERROR_STALE_HANDLE);
  assert_fails(rill_stream_capture_begin_to_graph(stream, graph, &gone, 1, RILL_CAPTURE_RELAXED),
               RILL_ERROR_STALE_HANDLE);
  for (int i = 0; i < 200; i++) { /* no node that is added later gets the same handle */
    assert_ok(rill_graph_add_empty(graph, NULL, 0, &node));
    assert_int_not_equal(node.id, gone.id);
    assert_ok(rill_graph_remove_node(graph, node));
    assert_fails(rill_graph_node_kind(node, &kind), RILL_ERROR_STALE_HANDLE);
  }
  assert_fails(rill_graph_node_kind(gone, &kind), RILL_ERROR_STALE_HANDLE);
  assert_ok(rill_graph_release(clone));
}

/* Existing objects still run the removed node; handles of other nodes still identify their steps and copies. */
static void leaves_objects_and_clones_alone(void) {
  rill_graph graph = new_graph(), clone;
  rill_graph_node first = add_write(graph, NULL, 0, 0, 1), second = add_write(graph, NULL, 0, 1, 2), copy, nodes[4];
  rill_graph_node after[2] = { first, second }, read = add_read(graph, after, 2, 0);
  size_t count = 4;
  add_read(graph, after, 2, 1);
  rill_graph_exec exec = new_exec(graph);
  assert_ok(rill_graph_clone(graph, &clone));
  assert_ok(rill_graph_remove_node(graph, first));
  run_exec(exec);
  assert_int_equal(dut.host[0], 1);
  assert_int_equal(dut.host[1], 2);
  assert_ok(rill_graph_get_nodes(clone, nodes, &count));
  assert_int_equal(count, 4);
  assert_ok(rill_graph_find_in_clone(clone, second, &copy));
  assert_int_equal(copy.id, nodes[1].id);
  assert_ok(rill_graph_find_in_clone(clone, read, &copy));
  assert_int_equal(copy.id, nodes[2].id);
  assert_ok(rill_graph_remove_node(clone, copy));
  assert_fails(rill_graph_find_in_clone(clone, read, &copy), RILL_ERROR_NOT_FOUND);
  if (rill_device_supports(dut.device, RILL_FEATURE_GRAPH_UPDATE, NULL)) {
    const uint32_t seven = 7;
    rill_graph_exec later = new_exec(graph);
    assert_ok(rill_graph_exec_set_fill(exec, second, dut.memory + 1, &seven, sizeof seven, 1));
    run_exec(exec);
    assert_int_equal(dut.host[1], 7);
    run_exec(later);
    assert_int_equal(dut.host[1], 2);
    assert_ok(rill_graph_exec_set_fill(later, second, dut.memory + 1, &seven, sizeof seven, 1));
    run_exec(later);
    assert_int_equal(dut.host[1], 7);
  }
  assert_ok(rill_graph_release(clone));
}

/* Removing a node releases its kernel, event and user function's data, unless an execution object keeps them. */
static void releases_what_the_node_kept(void) {
  rill_graph graph = new_graph();
  rill_graph_node nodes[3];
  rill_event event;
  assert_ok(rill_event_create(dut.device, NULL, &event));
  const rill_status added = rill_graph_add_event_record(graph, NULL, 0, event, &nodes[0]);
  assert_ok(rill_event_release(event));
  nodes[1] = add_increment(graph, NULL, 0, dut.memory, "keeps its kernel");
  nodes[2] = add_write(graph, NULL, 0, 0, 1);
  rill_graph_exec exec = new_exec(graph);
  if (added == RILL_OK) assert_ok(rill_graph_remove_node(graph, nodes[0]));
  for (int i = 1; i < 3; i++) assert_ok(rill_graph_remove_node(graph, nodes[i]));
  assert_counts(graph, 0, 0);
  run_exec(exec);
  assert_ok(rill_graph_exec_release(exec));
  run_graph(graph);
}

static void refuses_memory_and_captures(void) {
  rill_graph graph = new_graph();
  rill_stream stream = new_stream("captures");
  rill_graph_node node = add_write(graph, NULL, 0, 0, 1), allocated, freed;
  void *p = NULL;
  assert_ok(rill_stream_capture_begin_to_graph(stream, graph, NULL, 0, RILL_CAPTURE_RELAXED));
  assert_fails(rill_graph_remove_node(graph, node), RILL_ERROR_CAPTURE_ACTIVE);
  assert_ok(rill_stream_capture_abort(stream));
  if (rill_device_supports(dut.device, RILL_FEATURE_POOL, NULL)) {
    assert_ok(rill_graph_add_alloc(graph, NULL, 0, 64, &p, &allocated));
    assert_ok(rill_graph_add_free(graph, &allocated, 1, p, &freed));
    assert_fails(rill_graph_remove_node(graph, allocated), RILL_ERROR_UNSUPPORTED);
    assert_fails(rill_graph_remove_node(graph, freed), RILL_ERROR_UNSUPPORTED);
  }
  assert_ok(rill_graph_remove_node(graph, node));
  if (p != NULL) assert_fails(rill_graph_add_free(graph, NULL, 0, p, &node), RILL_ERROR_NOT_FOUND);
}

/* Captures add nodes to a graph whose node numbers have gaps; the nodes are then removed. */
static void works_beside_captures(void) {
  enum { NODES = 50 }; /* each node has its own cell, because nodes after a gap are not ordered */
  rill_graph graph = new_graph(), same;
  rill_stream stream = new_stream("captures");
  rill_graph_node nodes[NODES];
  for (unsigned i = 0; i < NODES; i++) {
    nodes[i] = add_write(graph, i > 0 ? &nodes[i - 1] : NULL, i > 0, i, i);
  }
  for (unsigned round = 0; round < 4; round++) {
    for (unsigned i = round; i < NODES; i += 5) assert_ok(rill_graph_remove_node(graph, nodes[i]));
    const rill_graph_node last = nodes[NODES - 1];
    assert_ok(rill_stream_capture_begin_to_graph(stream, graph, &last, 1, RILL_CAPTURE_RELAXED));
    write_cell(stream, NODES + round, 1000 + round);
    if (round % 2 == 0) assert_ok(rill_stream_capture_abort(stream));
    else assert_ok(rill_stream_capture_end(stream, &same));
    if (round % 2 != 0) assert_ok(rill_graph_release(same));
    size_t count = 0;
    assert_ok(rill_graph_get_nodes(graph, NULL, &count));
    assert_int_equal(count, NODES - (round + 1) * NODES / 5 + (round + 1) / 2);
  }
  run_graph(graph);
}

TESTS_ON_EACH_DEVICE("rill_graph_remove_node", TEST(refuses_bad_handles), TEST(removes_its_edges),
                     TEST(its_handle_becomes_stale), TEST(leaves_objects_and_clones_alone),
                     TEST(releases_what_the_node_kept), TEST(refuses_memory_and_captures), TEST(works_beside_captures))
