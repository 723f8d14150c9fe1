/* rill_graph_add_copy */
#include "graphs.h"

static rill_status add_to(uint64_t id) {
  rill_graph_node node = { 1 };
  const rill_status status = rill_graph_add_copy((rill_graph){ id }, NULL, 0, dut.host, dut.memory, 4, &node);
  assert_int_equal(node.id, 0);
  return status;
}

static rill_status add_after(rill_graph graph, const rill_graph_node *after, size_t count) {
  rill_graph_node node;
  return rill_graph_add_copy(graph, after, count, dut.host, dut.memory, 4, &node);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_add_copy", add_to);
  refuses_bad_after("rill_graph_add_copy", add_after);
}

/* C5.3 */
static void checks_its_ranges(void) {
  rill_graph graph = new_graph();
  rill_graph_node node;
  const size_t all = CELLS * sizeof *dut.memory;
  assert_fails(rill_graph_add_copy(graph, NULL, 0, dut.host, NULL, 4, &node), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_add_copy(graph, NULL, 0, NULL, dut.host, 4, &node), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_add_copy(graph, NULL, 0, dut.host, dut.memory, all + 1, &node), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_graph_add_copy(graph, NULL, 0, dut.host, dut.memory, 4, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* G31: a copy of 0 bytes is still a node. */
static void does_nothing_for_zero_bytes(void) {
  rill_graph graph = new_graph();
  rill_graph_node node;
  assert_ok(rill_graph_add_copy(graph, NULL, 0, NULL, NULL, 0, &node));
  assert_int_not_equal(node.id, 0);
  run_graph(graph);
}

/* C7.1: memory, including host memory, is read at each launch. */
static void reads_its_source_at_each_launch(void) {
  rill_graph graph = new_graph();
  rill_graph_node in, out;
  uint32_t pageable = 1;
  assert_ok(rill_graph_add_copy(graph, NULL, 0, dut.memory, &pageable, sizeof pageable, &in));
  assert_ok(rill_graph_add_copy(graph, &in, 1, dut.host, dut.memory, sizeof pageable, &out));
  rill_graph_exec exec = new_exec(graph);
  for (uint32_t i = 1; i < 5; i++) {
    pageable = i;
    run_exec(exec);
    assert_int_equal(dut.host[0], i);
  }
}

/* A size that is divided among several workers or engines. */
static void copies_large_sizes(void) {
  enum { MUCH = 5 << 20 };
  rill_graph graph = new_graph();
  rill_graph_node filled, node;
  unsigned char *from = NULL, *to = NULL;
  const unsigned char byte = 77;
  assert_ok(rill_alloc(dut.device, MUCH, RILL_MEMORY_DEVICE, (void **)&from));
  assert_ok(rill_alloc(dut.device, MUCH, RILL_MEMORY_PINNED, (void **)&to));
  assert_ok(rill_graph_add_fill(graph, NULL, 0, from, &byte, 1, MUCH, &filled));
  assert_ok(rill_graph_add_copy(graph, &filled, 1, to, from, MUCH, &node));
  add_increment(graph, &node, 1, dut.host, NULL);
  rill_graph_exec exec = new_exec(graph);
  for (unsigned i = 1; i < 4; i++) {
    memset(to, 0, MUCH);
    run_exec(exec);
    for (size_t k = 0; k < MUCH; k += 4093) assert_int_equal(to[k], 77);
    assert_int_equal(dut.host[0], i);
  }
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_free(from));
  assert_ok(rill_free(to));
}

TESTS_ON_EACH_DEVICE("rill_graph_add_copy", TEST(refuses_bad_handles), TEST(checks_its_ranges),
                     TEST(does_nothing_for_zero_bytes), TEST(reads_its_source_at_each_launch), TEST(copies_large_sizes))
