/* Rows of growth.c: captures, nodes and edges. */
#include "growth.h"

#include <rill/capture.h>
#include <rill/graph.h>
#include <rill/graph_compose.h>
#include <rill/graph_edit.h>

#include <stdlib.h>

static rill_graph graph;
static rill_graph_node nodes[GROWTH_MOST + 2];
static size_t node_count;
static rill_event points[2]; /* captured */

static void make_nodes(size_t count) {
  NEED(rill_graph_create(bench.device, &graph));
  for (size_t i = 0; i < count; i++) NEED(rill_graph_add_empty(graph, NULL, 0, &nodes[i]));
  node_count = count;
}

static void release_graph(size_t count) {
  (void)count;
  NEED(rill_graph_release(graph));
}

/* ---- captures ---- */

static void do_nothing(void *user, rill_status status) { (void)user, (void)status; }

static void allocate(void) {
  void *p;
  NEED(rill_alloc(bench.device, BYTES, RILL_MEMORY_DEVICE, &p));
  NEED(rill_free(p));
}

static void begin_captures(size_t count) {
  for (size_t i = 0; i < count; i++) NEED(rill_stream_capture_begin(bench.others[i].stream, RILL_CAPTURE_RELAXED));
}

static void abort_captures(size_t count) {
  for (size_t i = 0; i < count; i++) NEED(rill_stream_capture_abort(bench.others[i].stream));
}

/* The oldest one first, for each.  In batches whose streams were just asked, so that it is not the time that memory of
 * so many captures takes to come into the caches again. */
static double time_aborts(size_t count) {
  enum { BATCH = 100 };
  double least = 1e18;
  for (int round = 0; round < 5; round++) {
    double ns = 0;
    begin_captures(count);
    for (size_t first = 0; first < count; first += BATCH) {
      const size_t end = count - first < BATCH ? count : first + BATCH;
      uint64_t id;
      for (size_t i = first; i < end; i++) NEED(rill_stream_capture_id(bench.others[i].stream, &id));
      const double start = now();
      for (size_t i = first; i < end; i++) NEED(rill_stream_capture_abort(bench.others[i].stream));
      ns += now() - start;
    }
    if (ns / (double)count < least) least = ns / (double)count;
  }
  return least;
}

/* `origin` is after as many nodes, which `points` stand for, the second one with one node more; `waiter` has come to
 * the capture. */
static rill_stream origin, side, waiter;

static void capture_points(size_t count) {
  make_nodes(0);
  NEED(rill_stream_create(bench.device, NULL, &origin));
  NEED(rill_stream_create(bench.device, NULL, &side));
  NEED(rill_stream_create(bench.device, NULL, &waiter));
  NEED(rill_event_create(bench.device, NULL, &points[0]));
  NEED(rill_event_create(bench.device, NULL, &points[1]));
  NEED(rill_stream_capture_begin_to_graph(origin, graph, NULL, 0, RILL_CAPTURE_RELAXED));
  NEED(rill_stream_record_event(origin, points[0], 0)); /* of no node */
  NEED(rill_stream_wait_event(side, points[0], 0));
  NEED(rill_stream_wait_event(waiter, points[0], 0));
  for (size_t i = 0; i < count; i++) {
    NEED(rill_stream_host_call(side, do_nothing, NULL));
    NEED(rill_stream_record_event(side, points[1], 0));
    NEED(rill_stream_wait_event(origin, points[1], 0));
  }
  NEED(rill_stream_record_event(origin, points[0], 0));
  NEED(rill_stream_host_call(side, do_nothing, NULL));
  NEED(rill_stream_record_event(side, points[1], 0));
  NEED(rill_stream_wait_event(origin, points[1], 0));
  NEED(rill_stream_record_event(origin, points[1], 0));
}

static void end_points(size_t count) {
  NEED(rill_stream_capture_abort(origin));
  NEED(rill_stream_release(origin));
  NEED(rill_stream_release(side));
  NEED(rill_stream_release(waiter));
  NEED(rill_event_release(points[0]));
  NEED(rill_event_release(points[1]));
  release_graph(count);
}

static void record_point(void) { NEED(rill_stream_record_event(origin, points[0], 0)); }

static void wait_for_points(void) {
  static int i;
  NEED(rill_stream_wait_event(waiter, points[i], 0));
  i ^= 1;
}

/* A stream comes to as many nodes by one wait, and adds a node after them: their edges are made then, once. */
static double time_join(size_t count) {
  double least = 1e18;
  for (int round = 0; round < 5; round++) {
    capture_points(count);
    const double start = now();
    NEED(rill_stream_wait_event(waiter, points[1], 0));
    NEED(rill_stream_host_call(waiter, do_nothing, NULL));
    const double ns = (now() - start) / (double)count;
    if (ns < least) least = ns;
    end_points(count);
  }
  return least;
}

