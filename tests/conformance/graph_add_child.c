/* rill_graph_add_child */
#include "graphs.h"

static rill_graph a_child;

static rill_status add_to(uint64_t id) {
  rill_graph_node node;
  return rill_graph_add_child((rill_graph){ id }, NULL, 0, a_child, &node);
}

static rill_status add_after(rill_graph graph, const rill_graph_node *after, size_t count) {
  rill_graph_node node;
  return rill_graph_add_child(graph, after, count, a_child, &node);
}

static void refuses_bad_handles(void) {
  rill_graph graph = new_graph();
  rill_graph_node node;
  a_child = new_graph();
  refuses_bad_graphs("rill_graph_add_child", add_to);
  refuses_bad_after("rill_graph_add_child", add_after);
  assert_fails(rill_graph_add_child(graph, NULL, 0, RILL_NULL_GRAPH, &node), RILL_ERROR_INVALID_HANDLE);
  assert_fails(rill_graph_add_child(graph, NULL, 0, a_child, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_graph_release(a_child));
  assert_fails(rill_graph_add_child(graph, NULL, 0, a_child, &node), RILL_ERROR_STALE_HANDLE);
}

/* G26 */
static void refuses_itself(void) {
  rill_graph graph = new_graph();
  rill_graph_node node;
  size_t count = 0;
  add_write(graph, NULL, 0, 0, 1);
  assert_fails(rill_graph_add_child(graph, NULL, 0, graph, &node), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_graph_get_nodes(graph, NULL, &count));
  assert_int_equal(count, 1);
}

/* G26: the whole child runs after the predecessors of its node and before its successors; a child may be added many
 * times. */
static void runs_in_its_place(void) {
  enum { TIMES = 3 };
  rill_graph child = new_graph(), graph = new_graph();
  rill_graph_node last = add_write(graph, NULL, 0, 0, 0);
  rill_graph_node up = add_increment(child, NULL, 0, dut.memory, "up");
  size_t count = 0;
  add_increment(child, &up, 1, dut.memory, NULL);
  for (int i = 0; i < TIMES; i++) assert_ok(rill_graph_add_child(graph, &last, 1, child, &last));
  add_read(graph, &last, 1, 0);
  assert_ok(rill_graph_release(child));
  assert_ok(rill_graph_get_nodes(graph, NULL, &count));
  assert_int_equal(count, 2 + TIMES * 3);
  assert_ok(rill_graph_find_node(graph, "up", TIMES - 1, &up));
  run_graph(graph);
  assert_int_equal(dut.host[0], 2 * TIMES);
}

/* Independent parts of a child, added in any order, are joined in its node; an empty child is a node that does nothing.
 */
static void joins_its_parts(void) {
  rill_graph child = new_graph(), empty = new_graph(), graph = new_graph();
  rill_graph_node reads[2], writes[2], last;
  for (unsigned i = 0; i < 2; i++) {
    reads[i] = add_read(child, NULL, 0, i);
    writes[i] = add_write(child, NULL, 0, i, 30 + i);
    assert_ok(rill_graph_add_edge(child, writes[i], reads[i]));
  }
  rill_graph_node first = add_write(graph, NULL, 0, 2, 1);
  assert_ok(rill_graph_add_child(graph, &first, 1, empty, &last));
  assert_ok(rill_graph_add_child(graph, &last, 1, child, &last));
  assert_ok(rill_graph_add_copy(graph, &last, 1, dut.memory + 3, dut.host + 1, sizeof *dut.host, &last));
  add_read(graph, &last, 1, 3);
  run_graph(graph);
  assert_int_equal(dut.host[0], 30);
  assert_int_equal(dut.host[3], 31);
}

TESTS_ON_EACH_DEVICE("rill_graph_add_child", TEST(refuses_bad_handles), TEST(refuses_itself), TEST(runs_in_its_place),
                     TEST(joins_its_parts))
