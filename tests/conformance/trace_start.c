/* rill_trace_start */
#include "graphs.h"
#include "traces.h"

#include <sched.h>

static void does_nothing(void *user, rill_status status) {
  (void)user;
  (void)status;
}

static rill_status start_with(const void *options) {
  const rill_status status = rill_trace_start(options);
  if (status == RILL_OK) {
    assert_ok(rill_trace_stop());
    free(read_trace());
  }
  return status;
}

static void accepts_older_and_newer_options(void) {
  const rill_trace_options options = { sizeof options, path_of_trace(), 0, false };
  takes_grown_options("rill_trace_start", start_with, &options, sizeof options,
                      offsetof(rill_trace_options, max_bytes));
}

static void runs_once_at_a_time(void) {
  start_trace();
  assert_fails(rill_trace_start(NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("a trace is already running");
  assert_ok(rill_trace_stop());
  free(read_trace());
}

static void says_why_the_file_cannot_be_written(void) {
  assert_fails(rill_trace_start(RILL_TRACE_OPTIONS(.path = "/nowhere/at/all.json")), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("/nowhere/at/all.json");
  assert_says("No such file");
}

/* Each operation is a bar in its stream's track, and each call a bar in its thread's track. */
static void writes_each_operation(void) {
  rill_stream first = new_stream("first \"quoted\""), second = new_stream("second");
  rill_event event = new_event("done");
  start_trace();
  for (unsigned i = 0; i < 5; i++) write_cell(first, i, i);
  for (unsigned i = 0; i < 3; i++) read_cell(first, i);
  struct gate *gate = gate_close(first); /* so that the wait below is not omitted */
  assert_ok(rill_stream_record_event(first, event, 0));
  assert_ok(rill_stream_wait_event(second, event, 0));
  for (unsigned i = 0; i < 4; i++) assert_ok(rill_stream_host_call(second, does_nothing, NULL));
  gate_open(gate);
  assert_ok(rill_stream_synchronize(second));
  assert_ok(rill_trace_stop());
  char *text = read_trace();
  assert_complete(text);
  assert_int_equal(count_of(text, "\"cat\":\"fill\""), 5);
  assert_int_equal(count_of(text, "\"cat\":\"copy\""), 3);
  assert_in_range(count_of(text, "\"cat\":\"host call\""), 4, 5); /* a gate may also be an operation */
  assert_int_equal(count_of(text, "\"name\":\"wait done\""), 1);
  assert_int_equal(count_of(text, "\"name\":\"rill_copy_async\""), 3);
  assert_int_equal(count_of(text, "\"cat\":\"wait\",\"name\":\"rill_stream_synchronize\""), 1);
  assert_int_equal(count_of(text, "\"ph\":\"f\""), count_of(text, "\"ph\":\"s\""));
  assert_int_equal(count_of(text, "\"ph\":\"f\""), 1);
  assert_int_equal(count_of(text, "\"stream \\\"first \\\"quoted\\\"\\\"\""), 1);
  free(text);
}

/* If the stream is busy, two consecutive operations share one timing event, so a bar begins where the previous one
 * ends. If the stream was idle, the next bar begins later. */
static void bars_of_a_busy_stream_touch(void) {
  rill_stream stream = new_stream("busy");
  start_trace();
  struct gate *gate = gate_close(stream);
  for (unsigned i = 0; i < 6; i++) write_cell(stream, i, i);
  gate_open(gate);
  assert_completes(stream);
  assert_ok(rill_trace_stop());
  char *text = read_trace();
  assert_complete(text);
  double end = 0;
  unsigned touching = 0;
  for (const char *at = text; (at = strstr(at, "\"ph\":\"X\",\"pid\":")) != NULL; at++) {
    const char *const begin = strstr(at, "\"ts\":"), *const time = strstr(at, "\"dur\":");
    assert_true(begin != NULL && time != NULL);
    if (strncmp(strchr(time, ',') + 1, "\"cat\":\"fill\"", 12) != 0) continue;
    const double ts = strtod(begin + 5, NULL);
    touching += end != 0 && ts - end < 0.0015 && end - ts < 0.0015;
    end = ts + strtod(time + 6, NULL);
  }
  assert_int_equal(touching, 5);
  free(text);
}

static void set_flag(void *user, rill_status status) {
  (void)status;
  atomic_store((atomic_bool *)user, true);
}

/* A bar does not begin before its submission, even if the stream became idle since the trace last queried it. */
static void bars_begin_when_submitted(void) {
  enum { GAP_US = 2000 };
  rill_stream stream = new_stream("idle");
  atomic_bool reached = false;
  start_trace();
  struct gate *gate = gate_close(stream);
  for (unsigned i = 0; i < 2; i++) write_cell(stream, i, i);
  assert_ok(rill_stream_host_call(stream, set_flag, &reached));
  gate_open(gate);
  while (!atomic_load(&reached)) (void)sched_yield();
  const uint64_t from = now_ns();
  while (now_ns() - from < GAP_US * UINT64_C(1000)) (void)sched_yield();
  write_cell(stream, 2, 2);
  assert_ok(rill_trace_stop());
  char *text = read_trace();
  assert_complete(text);
  unsigned fills = 0;
  for (const char *at = text; (at = strstr(at, "\"cat\":\"fill\"")) != NULL; at++) {
    const char *begin = at, *const submitted = strstr(at, "\"submitted\":");
    while (strncmp(begin, "\"ts\":", 5) != 0) begin--;
    assert_non_null(submitted);
    assert_true(strtod(begin + 5, NULL) > strtod(submitted + 12, NULL) - GAP_US / 2.0);
    fills++;
  }
  assert_int_equal(fills, 3);
  free(text);
}

/* Returns the number after `name` in the bar of the trace that contains `what`. */
static double number_in_bar(const char *text, const char *what, const char *name) {
  const char *bar = strstr(text, what);
  assert_non_null(bar);
  while (strncmp(bar, "{\"ph\"", 5) != 0) bar--;
  const char *const at = strstr(bar, name);
  assert_non_null(at);
  return strtod(at + strlen(name), NULL);
}

/* A wait ends when its event is reached, and the next operation starts then. */
static void waits_end_with_their_records(void) {
  enum { GAP_US = 2000 };
  rill_stream first = new_stream("first"), second = new_stream("second"), third = new_stream("third");
  rill_event one = new_event("one"), two = new_event("two");
  start_trace();
  struct gate *gate = gate_close(first);
  write_cell(first, 0, 1);
  assert_ok(rill_stream_record_event(first, one, 0));
  assert_ok(rill_stream_wait_event(third, one, 0));
  assert_ok(rill_stream_record_event(third, two, 0));
  assert_ok(rill_stream_wait_event(second, two, 0));
  read_cell(second, 0);
  const uint64_t from = now_ns();
  while (now_ns() - from < GAP_US * UINT64_C(1000)) (void)sched_yield();
  gate_open(gate);
  assert_completes(second);
  assert_ok(rill_trace_stop());
  char *text = read_trace();
  assert_complete(text);
  assert_int_equal(dut.host[0], 1);
  const double filled =
      number_in_bar(text, "\"cat\":\"fill\"", "\"ts\":") + number_in_bar(text, "\"cat\":\"fill\"", "\"dur\":");
  const char *const waits[] = { "\"name\":\"wait one\"", "\"name\":\"wait two\"" };
  for (unsigned i = 0; i < 2; i++) {
    const double begin = number_in_bar(text, waits[i], "\"ts\":"), time = number_in_bar(text, waits[i], "\"dur\":");
    assert_true(time > GAP_US / 2.0);
    assert_true(begin + time > filled - 0.01 && begin + time < filled + 0.01);
  }
  assert_true(number_in_bar(text, "\"cat\":\"copy\"", "\"ts\":") > filled - 0.01);
  assert_int_equal(count_of(text, "\"ph\":\"f\""), 2);
  free(text);
}

static void writes_memory(void) {
  void *p = NULL;
  start_trace();
  assert_ok(rill_alloc(dut.device, 12345, RILL_MEMORY_DEVICE, &p));
  assert_ok(rill_free(p));
  assert_ok(rill_trace_stop());
  char *text = read_trace();
  assert_complete(text);
  assert_int_equal(count_of(text, "\"args\":{\"bytes\":12345}"), 1);
  assert_int_equal(count_of(text, "\"args\":{\"bytes\":0}"), 1);
  free(text);
}

/* C3.8: held work is timed from its submission to the driver. */
static void writes_held_work(void) {
  rill_stream held = new_stream("held"), recorder = new_stream("recorder");
  rill_event event = new_event("late");
  start_trace();
  assert_ok(rill_stream_wait_event(held, event, 0));
  write_cell(held, 0, 1);
  write_cell(held, 1, 2);
  assert_ok(rill_stream_record_event(recorder, event, 0));
  assert_ok(rill_stream_synchronize(held));
  assert_ok(rill_trace_stop());
  char *text = read_trace();
  assert_complete(text);
  assert_int_equal(count_of(text, "\"cat\":\"fill\""), 2);
  free(text);
}

static void launch_graph(bool nodes, unsigned graphs, unsigned fills, unsigned copies) {
  rill_graph graph = new_graph();
  rill_graph_node write = add_write(graph, NULL, 0, 0, 9);
  add_read(graph, &write, 1, 0);
  rill_graph_exec exec = new_exec(graph);
  rill_stream stream = new_stream("stream");
  dut.host[0] = 0;
  assert_ok(rill_trace_start(RILL_TRACE_OPTIONS(.path = path_of_trace(), .graph_nodes = nodes)));
  assert_ok(rill_graph_launch(exec, stream));
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_trace_stop());
  char *text = read_trace();
  assert_complete(text);
  assert_int_equal(dut.host[0], 9);
  assert_int_equal(count_of(text, "\"cat\":\"graph\""), graphs);
  assert_int_equal(count_of(text, "\"cat\":\"fill\""), fills);
  assert_int_equal(count_of(text, "\"cat\":\"copy\""), copies);
  free(text);
}

static void writes_a_graph_as_one_bar(void) { launch_graph(false, 1, 0, 0); }
static void writes_the_nodes_of_a_graph_on_request(void) { launch_graph(true, 0, 1, 1); }

static void stops_at_its_limit(void) {
  rill_stream stream = new_stream("stream");
  assert_ok(rill_trace_start(RILL_TRACE_OPTIONS(.path = path_of_trace(), .max_bytes = 2000)));
  for (unsigned i = 0; i < 100; i++) write_cell(stream, 0, i);
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_trace_stop());
  char *text = read_trace();
  assert_true(strlen(text) < 2300);
  assert_int_equal(count_of(text, "\"dropped\":0"), 0);
  assert_int_equal(count_of(text, "}\n]\n"), 1);
  free(text);
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 200 };
static atomic_bool ends;

static const char *submit_some(unsigned index, void *shared) {
  rill_stream stream;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  for (unsigned i = 0; shared == NULL ? i < ROUNDS : !atomic_load(&ends); i++) {
    REQUIRE_OK(rill_fill_async(stream, dut.memory + index, &i, sizeof i, 1));
    if (i % 16 == 0) REQUIRE_OK(rill_stream_synchronize(stream));
  }
  REQUIRE_OK(rill_stream_synchronize(stream));
  REQUIRE_OK(rill_stream_release(stream));
  return NULL;
}

static void writes_what_threads_submit(void) {
  start_trace();
  run_threads(THREADS, submit_some, NULL);
  assert_ok(rill_trace_stop());
  char *text = read_trace();
  assert_complete(text);
  assert_int_equal(count_of(text, "\"cat\":\"fill\""), THREADS * ROUNDS);
  free(text);
}

/* Streams of several threads wait for each other's records in any order. */
enum { SHARED_EVENTS = 4 };
static rill_event shared_events[SHARED_EVENTS];

static const char *submit_and_wait(unsigned index, void *shared) {
  uint32_t random = index + 1;
  rill_stream stream;
  (void)shared;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  for (unsigned i = 0; i < ROUNDS; i++) {
    random = random * 1664525 + 1013904223;
    const rill_event event = shared_events[(random >> 8) % SHARED_EVENTS];
    if (random >> 30 < 2) REQUIRE_OK(rill_fill_async(stream, dut.memory + index, &i, sizeof i, 1));
    if (random >> 30 == 2) REQUIRE_OK(rill_stream_record_event(stream, event, 0));
    if (random >> 30 == 3) REQUIRE_OK(rill_stream_wait_event(stream, event, RILL_WAIT_IF_RECORDED));
  }
  REQUIRE_OK(rill_stream_synchronize(stream));
  REQUIRE_OK(rill_stream_release(stream));
  return NULL;
}

static void writes_waits_of_threads(void) {
  for (unsigned i = 0; i < SHARED_EVENTS; i++) shared_events[i] = new_event("shared");
  start_trace();
  run_threads(THREADS, submit_and_wait, NULL);
  assert_ok(rill_trace_stop());
  char *text = read_trace();
  assert_complete(text);
  assert_true(count_of(text, "\"ph\":\"f\"") <= count_of(text, "\"name\":\"wait shared\""));
  free(text);
}

static void starts_and_stops_while_threads_submit(void) {
  atomic_store(&ends, false);
  struct background *threads = start_threads(THREADS, submit_some, &ends);
  for (unsigned i = 0; i < scaled(20); i++) {
    start_trace();
    assert_ok(rill_device_synchronize(dut.device));
    assert_ok(rill_trace_stop());
    char *text = read_trace();
    assert_int_equal(count_of(text, "}\n]\n"), 1);
    free(text);
  }
  atomic_store(&ends, true);
  join_threads(threads);
}

TESTS_ON_EACH_DEVICE("rill_trace_start", TEST(accepts_older_and_newer_options), TEST(runs_once_at_a_time),
                     TEST(says_why_the_file_cannot_be_written), TEST(writes_each_operation),
                     TEST(bars_of_a_busy_stream_touch), TEST(bars_begin_when_submitted),
                     TEST(waits_end_with_their_records), TEST(writes_memory), TEST(writes_held_work),
                     TEST(writes_a_graph_as_one_bar), TEST(writes_the_nodes_of_a_graph_on_request),
                     TEST(stops_at_its_limit), TEST(writes_what_threads_submit), TEST(writes_waits_of_threads),
                     TEST(starts_and_stops_while_threads_submit))
