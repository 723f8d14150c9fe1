/* Many threads record, wait for and query events and cached events (E35, C3.9, C4.2). */
#include "support/testing.h"

enum { THREADS = 16 };

static const char *records_and_asks(unsigned index, void *shared) {
  const rill_event event = *(const rill_event *)shared;
  rill_stream stream;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  for (unsigned i = 0; i < scaled(1500); i++) {
    bool ready;
    REQUIRE_OK(rill_stream_record_event(stream, event, 0));
    REQUIRE_OK(rill_event_is_ready(event, &ready));
    if (index % 2 == 0) REQUIRE_OK(rill_stream_wait_event(stream, event, 0));
    if (i % 50 == index) REQUIRE_OK(rill_event_synchronize(event));
  }
  REQUIRE_OK(rill_stream_release(stream));
  return NULL;
}

static void one_event_serves_many_threads(void) {
  rill_event event = new_event("shared"), timing = new_timing_event("shared");
  run_threads(THREADS, records_and_asks, &event);
  assert_becomes_ready(event);
  run_threads(THREADS, records_and_asks, &timing);
  assert_becomes_ready(timing);
}

/* Each thread writes on the shared stream, and makes a stream of its own wait for the shared stream through one cached
 * event. */
static const char *waits_for_stream(unsigned index, void *shared) {
  const rill_stream common = *(const rill_stream *)shared;
  rill_stream own;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &own));
  for (uint32_t i = 1; i <= scaled(600); i++) {
    REQUIRE_OK(rill_fill_async(common, dut.memory + index, &i, sizeof i, 1));
    REQUIRE_OK(rill_stream_wait_stream(own, common));
    REQUIRE_OK(rill_copy_async(own, dut.host + index, dut.memory + index, sizeof i));
    REQUIRE_OK(rill_stream_synchronize(own));
    REQUIRE(dut.host[index] == i);
  }
  REQUIRE_OK(rill_stream_release(own));
  return NULL;
}

static void many_threads_wait_for_one_stream(void) {
  rill_stream common = new_stream("common");
  run_threads(THREADS, waits_for_stream, &common);
  assert_completes(common);
}

/* Does the same with the default stream. */
static const char *waits_for_device(unsigned index, void *shared) {
  (void)shared;
  rill_stream own, standard;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &own));
  REQUIRE_OK(rill_device_default_stream(dut.device, &standard));
  for (uint32_t i = 1; i <= scaled(600); i++) {
    REQUIRE_OK(rill_fill_async(standard, dut.memory + index, &i, sizeof i, 1));
    REQUIRE_OK(rill_stream_wait_device(own, dut.device));
    REQUIRE_OK(rill_copy_async(own, dut.host + index, dut.memory + index, sizeof i));
    REQUIRE_OK(rill_stream_synchronize(own));
    REQUIRE(dut.host[index] == i);
  }
  REQUIRE_OK(rill_stream_release(own));
  return NULL;
}

static void many_threads_wait_for_the_device(void) { run_threads(THREADS, waits_for_device, NULL); }

/* ---- an event that a graph records at several nodes ---- */

static struct {
  rill_event event;
  rill_graph_exec exec;
  _Atomic unsigned launched, done;
} recorder;

static void count_launch(void *user, rill_status status) {
  (void)user, (void)status;
  atomic_fetch_add(&recorder.done, 1);
}

/* Launches of one object run one after another. If the event is complete after n launches, all n launches must be
 * complete. */
static const char *launches_or_asks(unsigned index, void *shared) {
  (void)shared;
  rill_stream stream;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  for (unsigned i = 0; i < scaled(1500); i++) {
    bool ready;
    if (index % 4 == 0) {
      REQUIRE_OK(rill_graph_launch(recorder.exec, stream));
      atomic_fetch_add(&recorder.launched, 1);
    }
    const unsigned launched = atomic_load(&recorder.launched);
    if (index % 4 == 1 && i % 8 == 0) {
      REQUIRE_OK(rill_event_synchronize(recorder.event));
      ready = true;
    } else {
      REQUIRE_OK(rill_event_is_ready(recorder.event, &ready));
    }
    REQUIRE(!ready || atomic_load(&recorder.done) >= launched);
  }
  REQUIRE_OK(rill_stream_synchronize(stream));
  REQUIRE_OK(rill_stream_release(stream));
  return NULL;
}

static void a_graph_records_one_event_at_several_nodes(void) {
  rill_graph graph;
  rill_graph_node call, node;
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  recorder.event = new_event("recorded by nodes");
  atomic_store(&recorder.launched, 0);
  atomic_store(&recorder.done, 0);
  assert_ok(rill_graph_create(dut.device, &graph));
  assert_ok(rill_graph_add_host_call(graph, NULL, 0, count_launch, NULL, &call));
  node = call;
  for (unsigned i = 0; i < 5; i++) {
    const rill_status status = rill_graph_add_event_record(graph, i % 2 == 0 ? &call : &node, 1, recorder.event, &node);
    if (status == RILL_ERROR_UNSUPPORTED) skip_because("no records in graphs here");
    assert_int_equal(status, RILL_OK);
  }
  assert_ok(rill_graph_instantiate(graph, &recorder.exec));
  assert_ok(rill_graph_release(graph));
  /* this thread takes part, because the completion cache counts submissions of an event's creator separately */
  struct background *const others = start_threads(THREADS, launches_or_asks, NULL);
  const char *const failure = launches_or_asks(0, NULL);
  join_threads(others);
  if (failure != NULL) fail_msg("%s", failure);
  assert_int_equal(atomic_load(&recorder.done), atomic_load(&recorder.launched));
  assert_ok(rill_graph_exec_release(recorder.exec));
}

TESTS_ON_EACH_DEVICE("stress: shared events", TEST(one_event_serves_many_threads),
                     TEST(many_threads_wait_for_one_stream), TEST(many_threads_wait_for_the_device),
                     TEST(a_graph_records_one_event_at_several_nodes))
