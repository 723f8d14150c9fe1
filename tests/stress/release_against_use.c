/* Some threads use handles while other threads release them (C1.2): every call must succeed or return STALE_HANDLE. */
#include "support/testing.h"

#include "gate.rill.h"

#include <rill/bundle.h>
#include <rill/capture.h>
#include <rill/graph_compose.h>
#include <rill/graph_edit.h>
#include <rill/graph_exec.h>
#include <sched.h>

enum { THREADS = 8, PLACES = 4, ROUNDS = 20000 };

/* Handles known to all threads. A thread that releases a handle replaces it with a new one. */
static _Atomic uint64_t known_streams[PLACES], known_events[PLACES];

static uint32_t *memory; /* one cell per fill, because fills are not ordered */

static bool is_fine(rill_status status) { return status == RILL_OK || status == RILL_ERROR_STALE_HANDLE; }

static rill_stream stream_at(unsigned place) { return (rill_stream){ atomic_load(&known_streams[place]) }; }
static rill_event event_at(unsigned place) { return (rill_event){ atomic_load(&known_events[place]) }; }

static const char *replace_stream(unsigned place) {
  const rill_stream old = stream_at(place);
  rill_stream fresh;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &fresh));
  atomic_store(&known_streams[place], fresh.id);
  REQUIRE(is_fine(rill_stream_release(old)));
  return NULL;
}

static const char *replace_event(unsigned place) {
  const rill_event old = event_at(place);
  rill_event fresh;
  REQUIRE_OK(rill_event_create(dut.device, NULL, &fresh));
  atomic_store(&known_events[place], fresh.id);
  REQUIRE(is_fine(rill_event_release(old)));
  return NULL;
}

static const char *use(unsigned place, unsigned other, unsigned action, uint32_t *cell) {
  const rill_stream stream = stream_at(place);
  const rill_event event = event_at(other);
  const uint32_t value = place;
  bool answer;
  uint64_t id;
  switch (action) {
    case 0: REQUIRE(is_fine(rill_stream_record_event(stream, event, 0))); break;
    case 1: REQUIRE(is_fine(rill_stream_wait_event(stream, event, RILL_WAIT_IF_RECORDED))); break;
    case 2: REQUIRE(is_fine(rill_stream_wait_stream(stream, stream_at(other)))); break;
    case 3: REQUIRE(is_fine(rill_stream_synchronize(stream))); break;
    case 4: REQUIRE(is_fine(rill_event_synchronize(event))); break;
    case 5: REQUIRE(is_fine(rill_event_is_ready(event, &answer))); break;
    case 6: REQUIRE(is_fine(rill_stream_is_complete(stream, &answer))); break;
    case 7: REQUIRE(is_fine(rill_fill_async(stream, cell, &value, sizeof value, 1))); break;
    case 8: REQUIRE(is_fine(rill_stream_id(stream, &id))); break;
    case 9: return replace_stream(place);
    case 10: return replace_event(place);
    default:
      if (rill_stream_retain(stream) == RILL_OK) REQUIRE(is_fine(rill_stream_release(stream)));
      break;
  }
  return NULL;
}

static const char *storms(unsigned index, void *shared) {
  (void)shared;
  unsigned random = index * 2654435761u + 99;
  for (unsigned i = 0; i < scaled(ROUNDS); i++) {
    random = random * 1664525 + 1013904223;
    const char *failure =
        use((random >> 8) % PLACES, (random >> 12) % PLACES, (random >> 16) % 12, memory + index * scaled(ROUNDS) + i);
    if (failure != NULL) return failure;
  }
  return NULL;
}

