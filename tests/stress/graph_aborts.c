/* Threads build on nodes of a graph that another thread's captures add and remove again (C1.2): all such calls are
 * refused, and no edge of a removed node remains. */
#include "support/testing.h"

#include <rill/capture.h>
#include <rill/graph_compose.h>

enum { BUILDERS = 3, KEPT = 3, CAPTURED = 4 };

struct aborting {
  rill_graph graph;
  rill_stream stream;
  rill_graph_node kept[KEPT];
  _Atomic bool done;
};

/* Adds nodes, and removes them. */
static const char *capture_and_abort(struct aborting *shared) {
  const uint32_t zero = 0;
  for (unsigned round = 0; round < scaled(20000); round++) {
    REQUIRE_OK(
        rill_stream_capture_begin_to_graph(shared->stream, shared->graph, shared->kept, KEPT, RILL_CAPTURE_RELAXED));
    for (unsigned i = 0; i < CAPTURED; i++)
      REQUIRE_OK(rill_fill_async(shared->stream, dut.host, &zero, sizeof zero, 1));
    REQUIRE_OK(rill_stream_capture_abort(shared->stream));
  }
  return NULL;
}

static bool is_refusal(rill_status status) {
  return status == RILL_ERROR_CAPTURE_ACTIVE || status == RILL_ERROR_STALE_HANDLE;
}

/* Builds on the captures' last nodes. */
static const char *build(struct aborting *shared) {
  while (!atomic_load(&shared->done)) {
    rill_graph_node nodes[KEPT + CAPTURED], added;
    size_t count = KEPT + CAPTURED;
    REQUIRE_OK(rill_graph_get_nodes(shared->graph, nodes, &count));
    REQUIRE(count <= KEPT + CAPTURED);
    if (count == KEPT) continue;
    const rill_graph_node last = nodes[count - 1];
    REQUIRE(is_refusal(rill_graph_add_empty(shared->graph, &last, 1, &added)));
    REQUIRE(is_refusal(rill_graph_add_edge(shared->graph, shared->kept[0], last)));
    REQUIRE(is_refusal(rill_graph_add_edge(shared->graph, last, shared->kept[1])));
    REQUIRE(is_refusal(rill_graph_remove_edge(shared->graph, shared->kept[1], last)));
  }
  return NULL;
}

static const char *do_part(unsigned index, void *user) {
  struct aborting *shared = user;
  if (index > 0) return build(shared);
  const char *why = capture_and_abort(shared);
  atomic_store(&shared->done, true);
  return why;
}

static void refuses_to_build_on_removed_nodes(void) {
  struct aborting shared = { .stream = new_stream("capturing") };
  size_t nodes = 0, edges = 0;
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  assert_ok(rill_graph_create(dut.device, &shared.graph));
  for (unsigned i = 0; i < KEPT; i++) assert_ok(rill_graph_add_empty(shared.graph, NULL, 0, &shared.kept[i]));
  run_threads(1 + BUILDERS, do_part, &shared);
  assert_ok(rill_graph_get_nodes(shared.graph, NULL, &nodes));
  assert_ok(rill_graph_get_edges(shared.graph, NULL, NULL, &edges));
  assert_int_equal(nodes, KEPT);
  assert_int_equal(edges, 0);
  assert_ok(rill_graph_release(shared.graph));
}

/* Creates and changes execution objects of the graph while captures add to it and end. */
static const char *execute(const struct aborting *shared) {
  rill_stream stream;
  rill_graph_exec exec = RILL_NULL_GRAPH_EXEC;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  while (!atomic_load(&shared->done)) {
    rill_graph_exec fresh;
    rill_status status = rill_graph_instantiate(shared->graph, &fresh);
    REQUIRE(status == RILL_OK || status == RILL_ERROR_CAPTURE_ACTIVE);
    if (status == RILL_OK) {
      REQUIRE_OK(rill_graph_exec_release(exec));
      exec = fresh;
    }
    if (exec.id == 0) continue;
    status = rill_graph_update(exec, shared->graph); /* it always has the same nodes when no capture adds to it */
    REQUIRE(status == RILL_OK || status == RILL_ERROR_CAPTURE_ACTIVE);
    REQUIRE_OK(rill_graph_launch(exec, stream));
    REQUIRE_OK(rill_stream_synchronize(stream));
  }
  REQUIRE_OK(rill_graph_exec_release(exec));
  REQUIRE_OK(rill_stream_release(stream));
  return NULL;
}

static const char *do_execution_part(unsigned index, void *user) {
  struct aborting *shared = user;
  if (index > 0) return execute(shared);
  const char *why = capture_and_abort(shared);
  atomic_store(&shared->done, true);
  return why;
}

static void does_not_execute_removed_nodes(void) {
  struct aborting shared = { .stream = new_stream("capturing") };
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  assert_ok(rill_graph_create(dut.device, &shared.graph));
  for (unsigned i = 0; i < KEPT; i++) assert_ok(rill_graph_add_empty(shared.graph, NULL, 0, &shared.kept[i]));
  run_threads(1 + BUILDERS, do_execution_part, &shared);
  assert_ok(rill_graph_release(shared.graph));
}

TESTS_ON_EACH_DEVICE("graph_aborts", TEST(refuses_to_build_on_removed_nodes), TEST(does_not_execute_removed_nodes))
