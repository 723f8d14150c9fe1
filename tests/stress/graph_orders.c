/* Launches of one execution object must not overlap, on any streams, with changes of any kind in between (C7.1).
 *
 * An object consists of kernels that each write their argument and a constant to a log, and sometimes of other nodes,
 * because these decide how a backend orders launches. The test then makes launches on random streams, which are
 * sometimes held, and changes: of an argument, of a launch to one with or without constants, or of the whole graph. The
 * model is the list of values that launches have to write. Only a change while launches are in progress may be
 * UNSUPPORTED; later launches then work as before. RILL_STRESS_SEED repeats a run. */
#include "support/testing.h"

#include "graph_orders.rill.h"

#include <rill/bundle.h>

enum { STREAMS = 3, MOST_KERNELS = 4, STEPS = 24, ROOM = STEPS * MOST_KERNELS };

struct entry {
  unsigned part, constant; /* constant: 0 if the launch has none */
  rill_graph_node node;
};

static struct {
  unsigned random, seed, round;
  rill_stream streams[STREAMS];
  struct gate *gate; /* at most one gate is closed, because it blocks a worker */
  rill_module module;
  rill_kernel append;
  rill_graph graph;
  rill_graph_exec exec;
  unsigned kernels, others; /* others: a bit for each kind of other node that the graph has */
  struct entry entries[MOST_KERNELS];
  unsigned *log, *scratch; /* pinned */
  unsigned expected[ROOM], count, constant, calls, expected_calls;
} model;

static unsigned pick(unsigned below) {
  model.random = model.random * 1664525 + 1013904223;
  return (model.random >> 8) % below;
}

static void count_call(void *user, rill_status status) {
  (void)status;
  (void)__atomic_add_fetch((unsigned *)user, 1, __ATOMIC_SEQ_CST);
}

/* ---- objects ---- */

static struct entry random_entry(void) {
  return (struct entry){ .part = 1000 * (1 + pick(1000)), .constant = pick(2) == 0 ? 0 : 1 + pick(999) };
}

static rill_launch launch_of(const struct entry *entry, rill_constant *constant) {
  rill_launch launch = rill_launch_1d(1, 1);
  *constant = (rill_constant){ "shared_part", &entry->constant, sizeof entry->constant };
  launch.constants = entry->constant != 0 ? constant : NULL;
  launch.constant_count = entry->constant != 0;
  return launch;
}

/* Adds kernels in a chain; the other nodes are before the kernels and parallel to them. */
static rill_graph build(struct entry *entries) {
  rill_graph graph;
  rill_graph_node last, other;
  void *memory = NULL;
  assert_ok(rill_graph_create(dut.device, &graph));
  assert_ok(rill_graph_add_empty(graph, NULL, 0, &last));
  if ((model.others & 1) != 0)
    assert_ok(rill_graph_add_fill(graph, &last, 1, model.scratch, &entries[0].part, 4, 8, &last));
  if ((model.others & 2) != 0) assert_ok(rill_graph_add_host_call(graph, &last, 1, count_call, &model.calls, &other));
  if ((model.others & 4) != 0) assert_ok(rill_graph_add_alloc(graph, NULL, 0, 64, &memory, &last));
  for (unsigned i = 0; i < model.kernels; i++) {
    rill_constant constant;
    const rill_launch launch = launch_of(&entries[i], &constant);
    assert_ok(rill_graph_add_kernel(graph, &last, 1, model.append, &launch,
                                    RILL_ARGS(model.log, entries[i].part, (unsigned)ROOM), &last));
    entries[i].node = last;
  }
  return graph;
}

static void begin(void) {
  model.kernels = 1 + pick(MOST_KERNELS);
  model.others = pick(2) == 0 ? 0 : pick(8);
  model.count = model.constant = model.calls = model.expected_calls = 0;
  memset(model.log, 0, (1 + ROOM) * sizeof *model.log);
  assert_ok(rill_module_load(dut.device, &graph_orders_bundle, &model.module)); /* its own constant */
  assert_ok(rill_module_get_kernel(model.module, "append", &model.append));
  for (unsigned i = 0; i < model.kernels; i++) model.entries[i] = random_entry();
  model.graph = build(model.entries);
  assert_ok(rill_graph_instantiate(model.graph, &model.exec));
}

/* ---- steps ---- */