static void every_call_succeeds_or_is_stale(void) {
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, THREADS * scaled(ROUNDS), &memory));
  for (unsigned i = 0; i < PLACES; i++) {
    rill_stream stream;
    rill_event event;
    assert_ok(rill_stream_create(dut.device, NULL, &stream));
    assert_ok(rill_event_create(dut.device, NULL, &event));
    atomic_store(&known_streams[i], stream.id);
    atomic_store(&known_events[i], event.id);
  }
  run_threads(THREADS, storms, NULL);
  for (unsigned i = 0; i < PLACES; i++) {
    assert_true(is_fine(rill_stream_release(stream_at(i))));
    assert_true(is_fine(rill_event_release(event_at(i))));
  }
  assert_ok(rill_device_synchronize(dut.device));
  assert_ok(rill_free(memory));
}

/* ---- graphs, their nodes and execution objects ---- */

/* Graphs; nodes of each graph, or of the graph that it replaced; and an execution object of either. */
enum { GRAPHS = 2, NODES = 4 };
static _Atomic uint64_t known_graphs[GRAPHS], known_nodes[GRAPHS][NODES], known_execs[GRAPHS];
static _Atomic unsigned attached, detached; /* numbers of user objects */
static rill_kernel spin;

/* Returns whether a call on a graph that other threads change may fail with this status: the node belongs to another
 * graph or was removed, or a capture of another thread adds to the graph. */
static bool is_refused(rill_status status) {
  return is_fine(status) || status == RILL_ERROR_INVALID_ARGUMENT || status == RILL_ERROR_CAPTURE_ACTIVE;
}

static void do_nothing(void *user, rill_status status) { (void)user, (void)status; }
static void detach(void *user) { atomic_fetch_add((_Atomic unsigned *)user, 1); }

/* Replaces a graph; exactly one thread releases each handle. */
static const char *put_graph(unsigned place, rill_graph fresh) {
  REQUIRE_OK(rill_graph_release((rill_graph){ atomic_exchange(&known_graphs[place], fresh.id) }));
  return NULL;
}

static const char *replace_graph(unsigned place) {
  rill_graph fresh;
  REQUIRE_OK(rill_graph_create(dut.device, &fresh));
  return put_graph(place, fresh);
}

static const char *put_exec(unsigned place, rill_graph_exec fresh) {
  REQUIRE_OK(rill_graph_exec_release((rill_graph_exec){ atomic_exchange(&known_execs[place], fresh.id) }));
  return NULL;
}

static const char *instantiate(unsigned place, rill_graph graph) {
  rill_graph_exec exec;
  const rill_status status = rill_graph_instantiate(graph, &exec);
  REQUIRE(is_refused(status) && status != RILL_ERROR_INVALID_ARGUMENT);
  return status == RILL_OK ? put_exec(place, exec) : NULL;
}

/* Clones the graph; the clone replaces another graph. */
static const char *clone_graph(unsigned place, rill_graph graph, rill_graph_node node) {
  rill_graph copy;
  rill_graph_node found;
  const rill_status status = rill_graph_clone(graph, &copy);
  REQUIRE(is_refused(status) && status != RILL_ERROR_INVALID_ARGUMENT);
  if (status != RILL_OK) return NULL;
  const rill_status search = rill_graph_find_in_clone(copy, node, &found);
  REQUIRE(is_fine(search) || search == RILL_ERROR_NOT_FOUND);
  if (search == RILL_OK) REQUIRE_OK(rill_graph_remove_node(copy, found));
  return put_graph(place, copy);
}

static const char *capture(rill_graph graph, rill_graph_node node, rill_stream stream, bool abort) {
  rill_graph same;
  rill_status status = rill_stream_capture_begin_to_graph(stream, graph, &node, 1, RILL_CAPTURE_RELAXED);
  REQUIRE(is_refused(status));
  if (status != RILL_OK) return NULL;
  for (unsigned i = 0; i < 3; i++) {
    REQUIRE_OK(rill_stream_host_call(stream, do_nothing, NULL));
    (void)sched_yield(); /* let calls of other threads overlap with the capture */
  }
  if (abort) {
    REQUIRE_OK(rill_stream_capture_abort(stream));
    return NULL;
  }
  status = rill_stream_capture_end(stream, &same);
  REQUIRE(status == RILL_OK || status == RILL_ERROR_CAPTURE_INVALID); /* the graph was released */
  if (status == RILL_OK) REQUIRE(same.id == graph.id && rill_graph_release(same) == RILL_OK);
  return NULL;
}

