/* rill_graph_add_user_object */
#include "graphs.h"

static void count_release(void *user) { (void)atomic_fetch_add((_Atomic int *)user, 1); }

static _Atomic int released;

static rill_status add_to(uint64_t id) {
  rill_graph_node node;
  return rill_graph_add_user_object((rill_graph){ id }, count_release, &released, &node);
}

static void refuses_bad_handles(void) {
  rill_graph graph = new_graph();
  rill_graph_node node;
  atomic_store(&released, 0);
  refuses_bad_graphs("rill_graph_add_user_object", add_to);
  assert_fails(rill_graph_add_user_object(graph, NULL, &released, &node), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_graph_add_user_object(graph, count_release, &released, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_graph_release(graph));
  assert_int_equal(atomic_load(&released), 0);
}

/* Lets rill end what has been released. */
static void let_end(int count) {
  const uint64_t start = now_ns();
  while (atomic_load(&released) != count && now_ns() - start < TIMEOUT_NS) {
    rill_event event;
    assert_ok(rill_event_create(dut.device, NULL, &event));
    assert_ok(rill_event_release(event));
  }
  assert_int_equal(atomic_load(&released), count);
}

/* G29, G33: once each, when the last graph that has it is gone. */
static void is_released_once(void) {
  enum { OBJECTS = 3 };
  rill_graph graph = new_graph(), copy, parent = new_graph();
  rill_graph_node node;
  uint32_t kind = 0;
  atomic_store(&released, 0);
  for (int i = 0; i < OBJECTS; i++) {
    assert_ok(rill_graph_add_user_object(graph, count_release, &released, &node));
  }
  assert_ok(rill_graph_node_kind(node, &kind));
  assert_int_equal(kind, RILL_NODE_USER_OBJECT);
  assert_ok(rill_graph_clone(graph, &copy));
  assert_ok(rill_graph_add_child(parent, NULL, 0, copy, &node));
  run_graph(graph);
  assert_ok(rill_graph_release(graph));
  assert_ok(rill_graph_release(copy));
  run_graph(parent);
  assert_ok(rill_device_synchronize(dut.device));
  assert_int_equal(atomic_load(&released), 0);
  assert_ok(rill_graph_release(parent));
  let_end(OBJECTS);
}

/* G28, G29: not before the last launch has ended. */
static void is_kept_until_launches_end(void) {
  rill_graph graph = new_graph();
  rill_graph_node node, write = add_write(graph, NULL, 0, 0, 4);
  rill_stream stream = new_stream("stream");
  atomic_store(&released, 0);
  assert_ok(rill_graph_add_user_object(graph, count_release, &released, &node));
  assert_ok(rill_graph_add_edge(graph, node, write)); /* it may have its place in an order */
  add_read(graph, &write, 1, 0);
  rill_graph_exec exec = new_exec(graph);
  assert_ok(rill_graph_release(graph));
  struct gate *gate = gate_close(stream);
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_graph_exec_release(exec));
  for (int i = 0; i < 100; i++) {
    rill_event event;
    assert_ok(rill_event_create(dut.device, NULL, &event));
    assert_ok(rill_event_release(event));
  }
  assert_int_equal(atomic_load(&released), 0);
  gate_open(gate);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 4);
  let_end(1);
}

/* An update gives the object of the new graph to later launches, and releases the one before. */
static void goes_with_an_update(void) {
  rill_graph first = new_graph(), second = new_graph();
  rill_graph_node node;
  static _Atomic int other;
  atomic_store(&released, 0);
  atomic_store(&other, 0);
  assert_ok(rill_graph_add_user_object(first, count_release, &released, &node));
  assert_ok(rill_graph_add_user_object(second, count_release, &other, &node));
  rill_graph_exec exec = new_exec(first);
  run_exec(exec);
  const rill_status status = rill_graph_update(exec, second);
  assert_true(status == RILL_OK || !rill_device_supports(dut.device, RILL_FEATURE_GRAPH_UPDATE, NULL));
  run_exec(exec);
  assert_ok(rill_graph_release(second));
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(first));
  let_end(1);
}

TESTS_ON_EACH_DEVICE("rill_graph_add_user_object", TEST(refuses_bad_handles), TEST(is_released_once),
                     TEST(is_kept_until_launches_end), TEST(goes_with_an_update))
