/* Reports of RILL_CHECK and related settings about mistakes on a GPU (docs/guides/DIAGNOSE.md). Each case runs in its
 * own process. */
#include "children.h"
#include "vendor.h"

#include "gate.rill.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { CHECKED = 1 };
#elif defined(__has_feature)
enum { CHECKED = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) };
#else
enum { CHECKED = 0 };
#endif

enum { ILLEGAL_ADDRESS = 700 };

static rill_stream stream;
static unsigned *memory;

static void begin(void) {
  vendor_begin();
  assert_ok(rill_stream_create(vendor.device, RILL_STREAM_OPTIONS(.label = "work"), &stream));
  assert_ok(RILL_NEW(vendor.device, RILL_MEMORY_DEVICE, 64, &memory));
}

static rill_status launch(const char *label) {
  rill_launch shape = rill_launch_1d(1, 1);
  shape.label = label;
  return set_flag_launch(stream, &shape, memory, 1);
}

static rill_status fill(void) {
  const uint32_t pattern = 1;
  return rill_fill_async(stream, memory, &pattern, sizeof pattern, 64);
}

/* ---- what is written to standard error ---- */

static int standard_error = -1, pipe_end = -1;

static void listen_begin(void) {
  int ends[2];
  assert_int_equal(pipe(ends), 0);
  standard_error = dup(STDERR_FILENO);
  assert_true(standard_error >= 0);
  assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
  assert_int_equal(close(ends[1]), 0);
  pipe_end = ends[0];
}

static const char *listen_end(void) {
  static char said[8192];
  size_t length = 0;
  assert_true(dup2(standard_error, STDERR_FILENO) >= 0); /* the pipe has no other writer */
  assert_int_equal(close(standard_error), 0);
  for (ssize_t more = 1; more > 0 && length < sizeof said - 1; length += (size_t)more) {
    more = read(pipe_end, said + length, sizeof said - 1 - length);
    assert_true(more >= 0);
  }
  said[length] = '\0';
  assert_int_equal(close(pipe_end), 0);
  return said;
}

static size_t occurrences(const char *text, const char *of) {
  size_t count = 0;
  for (const char *at = strstr(text, of); at != NULL; at = strstr(at + 1, of)) count++;
  return count;
}

/* ---- RILL_CHECK=faults ---- */

/* The launch that faults fails itself; without the check the next synchronize fails. */
static void a_fault_belongs_to_its_call(void) {
  begin();
  assert_ok(fill());
  assert_ok(launch("right"));
  vendor.fake->fault_next_launch(0, ILLEGAL_ADDRESS);
  assert_fails_in("set_flag_launch", launch("wrong"), RILL_ERROR_DEVICE_LOST);
  assert_fails_in("rill_fill_async", fill(), RILL_ERROR_DEVICE_LOST);
}

static void a_fault_is_found_later_without_the_check(void) {
  begin();
  vendor.fake->fault_next_launch(0, ILLEGAL_ADDRESS);
  assert_ok(launch("wrong"));
  assert_fails(rill_stream_synchronize(stream), RILL_ERROR_DEVICE_LOST);
}

/* Held streams are not waited for, since that would deadlock. */
static void says_that_held_streams_are_not_checked(void) {
  rill_stream other;
  rill_event event;
  begin();
  assert_ok(rill_stream_create(vendor.device, NULL, &other));
  assert_ok(rill_event_create(vendor.device, NULL, &event));
  listen_begin();
  for (int i = 0; i < 2; i++) {
    assert_ok(rill_event_release(event));
    assert_ok(rill_event_create(vendor.device, NULL, &event));
    assert_ok(rill_stream_wait_event(stream, event, 0));
    assert_ok(fill());
    assert_ok(launch("held"));
    assert_ok(rill_stream_record_event(other, event, 0));
    assert_ok(rill_stream_synchronize(stream));
  }
  const char *const said = listen_end();
  assert_int_equal(occurrences(said, "RILL_CHECK=faults: stream \"work\" is held: its operations are not"), 1);
}

static void says_that_captures_are_not_checked(void) {
  rill_graph graph;
  rill_graph_exec exec;
  begin();
  listen_begin();
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_THREAD));
  assert_ok(launch("captured"));
  assert_ok(rill_stream_capture_end(stream, &graph));
  const char *const said = listen_end();
  assert_int_equal(occurrences(said, "RILL_CHECK=faults: stream \"work\" captures: its operations are not"), 1);
  assert_ok(rill_graph_instantiate(graph, &exec));
  assert_ok(rill_graph_launch(exec, stream));
  bool complete = false;
  assert_ok(rill_stream_is_complete(stream, &complete));
  assert_true(complete);
  vendor.fake->fault(0, ILLEGAL_ADDRESS);
  assert_fails(rill_graph_launch(exec, stream), RILL_ERROR_DEVICE_LOST);
}

