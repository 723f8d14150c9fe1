/* Assertions in kernels, deadlocked threads, and the findings of rillcc --check. A lost device stays lost, so each case
 * runs in its own process (C2.6, C6.1). */
#include "fault/children.h"

#include <signal.h>
#include <stdio.h>

#include "dialect_checked.rill.h"
#include "dialect_faults.rill.h"

enum { BLOCKS = 3, BLOCK = 40, THREADS = BLOCKS * BLOCK, BAD = BLOCK + 35, NOBODY = 1000 };

/* ---- in the child ---- */

static rill_stream stream;
static rill_device_info info = RILL_DEVICE_INFO_INIT;
static unsigned *out;
static const rill_launch all_threads = {
  sizeof all_threads, { BLOCKS, 1, 1 }, { BLOCK, 1, 1 }, { 0, 0, 0 }, 0, 0, NULL, 0, NULL, 0, NULL
};

static bool begin(void) {
  rill_device device;
  void *p = NULL;
  if (rill_device_open(getenv("RILL_TEST_DEVICE"), &device) != RILL_OK ||
      rill_device_get_info(device, &info) != RILL_OK || rill_stream_create(device, NULL, &stream) != RILL_OK ||
      rill_alloc(device, THREADS * sizeof *out, RILL_MEMORY_PINNED, &p) != RILL_OK)
    return false;
  out = p;
  memset(out, 0, THREADS * sizeof *out);
  return true;
}

static bool all_have_written(void) {
  if (rill_stream_synchronize(stream) != RILL_OK) return false;
  for (unsigned i = 0; i < THREADS; i++)
    if (out[i] != i) return false;
  return true;
}

/* Returns whether the device is lost and every call reports the same cause; on the cpu the text, on a GPU the vendor's
 * code. */
static bool is_lost_with(const char *const *texts) {
  char first[1024];
  if (rill_stream_synchronize(stream) != RILL_ERROR_DEVICE_LOST) return false;
  (void)snprintf(first, sizeof first, "%s", rill_last_error_text());
  if (info.backend == RILL_BACKEND_CPU) {
    for (; *texts != NULL; texts++)
      if (strstr(first, *texts) == NULL) return false;
  } else if (strstr(first, "710 ") == NULL) {
    return false;
  }
  return assert_nothing_launch(stream, &all_threads, NOBODY, out) == RILL_ERROR_DEVICE_LOST &&
         rill_stream_synchronize(stream) == RILL_ERROR_DEVICE_LOST && strcmp(first, rill_last_error_text()) == 0;
}

/* Each case returns whether everything was correct. */

static bool in_kernel(void) {
  if (assert_in_kernel_launch(stream, &all_threads, NOBODY, out) != RILL_OK || !all_have_written()) return false;
  static const char *const texts[] = { "dialect_faults.kernel.cu:10", "\"assert_in_kernel\"", "block (1, 0, 0)",
                                       "thread (35, 0, 0)",           "\"number != bad\"",    NULL };
  return assert_in_kernel_launch(stream, &all_threads, BAD, out) == RILL_OK && is_lost_with(texts);
}

static bool in_function(void) {
  if (assert_in_function_launch(stream, &all_threads, NOBODY, out) != RILL_OK || !all_have_written()) return false;
  static const char *const texts[] = { "dialect_faults.kernel.cu:15", "\"assert_in_function\"", "block (1, 0, 0)",
                                       "thread (35, 0, 0)",           "\"number != bad\"",      NULL };
  return assert_in_function_launch(stream, &all_threads, BAD, out) == RILL_OK && is_lost_with(texts);
}

static bool without_debugging(void) {
  return assert_nothing_launch(stream, &all_threads, BAD, out) == RILL_OK && all_have_written();
}

static bool for_ever(void) {
  static const char *const texts[] = { "\"wait_for_ever\"", "block (0, 0, 0)", "20 wait at a block barrier",
                                       "20 in a warp function", NULL };
  const rill_launch one_block = rill_launch_1d(BLOCK, BLOCK);
  return wait_for_ever_launch(stream, &one_block, out) == RILL_OK && is_lost_with(texts);
}

