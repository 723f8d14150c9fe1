/* rill_graph_exec_native_graph */
#include "graphs.h"

static rill_status get(uint64_t id) {
  uintptr_t out;
  return rill_graph_exec_native_graph((rill_graph_exec){ id }, &out);
}

static void refuses_bad_handles(void) {
  refuses_bad_execs("rill_graph_exec_native_graph", get);
  rill_graph graph = new_graph();
  rill_graph_exec exec = new_exec(graph);
  assert_fails(rill_graph_exec_native_graph(exec, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* On a GPU each object has its own, always the same; on the cpu there is none. */
static void each_object_has_its_own(void) {
  rill_graph graph = new_graph();
  add_write(graph, NULL, 0, 0, 1);
  rill_graph_exec exec = new_exec(graph), other = new_exec(graph);
  uintptr_t native = 1, again = 1, of_other = 1;
  assert_ok(rill_graph_exec_native_graph(exec, &native));
  assert_ok(rill_graph_exec_native_graph(exec, &again));
  assert_ok(rill_graph_exec_native_graph(other, &of_other));
  assert_int_equal(native != 0, dut.gpu);
  assert_true(native == again);
  assert_true(!dut.gpu || native != of_other);
  run_exec(exec);
}

TESTS_ON_EACH_DEVICE("rill_graph_exec_native_graph", TEST(refuses_bad_handles), TEST(each_object_has_its_own))
