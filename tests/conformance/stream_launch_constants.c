/* rill_stream_launch with constants. */
#include "graphs.h"

#include "launch.rill.h"

static rill_stream stream;
static rill_kernel give;

static void set_scene(void) {
  stream = new_stream("stream");
  give = new_kernel(&launch_bundle, "give_constants");
}

/* Launches a kernel that copies the constants to four cells of dut.host, starting at `cell`. */
static rill_status launch(rill_stream on, unsigned cell, const rill_constant *constants, size_t count) {
  rill_launch one_thread = rill_launch_1d(1, 1);
  unsigned *out = dut.host + cell;
  double *offset = (double *)(void *)(dut.host + CELLS - 2);
  one_thread.constants = constants;
  one_thread.constant_count = count;
  return rill_stream_launch(on, give, &one_thread, RILL_ARGS(out, offset));
}

static void refuses(rill_constant constant, rill_status status, const char *text) {
  assert_fails_in("rill_stream_launch", launch(stream, 0, &constant, 1), status);
  assert_says(text);
}

/* C1.6 */
static void refuses_invalid_constants(void) {
  const unsigned values[5] = { 1, 2, 3, 4, 5 };
  set_scene();
  assert_fails_in("rill_stream_launch", launch(stream, 0, NULL, 1), RILL_ERROR_INVALID_ARGUMENT);
  refuses((rill_constant){ NULL, values, 4 }, RILL_ERROR_INVALID_ARGUMENT, "symbol is NULL");
  refuses((rill_constant){ "factors", NULL, 4 }, RILL_ERROR_INVALID_ARGUMENT, "data is NULL");
  refuses((rill_constant){ "no_such_variable", values, 4 }, RILL_ERROR_NOT_FOUND, "no_such_variable");
  refuses((rill_constant){ "", values, 4 }, RILL_ERROR_NOT_FOUND, dut.name);
  refuses((rill_constant){ "factors", values, sizeof values }, RILL_ERROR_OUT_OF_RANGE,
          "20 bytes for \"factors\", which has 16");
  refuses((rill_constant){ "factors", values, SIZE_MAX }, RILL_ERROR_OUT_OF_RANGE, "16");
  assert_fails_in("rill_stream_launch", launch(stream, 0, &(rill_constant){ "factors", values, 4 }, SIZE_MAX),
                  RILL_ERROR_OUT_OF_MEMORY);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 0); /* nothing ran */
}

/* C6.4, L14: constants are written in stream order before the kernel; the source is read at the call, pinned or not. */
static void constants_are_copied_at_the_call(void) {
  unsigned values[4] = { 1, 2, 3, 4 };
  unsigned *pinned = dut.host + 32;
  double offset = 0.5;
  set_scene();
  struct gate *gate = gate_close(stream);
  const rill_constant first[] = { { "factors", values, sizeof values }, { "offset_of_all", &offset, sizeof offset } };
  assert_ok(launch(stream, 0, first, 2));
  memset(values, 0, sizeof values);
  memcpy(pinned, (const unsigned[]){ 5, 6, 7, 8 }, 16);
  assert_ok(launch(stream, 4, &(rill_constant){ "factors", pinned, 16 }, 1));
  memset(pinned, 0, 16);
  assert_ok(launch(stream, 8, NULL, 0)); /* without constants the kernel sees the current values */
  const unsigned nine = 9;
  assert_ok(launch(stream, 12, &(rill_constant){ "factors", &nine, 4 }, 1)); /* only the first bytes of the variable */
  assert_ok(launch(stream, 16, &(rill_constant){ "factors", NULL, 0 }, 1));  /* no bytes of the variable */
  gate_open(gate);
  assert_completes(stream);
  const unsigned expected[20] = { 1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8, 9, 6, 7, 8, 9, 6, 7, 8 };
  assert_memory_equal(dut.host, expected, sizeof expected);
  assert_true(*(double *)(void *)(dut.host + CELLS - 2) == 0.5);
}

/* C3.8 */
static void held_streams_queue_constants(void) {
  unsigned values[4] = { 21, 22, 23, 24 };
  set_scene();
  rill_event event = new_event("never recorded before");
  assert_ok(rill_stream_wait_event(stream, event, 0));
  const rill_constant constant = { "factors", values, sizeof values };
  assert_ok(launch(stream, 0, &constant, 1));
  memset(values, 0, sizeof values);
  values[0] = 31;
  assert_ok(launch(stream, 4, &(rill_constant){ "factors", values, 4 }, 1));
  values[0] = 0;
  refuses((rill_constant){ "no_such_variable", values, 4 }, RILL_ERROR_NOT_FOUND, "no_such_variable");
  assert_false(is_complete(stream));
  assert_ok(rill_stream_record_event(new_stream("other"), event, 0));
  assert_completes(stream);
  const unsigned expected[8] = { 21, 22, 23, 24, 31, 22, 23, 24 };
  assert_memory_equal(dut.host, expected, sizeof expected);
}

/* C3.8: constants are discarded with the work of a held stream that fails. */
static void constants_are_dropped_with_held_work(void) {
  const unsigned values[4] = { 21, 22, 23, 24 };
  set_scene();
  rill_event event;
  assert_ok(rill_event_create(dut.device, NULL, &event));
  assert_ok(rill_stream_wait_event(stream, event, 0));
  assert_ok(launch(stream, 0, &(rill_constant){ "factors", values, sizeof values }, 1));
  assert_ok(rill_event_release(event));
  assert_fails_in("rill_stream_synchronize", rill_stream_synchronize(stream), RILL_ERROR_NOT_RECORDED);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 0);
}

