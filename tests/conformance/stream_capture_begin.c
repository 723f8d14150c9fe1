/* rill_stream_capture_begin, and the calls that a capturing stream accepts and refuses. */
#include "graphs.h"

#include "support/native.h"

#include "launch.rill.h"

static rill_status begin(uint64_t id) { return rill_stream_capture_begin((rill_stream){ id }, RILL_CAPTURE_GLOBAL); }

static void refuses_bad_handles(void) {
  needs_graphs();
  refuses_bad_streams("rill_stream_capture_begin", begin);
  rill_stream stream = new_stream("stream");
  assert_fails(rill_stream_capture_begin(stream, 3), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_capture_begin(stream, UINT32_MAX), RILL_ERROR_INVALID_ARGUMENT);
}

/* G2, G4 */
static void refuses_a_stream_that_captures(void) {
  needs_graphs();
  rill_stream stream = new_stream("first"), forked = new_stream("forked");
  rill_graph graph;
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_THREAD));
  assert_fails(rill_stream_capture_begin(stream, RILL_CAPTURE_THREAD), RILL_ERROR_CAPTURE_ACTIVE);
  assert_ok(rill_stream_wait_stream(forked, stream));
  assert_fails(rill_stream_capture_begin(forked, RILL_CAPTURE_THREAD), RILL_ERROR_CAPTURE_ACTIVE);
  assert_says("first");
  assert_ok(rill_stream_capture_end(stream, &graph));
  assert_ok(rill_graph_release(graph));
}

/* C3.8: queued work would not be part of the graph. */
static void refuses_a_held_stream(void) {
  needs_graphs();
  rill_stream stream = new_stream("held");
  rill_event event = new_event("to come");
  assert_ok(rill_stream_wait_event(stream, event, 0));
  assert_fails(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL), RILL_ERROR_NOT_READY);
  assert_ok(rill_stream_record_event(new_stream("recorder"), event, 0));
  assert_completes(stream);
}

static void count_call(void *user, rill_status status) {
  (void)status;
  (void)__atomic_add_fetch((unsigned *)user, 1, __ATOMIC_SEQ_CST);
}

/* C7.1, C16: all kinds of work become nodes, in order; nothing runs before the launch. */
static void captures_all_kinds_of_work(void) {
  needs_graphs();
  rill_stream stream = new_stream("stream");
  rill_graph graph;
  unsigned calls = 0;
  const uint32_t value = 3;
  const uint64_t wide = UINT64_C(0x0000000700000006);
  size_t nodes = 0;
  rill_launch launch = rill_launch_1d(4, 2);
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  assert_ok(rill_fill_async(stream, dut.memory, &value, sizeof value, 16));
  assert_ok(rill_fill_async(stream, dut.memory + 16, &wide, sizeof wide, 4));
  assert_ok(rill_fill_2d_async(stream, dut.memory + 32, 16, &value, sizeof value, 2, 2));
  assert_ok(rill_stream_launch(stream, new_kernel(&gate_bundle, "increment"), &launch, RILL_ARGS(dut.memory)));
  assert_ok(rill_copy_async(stream, dut.host, dut.memory, 40 * sizeof value));
  assert_ok(rill_copy_2d_async(stream, dut.host + 48, 8, dut.memory, 8, 4, 2));
  assert_ok(rill_stream_host_call(stream, count_call, &calls));
  assert_ok(rill_copy_async(stream, NULL, NULL, 0)); /* does nothing, so it adds no node */
  assert_ok(rill_stream_capture_end(stream, &graph));
  assert_ok(rill_graph_get_nodes(graph, NULL, &nodes));
  assert_int_equal(nodes, 7);
  assert_completes(stream);
  assert_int_equal(calls, 0);
  assert_int_equal(dut.host[0], 0);
  rill_graph_exec exec = new_exec(graph);
  for (unsigned i = 1; i < 4; i++) {
    run_exec(exec);
    assert_int_equal(calls, i);
    assert_int_equal(dut.host[0], 7);
    assert_int_equal(dut.host[15], 3);
    assert_int_equal(dut.host[16], 6);
    assert_int_equal(dut.host[17], 7);
    assert_int_equal(dut.host[33], 3);
    assert_int_equal(dut.host[48], 7);
  }
  assert_ok(rill_graph_release(graph));
}

