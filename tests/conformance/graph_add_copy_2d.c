/* rill_graph_add_copy_2d */
#include "graphs.h"

static rill_status add_to(uint64_t id) {
  rill_graph_node node;
  return rill_graph_add_copy_2d((rill_graph){ id }, NULL, 0, dut.host, 16, dut.memory, 16, 8, 4, &node);
}

static rill_status add_after(rill_graph graph, const rill_graph_node *after, size_t count) {
  rill_graph_node node;
  return rill_graph_add_copy_2d(graph, after, count, dut.host, 16, dut.memory, 16, 8, 4, &node);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_add_copy_2d", add_to);
  refuses_bad_after("rill_graph_add_copy_2d", add_after);
}

/* C8 of EDGE_CASES.md */
static void checks_its_shape(void) {
  rill_graph graph = new_graph();
  rill_graph_node node;
  assert_fails(rill_graph_add_copy_2d(graph, NULL, 0, dut.host, 4, dut.memory, 16, 8, 4, &node),
               RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_add_copy_2d(graph, NULL, 0, dut.host, 16, dut.memory, 16, 8, CELLS, &node),
               RILL_ERROR_OUT_OF_RANGE);
}

/* C5.3, C7.1 */
static void copies_only_the_rows(void) {
  rill_graph graph = new_graph();
  rill_graph_node filled, node;
  const uint32_t value = 9;
  assert_ok(rill_graph_add_fill(graph, NULL, 0, dut.memory, &value, sizeof value, 16, &filled));
  assert_ok(rill_graph_add_copy_2d(graph, &filled, 1, dut.host, 16, dut.memory, 16, 8, 4, &node));
  run_graph(graph);
  for (unsigned i = 0; i < 16; i++) assert_int_equal(dut.host[i], i % 4 < 2 ? 9 : 0);
}

TESTS_ON_EACH_DEVICE("rill_graph_add_copy_2d", TEST(refuses_bad_handles), TEST(checks_its_shape),
                     TEST(copies_only_the_rows))