/* C3.8: after its handle was released the stream still runs, and another stream may use the same handle slot. */
static void constants_outlive_their_stream(void) {
  enum { OTHERS = 8 };
  const unsigned values[4] = { 1, 2, 3, 4 }, other_values[4] = { 5, 6, 7, 8 };
  rill_stream others[OTHERS], held;
  rill_pool pool;
  set_scene();
  rill_event event = new_event("never recorded before");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_create(dut.device, NULL, &held));
  assert_ok(rill_stream_wait_event(held, event, 0));
  assert_ok(launch(held, 0, &(rill_constant){ "factors", values, sizeof values }, 1));
  assert_ok(rill_stream_release(held));
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  assert_ok(rill_pool_release(pool)); /* after this release, all slots of released objects are free */
  for (int round = 0; round < 2; round++) {
    for (int i = 0; i < OTHERS; i++) {
      if (round == 0) others[i] = new_stream("other");
      assert_ok(launch(others[i], 4, &(rill_constant){ "factors", other_values, sizeof other_values }, 1));
      assert_completes(others[i]);
    }
    if (round == 0) assert_ok(rill_stream_record_event(stream, event, 0));
  }
  gate_open(gate);
  assert_ok(rill_device_synchronize(dut.device));
  assert_memory_equal(dut.host, values, sizeof values);
}

static unsigned (*results)[4];
enum { THREADS = 4, ROUNDS = 40 };

static const char *launch_own(unsigned index, void *shared) {
  (void)shared;
  for (unsigned i = 0; i < ROUNDS; i++) {
    const unsigned value = index * 1000 + i, values[4] = { value, value, value, value };
    const rill_constant constant = { "factors", values, sizeof values };
    rill_launch one_thread = rill_launch_1d(1, 1);
    one_thread.constants = &constant;
    one_thread.constant_count = 1;
    unsigned *out = results[index * ROUNDS + i];
    double *offset = (double *)(void *)(dut.host + CELLS - 2);
    REQUIRE_OK(rill_stream_launch(stream, give, &one_thread, RILL_ARGS(out, offset)));
  }
  return NULL;
}

/* Each launch sees its own constants, even if many threads use the stream. */
static void each_launch_sees_its_own_constants(void) {
  set_scene();
  assert_ok(rill_alloc(dut.device, sizeof *results * THREADS * ROUNDS, RILL_MEMORY_PINNED, (void **)&results));
  run_threads(THREADS, launch_own, NULL);
  assert_completes(stream);
  for (unsigned i = 0; i < THREADS * ROUNDS; i++) {
    for (int k = 0; k < 4; k++) assert_int_equal(results[i][k], i / ROUNDS * 1000 + i % ROUNDS);
  }
  assert_ok(rill_free(results));
}

/* C6.4, C7.1: a captured launch writes its constants at each replay, and later nodes see them; a change applies to
 * later replays of that node. */
static void constants_are_written_at_each_replay(void) {
  unsigned values[4] = { 1, 2, 3, 4 };
  set_scene();
  needs_graphs();
  const rill_constant constant = { "factors", values, sizeof values };
  rill_launch changed = rill_launch_1d(1, 1);
  double *offset = (double *)(void *)(dut.host + CELLS - 2);
  rill_graph graph;
  rill_graph_node first, nodes[4];
  size_t count = 4;
  changed.constants = &constant;
  changed.constant_count = 1;
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_THREAD));
  assert_ok(launch(stream, 0, &constant, 1));
  for (unsigned i = 0; i < 4; i++) values[i] = 5 + i;
  assert_ok(launch(stream, 4, &constant, 1));
  assert_ok(launch(stream, 8, NULL, 0));
  refuses((rill_constant){ "no_such_variable", values, 4 }, RILL_ERROR_NOT_FOUND, "no_such_variable");
  memset(values, 0, sizeof values);
  assert_ok(rill_stream_capture_end(stream, &graph));
  assert_ok(rill_graph_get_nodes(graph, nodes, &count));
  assert_int_equal(count, 3);
  first = nodes[0];
  rill_graph_exec exec = new_exec(graph);
  const unsigned expected[12] = { 1, 2, 3, 4, 5, 6, 7, 8, 5, 6, 7, 8 };
  for (unsigned replay = 0; replay < 2; replay++) {
    memset(dut.host, 0, sizeof expected);
    run_exec(exec);
    assert_memory_equal(dut.host, expected, sizeof expected);
  }
  for (unsigned replay = 0; replay < 2; replay++) {
    for (unsigned i = 0; i < 4; i++) values[i] = 10 * replay + i;
    assert_ok(rill_graph_exec_set_kernel(exec, first, &changed, RILL_ARGS(dut.host, offset)));
    run_exec(exec);
    assert_memory_equal(dut.host, values, sizeof values);
    assert_memory_equal(dut.host + 4, expected + 4, sizeof expected - sizeof values);
  }
  assert_ok(rill_graph_exec_release(exec));
  run_graph(graph); /* with the captured constants */
  assert_memory_equal(dut.host, expected, sizeof expected);
  assert_ok(rill_graph_release(graph));
}

TESTS_ON_EACH_DEVICE("rill_stream_launch with constants", TEST(refuses_invalid_constants),
                     TEST(constants_are_copied_at_the_call), TEST(held_streams_queue_constants),
                     TEST(constants_are_dropped_with_held_work), TEST(constants_outlive_their_stream),
                     TEST(each_launch_sees_its_own_constants), TEST(constants_are_written_at_each_replay))
