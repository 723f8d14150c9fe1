/* rill_graph_launch */
#include "graphs.h"

static rill_status launch(uint64_t id) { return rill_graph_launch((rill_graph_exec){ id }, new_stream("stream")); }

static rill_graph_exec live;
static rill_status launch_on(uint64_t id) { return rill_graph_launch(live, (rill_stream){ id }); }

static void refuses_bad_handles(void) {
  refuses_bad_execs("rill_graph_launch", launch);
  rill_graph graph = new_graph();
  live = new_exec(graph);
  refuses_bad_streams("rill_graph_launch", launch_on);
  assert_ok(rill_graph_exec_release(live));
}

/* C1.6 */
static void refuses_another_device(void) {
  needs_second_device();
  rill_graph graph = new_graph();
  rill_graph_exec exec = new_exec(graph);
  assert_fails(rill_graph_launch(exec, new_stream_on(dut.second, "there")), RILL_ERROR_WRONG_DEVICE);
}

/* C3.1: a launch is work of its stream like any other. */
static void runs_in_the_order_of_the_stream(void) {
  rill_graph graph = new_graph();
  rill_stream stream = new_stream("stream");
  rill_graph_node read = add_read(graph, NULL, 0, 0);
  add_write(graph, &read, 1, 0, 22);
  rill_graph_exec exec = new_exec(graph);
  struct gate *gate = gate_close(stream);
  write_cell(stream, 0, 21);
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_copy_async(stream, dut.host + 1, dut.memory, sizeof *dut.host));
  assert_false(is_complete(stream));
  gate_open(gate);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 21);
  assert_int_equal(dut.host[1], 22);
}

/* C7.1: a diamond of four paths. */
static void orders_by_edges(void) {
  enum { PATHS = 4 };
  rill_graph graph = new_graph();
  rill_graph_node top = add_write(graph, NULL, 0, 0, 5), middle[PATHS], bottom;
  for (unsigned i = 0; i < PATHS; i++) {
    rill_graph_node node;
    assert_ok(rill_graph_add_copy(graph, &top, 1, dut.memory + 1 + i, dut.memory, 4, &node));
    assert_ok(rill_graph_add_copy(graph, &node, 1, dut.memory + 10 + i, dut.memory + 1 + i, 4, &middle[i]));
  }
  assert_ok(rill_graph_add_copy(graph, middle, PATHS, dut.host, dut.memory + 10, PATHS * 4, &bottom));
  rill_graph_exec exec = new_exec(graph);
  for (int round = 0; round < 20; round++) {
    memset(dut.host, 0, PATHS * 4);
    run_exec(exec);
    for (unsigned i = 0; i < PATHS; i++) assert_int_equal(dut.host[i], 5);
  }
}

/* C7.1: a node runs after all of its predecessors, whichever is the slowest. */
static void waits_for_every_predecessor(void) {
  enum { BEFORE = 3 };
  const rill_kernel wait = new_kernel(&gate_bundle, "wait_for_flag");
  const rill_launch launch = rill_launch_1d(1, 1);
  const unsigned long long limit = UINT64_C(20000000000);
  unsigned *const flag = dut.host, *const late = dut.host + 1, *const after = dut.host + 2;
  for (unsigned slow = 0; slow < BEFORE; slow++) {
    rill_graph graph = new_graph();
    rill_stream stream = new_stream("runs the graph");
    rill_graph_node nodes[BEFORE];
    for (unsigned i = 0; i < BEFORE; i++) {
      if (i == slow) {
        assert_ok(
            rill_graph_add_kernel(graph, NULL, 0, wait, &launch, RILL_ARGS(flag, slow + 1, limit, late), &nodes[i]));
      } else {
        nodes[i] = add_write(graph, NULL, 0, i, i);
      }
    }
    (void)add_increment(graph, nodes, BEFORE, after, NULL);
    rill_graph_exec exec = new_exec(graph);
    assert_ok(rill_graph_launch(exec, stream));
    assert_fails(rill_stream_synchronize_for(stream, 10 * MILLISECOND), RILL_ERROR_TIMEOUT);
    assert_int_equal(__atomic_load_n(after, __ATOMIC_SEQ_CST), slow);
    __atomic_store_n(flag, slow + 1, __ATOMIC_SEQ_CST);
    assert_completes(stream);
    assert_int_equal(*late, 0);
    assert_int_equal(*after, slow + 1);
    assert_ok(rill_graph_exec_release(exec));
    assert_ok(rill_graph_release(graph));
  }
}

/* Nodes that no path connects can run concurrently: each of two kernels waits for the other. */
static void runs_independent_nodes_at_once(void) {
  rill_graph graph = new_graph();
  const rill_kernel set = new_kernel(&gate_bundle, "set_flag"), wait = new_kernel(&gate_bundle, "wait_for_flag");
  const rill_launch launch = rill_launch_1d(1, 1);
  const unsigned long long limit = UINT64_C(20000000000);
  rill_graph_node node;
  unsigned *flags = dut.host;
  if (dut.gpu) skip_because("a GPU may run kernels of a graph one after another");
  for (unsigned i = 0; i < 2; i++) {
    assert_ok(rill_graph_add_kernel(graph, NULL, 0, set, &launch, RILL_ARGS(&flags[i], 1u), &node));
    assert_ok(
        rill_graph_add_kernel(graph, &node, 1, wait, &launch, RILL_ARGS(&flags[1 - i], 1u, limit, &flags[2]), &node));
  }
  run_graph(graph);
  assert_int_equal(flags[2], 0);
}

