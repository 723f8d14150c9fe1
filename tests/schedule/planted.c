/* RILL_CPU_SCHEDULE: programs that lack a wait, each of which has wrong data under one of the seeds 1 to 20, and the
 * same programs with it, which have right data under a hundred.
 *
 * The environment is read once, so a process has one seed: `planted wrong` and `planted right` run all programs, and
 * print the numbers of those whose data were wrong. */
#include "fault/children.h"
#include "support/testing.h"

#include "schedules.rill.h"

#include <stdio.h>

enum { N = 1024, BYTES = N * sizeof(unsigned), BLOCKS = 8, WRONG_SEEDS = 20, RIGHT_SEEDS = 100 };

#define MUST(call)                                                             \
  do {                                                                         \
    if ((call) != RILL_OK) {                                                   \
      (void)printf("%s:%d: %s\n", __FILE__, __LINE__, rill_last_error_text()); \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

/* Objects of every program: idle streams and zeroed memory. */
static struct rig {
  bool right; /* the program has its wait */
  rill_device device;
  rill_stream a, b, c;
  rill_event event, other;
  unsigned *x, *y;                   /* of the device */
  unsigned *pinned, *staging, *more; /* of the host, pinned */
} r;

static void fill(rill_stream stream, unsigned *p, unsigned value) { MUST(rill_fill_async(stream, p, &value, 4, N)); }
static void copy(rill_stream stream, void *to, const void *from) { MUST(rill_copy_async(stream, to, from, BYTES)); }
static void record(rill_stream stream, rill_event event) { MUST(rill_stream_record_event(stream, event, 0)); }
static void wait(rill_stream stream, rill_event event) { MUST(rill_stream_wait_event(stream, event, 0)); }
static void order_after(rill_stream later, rill_stream earlier) { MUST(rill_stream_wait_stream(later, earlier)); }
static void synchronize(rill_stream stream) { MUST(rill_stream_synchronize(stream)); }

static void set_all(unsigned *p, unsigned value) {
  for (unsigned i = 0; i < N; i++) p[i] = value;
}

static bool are_all(const unsigned *p, unsigned value) {
  for (unsigned i = 0; i < N; i++) {
    if (p[i] != value) return false;
  }
  return true;
}

static void synchronize_all(void) {
  synchronize(r.a);
  synchronize(r.b);
  synchronize(r.c);
}

/* ---- streams ---- */

static bool reads_before_it_is_written(void) {
  fill(r.a, r.x, 7);
  if (r.right) order_after(r.b, r.a);
  copy(r.b, r.pinned, r.x);
  synchronize_all();
  return are_all(r.pinned, 7);
}

static bool writes_what_is_still_read(void) {
  fill(r.a, r.x, 1);
  copy(r.a, r.pinned, r.x);
  record(r.a, r.event);
  if (r.right) wait(r.b, r.event);
  fill(r.b, r.x, 2);
  synchronize_all();
  return are_all(r.pinned, 1);
}

static bool both_write(void) {
  fill(r.a, r.x, 1);
  if (r.right) order_after(r.b, r.a);
  fill(r.b, r.x, 2);
  synchronize_all();
  return are_all(r.x, 2);
}

static bool records_too_early(void) {
  fill(r.a, r.x, 1);
  if (!r.right) record(r.a, r.event);
  copy(r.a, r.y, r.x);
  if (r.right) record(r.a, r.event);
  wait(r.b, r.event);
  copy(r.b, r.pinned, r.y);
  synchronize_all();
  return are_all(r.pinned, 1);
}

static bool waits_for_another_event(void) {
  fill(r.a, r.x, 1);
  record(r.a, r.event);
  fill(r.a, r.y, 1);
  record(r.a, r.other);
  wait(r.b, r.right ? r.other : r.event);
  copy(r.b, r.pinned, r.y);
  synchronize_all();
  return are_all(r.pinned, 1);
}

static bool waits_for_another_stream(void) {
  fill(r.c, r.y, 3);
  fill(r.a, r.x, 1);
  order_after(r.b, r.right ? r.a : r.c);
  copy(r.b, r.pinned, r.x);
  synchronize_all();
  return are_all(r.pinned, 1);
}

static bool has_another_stream_wait(void) {
  fill(r.a, r.x, 1);
  record(r.a, r.event);
  wait(r.right ? r.b : r.c, r.event);
  copy(r.b, r.pinned, r.x);
  synchronize_all();
  return are_all(r.pinned, 1);
}

static bool waits_the_other_way_round(void) {
  fill(r.a, r.x, 1);
  order_after(r.right ? r.b : r.a, r.right ? r.a : r.b);
  copy(r.b, r.pinned, r.x);
  synchronize_all();
  return are_all(r.pinned, 1);
}

/* The wait refers to the previous record, which is complete. */
static bool waits_before_the_record(void) {
  record(r.a, r.event);
  synchronize(r.a);
  if (!r.right) wait(r.b, r.event);
  fill(r.a, r.x, 1);
  record(r.a, r.event);
  if (r.right) wait(r.b, r.event);
  copy(r.b, r.pinned, r.x);
  synchronize_all();
  return are_all(r.pinned, 1);
}

/* Both kernels are right after one another; between two blocks of the first one the ends differ. */
static bool looks_into_a_kernel(void) {
  const rill_launch blocks = rill_launch_1d(BLOCKS, 1), one = rill_launch_1d(1, 1);
  r.pinned[0] = 1;
  MUST(set_words_launch(r.a, &blocks, r.x, 1));
  if (r.right) order_after(r.b, r.a);
  MUST(compare_ends_launch(r.b, &one, r.x, BLOCKS, r.pinned));
  synchronize_all();
  return r.pinned[0] == 1;
}

/* ---- the host ---- */

static bool reads_before_it_synchronizes(void) {
  fill(r.a, r.x, 1);
  copy(r.a, r.pinned, r.x);
  if (r.right) synchronize(r.a);
  return are_all(r.pinned, 1);
}

static bool refills_during_an_upload(void) {
  set_all(r.staging, 1);
  copy(r.a, r.x, r.staging);
  if (r.right) synchronize(r.a);
  set_all(r.staging, 2);
  synchronize(r.a);
  return are_all(r.x, 1);
}

static bool synchronizes_another_stream(void) {
  fill(r.b, r.y, 2);
  fill(r.a, r.x, 1);
  copy(r.a, r.pinned, r.x);
  synchronize(r.right ? r.a : r.b);
  return are_all(r.pinned, 1);
}

static bool polls_an_event_of_too_little(void) {
  fill(r.a, r.x, 1);
  if (!r.right) record(r.a, r.event);
  copy(r.a, r.pinned, r.x);
  if (r.right) record(r.a, r.event);
  for (bool ready = false; !ready;) MUST(rill_event_is_ready(r.event, &ready));
  return are_all(r.pinned, 1);
}

/* Step i may use a buffer when step i - 2, which had it, has ended. */
static bool waits_for_the_wrong_buffer(void) {
  enum { STEPS = 4 };
  unsigned *const buffers[2] = { r.staging, r.more };
  const rill_event events[2] = { r.event, r.other };
  unsigned *const results[STEPS] = { r.pinned, r.pinned + 8, r.pinned + 16, r.pinned + 24 };
  for (unsigned i = 0; i < STEPS; i++) {
    if (i >= 2) MUST(rill_event_synchronize(events[r.right ? i % 2 : (i + 1) % 2]));
    for (unsigned k = 0; k < 8; k++) buffers[i % 2][k] = 1 + i;
    const rill_stream stream = i % 2 == 0 ? r.a : r.b;
    MUST(rill_copy_async(stream, results[i], buffers[i % 2], 8 * sizeof(unsigned)));
    record(stream, events[i % 2]);
  }
  synchronize_all();
  bool right = true;
  for (unsigned i = 0; i < STEPS; i++) right &= results[i][0] == 1 + i && results[i][7] == 1 + i;
  return right;
}

/* ---- host calls ---- */

static void set_first(void *user, rill_status status) { *(unsigned *)user = status == RILL_OK ? 5 : 0; }

static void copy_first(void *user, rill_status status) {
  unsigned *const p = user;
  p[1] = status == RILL_OK ? p[0] : 0;
}

static bool uses_what_a_host_call_makes(void) {
  MUST(rill_stream_host_call(r.a, set_first, r.staging));
  if (r.right) order_after(r.b, r.a);
  copy(r.b, r.x, r.staging);
  synchronize_all();
  return r.x[0] == 5;
}

static bool calls_the_host_before_the_data_are_there(void) {
  fill(r.a, r.pinned, 4);
  r.staging[0] = 0;
  MUST(rill_copy_async(r.a, r.staging, r.pinned, sizeof(unsigned)));
  if (r.right) order_after(r.b, r.a);
  MUST(rill_stream_host_call(r.b, copy_first, r.staging));
  synchronize_all();
  return r.staging[1] == 4;
}

/* ---- pools ---- */

/* The free asserts that all uses are ordered before it on its stream. */
static bool frees_what_another_stream_uses(void) {
  void *first = NULL, *second = NULL;
  MUST(rill_alloc_async(r.a, BYTES, &first));
  fill(r.a, first, 1);
  order_after(r.b, r.a);
  copy(r.b, r.pinned, first);
  if (r.right) MUST(rill_memory_record_use(first, r.b));
  MUST(rill_free_async(r.a, first));
  MUST(rill_alloc_async(r.a, BYTES, &second));
  fill(r.a, second, 2);
  MUST(rill_free_async(r.a, second));
  synchronize_all();
  return are_all(r.pinned, 1);
}

static bool uses_memory_before_it_is_allocated(void) {
  void *first = NULL, *second = NULL;
  MUST(rill_alloc_async(r.a, BYTES, &first));
  fill(r.a, first, 1);
  copy(r.a, r.pinned, first);
  MUST(rill_free_async(r.a, first));
  MUST(rill_alloc_async(r.a, BYTES, &second));
  if (r.right) order_after(r.b, r.a);
  fill(r.b, second, 2);
  order_after(r.a, r.b);
  MUST(rill_free_async(r.a, second));
  synchronize_all();
  return are_all(r.pinned, 1);
}

/* Memory that was free before is not what the third stream gets: that could still be used by nobody. */
static bool frees_what_another_stream_uses_for_a_third(void) {
  void *idle = NULL, *first = NULL, *second = NULL;
  MUST(rill_alloc_async(r.a, BYTES, &first));
  MUST(rill_alloc_async(r.c, BYTES, &idle));
  MUST(rill_free_async(r.c, idle));
  synchronize(r.c);
  fill(r.a, first, 1);
  order_after(r.b, r.a);
  copy(r.b, r.pinned, first);
  if (r.right) MUST(rill_memory_record_use(first, r.b));
  MUST(rill_free_async(r.a, first));
  synchronize(r.a);
  MUST(rill_alloc_async(r.c, BYTES, &second));
  fill(r.c, second, 2);
  MUST(rill_free_async(r.c, second));
  synchronize_all();
  return are_all(r.pinned, 1);
}

/* ---- graphs ---- */

static bool lacks_an_edge(void) {
  rill_graph graph;
  rill_graph_exec exec;
  rill_graph_node first, second;
  fill(r.a, r.x, 1);
  MUST(rill_graph_create(r.device, &graph));
  MUST(rill_graph_add_copy(graph, NULL, 0, r.y, r.x, BYTES, &first));
  MUST(rill_graph_add_copy(graph, &first, r.right ? 1 : 0, r.pinned, r.y, BYTES, &second));
  MUST(rill_graph_instantiate(graph, &exec));
  MUST(rill_graph_launch(exec, r.a));
  synchronize_all();
  MUST(rill_graph_exec_release(exec));
  MUST(rill_graph_release(graph));
  return are_all(r.pinned, 1);
}

static bool launches_a_graph_before_its_input(void) {
  rill_graph graph;
  rill_graph_exec exec;
  rill_graph_node node;
  MUST(rill_graph_create(r.device, &graph));
  MUST(rill_graph_add_copy(graph, NULL, 0, r.pinned, r.x, BYTES, &node));
  MUST(rill_graph_instantiate(graph, &exec));
  fill(r.b, r.x, 1);
  if (r.right) order_after(r.a, r.b);
  MUST(rill_graph_launch(exec, r.a));
  synchronize_all();
  MUST(rill_graph_exec_release(exec));
  MUST(rill_graph_release(graph));
  return are_all(r.pinned, 1);
}

static bool changes_what_a_graph_reads(void) {
  rill_graph graph;
  rill_graph_exec exec;
  rill_graph_node node;
  set_all(r.staging, 1);
  MUST(rill_graph_create(r.device, &graph));
  MUST(rill_graph_add_copy(graph, NULL, 0, r.x, r.staging, BYTES, &node));
  MUST(rill_graph_instantiate(graph, &exec));
  MUST(rill_graph_launch(exec, r.a));
  if (r.right) synchronize(r.a);
  set_all(r.staging, 2);
  synchronize_all();
  MUST(rill_graph_exec_release(exec));
  MUST(rill_graph_release(graph));
  return are_all(r.x, 1);
}

/* ---- running ---- */

#define PROGRAM(name) \
  { #name, name }
static const struct {
  const char *name;
  bool (*run)(void); /* whether the data were right */
} programs[] = {
  PROGRAM(reads_before_it_is_written),
  PROGRAM(writes_what_is_still_read),
  PROGRAM(both_write),
  PROGRAM(records_too_early),
  PROGRAM(waits_for_another_event),
  PROGRAM(waits_for_another_stream),
  PROGRAM(has_another_stream_wait),
  PROGRAM(waits_the_other_way_round),
  PROGRAM(waits_before_the_record),
  PROGRAM(looks_into_a_kernel),
  PROGRAM(reads_before_it_synchronizes),
  PROGRAM(refills_during_an_upload),
  PROGRAM(synchronizes_another_stream),
  PROGRAM(polls_an_event_of_too_little),
  PROGRAM(waits_for_the_wrong_buffer),
  PROGRAM(uses_what_a_host_call_makes),
  PROGRAM(calls_the_host_before_the_data_are_there),
  PROGRAM(frees_what_another_stream_uses),
  PROGRAM(uses_memory_before_it_is_allocated),
  PROGRAM(frees_what_another_stream_uses_for_a_third),
  PROGRAM(lacks_an_edge),
  PROGRAM(launches_a_graph_before_its_input),
  PROGRAM(changes_what_a_graph_reads),
};
enum { PROGRAMS = sizeof programs / sizeof *programs };

static unsigned *new_words(uint32_t kind) {
  void *p = NULL;
  MUST(rill_alloc(r.device, BYTES, kind, &p));
  return p;
}

/* The memory of the cpu device is that of the host. */
static int run_all(bool right) {
  r.right = right;
  MUST(rill_device_open("cpu", &r.device));
  MUST(rill_stream_create(r.device, NULL, &r.a));
  MUST(rill_stream_create(r.device, NULL, &r.b));
  MUST(rill_stream_create(r.device, NULL, &r.c));
  MUST(rill_event_create(r.device, NULL, &r.event));
  MUST(rill_event_create(r.device, NULL, &r.other));
  r.x = new_words(RILL_MEMORY_DEVICE);
  r.y = new_words(RILL_MEMORY_DEVICE);
  r.pinned = new_words(RILL_MEMORY_PINNED);
  r.staging = new_words(RILL_MEMORY_PINNED);
  r.more = new_words(RILL_MEMORY_PINNED);
  for (size_t i = 0; i < PROGRAMS; i++) {
    unsigned *const memory[] = { r.x, r.y, r.pinned, r.staging, r.more };
    for (size_t k = 0; k < sizeof memory / sizeof *memory; k++) set_all(memory[k], 0);
    if (!programs[i].run()) (void)printf("wrong %zu\n", i);
    synchronize_all();
  }
  return 0;
}

/* Counts the programs that had wrong data. */
static void run_with_seed(const char *mode, unsigned seed, unsigned wrong[PROGRAMS]) {
  static struct child child;
  char variable[64], expected[64];
  const char *const variables[] = { variable };
  (void)snprintf(variable, sizeof variable, "RILL_CPU_SCHEDULE=seed:%u", seed);
  (void)snprintf(expected, sizeof expected, "rill: RILL_CPU_SCHEDULE=seed:%u\n", seed);
  run_child(mode, variables, 1, &child);
  if (child.exit_code != 0 || strstr(child.output, expected) == NULL)
    fail_msg("seed %u: %s\n%s", seed, child_end(&child), child.output);
  for (const char *at = child.output; (at = strstr(at, "wrong ")) != NULL;) {
    at += strlen("wrong ");
    const unsigned long i = strtoul(at, NULL, 10);
    assert_true(i < PROGRAMS);
    if (wrong[i]++ == 0) print_message("seed %u: %s\n", seed, programs[i].name);
  }
}

static void each_missing_wait_gives_wrong_data(void) {
  unsigned wrong[PROGRAMS] = { 0 }, missed = 0;
  for (unsigned seed = 1; seed <= WRONG_SEEDS; seed++) run_with_seed("wrong", seed, wrong);
  for (size_t i = 0; i < PROGRAMS; i++) {
    print_message("%2u of %u seeds: %s\n", wrong[i], (unsigned)WRONG_SEEDS, programs[i].name);
    missed += wrong[i] == 0;
  }
  assert_int_equal(missed, 0);
}

static void correct_programs_have_correct_data(void) {
  unsigned wrong[PROGRAMS] = { 0 };
  for (unsigned seed = 1; seed <= RIGHT_SEEDS; seed++) run_with_seed("right", seed, wrong);
  for (size_t i = 0; i < PROGRAMS; i++) assert_int_equal(wrong[i], 0);
}

int main(int argc, char **argv) {
  if (argc > 1) return run_all(strcmp(argv[1], "right") == 0);
  static const struct test tests[] = { TEST(each_missing_wait_gives_wrong_data),
                                       TEST(correct_programs_have_correct_data) };
  return RUN_ONCE("RILL_CPU_SCHEDULE, planted mistakes", tests);
}