/* C7.3, G10: queries and waits are refused, and the capture continues. */
static void refuses_calls_that_would_break_the_capture(void) {
  needs_graphs();
  rill_stream stream = new_stream("capturing"), other = new_stream("other");
  rill_event inside = new_event("inside"), outside = new_event("outside");
  rill_graph graph;
  void *p = NULL;
  bool out = true;
  float ms;
  assert_ok(rill_stream_record_event(other, outside, 0));
  assert_completes(other);
  assert_true(is_ready(outside)); /* a wait for it would do nothing, but is also refused */
  assert_ok(rill_alloc(dut.device, 64, RILL_MEMORY_DEVICE, &p));
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  write_cell(stream, 0, 1);
  assert_ok(rill_stream_record_event(stream, inside, 0));
  assert_fails(rill_stream_synchronize(stream), RILL_ERROR_CAPTURE_ACTIVE);
  assert_says("capturing");
  assert_fails(rill_stream_synchronize_for(stream, 1000), RILL_ERROR_CAPTURE_ACTIVE);
  assert_fails(rill_stream_is_complete(stream, &out), RILL_ERROR_CAPTURE_ACTIVE);
  assert_false(out);
  assert_fails(rill_device_synchronize(dut.device), RILL_ERROR_CAPTURE_ACTIVE);
  assert_fails(rill_free(p), RILL_ERROR_CAPTURE_ACTIVE);
  assert_fails(rill_event_synchronize(inside), RILL_ERROR_NOT_RECORDED);
  assert_fails(rill_event_is_ready(inside, &out), RILL_ERROR_NOT_RECORDED);
  assert_fails(rill_event_elapsed_time(inside, inside, &ms), RILL_ERROR_TIMING_DISABLED);
  assert_fails(rill_stream_wait_event(stream, outside, 0), RILL_ERROR_CAPTURE_ACTIVE);
  assert_fails(rill_stream_wait_event(stream, new_event("never"), 0), RILL_ERROR_NOT_RECORDED);
  assert_ok(rill_stream_wait_event(stream, new_event("never"), RILL_WAIT_IF_RECORDED));
  assert_fails(rill_stream_wait_stream(stream, other), RILL_ERROR_CAPTURE_ACTIVE);
  /* other streams continue */
  write_cell(other, 1, 2);
  assert_completes(other);
  read_cell(stream, 0);
  assert_ok(rill_stream_capture_end(stream, &graph));
  run_graph(graph);
  assert_int_equal(dut.host[0], 1);
  assert_ok(rill_free(p));
  assert_ok(rill_graph_release(graph));
}

/* C7.1, S27: streams, events, memory and modules can be created during a capture, and are released as usual. */
static void allows_creation_of_objects(void) {
  needs_graphs();
  rill_stream stream = new_stream("capturing"), made;
  rill_event event;
  rill_module module;
  rill_graph graph;
  void *p = NULL;
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  assert_ok(rill_stream_create(dut.device, NULL, &made));
  assert_ok(rill_event_create(dut.device, NULL, &event));
  assert_ok(rill_stream_record_event(made, event, 0));
  assert_ok(rill_event_synchronize(event));
  assert_ok(rill_alloc(dut.device, 64, RILL_MEMORY_DEVICE, &p));
  assert_ok(rill_module_load(dut.device, &launch_bundle, &module));
  assert_ok(rill_module_release(module));
  assert_ok(rill_event_release(event));
  assert_ok(rill_stream_release(made));
  write_cell(stream, 0, 4);
  read_cell(stream, 0);
  assert_ok(rill_stream_capture_end(stream, &graph));
  assert_ok(rill_free(p));
  run_graph(graph);
  assert_int_equal(dut.host[0], 4);
  assert_ok(rill_graph_release(graph));
}

struct attempt {
  void *p;
  rill_status expected;
};

static const char *free_elsewhere(unsigned index, void *user) {
  const struct attempt *attempt = user;
  (void)index;
  REQUIRE(rill_free(attempt->p) == attempt->expected);
  return NULL;
}

/* C7.1, G11: the mode decides which threads may not free during a capture: all threads, its own thread, or none. */
static void its_mode_decides_which_threads_may_free(void) {
  needs_graphs();
  static const struct {
    uint32_t mode;
    rill_status own, other;
  } modes[] = { { RILL_CAPTURE_GLOBAL, RILL_ERROR_CAPTURE_ACTIVE, RILL_ERROR_CAPTURE_ACTIVE },
                { RILL_CAPTURE_THREAD, RILL_ERROR_CAPTURE_ACTIVE, RILL_OK },
                { RILL_CAPTURE_RELAXED, RILL_OK, RILL_OK } };
  for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
    rill_stream stream = new_stream("capturing");
    rill_graph graph;
    void *own = NULL;
    struct attempt other = { NULL, modes[i].other };
    assert_ok(rill_alloc(dut.device, 64, RILL_MEMORY_DEVICE, &own));
    assert_ok(rill_alloc(dut.device, 64, RILL_MEMORY_DEVICE, &other.p));
    assert_ok(rill_stream_capture_begin(stream, modes[i].mode));
    assert_int_equal(rill_free(own), modes[i].own);
    run_threads(1, free_elsewhere, &other);
    assert_ok(rill_stream_capture_end(stream, &graph));
    if (modes[i].own != RILL_OK) assert_ok(rill_free(own));
    if (modes[i].other != RILL_OK) assert_ok(rill_free(other.p));
    assert_ok(rill_graph_release(graph));
  }
}