/* ---- edges ---- */

static void fan_in(size_t count) {
  make_nodes(count + 2);
  for (size_t i = 0; i < count; i++) NEED(rill_graph_add_edge(graph, nodes[i], nodes[count + 1]));
}

static void change_edge(void) {
  NEED(rill_graph_add_edge(graph, nodes[node_count - 2], nodes[node_count - 1]));
  NEED(rill_graph_remove_edge(graph, nodes[node_count - 2], nodes[node_count - 1]));
}

static double time_fan_in(size_t count) {
  double least = 1e18;
  for (int round = 0; round < 5; round++) {
    const double start = now();
    fan_in(count); /* with its nodes */
    const double ns = (now() - start) / (double)count;
    if (ns < least) least = ns;
    release_graph(count);
  }
  return least;
}

static void fan_out(size_t count) {
  make_nodes(count + 2);
  for (size_t i = 0; i < count; i++) NEED(rill_graph_add_edge(graph, nodes[count + 1], nodes[i]));
}

static void change_edge_back(void) {
  NEED(rill_graph_add_edge(graph, nodes[node_count - 1], nodes[node_count - 2]));
  NEED(rill_graph_remove_edge(graph, nodes[node_count - 1], nodes[node_count - 2]));
}

/* A chain in which each node comes after the one that was made after it; its edges are added in the order `of`. */
static double time_chain(size_t count, size_t (*of)(size_t i, size_t count)) {
  double least = 1e18;
  for (int round = 0; round < 3; round++) {
    make_nodes(count + 1);
    const double start = now();
    for (size_t i = 0; i < count; i++) {
      const size_t edge = of(i, count);
      NEED(rill_graph_add_edge(graph, nodes[edge + 1], nodes[edge]));
    }
    const double ns = (now() - start) / (double)count;
    if (ns < least) least = ns;
    release_graph(count);
  }
  return least;
}

static size_t rising(size_t i, size_t count) {
  (void)count;
  return i;
}
static size_t falling(size_t i, size_t count) { return count - 1 - i; }

/* Each number once: 7919 is a prime that divides none of the counts. */
static size_t scattered(size_t i, size_t count) { return (i * 7919 + 13) % count; }

static double time_rising(size_t count) { return time_chain(count, rising); }
static double time_falling(size_t count) { return time_chain(count, falling); }
static double time_scattered(size_t count) { return time_chain(count, scattered); }

/* Two edges to each node, from nodes that are later, by a hidden order. */
static double time_random(size_t count) {
  double least = 1e18;
  const size_t all = count + 2;
  for (int round = 0; round < 3; round++) {
    uint32_t random = 1;
    make_nodes(all);
    const double start = now();
    for (size_t i = 0; i < 2 * count; i++) {
      random = random * 1664525 + 1013904223;
      const size_t a = (random >> 8) % all;
      random = random * 1664525 + 1013904223;
      const size_t b = (random >> 8) % all;
      const bool swap = a * 7919 % all < b * 7919 % all; /* the hidden order */
      if (a != b) NEED(rill_graph_add_edge(graph, nodes[swap ? a : b], nodes[swap ? b : a]));
    }
    const double ns = (now() - start) / (double)(2 * count);
    if (ns < least) least = ns;
    release_graph(count);
  }
  return least;
}

/* ---- nodes ---- */

static void change_node(void) {
  rill_graph_node node;
  NEED(rill_graph_add_empty(graph, &nodes[node_count - 1], 1, &node));
  NEED(rill_graph_remove_node(graph, node));
}

static void set_node(void) {
  rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  NEED(rill_graph_get_node_params(graph, nodes[node_count - 1], &params));
  NEED(rill_graph_set_node_params(graph, nodes[node_count - 1], &params));
}

/* A chain of host calls. */
static void make_chain(size_t count) {
  make_nodes(0);
  for (size_t i = 0; i < count; i++) {
    NEED(rill_graph_add_host_call(graph, i > 0 ? &nodes[i - 1] : NULL, i > 0, do_nothing, NULL, &nodes[i]));
  }
  node_count = count;
}

/* Of as many nodes only the last one is left. */
static void make_remains(size_t count) {
  make_chain(count);
  for (size_t i = 0; i + 1 < count; i++) NEED(rill_graph_remove_node(graph, nodes[i]));
}

static rill_graph child; /* without nodes */