static const char *edit(rill_graph graph, rill_graph_node node, rill_graph_node other, unsigned action) {
  rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  rill_status status;
  switch (action) {
    case 0:
    case 1:
      status = rill_graph_get_node_params(graph, node, &params);
      REQUIRE(is_fine(status) || status == RILL_ERROR_INVALID_ARGUMENT);
      if (status == RILL_OK) REQUIRE((params.kind == RILL_NODE_HOST_CALL) == (params.fn == do_nothing));
      break;
    case 2:
    case 3:
      params.kind = action == 2 ? RILL_NODE_HOST_CALL : RILL_NODE_KERNEL;
      params.fn = do_nothing;
      REQUIRE(is_refused(rill_graph_set_node_params(graph, node, &params)));
      break;
    case 4:
    case 5: REQUIRE(is_refused(rill_graph_remove_node(graph, node))); break;
    case 6: REQUIRE(is_refused(rill_graph_add_edge(graph, node, other))); break;
    default:
      status = rill_graph_remove_edge(graph, node, other);
      REQUIRE(is_refused(status) || status == RILL_ERROR_NOT_FOUND);
      break;
  }
  return NULL;
}

static const char *use_exec(rill_graph_exec exec, rill_graph graph, rill_graph_node node, rill_stream stream,
                            unsigned action) {
  const uint64_t cycles = 2;
  bool enabled = false;
  if (action < 6 && !rill_device_supports(dut.device, RILL_FEATURE_GRAPH_UPDATE, NULL)) return NULL;
  switch (action) {
    case 0: REQUIRE(is_refused(rill_graph_exec_set_host_call(exec, node, do_nothing, NULL))); break;
    case 1: REQUIRE(is_refused(rill_graph_exec_set_kernel_arg(exec, node, 0, &cycles, sizeof cycles))); break;
    case 2:
    case 3: REQUIRE(is_refused(rill_graph_exec_set_enabled(exec, node, action == 2))); break;
    case 4: REQUIRE(is_refused(rill_graph_update(exec, graph))); break;
    case 5: REQUIRE(is_refused(rill_graph_exec_is_enabled(exec, node, &enabled))); break;
    default: REQUIRE(is_fine(rill_graph_launch(exec, stream))); break;
  }
  return NULL;
}

/* Random choices of a thread. */
struct picked {
  unsigned place, other; /* numbers of graphs */
  unsigned number;       /* number of a node */
  rill_graph graph;
  rill_graph_node node, second;
  rill_stream stream;
};

static const char *add(const struct picked *at, unsigned action) {
  const rill_launch launch = rill_launch_1d(1, 1);
  const size_t after = action % 4 == 0 ? 0 : 1;
  rill_graph_node added = RILL_NULL_GRAPH_NODE;
  rill_status status;
  switch (action) {
    case 0:
    case 1: status = rill_graph_add_empty(at->graph, &at->node, after, &added); break;
    case 2:
      status =
          rill_graph_add_child(at->graph, &at->node, 1, (rill_graph){ atomic_load(&known_graphs[at->other]) }, &added);
      break;
    case 3:
    case 4:
    case 5:
      status = rill_graph_add_kernel(at->graph, &at->node, after, spin, &launch, RILL_ARGS(UINT64_C(1)), &added);
      break;
    default: status = rill_graph_add_host_call(at->graph, &at->node, after, do_nothing, NULL, &added); break;
  }
  REQUIRE(is_refused(status) && (status == RILL_OK) == (added.id != 0));
  if (added.id != 0) atomic_store(&known_nodes[at->place][at->number], added.id);
  return NULL;
}

