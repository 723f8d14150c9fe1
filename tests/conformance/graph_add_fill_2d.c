/* rill_graph_add_fill_2d */
#include "graphs.h"

static const uint32_t word = 7;

static rill_status add_to(uint64_t id) {
  rill_graph_node node;
  return rill_graph_add_fill_2d((rill_graph){ id }, NULL, 0, dut.memory, 16, &word, 4, 2, 2, &node);
}

static rill_status add_after(rill_graph graph, const rill_graph_node *after, size_t count) {
  rill_graph_node node;
  return rill_graph_add_fill_2d(graph, after, count, dut.memory, 16, &word, 4, 2, 2, &node);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_add_fill_2d", add_to);
  refuses_bad_after("rill_graph_add_fill_2d", add_after);
}

/* C5.3, C12 */
static void fills_only_the_rows(void) {
  rill_graph graph = new_graph();
  rill_graph_node zero, filled, node;
  const uint32_t nothing = 0;
  assert_ok(rill_graph_add_fill(graph, NULL, 0, dut.memory, &nothing, 4, 16, &zero));
  assert_fails(rill_graph_add_fill_2d(graph, &zero, 1, dut.memory, 4, &word, 4, 2, 2, &filled),
               RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_graph_add_fill_2d(graph, &zero, 1, dut.memory, 16, &word, 4, 2, 4, &filled));
  assert_ok(rill_graph_add_copy(graph, &filled, 1, dut.host, dut.memory, 64, &node));
  run_graph(graph);
  for (unsigned i = 0; i < 16; i++) assert_int_equal(dut.host[i], i % 4 < 2 ? 7 : 0);
}

TESTS_ON_EACH_DEVICE("rill_graph_add_fill_2d", TEST(refuses_bad_handles), TEST(fills_only_the_rows))