static void make_chain_and_child(size_t count) {
  make_chain(count);
  NEED(rill_graph_create(bench.device, &child));
}

static void release_graph_and_child(size_t count) {
  NEED(rill_graph_release(child));
  release_graph(count);
}

static void change_child(void) {
  rill_graph_node join;
  NEED(rill_graph_add_child(graph, &nodes[node_count - 1], 1, child, &join));
  NEED(rill_graph_remove_node(graph, join));
}

static void make_chain_and_stream(size_t count) {
  make_chain(count);
  NEED(rill_stream_create(bench.device, NULL, &origin));
}

static void release_graph_and_stream(size_t count) {
  NEED(rill_stream_release(origin));
  release_graph(count);
}

static void capture_node(void) {
  rill_graph same;
  rill_graph_node node;
  size_t count = 1;
  NEED(rill_stream_capture_begin_to_graph(origin, graph, &nodes[node_count - 1], 1, RILL_CAPTURE_RELAXED));
  NEED(rill_stream_host_call(origin, do_nothing, NULL));
  NEED(rill_stream_capture_get_dependencies(origin, &node, &count));
  NEED(rill_stream_capture_end(origin, &same));
  NEED(rill_graph_release(same));
  NEED(rill_graph_remove_node(graph, node));
}

/* All of the nodes, in the order `of`; with `clone`, their copies as well, each of which is looked for. */
static double time_removals(size_t count, size_t (*of)(size_t i, size_t count), bool clone) {
  double least = 1e18;
  for (int round = 0; round < 3; round++) {
    rill_graph copy = RILL_NULL_GRAPH;
    rill_graph_node node;
    make_chain(count);
    if (clone) NEED(rill_graph_clone(graph, &copy));
    const double start = now();
    for (size_t i = 0; i < count; i++) {
      if (clone) {
        NEED(rill_graph_find_in_clone(copy, nodes[of(i, count)], &node));
        NEED(rill_graph_remove_node(copy, node));
      }
      NEED(rill_graph_remove_node(graph, nodes[of(i, count)]));
    }
    const double ns = (now() - start) / (double)count;
    if (ns < least) least = ns;
    if (clone) NEED(rill_graph_release(copy));
    release_graph(count);
  }
  return least;
}

static double time_first_removed(size_t count) { return time_removals(count, rising, false); }
static double time_last_removed(size_t count) { return time_removals(count, falling, false); }
static double time_scattered_removed(size_t count) { return time_removals(count, scattered, false); }
static double time_copies_removed(size_t count) { return time_removals(count, scattered, true); }

/* ---- rows ---- */

const struct row graph_rows[] = {
  { "allocate + free, beside captures", allocate, begin_captures, abort_captures, HOST, NULL },
  { "captured record, after as many nodes", record_point, capture_points, end_points, HOST, NULL },
  { "captured wait, for as many nodes", wait_for_points, capture_points, end_points, HOST, NULL },
  { "add + remove an edge, to a node with as many", change_edge, fan_in, release_graph, HOST, NULL },
  { "add + remove an edge, from a node with as many", change_edge_back, fan_out, release_graph, HOST, NULL },
  { "add + remove a node, beside as many", change_node, make_chain, release_graph, HOST, NULL },
  { "add + remove a node, after as many were removed", change_node, make_remains, release_graph, HOST, NULL },
  { "add + remove a child, beside as many nodes", change_child, make_chain_and_child, release_graph_and_child, HOST,
    NULL },
  { "capture + remove a node, beside as many", capture_node, make_chain_and_stream, release_graph_and_stream, HOST,
    NULL },
  { "read + set a node, beside as many", set_node, make_chain, release_graph, HOST, NULL },
};
const size_t graph_row_count = sizeof graph_rows / sizeof *graph_rows;

const struct each_row graph_each_rows[] = {
  { "abort as many captures, oldest first, for each", time_aborts },
  { "captured wait for as many nodes + a node, for each", time_join },
  { "nodes, and an edge from each to one, for each", time_fan_in },
  { "edges from later to earlier nodes, first one first", time_rising },
  { "edges from later to earlier nodes, last one first", time_falling },
  { "edges from later to earlier nodes, scattered", time_scattered },
  { "edges between any nodes, two to each", time_random },
  { "remove all nodes, first one first", time_first_removed },
  { "remove all nodes, last one first", time_last_removed },
  { "remove all nodes, scattered", time_scattered_removed },
  { "remove all nodes and their copies, found in a clone", time_copies_removed },
};
const size_t graph_each_row_count = sizeof graph_each_rows / sizeof *graph_each_rows;