/* Runs a kernel in which this many threads reach the second barrier; with 0 threads there is a race. */
static bool finds(unsigned barriers, const char *what, const char *line) {
  const char *const texts[] = { "\"checked_sum\"", "block (0, 0, 0)", what, line, NULL };
  const rill_launch one_block = rill_launch_1d(BLOCK, BLOCK);
  return checked_sum_launch(stream, &one_block, barriers, out) == RILL_OK && is_lost_with(texts);
}
static bool checked(void) {
  return checked_sum_launch(stream, &all_threads, BLOCK, out) == RILL_OK && all_have_written();
}
static bool race(void) { return finds(0, "a race: thread (1, 0, 0) writes", "dialect_checked.kernel.cu:9"); }
static bool barrier(void) { return finds(5, "5 of the block's 40 threads", "dialect_checked.kernel.cu:10"); }

static const struct {
  const char *name;
  bool (*run)(void);
} cases[] = {
  { "in_kernel", in_kernel }, { "in_function", in_function }, { "without_debugging", without_debugging },
  { "for_ever", for_ever },   { "checked", checked },         { "race", race },
  { "barrier", barrier },
};

static int run_case(const char *name) {
  if (!begin()) {
    (void)printf("%s\n", rill_last_error_text());
    return 1;
  }
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (strcmp(cases[i].name, name) != 0) continue;
    const bool right = cases[i].run();
    (void)printf("last error: %s\n", rill_last_error_text());
    return right ? 0 : 1;
  }
  return 2;
}

/* ---- in the parent ---- */

static void run_in_child(const char *name, bool may_abort) {
  char device[64];
  (void)snprintf(device, sizeof device, "RILL_TEST_DEVICE=%s", dut.name);
  const char *const variables[] = { device };
  struct child *child = calloc(1, sizeof *child);
  assert_non_null(child);
  run_child(name, variables, 1, child);
  const bool right = child->exit_code == 0 || (may_abort && child->signal == SIGABRT);
  if (!right) print_error("%s: %s\n%s\n", name, child_end(child), child->output);
  free(child);
  assert_true(right);
}

/* AMD's runtime ends the process at a trap (C2.6). */
static bool hip(void) { return dut.info.backend == RILL_BACKEND_HIP; }

static void a_failed_assertion_loses_the_device(void) { run_in_child("in_kernel", hip()); }
static void an_assertion_among_waiting_threads_loses_the_device_too(void) { run_in_child("in_function", hip()); }
static void ndebug_disables_assertions(void) { run_in_child("without_debugging", false); }

static void deadlocked_threads_are_found(void) {
  if (dut.gpu) return; /* the dialect forbids this, and a GPU hangs */
  run_in_child("for_ever", false);
}

static void checked_kernels_report_races_and_barriers(void) {
  if (dut.gpu) return; /* rillcc --check applies only to the cpu */
  run_in_child("checked", false);
  run_in_child("race", false);
  run_in_child("barrier", false);
}

static void check_gap(const void *a, const void *b, size_t size) {
  const uintptr_t first = (uintptr_t)a, second = (uintptr_t)b;
  assert_true((first < second ? second - first : first - second) >= size + 128);
}

/* While kernels that check their accesses are loaded, there is no other allocation near the ends of a new one. */
static void red_zones_separate_allocations(void) {
  enum { COUNT = 8 };
  static const size_t sizes[] = { 512, 4096, 300000, 1 << 20 };
  if (dut.gpu) return;
  rill_module module;
  rill_stream of_test = new_stream("zones");
  assert_ok(rill_module_load(dut.device, &dialect_checked_bundle, &module));
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    void *memory[COUNT][2];
    for (int k = 0; k < COUNT; k++) {
      assert_ok(rill_alloc(dut.device, sizes[i], RILL_MEMORY_PINNED, &memory[k][0]));
      assert_ok(rill_alloc_async(of_test, sizes[i], &memory[k][1]));
      for (int other = 0; other < k; other++) {
        for (int kind = 0; kind < 2; kind++) check_gap(memory[other][kind], memory[k][kind], sizes[i]);
      }
    }
    for (int k = 0; k < COUNT; k++) {
      assert_ok(rill_free(memory[k][0]));
      assert_ok(rill_free_async(of_test, memory[k][1]));
    }
  }
  assert_ok(rill_module_release(module));
  assert_ok(rill_stream_release(of_test));
}

int main(int argc, char **argv) {
  if (argc > 1) return run_case(argv[1]);
  static const struct test tests[] = {
    TEST(a_failed_assertion_loses_the_device),
    TEST(an_assertion_among_waiting_threads_loses_the_device_too),
    TEST(ndebug_disables_assertions),
    TEST(deadlocked_threads_are_found),
    TEST(checked_kernels_report_races_and_barriers),
    TEST(red_zones_separate_allocations),
  };
  return RUN_ON_EACH_DEVICE("assertions in kernels", tests);
}
