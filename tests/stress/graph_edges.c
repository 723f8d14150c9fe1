/* Adds and removes edges and nodes in random order, and captures edges, and compares the graph with a model (C7.1). An
 * edge must be refused if and only if it closes a cycle, and a graph must have the nodes and edges of the model.
 * RILL_STRESS_SEED repeats a run. */
#include "support/testing.h"

#include <rill/capture.h>
#include <rill/graph_compose.h>
#include <rill/graph_edit.h>

enum { MOST = 48, STREAMS = 4, EVENTS = 6 };

static unsigned state, seed;

static unsigned pick(unsigned below) {
  state = state * 1664525 + 1013904223;
  return (state >> 8) % below;
}

static void set_seed(unsigned round) {
  const char *text = getenv("RILL_STRESS_SEED");
  seed = text != NULL ? (unsigned)strtoul(text, NULL, 10) : round + 1;
  state = seed;
}

/* ---- the model ---- */

static struct {
  rill_graph graph;
  rill_graph_node nodes[MOST];
  uint64_t after[MOST]; /* a bit for each node that this node depends on directly */
  unsigned count;
} model;

/* Returns the node itself and all nodes that it depends on, directly or indirectly. */
static uint64_t all_before(unsigned node) {
  uint64_t found = UINT64_C(1) << node, looked_at = 0;
  while (found != looked_at) {
    const unsigned next = (unsigned)__builtin_ctzll(found & ~looked_at);
    looked_at |= UINT64_C(1) << next;
    found |= model.after[next];
  }
  return found;
}

static unsigned number_of(rill_graph_node node) {
  unsigned i = 0;
  while (i < model.count && model.nodes[i].id != node.id) i++;
  assert_true(i < model.count);
  return i;
}

static void assert_same_edges(rill_graph graph) {
  static rill_graph_node nodes[MOST], from[MOST * MOST], to[MOST * MOST];
  uint64_t after[MOST] = { 0 };
  size_t count = MOST, edges = MOST * MOST;
  assert_ok(rill_graph_get_nodes(graph, nodes, &count));
  assert_ok(rill_graph_get_edges(graph, from, to, &edges));
  if (count != model.count) fail_msg("seed %u: %zu nodes, %u expected", seed, count, model.count);
  memcpy(model.nodes, nodes, sizeof nodes);
  for (size_t i = 0; i < edges; i++) {
    const uint64_t bit = UINT64_C(1) << number_of(from[i]);
    uint64_t *const place = &after[number_of(to[i])];
    if ((*place & bit) != 0) fail_msg("seed %u: an edge is there twice", seed);
    *place |= bit;
  }
  for (unsigned i = 0; i < model.count; i++) {
    if (after[i] == model.after[i]) continue;
    fail_msg("seed %u: node %u comes after %llx, and after %llx in the model", seed, i, (unsigned long long)after[i],
             (unsigned long long)model.after[i]);
  }
}

/* ---- edges one by one ---- */

static void add_node(void) {
  rill_graph_node after[3];
  const unsigned count = model.count == 0 ? 0 : pick(4), number = model.count;
  model.after[number] = 0;
  for (unsigned i = 0; i < count; i++) {
    const unsigned before = pick(number);
    after[i] = model.nodes[before];
    model.after[number] |= UINT64_C(1) << before;
  }
  assert_ok(rill_graph_add_empty(model.graph, after, count, &model.nodes[number]));
  model.count++;
}

static void add_edge(unsigned from, unsigned to) {
  const bool cycle = (all_before(from) >> to & 1) != 0;
  const rill_status status = rill_graph_add_edge(model.graph, model.nodes[from], model.nodes[to]);
  if (status != (cycle ? RILL_ERROR_INVALID_ARGUMENT : RILL_OK))
    fail_msg("seed %u: an edge from %u to %u: status %d", seed, from, to, (int)status);
  if (!cycle) model.after[to] |= UINT64_C(1) << from;
}

static void remove_edge(unsigned from, unsigned to) {
  const bool there = (model.after[to] >> from & 1) != 0;
  const rill_status status = rill_graph_remove_edge(model.graph, model.nodes[from], model.nodes[to]);
  if (status != (there ? RILL_OK : RILL_ERROR_NOT_FOUND))
    fail_msg("seed %u: no edge from %u to %u any more: status %d", seed, from, to, (int)status);
  model.after[to] &= ~(UINT64_C(1) << from);
}

