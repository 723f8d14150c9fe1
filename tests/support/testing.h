/* The framework of all rill tests.
 *
 * A test is a function without arguments.  A conformance program runs its tests once for every device present
 * (RILL_TEST_DEVICE="cuda:0" or "cpu,cuda:1" picks some), with `dut` saying which one is under test:
 *
 *     static void orders_work_after_the_event(void) {
 *       rill_stream first = new_stream("first"), second = new_stream("second");
 *       struct gate *gate = gate_close(first);            // first stands still from here on
 *       write_cell(first, 0, 7);
 *       ...
 *       gate_open(gate);
 *       assert_ok(rill_stream_synchronize(second));
 *       assert_int_equal(dut.host[0], 7);
 *     }
 *
 *     int main(void) {
 *       static const struct test tests[] = { TEST(orders_work_after_the_event) };
 *       return RUN_ON_EACH_DEVICE("rill_stream_wait_event", tests);
 *     }
 *
 * When a test ends, however it does, its gates are opened and its streams and events released.  Asserts belong to
 * the thread that runs the test; other threads report through run_threads.
 */
#ifndef RILL_TESTS_SUPPORT_TESTING_H
#define RILL_TESTS_SUPPORT_TESTING_H

#include <rill/rill.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- running ---- */

struct test {
  const char *name;
  void (*run)(void);
};
#define TEST(function) \
  { #function, function }

/* Run the tests, print "rill-tests: N passed, N failed, N skipped", and return the exit code of main. */
int run_on_each_device(const char *subject, const struct test *tests, size_t count);
int run_once(const char *subject, const struct test *tests, size_t count);
#define RUN_ON_EACH_DEVICE(subject, tests) run_on_each_device(subject, tests, sizeof(tests) / sizeof *(tests))
#define RUN_ONCE(subject, tests) run_once(subject, tests, sizeof(tests) / sizeof *(tests))

/* The main of a program of tests: TESTS_ON_EACH_DEVICE("rill_x", TEST(one), TEST(other)) */
#define TESTS_ON_EACH_DEVICE(subject, ...) TESTS_MAIN(RUN_ON_EACH_DEVICE, subject, __VA_ARGS__)
#define TESTS_ONCE(subject, ...) TESTS_MAIN(RUN_ONCE, subject, __VA_ARGS__)
#define TESTS_MAIN(run, subject, ...)                   \
  int main(void) {                                      \
    static const struct test tests[] = { __VA_ARGS__ }; \
    return run(subject, tests);                         \
  }

enum { CELLS = 64 };

/* The device under test. */
struct device_under_test {
  rill_device device;
  rill_device_info info;
  char name[32]; /* "cuda:0" */
  bool gpu;
  rill_device second;  /* another one of the same backend; null if there is none */
  rill_device foreign; /* one of another backend; null if there is none */
  uint32_t *memory;    /* CELLS in the device's memory, 0 when a test starts */
  uint32_t *host;      /* CELLS of pinned memory, 0 when a test starts */
};
extern struct device_under_test dut;

/* "cuda": what the names of a backend's devices begin with. */
const char *backend_name(uint32_t backend);

/* Prints once, for the last line of a test run (tests/run_tests.py), that the device has been used, and whether it is
 * real. Around tests that run on each device that is done already. */
void note_device(rill_device device);

/* Skip the test, with the reason, on a machine that lacks the tested feature. */
void needs_second_device(void);
void needs_foreign_device(void);
void needs_plain_memory(void); /* not RILL_CHECK=memory, under which freed memory is not used again at once */
void skip_because(const char *reason);

/* ---- asserts ---- */

#define assert_ok(call) check_ok((call), #call, __FILE__, __LINE__)

/* The call fails with this status, and the last error is complete and names the call: assert_fails(rill_free(p), ...).
 */
#define assert_fails(call, status) (spoil_last_error(), check_fails((call), (status), NULL, #call, __FILE__, __LINE__))
/* The same for a `call` whose text does not begin with the public function that fails. */
#define assert_fails_in(api, call, status) \
  (spoil_last_error(), check_fails((call), (status), (api), #call, __FILE__, __LINE__))
/* The last error's line has this text in it. */
#define assert_says(text) check_says((text), __FILE__, __LINE__)
/* The last error's `object` has this text in it. */
#define assert_names(text) check_names((text), __FILE__, __LINE__)

void check_ok(rill_status status, const char *call, const char *file, int line);
void check_fails(rill_status status, rill_status expected, const char *api, const char *call, const char *file,
                 int line);
void check_says(const char *text, const char *file, int line);
void check_names(const char *text, const char *file, int line);
void spoil_last_error(void); /* a failure of rill_device_count becomes the last error */

/* For a call whose outcome does not matter here. */
static inline void ignore(rill_status status) { (void)status; }

/* `call`, which fails with its handle made of `id` and checks its own outputs, is called with every kind of invalid
 * handle: null, garbage, never created, of each other type, and stale (C1.2). */
typedef rill_status (*call_with_id)(uint64_t id);
void refuses_bad_devices(const char *api, call_with_id call);
void refuses_bad_streams(const char *api, call_with_id call);
void refuses_bad_events(const char *api, call_with_id call);
void refuses_bad_modules(const char *api, call_with_id call);
void refuses_bad_kernels(const char *api, call_with_id call);
void refuses_bad_pools(const char *api, call_with_id call);

/* Defines the tests refuses_bad_handles and refuses_null_out of a getter function(handle, type *out): its output is
 * null after each failure (C1.1).  `live` makes a good handle. */
#define GETTER_TESTS(kind, function, type, live)                                                \
  static rill_status call_with_handle(uint64_t id) {                                            \
    type out;                                                                                   \
    type null_value;                                                                            \
    memset(&out, 1, sizeof out);                                                                \
    memset(&null_value, 0, sizeof null_value);                                                  \
    const rill_status status = function((rill_##kind){ id }, &out);                             \
    assert_memory_equal(&out, &null_value, sizeof out);                                         \
    return status;                                                                              \
  }                                                                                             \
  static void refuses_bad_handles(void) { refuses_bad_##kind##s(#function, call_with_handle); } \
  static void refuses_null_out(void) { assert_fails(function(live, NULL), RILL_ERROR_INVALID_ARGUMENT); }

/* A bundle that nothing else loads, and the name of a kernel in it: wait_for_flag of kernels/gate.kernel.cu. */
const rill_bundle *sample_bundle(void);
const char *sample_kernel_name(void);

/* `call`, which takes an option struct like the valid one at `options`, takes shorter (older) and longer (newer) ones,
 * and refuses unknown fields (C1.4). `shortest` bytes of the struct are enough. */
typedef rill_status (*call_with_options)(const void *options);
void takes_grown_options(const char *api, call_with_options call, const void *options, size_t size, size_t shortest);

/* `call`, which fills a struct, fills shorter and longer ones, never past their end, and refuses NULL and size 0. */
typedef rill_status (*call_with_output)(void *output);
void fills_grown_structs(const char *api, call_with_output call, size_t size);

/* ---- objects: released when the test ends ---- */

rill_stream new_stream(const char *label);
rill_stream new_stream_on(rill_device device, const char *label);
rill_event new_event(const char *label);
rill_event new_timing_event(const char *label);
rill_event new_event_on(rill_device device, const char *label);
rill_kernel new_kernel(const rill_bundle *bundle, const char *name);
rill_kernel new_kernel_on(rill_device device, const rill_bundle *bundle, const char *name);
void keep_stream_until_end(rill_stream stream);
void keep_event_until_end(rill_event event);
void keep_graph_until_end(rill_graph graph);
void keep_exec_until_end(rill_graph_exec exec);

/* ---- gates and cells ---- */

/* Blocks the stream until gate_open, or the end of the test. A gate that stays closed for a long time opens itself, and
 * its test fails. */
struct gate;
struct gate *gate_close(rill_stream stream);
void gate_open(struct gate *gate);
/* Waits for the devices, whose gates are all open, and makes room: a test has about a thousand gates. */
void gates_forget(void);

/* Closes a gate that opens itself after `ns` at the latest, without failing the test. */
struct gate *gate_close_for(rill_stream stream, uint64_t ns);

/* Has the stream write `value` into cell `cell` of dut.memory, or copy the cell to dut.host. */
void write_cell(rill_stream stream, unsigned cell, uint32_t value);
void read_cell(rill_stream stream, unsigned cell);

/* Returns whether the stream's work so far is complete. For asserts between gate_close and gate_open. */
bool is_complete(rill_stream stream);
bool is_ready(rill_event event);

/* Waits for the work with a time limit long enough for any machine; a failure names the missing work. */
#define assert_completes(stream) check_completes((stream), #stream, __FILE__, __LINE__)
#define assert_becomes_ready(event) check_becomes_ready((event), #event, __FILE__, __LINE__)
void check_completes(rill_stream stream, const char *name, const char *file, int line);
void check_becomes_ready(rill_event event, const char *name, const char *file, int line);

/* ---- threads and time ---- */

/* Runs body(index, shared) in `count` threads that start together, joins them, and fails the test if one returned
 * a text.  A body uses REQUIRE and REQUIRE_OK in place of asserts. */
typedef const char *(*thread_body)(unsigned index, void *shared);
void run_threads(unsigned count, thread_body body, void *shared);
#define REQUIRE(condition)                             \
  do {                                                 \
    if (!(condition)) return __FILE__ ": " #condition; \
  } while (0)
#define REQUIRE_OK(call)                                  \
  do {                                                    \
    if ((call) != RILL_OK) return rill_last_error_text(); \
  } while (0)

/* The same in the background, while the test goes on: start, then join. */
struct background;
struct background *start_threads(unsigned count, thread_body body, void *shared);
void join_threads(struct background *threads);

uint64_t now_ns(void);
void let_pass_ns(uint64_t ns); /* returns no earlier; for gaps of a known least length, never to order anything */

enum { MILLISECOND = 1000000 };
#define TIMEOUT_NS (UINT64_C(60) * 1000 * MILLISECOND) /* how long a test waits for what must come */

/* How many rounds a loop makes: `rounds`, less where the build or RILL_STRESS (a percentage) says so. */
unsigned scaled(unsigned rounds);

#endif
