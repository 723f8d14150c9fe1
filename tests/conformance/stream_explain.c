/* rill_stream_explain */
#include "support/testing.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>

static rill_status explain(uint64_t id) {
  size_t size = 0;
  return rill_stream_explain((rill_stream){ id }, NULL, &size);
}

static void refuses_bad_handles(void) {
  refuses_bad_streams("rill_stream_explain", explain);
  char text[4];
  size_t size = sizeof text;
  rill_stream stream = new_stream("asked");
  assert_fails(rill_stream_explain(stream, text, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_explain(stream, NULL, &size), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(size, 0);
}

static const char *report_of(rill_stream stream) {
  static char text[4096];
  size_t size = sizeof text;
  assert_ok(rill_stream_explain(stream, text, &size));
  assert_int_equal(size, strlen(text) + 1);
  return text;
}

static __attribute__((noinline)) void contains(const char *text, const char *part) {
  if (strstr(text, part) == NULL) fail_msg("\"%s\" is not in:\n%s", part, text);
}

static void says_that_there_is_no_work(void) {
  rill_stream stream = new_stream("idle");
  write_cell(stream, 0, 1);
  assert_completes(stream);
  assert_string_equal(report_of(stream), "stream \"idle\": has no work\n");
}

static void names_incomplete_work(void) {
  rill_stream stream = new_stream("busy"), other = new_stream("other");
  rill_event event = new_event("passed");
  write_cell(other, 1, 2);
  struct gate *const before = gate_close(other);
  assert_ok(rill_stream_record_event(other, event, 0));
  assert_ok(rill_stream_wait_event(stream, event, 0));
  write_cell(stream, 0, 1);
  assert_ok(rill_stream_wait_stream(stream, other));
  const char *const text = report_of(stream);
  contains(text, "stream \"busy\": submitted operations: 3, known to be complete: 0");
  contains(text, "not known to be complete: operation 1: wait for event \"passed\", operation ");
  contains(text, " of stream \"other\"\n");
  contains(text, "then operation 2: fill of 4 bytes");
  contains(text, "then operation 3: wait for operation "); /* an internal event of rill */
  gate_open(before);
  assert_completes(stream);
}

/* The report leads to the missing record, which is the user's mistake. */
static void names_what_holds_a_stream(void) {
  rill_stream stream = new_stream("held"), other = new_stream("other");
  rill_event event = new_event("missing");
  assert_ok(rill_stream_wait_event(stream, event, 0));
  write_cell(stream, 0, 1);
  contains(report_of(stream), "held: stream \"held\" waits for event \"missing\", which has never been recorded; 2 "
                              "operations are queued: record the event first\n");
  assert_fails(rill_stream_synchronize_for(stream, 1), RILL_ERROR_TIMEOUT);
  contains(report_of(stream), "event \"missing\"");
  assert_ok(rill_stream_record_event(other, event, 0));
  assert_completes(stream);
}

/* Another thread waits, and this thread reads the report. */
static const char *wait_for_it(unsigned index, void *user) {
  (void)index;
  REQUIRE_OK(rill_stream_synchronize(*(rill_stream *)user));
  return NULL;
}

static void names_waiting_threads(void) {
  rill_stream stream = new_stream("awaited");
  char text[4096] = "";
  struct gate *const gate = gate_close(stream);
  struct background *const threads = start_threads(1, wait_for_it, &stream);
  const uint64_t limit = now_ns() + TIMEOUT_NS;
  while (strstr(text, "a thread has been waiting for stream \"awaited\" for ") == NULL && now_ns() < limit) {
    size_t size = sizeof text;
    assert_ok(rill_stream_explain(stream, text, &size));
  }
  contains(text, "a thread has been waiting for stream \"awaited\" for ");
  gate_open(gate);
  join_threads(threads);
  assert_null(strstr(report_of(stream), "a thread has been waiting"));
}

struct call {
  _Atomic bool runs, ends;
};

static void run_until_released(void *user, rill_status status) {
  struct call *const call = user;
  (void)status;
  atomic_store(&call->runs, true);
  const uint64_t limit = now_ns() + TIMEOUT_NS; /* a test that fails does not end it */
  while (!atomic_load(&call->ends) && now_ns() < limit) (void)sched_yield();
}

/* The function as addr2line finds it: its file and its offset there. */
static const char *name_of_function(rill_host_fn fn, char *text, size_t size) {
  Dl_info info;
  uintptr_t address = 0;
  memcpy(&address, &fn, sizeof fn);
  assert_true(dladdr((void *)address, &info) != 0);
  (void)snprintf(text, size, "%s+0x%llx", info.dli_fname, (unsigned long long)(address - (uintptr_t)info.dli_fbase));
  return text;
}

/* A host call of a graph is reported for the stream that runs the graph. */
static void says_how_long_a_node_has_run(void) {
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) return;
  rill_stream stream = new_stream("launches"), other = new_stream("other");
  static struct call call; /* outlives a test that fails */
  atomic_store(&call.runs, false);
  atomic_store(&call.ends, false);
  char expected[256], name[160];
  rill_graph graph;
  rill_graph_node node;
  rill_graph_exec exec;
  assert_ok(rill_graph_create(dut.device, &graph));
  keep_graph_until_end(graph);
  assert_ok(rill_graph_add_host_call(graph, NULL, 0, run_until_released, &call, &node));
  assert_ok(rill_graph_instantiate(graph, &exec));
  keep_exec_until_end(exec);
  (void)snprintf(expected, sizeof expected,
                 "the host call of the function %s, a node of a graph, has been running for ",
                 name_of_function(run_until_released, name, sizeof name));
  assert_ok(rill_graph_launch(exec, stream));
  const uint64_t limit = now_ns() + TIMEOUT_NS;
  while (!atomic_load(&call.runs) && now_ns() < limit) (void)sched_yield();
  contains(report_of(stream), expected);
  assert_null(strstr(report_of(other), expected));
  atomic_store(&call.ends, true);
  assert_completes(stream);
  assert_null(strstr(report_of(stream), expected));
}

/* The duration is reported only while the host call runs, and only for its own stream. */
static void says_how_long_a_host_call_has_run(void) {
  rill_stream stream = new_stream("calls"), other = new_stream("other");
  static struct call call; /* outlives a test that fails */
  atomic_store(&call.runs, false);
  atomic_store(&call.ends, false);
  char expected[256], name[160];
  (void)snprintf(expected, sizeof expected, "\n  the host call of the function %s has been running for ",
                 name_of_function(run_until_released, name, sizeof name));
  assert_ok(rill_stream_host_call(stream, run_until_released, &call));
  struct gate *const gate = gate_close(other);
  const uint64_t limit = now_ns() + TIMEOUT_NS;
  while (!atomic_load(&call.runs) && now_ns() < limit) (void)sched_yield();
  contains(report_of(stream), expected);
  assert_null(strstr(report_of(other), expected));
  atomic_store(&call.ends, true);
  assert_completes(stream);
  assert_null(strstr(report_of(stream), expected));
  gate_open(gate);
  assert_completes(other);
}

static void writes_as_much_as_fits(void) {
  rill_stream stream = new_stream("short");
  char text[8] = "xxxxxxx";
  size_t size = 0, all = 0;
  write_cell(stream, 0, 1);
  assert_completes(stream);
  assert_ok(rill_stream_explain(stream, NULL, &all));
  size = 7;
  assert_ok(rill_stream_explain(stream, text, &size));
  assert_int_equal(size, all);
  assert_string_equal(text, "stream");
  assert_int_equal(text[7], '\0');
}

TESTS_ON_EACH_DEVICE("rill_stream_explain", TEST(refuses_bad_handles), TEST(says_that_there_is_no_work),
                     TEST(names_incomplete_work), TEST(names_what_holds_a_stream), TEST(names_waiting_threads),
                     TEST(says_how_long_a_host_call_has_run), TEST(says_how_long_a_node_has_run),
                     TEST(writes_as_much_as_fits))
