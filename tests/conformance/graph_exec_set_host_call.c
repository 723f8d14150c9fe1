/* rill_graph_exec_set_host_call */
#include "graphs.h"

static _Atomic unsigned calls[2];

static void count(void *user, rill_status status) {
  (void)status;
  (void)atomic_fetch_add((_Atomic unsigned *)user, 1);
}

static rill_graph_node live;
static rill_status set(uint64_t id) {
  return rill_graph_exec_set_host_call((rill_graph_exec){ id }, live, count, &calls[1]);
}

static rill_graph make(void) {
  const rill_graph graph = new_graph();
  atomic_store(&calls[0], 0);
  atomic_store(&calls[1], 0);
  assert_ok(rill_graph_add_host_call(graph, NULL, 0, count, &calls[0], &live));
  return graph;
}

static void refuses_bad_handles(void) {
  (void)make();
  refuses_bad_execs("rill_graph_exec_set_host_call", set);
}

/* C7.1: later launches call the new function, earlier launches the first. */
static void calls_another_function(void) {
  const rill_graph graph = make();
  const rill_graph_node fill = add_write(graph, NULL, 0, 0, 1);
  const rill_stream stream = new_stream("stream");
  const rill_graph_exec exec = new_exec(graph);
  assert_fails(rill_graph_exec_set_host_call(exec, live, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_exec_set_host_call(exec, fill, count, NULL), RILL_ERROR_INVALID_ARGUMENT);
  struct gate *gate = gate_close(stream);
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(set(exec.id));
  gate_open(gate);
  assert_completes(stream);
  assert_int_equal(atomic_load(&calls[0]), 1);
  assert_int_equal(atomic_load(&calls[1]), 0);
  run_exec(exec);
  assert_int_equal(atomic_load(&calls[0]), 1);
  assert_int_equal(atomic_load(&calls[1]), 1);
}

TESTS_ON_EACH_DEVICE("rill_graph_exec_set_host_call", TEST(refuses_bad_handles), TEST(calls_another_function))
