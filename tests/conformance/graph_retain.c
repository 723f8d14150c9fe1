/* rill_graph_retain */
#include "graphs.h"

static rill_status retain(uint64_t id) { return rill_graph_retain((rill_graph){ id }); }

static void refuses_bad_handles(void) { refuses_bad_graphs("rill_graph_retain", retain); }

/* C1.3 */
static void counts_references(void) {
  rill_graph graph = new_graph();
  assert_ok(rill_graph_retain(graph));
  assert_ok(rill_graph_release(graph));
  add_write(graph, NULL, 0, 0, 1);
  assert_ok(rill_graph_release(graph));
  assert_fails(rill_graph_retain(graph), RILL_ERROR_STALE_HANDLE);
}

TESTS_ON_EACH_DEVICE("rill_graph_retain", TEST(refuses_bad_handles), TEST(counts_references))