/* C7.2: with RILL_EVENT_EXTERNAL, a record and a wait become nodes. */
static void captures_external_events(void) {
  needs_graphs();
  rill_stream stream = new_stream("capturing"), producer = new_stream("producer");
  rill_event in = new_event("in"), done = new_event("done");
  rill_graph graph;
  bool recorded = true;
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  assert_ok(rill_stream_wait_event(stream, in, RILL_EVENT_EXTERNAL));
  read_cell(stream, 0);
  assert_ok(rill_stream_record_event(stream, done, RILL_EVENT_EXTERNAL));
  assert_ok(rill_event_is_recorded(done, &recorded));
  assert_false(recorded);
  assert_ok(rill_stream_capture_end(stream, &graph));
  rill_graph_exec exec = new_exec(graph);
  struct gate *gate = gate_close(producer);
  write_cell(producer, 0, 66);
  assert_ok(rill_stream_record_event(producer, in, 0));
  assert_ok(rill_graph_launch(exec, stream));
  assert_false(is_ready(done));
  gate_open(gate);
  assert_becomes_ready(done);
  assert_int_equal(dut.host[0], 66);
  assert_ok(rill_graph_release(graph));
}

struct pair {
  rill_stream streams[2];
  rill_graph graphs[2];
};

static const char *capture_alone(unsigned index, void *user) {
  struct pair *pair = user;
  const uint32_t value = index + 1;
  for (unsigned i = 0; i < scaled(100); i++) {
    rill_graph graph;
    REQUIRE_OK(rill_stream_capture_begin(pair->streams[index], RILL_CAPTURE_THREAD));
    REQUIRE_OK(rill_fill_async(pair->streams[index], dut.memory + index, &value, sizeof value, 1));
    REQUIRE_OK(rill_copy_async(pair->streams[index], dut.host + index, dut.memory + index, sizeof value));
    REQUIRE_OK(rill_stream_capture_end(pair->streams[index], &graph));
    if (i > 0) REQUIRE_OK(rill_graph_release(pair->graphs[index]));
    pair->graphs[index] = graph;
  }
  return NULL;
}

/* G13, G14: concurrent captures on two threads, and several captures in turn on one stream. */
static void captures_on_two_threads_at_once(void) {
  needs_graphs();
  struct pair pair = { { new_stream("one"), new_stream("two") }, { { 0 } } };
  run_threads(2, capture_alone, &pair);
  for (int i = 0; i < 2; i++) {
    run_graph(pair.graphs[i]);
    assert_int_equal(dut.host[i], i + 1);
    assert_ok(rill_graph_release(pair.graphs[i]));
  }
}

static uint64_t used_bytes(void) {
  rill_pool pool;
  rill_pool_info info = RILL_POOL_INFO_INIT;
  assert_ok(rill_pool_default(dut.device, &pool));
  assert_ok(rill_pool_get_info(pool, &info));
  return info.used;
}

/* G31: memory allocated in a capture belongs to the graph, and is valid as long as the graph can be launched. */
static void allocates_memory_of_the_graph(void) {
  needs_graphs();
  rill_stream stream = new_stream("capturing");
  rill_graph graph;
  rill_graph_exec second;
  uint32_t *p = NULL, *outside = NULL, *none = NULL;
  const uint32_t value = 8;
  const uint64_t before = used_bytes();
  assert_ok(rill_alloc_async(stream, 64, (void **)&outside));
  assert_completes(stream);
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  assert_ok(rill_alloc_async(stream, 0, (void **)&none));
  assert_null(none);
  assert_ok(rill_alloc_async(stream, 4096, (void **)&p));
  assert_non_null(p);
  assert_ok(rill_fill_async(stream, p, &value, sizeof value, 1024));
  assert_ok(rill_copy_async(stream, dut.host, p + 1023, sizeof value));
  assert_fails(rill_copy_async(stream, dut.host, p + 1023, 2 * sizeof value), RILL_ERROR_OUT_OF_RANGE);
  assert_ok(rill_free_async(stream, p));
  assert_fails(rill_free_async(stream, p), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_stream_capture_end(stream, &graph));
  assert_ok(rill_free_async(stream, outside));
  assert_completes(stream);
  rill_graph_exec exec = new_exec(graph);
  assert_fails(rill_graph_instantiate(graph, &second), RILL_ERROR_UNSUPPORTED);
  assert_fails(rill_free(p), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_free_async(stream, p), RILL_ERROR_INVALID_ARGUMENT);
  for (int i = 0; i < 3; i++) {
    dut.host[0] = 0;
    run_exec(exec);
    assert_int_equal(dut.host[0], 8);
  }
  assert_true(used_bytes() >= before + 4096);
  assert_ok(rill_graph_release(graph));
  run_exec(exec);
  assert_ok(rill_graph_exec_release(exec));
  assert_int_equal(used_bytes(), before);
}

