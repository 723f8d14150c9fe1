/* rill_graph_instantiate_with_options */
#include "graphs.h"

static rill_status instantiate(uint64_t id) {
  rill_graph_exec exec;
  return rill_graph_instantiate_with_options((rill_graph){ id }, NULL, &exec);
}

static void refuses_bad_handles(void) {
  refuses_bad_graphs("rill_graph_instantiate_with_options", instantiate);
  rill_graph graph = new_graph();
  rill_graph_exec exec;
  rill_graph_exec_options options = RILL_GRAPH_EXEC_OPTIONS_INIT;
  assert_fails(rill_graph_instantiate_with_options(graph, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
  options.struct_size = 0;
  assert_fails(rill_graph_instantiate_with_options(graph, &options, &exec), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(exec.id, 0);
}

/* C1.5: the label names the object in errors. */
static void applies_its_label(void) {
  rill_graph graph = new_graph(), other = new_graph();
  rill_graph_exec exec;
  add_write(graph, NULL, 0, 0, 1);
  assert_ok(rill_graph_instantiate_with_options(graph, RILL_GRAPH_EXEC_OPTIONS(.label = "step"), &exec));
  assert_fails(rill_graph_update(exec, other), RILL_ERROR_INVALID_ARGUMENT);
  assert_names("step");
  run_exec(exec);
  assert_ok(rill_graph_exec_release(exec));
}

/* G31: a graph that does not free its memory can be launched repeatedly, with or without the option. */
static void launches_again_without_frees(void) {
  for (int asked = 0; asked < 2; asked++) {
    rill_graph graph = new_graph();
    rill_graph_node node;
    rill_graph_exec exec;
    uint32_t *p = NULL;
    const uint32_t value = 3;
    const rill_graph_exec_options options = { sizeof options, asked == 1, NULL };
    assert_ok(rill_graph_add_alloc(graph, NULL, 0, 64, (void **)&p, &node));
    assert_ok(rill_graph_add_fill(graph, &node, 1, p, &value, sizeof value, 16, &node));
    assert_ok(rill_graph_add_copy(graph, &node, 1, dut.host, p + 15, sizeof value, &node));
    assert_ok(rill_graph_instantiate_with_options(graph, &options, &exec));
    for (int i = 0; i < 3; i++) {
      dut.host[0] = 0;
      run_exec(exec);
      assert_int_equal(dut.host[0], 3);
    }
    assert_ok(rill_graph_exec_release(exec));
    assert_ok(rill_graph_release(graph));
  }
}

TESTS_ON_EACH_DEVICE("rill_graph_instantiate_with_options", TEST(refuses_bad_handles), TEST(applies_its_label),
                     TEST(launches_again_without_frees))