/* G22: launches of one object never overlap, whatever their streams. */
static void serializes_launches_on_several_streams(void) {
  enum { STREAMS = 4, LAUNCHES = 40, NODES = 8 };
  rill_graph graph = new_graph();
  rill_stream streams[STREAMS];
  for (int i = 0; i < STREAMS; i++) streams[i] = new_stream("one of several");
  /* each launch copies the counter and then stores the copy plus one, so an overlap would lose counts */
  rill_graph_node last = RILL_NULL_GRAPH_NODE;
  for (int i = 0; i < NODES; i++) {
    assert_ok(rill_graph_add_copy(graph, &last, i > 0 ? 1 : 0, dut.host + 1, dut.host, 4, &last));
    last = add_increment(graph, &last, 1, dut.host + 1, NULL);
    assert_ok(rill_graph_add_copy(graph, &last, 1, dut.host, dut.host + 1, 4, &last));
  }
  rill_graph_exec exec = new_exec(graph);
  for (int i = 0; i < LAUNCHES; i++) assert_ok(rill_graph_launch(exec, streams[i % STREAMS]));
  for (int i = 0; i < STREAMS; i++) assert_completes(streams[i]);
  assert_int_equal(dut.host[0], LAUNCHES * NODES);
}

/* G23 */
static void can_be_launched_many_times(void) {
  const unsigned rounds = scaled(2000);
  rill_graph graph = new_graph();
  rill_stream stream = new_stream("stream");
  rill_graph_node node = add_increment(graph, NULL, 0, dut.host, NULL);
  add_increment(graph, &node, 1, dut.host, NULL);
  add_increment(graph, NULL, 0, dut.host + 1, NULL);
  rill_graph_exec exec = new_exec(graph);
  for (unsigned i = 0; i < rounds; i++) assert_ok(rill_graph_launch(exec, stream));
  assert_completes(stream);
  assert_int_equal(dut.host[0], 2 * rounds);
  assert_int_equal(dut.host[1], rounds);
}

/* C3.8: on a held stream the launch is queued; until it is submitted the object can be neither changed nor launched
 * elsewhere. */
static void waits_on_a_held_stream(void) {
  rill_graph graph = new_graph();
  rill_stream held = new_stream("held");
  rill_event event = new_event("to come");
  rill_graph_node node = add_write(graph, NULL, 0, 0, 33);
  add_read(graph, &node, 1, 0);
  rill_graph_exec exec = new_exec(graph);
  const uint32_t value = 34;
  assert_ok(rill_stream_wait_event(held, event, 0));
  assert_ok(rill_graph_launch(exec, held));
  assert_ok(rill_graph_launch(exec, held));
  assert_fails(rill_graph_launch(exec, new_stream("other")), RILL_ERROR_NOT_READY);
  assert_fails(rill_graph_exec_set_fill(exec, node, dut.memory, &value, sizeof value, 1), RILL_ERROR_NOT_READY);
  assert_fails(rill_graph_update(exec, graph), RILL_ERROR_NOT_READY);
  assert_false(is_complete(held));
  assert_int_equal(dut.host[0], 0);
  assert_ok(rill_stream_record_event(new_stream("recorder"), event, 0));
  assert_completes(held);
  assert_int_equal(dut.host[0], 33);
  run_exec(exec);
}

struct shared {
  rill_graph_exec exec;
  rill_graph_node node;
  rill_stream streams[4];
};

static const char *launch_and_change(unsigned index, void *user) {
  const struct shared *shared = user;
  unsigned *counter = dut.host;
  for (unsigned i = 0; i < scaled(200); i++) {
    REQUIRE_OK(rill_graph_launch(shared->exec, shared->streams[index]));
    if (i % 3 == index % 3) REQUIRE_OK(rill_graph_exec_set_kernel_arg(shared->exec, shared->node, 0, &counter, 8));
  }
  return NULL;
}

/* C1.7, G22: several threads launch one object; the launches run one after another. */
static void serves_several_threads(void) {
  struct shared shared;
  rill_graph graph = new_graph();
  shared.node = add_increment(graph, NULL, 0, dut.host, NULL);
  add_increment(graph, NULL, 0, dut.host + 1, NULL);
  shared.exec = new_exec(graph);
  for (int i = 0; i < 4; i++) shared.streams[i] = new_stream("of a thread");
  run_threads(4, launch_and_change, &shared);
  for (int i = 0; i < 4; i++) assert_completes(shared.streams[i]);
  assert_int_equal(dut.host[0], 4 * scaled(200));
  assert_int_equal(dut.host[1], 4 * scaled(200));
  assert_ok(rill_graph_exec_release(shared.exec));
}

TESTS_ON_EACH_DEVICE("rill_graph_launch", TEST(refuses_bad_handles), TEST(refuses_another_device),
                     TEST(runs_in_the_order_of_the_stream), TEST(orders_by_edges), TEST(waits_for_every_predecessor),
                     TEST(runs_independent_nodes_at_once), TEST(serializes_launches_on_several_streams),
                     TEST(can_be_launched_many_times), TEST(waits_on_a_held_stream), TEST(serves_several_threads))
