/* rill_graph_add_fill */
#include "graphs.h"

static const uint32_t word = 0x01020304;

static rill_status add_to(uint64_t id) {
  rill_graph_node node;
  return rill_graph_add_fill((rill_graph){ id }, NULL, 0, dut.memory, &word, 4, 1, &node);
}

static rill_status add_after(rill_graph graph, const rill_graph_node *after, size_t count) {
  rill_graph_node node;
  return rill_graph_add_fill(graph, after, count, dut.memory, &word, 4, 1, &node);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_add_fill", add_to);
  refuses_bad_after("rill_graph_add_fill", add_after);
}

/* G36 */
static void checks_the_pattern(void) {
  rill_graph graph = new_graph();
  rill_graph_node node;
  assert_fails(rill_graph_add_fill(graph, NULL, 0, dut.memory, &word, 3, 1, &node), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_add_fill(graph, NULL, 0, dut.memory, &word, 0, 1, &node), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_add_fill(graph, NULL, 0, dut.memory, NULL, 4, 1, &node), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_add_fill(graph, NULL, 0, (char *)dut.memory + 1, &word, 4, 1, &node),
               RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_add_fill(graph, NULL, 0, dut.memory, &word, 4, CELLS + 1, &node), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_graph_add_fill(graph, NULL, 0, dut.memory, &word, 4, SIZE_MAX / 2, &node), RILL_ERROR_OUT_OF_RANGE);
}

/* C5.3, C7.1: patterns of all sizes, which are copied at the call. */
static void fills_with_each_size(void) {
  for (size_t size = 1; size <= 16; size *= 2) {
    unsigned char pattern[16];
    rill_graph graph = new_graph();
    rill_graph_node filled, node;
    for (unsigned i = 0; i < 16; i++) pattern[i] = (unsigned char)(i + size);
    assert_ok(rill_graph_add_fill(graph, NULL, 0, dut.memory, pattern, size, 64 / size, &filled));
    assert_ok(rill_graph_add_copy(graph, &filled, 1, dut.host, dut.memory, 64, &node));
    unsigned char before[16];
    memcpy(before, pattern, sizeof before);
    memset(pattern, 0, sizeof pattern);
    run_graph(graph);
    for (size_t i = 0; i < 64; i++) assert_int_equal(((unsigned char *)dut.host)[i], before[i % size]);
    assert_ok(rill_graph_release(graph));
  }
}

static void does_nothing_for_zero_patterns(void) {
  rill_graph graph = new_graph();
  rill_graph_node node;
  assert_ok(rill_graph_add_fill(graph, NULL, 0, NULL, &word, 4, 0, &node));
  run_graph(graph);
}

TESTS_ON_EACH_DEVICE("rill_graph_add_fill", TEST(refuses_bad_handles), TEST(checks_the_pattern),
                     TEST(fills_with_each_size), TEST(does_nothing_for_zero_patterns))