static const char *use_graph(const struct picked *at, unsigned action) {
  rill_graph_node found;
  size_t count = 0;
  uint32_t kind;
  rill_status status;
  if (action >= 48) return edit(at->graph, at->node, at->second, action % 8);
  if (action >= 32) return add(at, action % 8);
  if (action >= 16)
    return use_exec((rill_graph_exec){ atomic_load(&known_execs[at->place]) }, at->graph, at->node, at->stream,
                    action % 8);
  switch (action) {
    case 0: return replace_graph(at->place);
    case 1: return instantiate(at->place, at->graph);
    case 2: return clone_graph(at->other, at->graph, at->node);
    case 3:
    case 4: return capture(at->graph, at->node, at->stream, action == 3);
    case 5: REQUIRE(is_fine(rill_graph_get_nodes(at->graph, NULL, &count))); break;
    case 6:
      status = rill_graph_find_node(at->graph, "no label", 0, &found);
      REQUIRE(status == RILL_ERROR_NOT_FOUND || status == RILL_ERROR_STALE_HANDLE);
      break;
    case 7:
      status = rill_graph_add_user_object(at->graph, detach, &detached);
      REQUIRE(is_fine(status));
      if (status == RILL_OK) atomic_fetch_add(&attached, 1);
      break;
    default: REQUIRE(is_fine(rill_graph_node_kind(at->node, &kind))); break;
  }
  return NULL;
}

/* Makes random choices; the node is usually one of the graph's own. */
static struct picked pick(unsigned random, rill_stream stream) {
  struct picked picked = { .place = random % GRAPHS, .number = random / 2 % NODES, .stream = stream };
  picked.other = (picked.place + 1) % GRAPHS;
  const unsigned of = random / 64 % 8 == 0 ? picked.other : picked.place;
  picked.graph.id = atomic_load(&known_graphs[picked.place]);
  picked.node.id = atomic_load(&known_nodes[of][random / 8 % NODES]);
  picked.second.id = atomic_load(&known_nodes[picked.place][picked.number]);
  return picked;
}

static const char *graph_storms(unsigned index, void *shared) {
  (void)shared;
  unsigned random = index * 2654435761u + 98;
  rill_stream stream;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  for (unsigned i = 0; i < scaled(ROUNDS); i++) {
    random = random * 1664525 + 1013904223;
    const struct picked picked = pick(random >> 8 & 0x3ff, stream);
    const char *failure = use_graph(&picked, random >> 20 & 63);
    if (failure != NULL) return failure;
  }
  REQUIRE_OK(rill_stream_synchronize(stream));
  REQUIRE_OK(rill_stream_release(stream));
  return NULL;
}

static void nodes_are_found_or_stale(void) {
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  spin = new_kernel(&gate_bundle, "spin");
  atomic_store(&attached, 0);
  atomic_store(&detached, 0);
  for (unsigned i = 0; i < GRAPHS; i++) {
    rill_graph graph;
    rill_graph_exec exec;
    assert_ok(rill_graph_create(dut.device, &graph));
    for (unsigned k = 0; k < NODES; k++) {
      rill_graph_node node;
      assert_ok(rill_graph_add_empty(graph, NULL, 0, &node));
      atomic_store(&known_nodes[i][k], node.id);
    }
    assert_ok(rill_graph_instantiate(graph, &exec));
    atomic_store(&known_graphs[i], graph.id);
    atomic_store(&known_execs[i], exec.id);
  }
  run_threads(THREADS, graph_storms, NULL);
  for (unsigned i = 0; i < GRAPHS; i++) {
    assert_ok(rill_graph_release((rill_graph){ atomic_load(&known_graphs[i]) }));
    assert_ok(rill_graph_exec_release((rill_graph_exec){ atomic_load(&known_execs[i]) }));
  }
  assert_ok(rill_device_synchronize(dut.device));
  assert_int_equal(atomic_load(&detached), atomic_load(&attached));
}

TESTS_ON_EACH_DEVICE("stress: release against use", TEST(every_call_succeeds_or_is_stale),
                     TEST(nodes_are_found_or_stale))
