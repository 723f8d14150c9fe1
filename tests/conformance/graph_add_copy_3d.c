/* rill_graph_add_copy_3d */
#include "graphs.h"

/* Returns a copy of two slices, each of two rows of one cell; rows are two cells apart, slices eight. */
static rill_copy_3d of_cells(void) {
  rill_copy_3d copy = RILL_COPY_3D_INIT;
  copy.dst = dut.host;
  copy.src = dut.memory;
  copy.dst_pitch = copy.src_pitch = 8;
  copy.dst_slice_pitch = copy.src_slice_pitch = 32;
  copy.width = 4;
  copy.height = copy.depth = 2;
  return copy;
}

static rill_status add_to(uint64_t id) {
  rill_graph_node node;
  const rill_copy_3d copy = of_cells();
  return rill_graph_add_copy_3d((rill_graph){ id }, NULL, 0, &copy, &node);
}

static rill_status add_after(rill_graph graph, const rill_graph_node *after, size_t count) {
  rill_graph_node node;
  const rill_copy_3d copy = of_cells();
  return rill_graph_add_copy_3d(graph, after, count, &copy, &node);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_add_copy_3d", add_to);
  refuses_bad_after("rill_graph_add_copy_3d", add_after);
}

/* C1.4 */
static rill_status add_given(const void *options) {
  rill_graph_node node;
  const rill_graph graph = new_graph();
  return rill_graph_add_copy_3d(graph, NULL, 0, options, &node);
}

static void accepts_older_and_newer_structs(void) {
  const rill_copy_3d copy = of_cells();
  takes_grown_options("rill_graph_add_copy_3d", add_given, &copy, sizeof copy, sizeof copy);
}

static void checks_its_shape(void) {
  const rill_graph graph = new_graph();
  rill_graph_node node;
  rill_copy_3d copy = of_cells();
  assert_fails(rill_graph_add_copy_3d(graph, NULL, 0, NULL, &node), RILL_ERROR_INVALID_ARGUMENT);
  copy.src_pitch = 2;
  assert_fails(rill_graph_add_copy_3d(graph, NULL, 0, &copy, &node), RILL_ERROR_INVALID_ARGUMENT);
  copy = of_cells();
  copy.depth = CELLS;
  assert_fails(rill_graph_add_copy_3d(graph, NULL, 0, &copy, &node), RILL_ERROR_OUT_OF_RANGE);
}

/* C5.3, C7.1 */
static void copies_only_the_rows(void) {
  const rill_graph graph = new_graph();
  rill_graph_node filled, node;
  const uint32_t value = 9;
  const rill_copy_3d copy = of_cells();
  assert_ok(rill_graph_add_fill(graph, NULL, 0, dut.memory, &value, sizeof value, 16, &filled));
  assert_ok(rill_graph_add_copy_3d(graph, &filled, 1, &copy, &node));
  run_graph(graph);
  for (unsigned i = 0; i < 16; i++) assert_int_equal(dut.host[i], i % 8 < 4 && i % 2 == 0 ? 9 : 0);
}

TESTS_ON_EACH_DEVICE("rill_graph_add_copy_3d", TEST(refuses_bad_handles), TEST(accepts_older_and_newer_structs),
                     TEST(checks_its_shape), TEST(copies_only_the_rows))