/* C7.3: memory that was allocated before the capture and freed during it is freed when the capture ends, whether the
 * capture returns a graph or not. */
static void defers_frees_of_other_memory(void) {
  needs_graphs();
  rill_stream second = new_stream("second");
  const uint64_t before = used_bytes();
  for (int way = 0; way < 3; way++) {
    rill_stream stream;
    rill_graph graph;
    bool capturing = false;
    void *p = NULL, *q = NULL;
    assert_ok(rill_stream_create(dut.device, NULL, &stream));
    assert_ok(rill_alloc_async(stream, 1 << 20, &p));
    assert_ok(rill_alloc_async(second, 1 << 20, &q));
    const uint64_t used = used_bytes();
    assert_true(used >= before + (2 << 20));
    assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
    assert_ok(rill_free_async(stream, p));
    assert_ok(rill_free_async(stream, q)); /* freed on another stream */
    assert_fails(rill_free_async(stream, p), RILL_ERROR_NOT_FOUND);
    assert_fails(rill_free_async(second, q), RILL_ERROR_NOT_FOUND);
    assert_int_equal(used_bytes(), used);
    assert_ok(rill_stream_is_capturing(stream, &capturing));
    assert_true(capturing);
    if (way == 0) assert_ok(rill_stream_capture_end(stream, &graph));
    if (way == 0) assert_ok(rill_graph_release(graph));
    if (way == 1) assert_ok(rill_stream_capture_abort(stream));
    assert_ok(rill_stream_release(stream)); /* the third time, release the stream during its capture */
    assert_int_equal(used_bytes(), before);
  }
}

/* C7.3: an aborted capture releases its memory. */
static void frees_memory_of_a_capture_that_fails(void) {
  needs_graphs();
  rill_stream stream = new_stream("capturing");
  void *p = NULL;
  const uint64_t before = used_bytes();
  for (int i = 0; i < 10; i++) {
    assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
    assert_ok(rill_alloc_async(stream, 1 << 20, &p));
    assert_ok(rill_stream_capture_abort(stream));
  }
  assert_int_equal(used_bytes(), before);
}

/* G26: a captured launch of an execution object adds the object's nodes. */
static void captures_graph_launches(void) {
  rill_graph inner = new_graph(), outer;
  rill_stream stream = new_stream("capturing");
  size_t count = 0;
  rill_graph_node write = add_write(inner, NULL, 0, 1, 5);
  add_increment(inner, &write, 1, dut.memory, NULL);
  add_increment(inner, &write, 1, dut.memory + 1, NULL);
  rill_graph_exec exec = new_exec(inner);
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  write_cell(stream, 0, 30);
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_copy_async(stream, dut.host, dut.memory, 2 * sizeof *dut.host));
  assert_ok(rill_stream_capture_end(stream, &outer));
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(inner));
  assert_ok(rill_graph_get_nodes(outer, NULL, &count));
  assert_int_equal(count, 8);
  run_graph(outer);
  assert_int_equal(dut.host[0], 32);
  assert_int_equal(dut.host[1], 6);
  assert_ok(rill_graph_release(outer));
}