static void launch(void) {
  assert_ok(rill_graph_launch(model.exec, model.streams[pick(STREAMS)]));
  for (unsigned i = 0; i < model.kernels; i++) {
    if (model.entries[i].constant != 0) model.constant = model.entries[i].constant;
    model.expected[model.count++] = model.entries[i].part + model.constant;
  }
  if ((model.others & 2) != 0) model.expected_calls++;
}

static bool is_taken(rill_status status, const char *what) {
  if (status != RILL_OK && (status != RILL_ERROR_UNSUPPORTED || model.count == 0)) {
    fail_msg("seed %u, round %u: %s: %s", model.seed, model.round, what, rill_last_error_text());
  }
  return status == RILL_OK;
}

static void change_a_launch(void) {
  struct entry *entry = &model.entries[pick(model.kernels)], changed = random_entry();
  rill_constant constant;
  const rill_launch shape = launch_of(&changed, &constant);
  changed.node = entry->node;
  const rill_status status =
      rill_graph_exec_set_kernel(model.exec, entry->node, &shape, RILL_ARGS(model.log, changed.part, (unsigned)ROOM));
  if (is_taken(status, "set_kernel")) *entry = changed;
}

static void change_an_argument(void) {
  struct entry *entry = &model.entries[pick(model.kernels)];
  const unsigned part = random_entry().part;
  const rill_status status = rill_graph_exec_set_kernel_arg(model.exec, entry->node, 1, &part, sizeof part);
  if (entry->constant != 0) assert_int_equal(status, RILL_ERROR_UNSUPPORTED);
  else if (is_taken(status, "set_kernel_arg")) entry->part = part;
}

static void change_all(void) {
  struct entry entries[MOST_KERNELS];
  for (unsigned i = 0; i < model.kernels; i++) entries[i] = random_entry();
  const rill_graph graph = build(entries);
  const bool taken = is_taken(rill_graph_update(model.exec, graph), "update");
  assert_ok(rill_graph_release(graph));
  for (unsigned i = 0; i < model.kernels && taken; i++) {
    model.entries[i].part = entries[i].part;
    model.entries[i].constant = entries[i].constant;
  }
}

static void open_or_close(void) {
  if (model.gate != NULL) {
    gate_open(model.gate);
    model.gate = NULL;
  } else {
    model.gate = gate_close(model.streams[pick(STREAMS)]);
  }
}

static void step(void) {
  const unsigned what = pick(100);
  if (what < 40) launch();
  else if (what < 60) change_a_launch();
  else if (what < 70) change_an_argument();
  else if (what < 80) change_all();
  else open_or_close();
}

/* ---- the end ---- */

static void check(void) {
  assert_int_equal(model.calls, model.expected_calls);
  for (unsigned i = 0; i < model.count; i++) {
    if (model.log[1 + i] == model.expected[i]) continue;
    fail_msg("seed %u, round %u: entry %u of %u is %u, the model has %u", model.seed, model.round, i, model.count,
             model.log[1 + i], model.expected[i]);
  }
  if (model.log[0] != model.count)
    fail_msg("seed %u, round %u: %u entries, the model has %u", model.seed, model.round, model.log[0], model.count);
}

static void end(void) {
  if (model.gate != NULL) gate_open(model.gate);
  model.gate = NULL;
  assert_ok(rill_graph_exec_release(model.exec));
  assert_ok(rill_graph_release(model.graph));
  assert_ok(rill_kernel_release(model.append));
  assert_ok(rill_module_release(model.module));
  for (unsigned i = 0; i < STREAMS; i++) assert_completes(model.streams[i]);
  check();
  gates_forget();
}

static void launches_do_not_overlap(void) {
  const char *text = getenv("RILL_STRESS_SEED");
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  memset(&model, 0, sizeof model);
  model.seed = text != NULL ? (unsigned)strtoul(text, NULL, 10) : 1;
  model.random = model.seed * 2654435761u;
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, 1 + ROOM, &model.log));
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, 8, &model.scratch));
  for (unsigned i = 0; i < STREAMS; i++) model.streams[i] = new_stream("of a program");
  for (model.round = 0; model.round < scaled(200); model.round++) {
    begin();
    for (unsigned i = 0; i < STEPS; i++) step();
    end();
  }
  assert_ok(rill_free(model.log));
  assert_ok(rill_free(model.scratch));
}

TESTS_ON_EACH_DEVICE("stress: graph order", TEST(launches_do_not_overlap))
