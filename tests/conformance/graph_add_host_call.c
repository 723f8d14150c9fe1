/* rill_graph_add_host_call */
#include "graphs.h"

static void count_call(void *user, rill_status status) {
  if (status == RILL_OK) (void)__atomic_add_fetch((unsigned *)user, 1, __ATOMIC_SEQ_CST);
}

static rill_status add_to(uint64_t id) {
  rill_graph_node node;
  return rill_graph_add_host_call((rill_graph){ id }, NULL, 0, count_call, NULL, &node);
}

static rill_status add_after(rill_graph graph, const rill_graph_node *after, size_t count) {
  rill_graph_node node;
  return rill_graph_add_host_call(graph, after, count, count_call, NULL, &node);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_add_host_call", add_to);
  refuses_bad_after("rill_graph_add_host_call", add_after);
  rill_graph graph = new_graph();
  rill_graph_node node;
  assert_fails(rill_graph_add_host_call(graph, NULL, 0, NULL, NULL, &node), RILL_ERROR_INVALID_ARGUMENT);
}

/* C7.1, H6: it runs once for each launch. */
static void runs_once_for_each_launch(void) {
  enum { LAUNCHES = 50 };
  unsigned calls = 0;
  rill_graph graph = new_graph();
  rill_graph_node node;
  rill_stream stream = new_stream("stream");
  assert_ok(rill_graph_add_host_call(graph, NULL, 0, count_call, &calls, &node));
  rill_graph_exec exec = new_exec(graph);
  assert_int_equal(calls, 0);
  for (int i = 0; i < LAUNCHES; i++) assert_ok(rill_graph_launch(exec, stream));
  assert_completes(stream);
  assert_int_equal(calls, LAUNCHES);
}

struct seen {
  const uint32_t *cell;
  uint32_t value;
};

static void look(void *user, rill_status status) {
  struct seen *seen = user;
  (void)status;
  seen->value = *seen->cell;
  *(uint32_t *)(uintptr_t)seen->cell = 90;
}

/* H3: it runs after its predecessors and before its successors. */
static void runs_in_its_place(void) {
  struct seen seen = { dut.host, 0 };
  rill_graph graph = new_graph();
  rill_graph_node node = add_write(graph, NULL, 0, 0, 80), last;
  node = add_read(graph, &node, 1, 0);
  assert_ok(rill_graph_add_host_call(graph, &node, 1, look, &seen, &node));
  assert_ok(rill_graph_add_copy(graph, &node, 1, dut.host + 1, dut.host, 4, &last));
  run_graph(graph);
  assert_int_equal(seen.value, 80);
  assert_int_equal(dut.host[1], 90);
}

TESTS_ON_EACH_DEVICE("rill_graph_add_host_call", TEST(refuses_bad_handles), TEST(runs_once_for_each_launch),
                     TEST(runs_in_its_place))