/* ---- the flight recorder ---- */

static const char *message(void) {
  static char kept[2048];
  rill_error error = RILL_ERROR_INIT;
  assert_ok(rill_last_error(&error));
  (void)snprintf(kept, sizeof kept, "%s", error.message);
  return kept;
}

static __attribute__((noinline)) void assert_in(const char *text, const char *part) {
  if (strstr(text, part) == NULL) fail_msg("\"%s\" is not in: %s", part, text);
}

/* Work that was seen complete is not named; other work is, oldest first, including kernels that have been unloaded. */
static void a_fault_names_running_work(void) {
  rill_event event;
  begin();
  assert_ok(launch("seen"));
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(fill());
  assert_ok(rill_stream_record_new_event(stream, RILL_EVENT_OPTIONS(.label = "middle"), &event));
  vendor.fake->fault_next_launch(0, ILLEGAL_ADDRESS);
  assert_ok(launch("a label longer than its room"));
  assert_fails(rill_stream_synchronize(stream), RILL_ERROR_DEVICE_LOST);
  const char *const said = message();
  assert_in(said, "since the last completion that was seen, oldest first:\n"
                  "stream \"work\": operation 2: fill of 256 bytes at 0x");
  assert_in(said, "\nstream \"work\": operation 3: record of event \"middle\"\n"
                  "stream \"work\": operation 4: kernel \"set_flag\", launch \"a label longer t...\", "
                  "1 block of 1 thread");
  assert_null(strstr(said, "seen\","));
  assert_null(strchr(rill_last_error_text(), '\n'));
}

/* An event that was seen complete implies the same for all work before it. */
static void a_completed_event_counts(void) {
  rill_event event;
  begin();
  assert_ok(fill());
  assert_ok(rill_stream_record_new_event(stream, NULL, &event));
  assert_ok(rill_event_synchronize(event));
  assert_ok(launch("after"));
  vendor.fake->fault(0, ILLEGAL_ADDRESS);
  assert_fails(rill_stream_synchronize(stream), RILL_ERROR_DEVICE_LOST);
  assert_null(strstr(message(), "fill of"));
  assert_in(message(), "operation 3: kernel");
}

/* More than the recorder keeps, and more than the text has room for. */
static void a_fault_says_how_many_are_missing(void) {
  begin();
  vendor.fake->pause(0);
  for (int i = 0; i < 300; i++) assert_ok(fill());
  vendor.fake->fault(0, ILLEGAL_ADDRESS);
  vendor.fake->resume(0);
  assert_fails(rill_stream_synchronize(stream), RILL_ERROR_DEVICE_LOST);
  assert_in(message(), "\nstream \"work\": 173 operations before the next are no longer recorded\n"
                       "stream \"work\": operation 174: fill of 256 bytes");
  assert_in(message(), " more");
}

static void nothing_is_recorded(void) {
  begin();
  assert_ok(fill());
  vendor.fake->fault(0, ILLEGAL_ADDRESS);
  assert_fails(rill_stream_synchronize(stream), RILL_ERROR_DEVICE_LOST);
  assert_null(strchr(message(), '\n'));
}

/* With RILL_CHECK=faults only the faulting launch is named. */
static void the_check_leaves_one(void) {
  begin();
  for (int i = 0; i < 5; i++) assert_ok(launch("right"));
  vendor.fake->fault_next_launch(0, ILLEGAL_ADDRESS);
  assert_fails_in("set_flag_launch", launch("wrong"), RILL_ERROR_DEVICE_LOST);
  assert_int_equal(occurrences(message(), "\nstream "), 1);
  assert_in(message(), "\nstream \"work\": operation 6: kernel \"set_flag\", launch \"wrong\"");
}

/* ---- RILL_CHECK=crash ---- */

static void store_at_null(void *user, rill_status status) {
  (void)status;
  *(volatile int *)user = 1;
}

static void handler_of_the_program(int number) {
  static const char text[] = "the handler of the program\n";
  _exit(write(STDERR_FILENO, text, sizeof text - 1) > 0 && number == SIGSEGV ? 7 : 8);
}

/* In a process of its own, without the handlers of a test. */
static void crash_in_a_host_call(bool on_cpu, bool in_graph) {
  if (getenv("RILL_TEST_HANDLER") != NULL) (void)signal(SIGSEGV, handler_of_the_program);
  vendor_begin();
  assert_ok(rill_stream_create(on_cpu ? vendor.cpu : vendor.device, RILL_STREAM_OPTIONS(.label = "work"), &stream));
  if (in_graph) {
    rill_graph graph;
    rill_graph_node node;
    rill_graph_exec exec;
    assert_ok(rill_graph_create(on_cpu ? vendor.cpu : vendor.device, &graph));
    assert_ok(rill_graph_add_host_call(graph, NULL, 0, store_at_null, NULL, &node));
    assert_ok(rill_graph_instantiate(graph, &exec));
    assert_ok(rill_graph_launch(exec, stream));
  } else {
    assert_ok(rill_stream_host_call(stream, store_at_null, NULL));
  }
  ignore(rill_stream_synchronize(stream));
}

