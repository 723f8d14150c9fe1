/* Handles that some threads use while others release them (C1.2): every call succeeds or returns STALE_HANDLE. */
#include "support/testing.h"

enum { THREADS = 8, PLACES = 4, ROUNDS = 20000 };

/* Handles that all threads know; each thread may replace one that it has released. */
static _Atomic uint64_t known_streams[PLACES], known_events[PLACES];

static uint32_t *memory; /* a cell for every fill: nothing orders them */

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

/* ---- graphs and their nodes ---- */

static _Atomic uint64_t known_graphs[PLACES], known_nodes[PLACES]; /* any node of the graph, or of one before it */

static const char *replace_graph(unsigned place) {
  const rill_graph old = { atomic_load(&known_graphs[place]) };
  rill_graph fresh;
  REQUIRE_OK(rill_graph_create(dut.device, &fresh));
  atomic_store(&known_graphs[place], fresh.id);
  REQUIRE(is_fine(rill_graph_release(old)));
  return NULL;
}

static const char *instantiate(rill_graph graph) {
  rill_graph_exec exec;
  const rill_status status = rill_graph_instantiate(graph, &exec);
  REQUIRE(is_fine(status));
  return status == RILL_OK && rill_graph_exec_release(exec) != RILL_OK ? "release" : NULL;
}

static const char *use_graph(unsigned place, unsigned other, unsigned action) {
  const rill_graph graph = { atomic_load(&known_graphs[place]) };
  const rill_graph_node node = { atomic_load(&known_nodes[other]) };
  rill_graph_node added = RILL_NULL_GRAPH_NODE;
  size_t count = 0;
  uint32_t kind;
  rill_status status;
  switch (action) {
    case 0: return replace_graph(place);
    case 1: REQUIRE(is_fine(rill_graph_get_nodes(graph, NULL, &count))); break;
    case 2: return instantiate(graph);
    case 3:
    case 4:
    case 5: REQUIRE(is_fine(rill_graph_node_kind(node, &kind))); break;
    case 6: /* of another graph, or one that has been destroyed */
      status = rill_graph_add_empty(graph, &node, 1, &added);
      REQUIRE(is_fine(status) || status == RILL_ERROR_INVALID_ARGUMENT);
      break;
    default: REQUIRE(is_fine(rill_graph_add_empty(graph, NULL, 0, &added))); break;
  }
  if (added.id != 0) atomic_store(&known_nodes[place], added.id);
  return NULL;
}

static const char *graph_storms(unsigned index, void *shared) {
  (void)shared;
  unsigned random = index * 2654435761u + 98;
  for (unsigned i = 0; i < scaled(ROUNDS); i++) {
    random = random * 1664525 + 1013904223;
    const unsigned action = (random >> 16) % 64;
    const char *failure =
        use_graph((random >> 8) % PLACES, (random >> 12) % PLACES, action < 6 ? action : 3 + action % 5);
    if (failure != NULL) return failure;
  }
  return NULL;
}

static void nodes_are_found_or_stale(void) {
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  for (unsigned i = 0; i < PLACES; i++) {
    rill_graph graph;
    rill_graph_node node;
    assert_ok(rill_graph_create(dut.device, &graph));
    assert_ok(rill_graph_add_empty(graph, NULL, 0, &node));
    atomic_store(&known_graphs[i], graph.id);
    atomic_store(&known_nodes[i], node.id);
  }
  run_threads(THREADS, graph_storms, NULL);
  for (unsigned i = 0; i < PLACES; i++) assert_ok(rill_graph_release((rill_graph){ atomic_load(&known_graphs[i]) }));
}

TESTS_ON_EACH_DEVICE("stress: release against use", TEST(every_call_succeeds_or_is_stale),
                     TEST(nodes_are_found_or_stale))