/* Removes a node from a set; the numbers above it decrease by one. */
static uint64_t without(uint64_t nodes, unsigned node) {
  const uint64_t below = (UINT64_C(1) << node) - 1;
  return (nodes & below) | (nodes >> 1 & ~below);
}

static void remove_node(unsigned node) {
  const rill_graph_node gone = model.nodes[node];
  rill_graph_node added;
  uint32_t kind;
  assert_ok(rill_graph_remove_node(model.graph, gone));
  model.count--;
  for (unsigned i = node; i < model.count; i++) {
    model.nodes[i] = model.nodes[i + 1];
    model.after[i] = model.after[i + 1];
  }
  for (unsigned i = 0; i < model.count; i++) model.after[i] = without(model.after[i], node);
  assert_fails_in("rill_graph_remove_node", rill_graph_remove_node(model.graph, gone), RILL_ERROR_STALE_HANDLE);
  assert_fails_in("rill_graph_node_kind", rill_graph_node_kind(gone, &kind), RILL_ERROR_STALE_HANDLE);
  assert_fails_in("rill_graph_add_empty", rill_graph_add_empty(model.graph, &gone, 1, &added), RILL_ERROR_STALE_HANDLE);
  if (model.count == 0) return;
  assert_fails_in("rill_graph_add_edge", rill_graph_add_edge(model.graph, gone, model.nodes[0]),
                  RILL_ERROR_STALE_HANDLE);
}

/* Checks that node number i of a graph and node number i of its clone correspond, even after removals from both. */
static void assert_pairs(rill_graph clone) {
  rill_graph_node copies[MOST], copy, added, fresh;
  size_t count = MOST;
  assert_ok(rill_graph_get_nodes(clone, copies, &count));
  assert_int_equal(count, model.count);
  assert_ok(rill_graph_add_empty(model.graph, NULL, 0, &added));
  assert_ok(rill_graph_add_empty(clone, NULL, 0, &fresh));
  for (unsigned i = 0; i < model.count; i++) {
    assert_ok(rill_graph_find_in_clone(clone, model.nodes[i], &copy));
    assert_int_equal(copy.id, copies[i].id);
  }
  assert_fails_in("rill_graph_find_in_clone", rill_graph_find_in_clone(clone, added, &copy), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_graph_remove_node(clone, fresh));
  assert_ok(rill_graph_remove_node(model.graph, added));
  while (model.count > 0 && pick(3) != 0) {
    const unsigned node = pick(model.count);
    assert_ok(rill_graph_remove_node(clone, copies[node]));
    assert_fails_in("rill_graph_find_in_clone", rill_graph_find_in_clone(clone, model.nodes[node], &copy),
                    RILL_ERROR_NOT_FOUND);
    remove_node(node);
    for (unsigned i = node; i < model.count; i++) copies[i] = copies[i + 1];
    for (unsigned i = 0; i < model.count; i++) {
      assert_ok(rill_graph_find_in_clone(clone, model.nodes[i], &copy));
      assert_int_equal(copy.id, copies[i].id);
    }
  }
}

/* A clone keeps its own edges. */
static void go_on_with_clone(void) {
  rill_graph clone;
  assert_ok(rill_graph_clone(model.graph, &clone));
  assert_pairs(clone);
  assert_ok(rill_graph_release(model.graph));
  model.graph = clone;
  assert_same_edges(clone);
}

static void abort_capture(rill_stream stream) {
  const unsigned count = model.count == 0 ? 0 : 1 + pick(model.count);
  assert_ok(rill_stream_capture_begin_to_graph(stream, model.graph, model.nodes, count, RILL_CAPTURE_RELAXED));
  write_cell(stream, 0, 1);
  assert_ok(rill_stream_capture_abort(stream));
}

static void edges_match_a_model(void) {
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  rill_stream stream = new_stream("stream");
  for (unsigned round = 0; round < scaled(400); round++) {
    set_seed(round);
    model.count = 0;
    assert_ok(rill_graph_create(dut.device, &model.graph));
    const unsigned most = 2 + pick(MOST - 1), steps = 20 + pick(600), fan = pick(3);
    for (unsigned step = 0; step < steps; step++) {
      const unsigned what = pick(44);
      if (model.count == 0 || (what < 8 && model.count < most)) {
        add_node();
        continue;
      }
      /* many edges to one node, many edges from one node, or random edges */
      unsigned from = pick(model.count), to = pick(model.count);
      if (fan == 1 && pick(4) != 0) to = model.count / 2;
      if (fan == 2 && pick(4) != 0) from = model.count / 2;
      if (what < 28) add_edge(from, to);
      else if (what < 38) remove_edge(from, to);
      else if (what < 39) abort_capture(stream);
      else if (what < 43) remove_node(from);
      else if (pick(4) == 0) go_on_with_clone();
    }
    assert_same_edges(model.graph);
    rill_graph_exec exec; /* instantiating also checks the graph's invariants in builds with assertions */
    assert_ok(rill_graph_instantiate(model.graph, &exec));
    assert_ok(rill_graph_exec_release(exec));
    assert_ok(rill_graph_release(model.graph));
  }
}

