/* rill_graph_add_kernel */
#include "graphs.h"

#include "launch.rill.h"

static rill_kernel store_kernel(void) { return new_kernel(&launch_bundle, "store"); }

static rill_status add(rill_graph graph, const rill_graph_node *after, size_t count, rill_kernel kernel,
                       rill_graph_node *out) {
  const rill_launch launch = rill_launch_1d(1, 1);
  return rill_graph_add_kernel(graph, after, count, kernel, &launch, RILL_ARGS(3u, dut.host), out);
}

static rill_status add_to(uint64_t id) {
  rill_graph_node node = { 1 };
  const rill_status status = add((rill_graph){ id }, NULL, 0, store_kernel(), &node);
  assert_int_equal(node.id, 0);
  return status;
}

static rill_status add_after(rill_graph graph, const rill_graph_node *after, size_t count) {
  rill_graph_node node;
  return add(graph, after, count, store_kernel(), &node);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_add_kernel", add_to);
  refuses_bad_after("rill_graph_add_kernel", add_after);
  rill_graph graph = new_graph();
  rill_graph_node node;
  assert_fails_in("rill_graph_add_kernel", add(graph, NULL, 0, RILL_NULL_KERNEL, &node), RILL_ERROR_INVALID_HANDLE);
  assert_fails_in("rill_graph_add_kernel", add(graph, NULL, 0, store_kernel(), NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* C6.5: it refuses the same launches as rill_stream_launch, with the same texts, and adds nothing. */
static void checks_the_launch(void) {
  rill_graph graph = new_graph();
  rill_graph_node node;
  size_t count = 1;
  const rill_kernel kernel = store_kernel();
  rill_launch launch = rill_launch_1d(1, 1);
  assert_fails(rill_graph_add_kernel(graph, NULL, 0, kernel, NULL, RILL_ARGS(3u, dut.host), &node),
               RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_add_kernel(graph, NULL, 0, kernel, &launch, RILL_ARGS(3u), &node),
               RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_add_kernel(graph, NULL, 0, kernel, &launch, RILL_ARGS(3.0, dut.host), &node),
               RILL_ERROR_INVALID_ARGUMENT);
  assert_says("8 bytes passed, 4 expected");
  launch.block.x = dut.info.max_threads_per_block + 1;
  assert_fails(rill_graph_add_kernel(graph, NULL, 0, kernel, &launch, RILL_ARGS(3u, dut.host), &node),
               RILL_ERROR_OUT_OF_RANGE);
  launch = rill_launch_1d(1, 1);
  launch.grid.x = 0;
  assert_fails(rill_graph_add_kernel(graph, NULL, 0, kernel, &launch, RILL_ARGS(3u, dut.host), &node),
               RILL_ERROR_INVALID_ARGUMENT);
  count = 0;
  assert_ok(rill_graph_get_nodes(graph, NULL, &count));
  assert_int_equal(count, 0);
}

/* C7.1: arguments are copied at the call, and the node keeps a reference to its kernel. */
static void copies_its_arguments_at_the_call(void) {
  rill_graph graph = new_graph();
  rill_graph_node node;
  rill_module module;
  rill_kernel kernel;
  needs_graphs();
  unsigned value = 31;
  unsigned *out = dut.host;
  const rill_launch launch = rill_launch_1d(1, 1);
  assert_ok(rill_module_load(dut.device, &launch_bundle, &module));
  assert_ok(rill_module_get_kernel(module, "store", &kernel));
  assert_ok(rill_graph_add_kernel(graph, NULL, 0, kernel, &launch, RILL_ARGS(value, out), &node));
  value = 32;
  assert_ok(rill_kernel_release(kernel));
  assert_ok(rill_module_release(module));
  run_graph(graph);
  assert_int_equal(dut.host[0], 31);
}

/* C7.1: a chain of kernels runs in order. */
static void runs_after_what_it_depends_on(void) {
  enum { LENGTH = 200 };
  rill_graph graph = new_graph();
  rill_graph_node last = RILL_NULL_GRAPH_NODE;
  const rill_kernel kernel = store_kernel();
  const rill_launch launch = rill_launch_1d(1, 1);
  for (unsigned i = 0; i < LENGTH; i++) {
    assert_ok(rill_graph_add_kernel(graph, &last, i > 0 ? 1 : 0, kernel, &launch, RILL_ARGS(i, dut.host), &last));
  }
  rill_graph_exec exec = new_exec(graph);
  for (int i = 0; i < 5; i++) {
    dut.host[0] = 0;
    run_exec(exec);
    assert_int_equal(dut.host[0], LENGTH - 1);
  }
}

/* C6.4, C7.1: constants are copied at the call, and written before the kernel at each launch. */
static void keeps_constants(void) {
  rill_graph graph = new_graph();
  rill_graph_node node;
  const rill_kernel kernel = new_kernel(&launch_bundle, "give_constants");
  unsigned values[4] = { 5, 6, 7, 8 };
  const rill_constant constant = { "factors", values, sizeof values };
  rill_launch launch = rill_launch_1d(1, 1);
  double *offset = (double *)(void *)(dut.host + CELLS - 2);
  launch.constants = &constant;
  launch.constant_count = 1;
  assert_ok(rill_graph_add_kernel(graph, NULL, 0, kernel, &launch, RILL_ARGS(dut.host, offset), &node));
  memset(values, 0, sizeof values);
  rill_graph_exec exec = new_exec(graph);
  for (int i = 0; i < 3; i++) {
    memset(dut.host, 0, 4 * sizeof *dut.host);
    run_exec(exec);
    for (unsigned k = 0; k < 4; k++) assert_int_equal(dut.host[k], 5 + k);
  }
}

TESTS_ON_EACH_DEVICE("rill_graph_add_kernel", TEST(refuses_bad_handles), TEST(checks_the_launch),
                     TEST(copies_its_arguments_at_the_call), TEST(runs_after_what_it_depends_on), TEST(keeps_constants))
