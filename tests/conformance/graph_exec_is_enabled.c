/* rill_graph_exec_is_enabled */
#include "graphs.h"

static rill_graph_node live;
static rill_status is_enabled_of(uint64_t id) {
  bool out = true;
  const rill_status status = rill_graph_exec_is_enabled((rill_graph_exec){ id }, live, &out);
  assert_false(out);
  return status;
}

static void refuses_bad_handles(void) {
  const rill_graph graph = new_graph();
  live = add_write(graph, NULL, 0, 0, 1);
  refuses_bad_execs("rill_graph_exec_is_enabled", is_enabled_of);
}

/* C7.1: each execution object has its own setting. */
static void returns_what_was_set(void) {
  const rill_graph graph = new_graph();
  rill_graph_node empty;
  bool out = false;
  live = add_write(graph, NULL, 0, 0, 1);
  assert_ok(rill_graph_add_empty(graph, NULL, 0, &empty));
  const rill_graph_exec first = new_exec(graph), second = new_exec(graph);
  assert_fails(rill_graph_exec_is_enabled(first, live, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_exec_is_enabled(first, empty, &out), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_graph_exec_is_enabled(first, live, &out));
  assert_true(out);
  assert_ok(rill_graph_exec_set_enabled(first, live, false));
  assert_ok(rill_graph_exec_is_enabled(first, live, &out));
  assert_false(out);
  assert_ok(rill_graph_exec_is_enabled(second, live, &out));
  assert_true(out);
  assert_ok(rill_graph_exec_set_enabled(first, live, true));
  assert_ok(rill_graph_exec_is_enabled(first, live, &out));
  assert_true(out);
}

TESTS_ON_EACH_DEVICE("rill_graph_exec_is_enabled", TEST(refuses_bad_handles), TEST(returns_what_was_set))