/* C7.1: work that another library submits to the native stream is also captured, in order with rill's own work. */
static void captures_work_of_other_libraries(void) {
  needs_graphs();
  rill_stream stream = new_stream("shared"), imported;
  rill_graph graph;
  uintptr_t native = 0;
  size_t count = 4;
  rill_graph_node nodes[4];
  uint32_t kind = 0;
  if (!native_available()) skip_because("the cpu device has no native streams");
  assert_ok(rill_stream_native(stream, &native));
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  assert_fails(rill_stream_import(dut.device, 0, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
  write_cell(stream, 0, 1);
  native_fill(native, dut.memory, 7, 1);
  read_cell(stream, 0);
  native_fill(native, dut.memory, 9, 4);
  assert_ok(rill_stream_capture_end(stream, &graph));
  assert_completes(stream);
  assert_int_equal(dut.host[0], 0);
  assert_ok(rill_graph_get_nodes(graph, nodes, &count));
  assert_int_equal(count, 4);
  assert_ok(rill_graph_node_kind(nodes[1], &kind));
  assert_int_equal(kind, RILL_NODE_OTHER);
  rill_graph_exec exec = new_exec(graph);
  for (int i = 0; i < 3; i++) {
    rill_stream other = new_stream("reads");
    dut.host[0] = 0;
    run_exec(exec);
    assert_int_equal(dut.host[0], 7);
    read_cell(other, 0);
    assert_completes(other);
    assert_int_equal(dut.host[0], 0x09090909);
  }
  assert_ok(rill_graph_exec_release(exec));
  assert_ok(rill_graph_release(graph));
  /* a native handle returned during the capture would allow work to bypass it */
  rill_stream own = new_stream("own");
  assert_ok(rill_stream_capture_begin(own, RILL_CAPTURE_GLOBAL));
  assert_fails(rill_stream_native(own, &native), RILL_ERROR_CAPTURE_ACTIVE);
  assert_says("call rill_stream_native, or the library that uses the stream, once before the capture begins");
  assert_ok(rill_stream_capture_abort(own));
  /* the legacy stream cannot be captured */
  assert_ok(rill_stream_import(dut.device, 1, NULL, &imported));
  assert_fails(rill_stream_capture_begin(imported, RILL_CAPTURE_GLOBAL), RILL_ERROR_UNSUPPORTED);
  assert_ok(rill_stream_release(imported));
}

enum { CAPTURES = 4 };

struct of_threads {
  rill_stream streams[CAPTURES];
  void *p;
  unsigned round;
};

/* Each thread starts after the previous one has ended, and does not take part in the captures of other threads. */
static const char *captures_and_ends(unsigned index, void *user) {
  struct of_threads *shared = user;
  (void)index;
  REQUIRE_OK(rill_free(shared->p));
  REQUIRE_OK(rill_alloc(dut.device, 64, RILL_MEMORY_DEVICE, &shared->p));
  if (shared->round == CAPTURES) return NULL;
  REQUIRE_OK(rill_stream_capture_begin(shared->streams[shared->round], RILL_CAPTURE_THREAD));
  REQUIRE(rill_free(shared->p) == RILL_ERROR_CAPTURE_ACTIVE);
  return NULL;
}

/* C7.1, C7.3: in thread mode, calls of other threads are not refused, even if the thread that began the capture has
 * ended. A capture in global mode refuses calls of all threads, but only while it exists. */
static void refuses_calls_of_its_own_thread_only(void) {
  needs_graphs();
  struct of_threads shared = { .p = NULL };
  rill_stream global = new_stream("global");
  assert_ok(rill_alloc(dut.device, 64, RILL_MEMORY_DEVICE, &shared.p));
  for (unsigned i = 0; i < CAPTURES; i++) assert_ok(rill_stream_create(dut.device, NULL, &shared.streams[i]));
  for (shared.round = 0; shared.round <= CAPTURES; shared.round++) run_threads(1, captures_and_ends, &shared);
  assert_ok(rill_stream_capture_begin(global, RILL_CAPTURE_GLOBAL));
  assert_fails(rill_free(shared.p), RILL_ERROR_CAPTURE_ACTIVE);
  assert_says("global");
  for (unsigned i = 0; i < CAPTURES; i++) { /* releasing its stream ends a capture, in any order */
    assert_ok(rill_stream_release(shared.streams[(i + 2) % CAPTURES]));
    assert_fails(rill_free(shared.p), RILL_ERROR_CAPTURE_ACTIVE);
  }
  assert_ok(rill_stream_capture_abort(global));
  assert_ok(rill_free(shared.p));
}

TESTS_ON_EACH_DEVICE("rill_stream_capture_begin", TEST(refuses_bad_handles), TEST(refuses_a_stream_that_captures),
                     TEST(refuses_a_held_stream), TEST(captures_all_kinds_of_work),
                     TEST(refuses_calls_that_would_break_the_capture), TEST(allows_creation_of_objects),
                     TEST(its_mode_decides_which_threads_may_free), TEST(captures_external_events),
                     TEST(captures_on_two_threads_at_once), TEST(refuses_calls_of_its_own_thread_only),
                     TEST(allocates_memory_of_the_graph), TEST(defers_frees_of_other_memory),
                     TEST(frees_memory_of_a_capture_that_fails), TEST(captures_graph_launches),
                     TEST(captures_work_of_other_libraries))