static void check_crash(const char *mode, const char *check, const char *handler, struct child *child) {
  const char *const variables[] = { check, handler };
  run_child(mode, variables, 2, child);
  assert_false(child->timed_out);
}

static void a_crash_of_a_host_call_is_named(void) {
  static struct child child;
  static const char *const modes[] = { "crash", "crash_on_cpu", "crash_in_graph", "crash_on_cpu_in_graph" };
  if (CHECKED) return; /* a sanitizer has handlers of its own */
  for (int i = 0; i < 8; i++) {
    check_crash(modes[i % 4], i < 4 ? "RILL_CHECK=crash" : "RILL_CHECK=crash,order", NULL, &child);
    assert_int_equal(child.signal, SIGSEGV);
    assert_in(child.output, "rill: RILL_CHECK=crash: host call ");
    assert_in(child.output, "fault_diagnose+0x");
    assert_in(child.output, i % 4 < 2 ? " of stream \"work\" on " : " of a graph, launched on stream \"work\" on ");
    assert_in(child.output, " crashed: SIGSEGV\n");
    check_crash(modes[i % 4], "RILL_CHECK=comm", NULL, &child);
    assert_int_equal(child.signal, SIGSEGV);
    assert_null(strstr(child.output, "crashed"));
  }
}

static void the_handler_before_it_runs(void) {
  static struct child child;
  if (CHECKED) return;
  check_crash("crash", "RILL_CHECK=crash", "RILL_TEST_HANDLER=1", &child);
  assert_int_equal(child.exit_code, 7);
  assert_in(child.output, " crashed: SIGSEGV\nthe handler of the program\n");
}

/* Calls that do not crash behave as without the check. */
static void count_call(void *user, rill_status status) {
  if (status == RILL_OK) atomic_fetch_add((_Atomic int *)user, 1);
}
static void other_host_calls_run(void) {
  _Atomic int calls = 0;
  begin();
  for (int i = 0; i < 10; i++) assert_ok(rill_stream_host_call(stream, count_call, (void *)&calls));
  assert_ok(rill_stream_synchronize(stream));
  assert_int_equal(calls, 10);
  vendor.fake->fail_call(vendor_name("stream_add_callback"), 1, 999);
  assert_fails(rill_stream_host_call(stream, count_call, (void *)&calls), RILL_ERROR_BACKEND);
  assert_ok(rill_stream_synchronize(stream));
  assert_int_equal(calls, 10);
}

/* Threads that launch graphs with the same functions add to the list of names at the same time. */
enum { LAUNCHERS = 4, GRAPHS = 8 };

static void count_again(void *user, rill_status status) { count_call(user, status); }

static const char *launch_graphs(unsigned index, void *user) {
  rill_stream own;
  (void)index;
  REQUIRE_OK(rill_stream_create(vendor.cpu, NULL, &own));
  for (int i = 0; i < GRAPHS; i++) {
    rill_graph graph;
    rill_graph_node node;
    rill_graph_exec exec;
    REQUIRE_OK(rill_graph_create(vendor.cpu, &graph));
    REQUIRE_OK(rill_graph_add_host_call(graph, NULL, 0, count_call, user, &node));
    REQUIRE_OK(rill_graph_add_host_call(graph, NULL, 0, count_again, user, &node));
    REQUIRE_OK(rill_graph_instantiate(graph, &exec));
    REQUIRE_OK(rill_graph_launch(exec, own));
    REQUIRE_OK(rill_stream_synchronize(own));
    REQUIRE_OK(rill_graph_exec_release(exec));
    REQUIRE_OK(rill_graph_release(graph));
  }
  REQUIRE_OK(rill_stream_release(own));
  return NULL;
}

static void many_threads_launch_graphs(void) {
  _Atomic int calls = 0;
  begin();
  join_threads(start_threads(LAUNCHERS, launch_graphs, (void *)&calls));
  assert_int_equal(calls, 2 * LAUNCHERS * GRAPHS);
}

/* ---- RILL_DEADLINE ---- */

static const char *wait_without_limit(unsigned index, void *user) {
  (void)index, (void)user;
  REQUIRE_OK(rill_stream_synchronize(stream));
  return NULL;
}