/* ---- edges of captures ---- */

static void do_nothing(void *user, rill_status status) { (void)user, (void)status; }

struct place {
  bool captured; /* for a stream: it is part of the capture; for an event: it was recorded in the capture */
  uint64_t nodes;
};

static void captured_edges_match_a_model(void) {
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  rill_stream streams[STREAMS];
  rill_event events[EVENTS];
  for (unsigned i = 0; i < STREAMS; i++) streams[i] = new_stream("stream");
  for (unsigned i = 0; i < EVENTS; i++) events[i] = new_event("event");
  for (unsigned round = 0; round < scaled(400); round++) {
    struct place at[STREAMS] = { { .captured = true } }, marked[EVENTS] = { { false, 0 } };
    set_seed(round);
    model.count = 0;
    assert_ok(rill_stream_capture_begin(streams[0], RILL_CAPTURE_RELAXED));
    for (unsigned steps = 1 + pick(300); steps > 0 && model.count + 1 < MOST; steps--) {
      const unsigned stream = pick(STREAMS), event = pick(EVENTS), what = pick(10);
      if (what < 2 && at[stream].captured) {
        assert_ok(rill_stream_host_call(streams[stream], do_nothing, NULL));
        model.after[model.count] = at[stream].nodes;
        at[stream].nodes = UINT64_C(1) << model.count++;
      } else if (what < 5 && at[stream].captured) {
        assert_ok(rill_stream_record_event(streams[stream], events[event], 0));
        marked[event] = at[stream];
      } else if (marked[event].captured) {
        assert_ok(rill_stream_wait_event(streams[stream], events[event], 0));
        at[stream].captured = true;
        at[stream].nodes |= marked[event].nodes;
      }
    }
    for (unsigned i = 1; i < STREAMS; i++) { /* join all streams back */
      if (!at[i].captured) continue;
      assert_ok(rill_stream_record_event(streams[i], events[0], 0));
      assert_ok(rill_stream_wait_event(streams[0], events[0], 0));
      at[0].nodes |= at[i].nodes;
    }
    assert_ok(rill_stream_host_call(streams[0], do_nothing, NULL));
    model.after[model.count++] = at[0].nodes;
    assert_ok(rill_stream_capture_end(streams[0], &model.graph));
    assert_same_edges(model.graph);
    assert_ok(rill_graph_release(model.graph));
  }
}

/* Two streams that wait for each other many times depend on one node through many waits. Neither adding a node nor
 * releasing the waits may recurse once per wait. */
static void streams_wait_for_each_other_many_times(void) {
  enum { WAITS = 200000 };
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  rill_stream first = new_stream("first"), second = new_stream("second");
  rill_event forth = new_event("forth"), back = new_event("back");
  for (int ends = 0; ends < 2; ends++) {
    size_t edges = 0;
    assert_ok(rill_stream_capture_begin(first, RILL_CAPTURE_RELAXED));
    assert_ok(rill_stream_host_call(first, do_nothing, NULL));
    for (int i = 0; i < WAITS; i++) {
      assert_ok(rill_stream_record_event(first, forth, 0));
      assert_ok(rill_stream_wait_event(second, forth, 0));
      if (i == 0) assert_ok(rill_stream_host_call(second, do_nothing, NULL));
      assert_ok(rill_stream_record_event(second, back, 0));
      assert_ok(rill_stream_wait_event(first, back, 0));
    }
    if (ends == 0) {
      assert_ok(rill_stream_capture_abort(first));
      continue;
    }
    assert_ok(rill_stream_host_call(first, do_nothing, NULL));
    assert_ok(rill_stream_capture_end(first, &model.graph));
    assert_ok(rill_graph_get_edges(model.graph, NULL, NULL, &edges));
    assert_int_equal(edges, 3);
    assert_ok(rill_graph_release(model.graph));
  }
}

TESTS_ON_EACH_DEVICE("graph_edges", TEST(edges_match_a_model), TEST(captured_edges_match_a_model),
                     TEST(streams_wait_for_each_other_many_times))
