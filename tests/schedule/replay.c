/* RILL_CPU_SCHEDULE: a program with one thread that submits, run twice with one seed, has done the same in the same
 * order; with other seeds it has not.  Also: what the environment may say.
 *
 * The program is made of random kernels, host calls, copies, waits, queries, graphs and memory of pools.  Kernels and
 * host calls write to a log, which the child prints. */
#include "fault/children.h"
#include "support/testing.h"

#include "schedules.rill.h"

#include <rill/bundle.h>
#include <stdio.h>

enum { STREAMS = 4, EVENTS = 4, OPERATIONS = 120, BLOCKS = 4, ROOM = 2048, SEEDS = 12 };

#define MUST(call)                                                             \
  do {                                                                         \
    if ((call) != RILL_OK) {                                                   \
      (void)printf("%s:%d: %s\n", __FILE__, __LINE__, rill_last_error_text()); \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static unsigned *entries; /* the log: how many, then they */
static unsigned random_state = 1;

static unsigned pick(unsigned below) {
  random_state = random_state * 1664525 + 1013904223;
  return (random_state >> 8) % below;
}

static void note_call(void *user, rill_status status) {
  const unsigned end = entries[0]++;
  if (end < ROOM) entries[1 + end] = (unsigned)(uintptr_t)user * 16 + 15 + (status != RILL_OK);
}

static rill_graph_exec new_graph(rill_device device, rill_kernel kernel) {
  const rill_launch blocks = rill_launch_1d(BLOCKS, 1);
  rill_graph graph;
  rill_graph_exec exec;
  rill_graph_node nodes[6];
  MUST(rill_graph_create(device, &graph));
  for (unsigned i = 0; i < 6; i++) {
    MUST(rill_graph_add_kernel(graph, nodes, i < 3 ? 0 : i - 2, kernel, &blocks,
                               RILL_ARGS(entries, 1000 + i, (unsigned)ROOM), &nodes[i]));
  }
  MUST(rill_graph_instantiate(graph, &exec));
  MUST(rill_graph_release(graph));
  return exec;
}

static int run_program(void) {
  rill_device device;
  rill_stream streams[STREAMS];
  rill_event events[EVENTS];
  rill_module module;
  rill_kernel kernel;
  void *memory = NULL;
  bool any = false;
  const rill_launch blocks = rill_launch_1d(BLOCKS, 1);
  MUST(rill_device_open("cpu", &device));
  for (unsigned i = 0; i < STREAMS; i++) MUST(rill_stream_create(device, NULL, &streams[i]));
  for (unsigned i = 0; i < EVENTS; i++) MUST(rill_event_create(device, NULL, &events[i]));
  MUST(rill_alloc(device, (1 + ROOM) * sizeof *entries, RILL_MEMORY_PINNED, &memory));
  entries = memset(memory, 0, (1 + ROOM) * sizeof *entries);
  MUST(rill_module_load(device, &schedules_bundle, &module));
  MUST(rill_module_get_kernel(module, "note_block", &kernel));
  rill_graph_exec exec = new_graph(device, kernel);
  for (unsigned i = 0; i < EVENTS; i++) MUST(rill_stream_record_event(streams[0], events[i], 0));
  for (unsigned i = 1; i <= OPERATIONS; i++) {
    const rill_stream stream = streams[pick(STREAMS)];
    const rill_event event = events[pick(EVENTS)];
    switch (pick(10)) {
      case 0:
      case 1:
      case 2: MUST(rill_stream_launch(stream, kernel, &blocks, RILL_ARGS(entries, i, (unsigned)ROOM))); break;
      case 3: MUST(rill_stream_host_call(stream, note_call, (void *)(uintptr_t)i)); break;
      case 4: MUST(rill_stream_record_event(stream, event, 0)); break;
      case 5: MUST(rill_stream_wait_event(stream, event, 0)); break;
      case 6: MUST(rill_graph_launch(exec, stream)); break;
      case 7:
        MUST(rill_alloc_async(stream, 4096, &memory));
        MUST(rill_fill_async(stream, memory, &(uint32_t){ i }, 4, 1024));
        MUST(rill_free_async(stream, memory));
        break;
      case 8: MUST(rill_event_is_ready(event, &any)); break;
      default:
        if (pick(4) == 0) MUST(rill_stream_synchronize(stream));
    }
  }
  MUST(rill_device_synchronize(device));
  (void)printf("%u:", entries[0]);
  for (unsigned i = 0; i < entries[0] && i < ROOM; i++) (void)printf(" %u", entries[1 + i]);
  (void)printf("\n");
  return 0;
}

static int open_device(void) {
  rill_device device;
  MUST(rill_device_open("cpu", &device));
  return 0;
}

/* Runs with a value of the variable, or without one if NULL. `mode`: "program", or "open" for the device alone. */
static void run_with(const char *mode, const char *value, struct child *child) {
  char variable[128] = "RILL_CPU_SCHEDULE=";
  const char *const variables[] = { variable };
  if (value != NULL) (void)snprintf(variable, sizeof variable, "RILL_CPU_SCHEDULE=%s", value);
  run_child(mode, variables, 1, child);
  if (child->exit_code != 0) fail_msg("%s: %s\n%s", variable, child_end(child), child->output);
}

static void a_seed_gives_the_same_order(void) {
  static struct child first, again;
  static char before[CHILD_OUTPUT];
  unsigned different = 0;
  for (unsigned seed = 1; seed <= SEEDS; seed++) {
    char value[32];
    (void)snprintf(value, sizeof value, "seed:%u", seed);
    run_with("program", value, &first);
    run_with("program", value, &again);
    assert_true(strlen(first.output) + 1 < CHILD_OUTPUT);
    assert_string_equal(first.output, again.output);
    const char *const order = strchr(first.output, '\n');
    assert_non_null(order);
    different += strcmp(order, before) != 0;
    (void)snprintf(before, sizeof before, "%s", order);
  }
  assert_int_equal(different, SEEDS);
}

static void a_seed_from_the_clock_is_printed(void) {
  static struct child child, again;
  char value[64] = "";
  run_with("program", "seed", &child);
  assert_int_equal(sscanf(child.output, "rill: RILL_CPU_SCHEDULE=%40s", value), 1);
  assert_int_equal(strncmp(value, "seed:", 5), 0);
  run_with("program", value, &again);
  assert_string_equal(child.output, again.output);
}

static void invalid_schedules_are_named(void) {
  static struct child child;
  const char *const wrong[] = { "seeds:1", "seed:", "seed:1x", "seed:-1", "seed:99999999999999999999", "1" };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    char expected[128];
    (void)snprintf(expected, sizeof expected, "rill: RILL_CPU_SCHEDULE: \"%s\" is not a schedule; ", wrong[i]);
    run_with("open", wrong[i], &child);
    assert_non_null(strstr(child.output, expected));
    assert_null(strstr(child.output, "RILL_CPU_SCHEDULE=seed:"));
  }
  run_with("open", NULL, &child);
  assert_null(strstr(child.output, "RILL_CPU_SCHEDULE"));
}

int main(int argc, char **argv) {
  if (argc > 1) return strcmp(argv[1], "program") == 0 ? run_program() : open_device();
  static const struct test tests[] = { TEST(a_seed_gives_the_same_order), TEST(a_seed_from_the_clock_is_printed),
                                       TEST(invalid_schedules_are_named) };
  return RUN_ONCE("RILL_CPU_SCHEDULE", tests);
}