/* A record that is missing, and a wait without a time limit: the report says which event, once. */
static void a_wait_past_the_deadline_is_explained(void) {
  rill_stream other;
  rill_event event;
  char said[8192];
  size_t length = 0;
  begin();
  assert_ok(rill_stream_create(vendor.device, NULL, &other));
  assert_ok(rill_event_create(vendor.device, RILL_EVENT_OPTIONS(.label = "missing"), &event));
  assert_ok(rill_stream_wait_event(stream, event, 0));
  assert_ok(fill());
  listen_begin();
  struct background *const threads = start_threads(1, wait_without_limit, NULL);
  do { /* ends with the test's time limit if no report is written */
    const ssize_t more = read(pipe_end, said + length, sizeof said - 1 - length);
    assert_true(more > 0);
    length += (size_t)more;
    said[length] = '\0';
  } while (strstr(said, "a thread has been waiting for stream \"work\"") == NULL);
  assert_ok(rill_stream_record_event(other, event, 0));
  join_threads(threads);
  assert_string_equal(listen_end(), "");
  assert_in(said, "rill: RILL_DEADLINE: a host wait is taking longer than 0.1 s\n");
  assert_in(said, "held: stream \"work\" waits for event \"missing\", which has never been recorded; 2 operations are "
                  "queued: record the event first\n");
}

static const char *free_without_limit(unsigned index, void *user) {
  (void)index, (void)user;
  REQUIRE_OK(rill_free(memory));
  return NULL;
}

/* A free that waits for the device's work counts as a wait. */
static void a_free_past_the_deadline_is_explained(void) {
  char said[8192];
  size_t length = 0;
  begin();
  vendor.fake->pause(0);
  assert_ok(fill());
  listen_begin();
  struct background *const threads = start_threads(1, free_without_limit, NULL);
  do {
    const ssize_t more = read(pipe_end, said + length, sizeof said - 1 - length);
    assert_true(more > 0);
    length += (size_t)more;
    said[length] = '\0';
  } while (strstr(said, "a thread has been in rill_free of 0x") == NULL);
  vendor.fake->resume(0);
  join_threads(threads);
  assert_string_equal(listen_end(), "");
  assert_in(said, "rill: RILL_DEADLINE: a host wait is taking longer than 0.1 s\n");
  assert_in(said, "not known to be complete: operation 1: fill of 256 bytes");
}

/* The thread that receives the signal continues; another thread prints. */
static void a_signal_prints_a_report(void) {
  rill_event event;
  char said[8192];
  size_t length = 0;
  begin();
  assert_ok(rill_event_create(vendor.device, RILL_EVENT_OPTIONS(.label = "missing"), &event));
  assert_ok(rill_stream_wait_event(stream, event, 0));
  listen_begin();
  assert_int_equal(raise(SIGUSR2), 0);
  do {
    const ssize_t more = read(pipe_end, said + length, sizeof said - 1 - length);
    assert_true(more > 0);
    length += (size_t)more;
    said[length] = '\0';
  } while (strstr(said, "stream \"work\" waits for event \"missing\"") == NULL);
  (void)listen_end();
  assert_in(said, "rill: RILL_REPORT_SIGNAL: ");
}

int main(int argc, char **argv) {
  const bool crashes = argc > 1 && strncmp(argv[1], "crash", 5) == 0;
  if (crashes) {
    crash_in_a_host_call(strstr(argv[1], "on_cpu") != NULL, strstr(argv[1], "in_graph") != NULL);
    return 0;
  }
#define FAULTS "RILL_CHECK=faults"
  static const struct mode modes[] = {
    MODE_WITH(a_fault_belongs_to_its_call, FAULTS),
    MODE(a_fault_is_found_later_without_the_check),
    MODE_WITH(says_that_held_streams_are_not_checked, FAULTS),
    MODE_WITH(says_that_captures_are_not_checked, FAULTS),
    MODE(a_fault_names_running_work),
    MODE(a_completed_event_counts),
    MODE(a_fault_says_how_many_are_missing),
    MODE_WITH(nothing_is_recorded, "RILL_RECORD=0"),
    MODE_WITH(the_check_leaves_one, FAULTS),
    MODE(a_crash_of_a_host_call_is_named),
    MODE(the_handler_before_it_runs),
    MODE_WITH(other_host_calls_run, "RILL_CHECK=crash"),
    MODE_WITH(many_threads_launch_graphs, "RILL_CHECK=crash"),
    MODE_WITH(a_signal_prints_a_report, "RILL_REPORT_SIGNAL=USR2"),
    MODE_WITH(a_wait_past_the_deadline_is_explained, "RILL_DEADLINE=100ms"),
    MODE_WITH(a_free_past_the_deadline_is_explained, "RILL_DEADLINE=100ms"),
  };
  return RUN_MODES("diagnose", argc, argv, modes);
}
