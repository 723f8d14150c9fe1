/* rill_graph_exec_retain */
#include "graphs.h"

static rill_status retain(uint64_t id) { return rill_graph_exec_retain((rill_graph_exec){ id }); }

static void refuses_bad_handles(void) { refuses_bad_execs("rill_graph_exec_retain", retain); }

/* C1.3 */
static void counts_references(void) {
  rill_graph graph = new_graph();
  rill_graph_exec exec = new_exec(graph);
  assert_ok(rill_graph_exec_retain(exec));
  assert_ok(rill_graph_exec_release(exec));
  run_exec(exec);
  assert_ok(rill_graph_exec_release(exec));
  assert_fails(rill_graph_exec_retain(exec), RILL_ERROR_STALE_HANDLE);
}

TESTS_ON_EACH_DEVICE("rill_graph_exec_retain", TEST(refuses_bad_handles), TEST(counts_references))
