/* Runs random graphs and random captures, and compares them with a model that runs their operations one after another
 * (C7.1).
 *
 * A program is a list of operations on cells. In a graph, the nodes are added in random order. Two nodes that touch the
 * same cell are connected by an edge if one of them writes it, unless other edges order them already. In a capture,
 * each operation is submitted to one of several streams, and events order such operations. The graph is then launched
 * several times on random streams; changes of a node or of the whole graph in between must affect only later launches.
 * Some operations are child graphs or use graph memory, and some graphs are launched as clones. RILL_STRESS_SEED
 * repeats a run. */
#include "support/testing.h"

#include "gate.rill.h"

#include <rill/bundle.h>
#include <sched.h>
#include <stdio.h>

enum { MOST_OPERATIONS = 96, PROGRAM_CELLS = 8, STREAMS = 3, THREADS = 3 };

/* TWICE: a child graph that increments twice. BY_MEMORY: a copy through graph memory; BY_HOST: a copy through pageable
 * memory. */
enum kind { FILL, COPY, INCREMENT, CALL, TWICE, BY_MEMORY, BY_HOST };

struct operation {
  enum kind kind;
  unsigned to, from;
  uint32_t value;
  bool bytes;        /* FILL: with a pattern of one byte; `value` consists of four such bytes */
  uint32_t pageable; /* the buffer of BY_HOST */
  bool disabled;     /* the node of the execution object is disabled (FILL, COPY, INCREMENT) */
  bool other;        /* the node has another kernel, which writes `value`, or another function, which counts twice */
  rill_graph_node first, node; /* the first and the last node of the operation */
};

/* State of a thread. */
struct program {
  unsigned random, shape; /* shape: decides which operations the graph has */
  unsigned count;
  struct operation operations[MOST_OPERATIONS];
  bool before[MOST_OPERATIONS][MOST_OPERATIONS]; /* the first operation is known to come before the second */
  uint32_t *cells, *result;                      /* result: pinned */
  uint32_t model[PROGRAM_CELLS];
  unsigned calls, expected_calls;
  rill_stream streams[STREAMS];
  rill_event events[STREAMS];
  rill_kernel increment, write;
};

static unsigned pick(struct program *program, unsigned below) {
  program->random = program->random * 1664525 + 1013904223;
  return (program->random >> 8) % below;
}

static void count_call(void *user, rill_status status) {
  (void)status;
  (void)__atomic_add_fetch((unsigned *)user, 1, __ATOMIC_SEQ_CST);
}

static void count_two_calls(void *user, rill_status status) {
  count_call(user, status);
  count_call(user, status);
}

static void choose_value(struct program *program, struct operation *operation) {
  operation->bytes = pick(program, 2) == 0;
  operation->value = operation->bytes ? pick(program, 256) * 0x01010101u : pick(program, 1000);
}

static void make_operations(struct program *program) {
  program->count = 1 + pick(program, MOST_OPERATIONS);
  memset(program->before, 0, sizeof program->before);
  for (unsigned i = 0; i < program->count; i++) {
    static const enum kind kinds[] = { FILL,      FILL, FILL,  COPY,      COPY,   INCREMENT,
                                       INCREMENT, CALL, TWICE, BY_MEMORY, BY_HOST };
    struct operation *operation = &program->operations[i];
    operation->kind = kinds[pick(program, sizeof kinds / sizeof *kinds)];
    operation->to = pick(program, PROGRAM_CELLS);
    operation->from = (operation->to + 1 + pick(program, PROGRAM_CELLS - 1)) % PROGRAM_CELLS;
    operation->disabled = operation->other = false;
    choose_value(program, operation);
  }
}

static bool copies(const struct operation *operation) {
  return operation->kind == COPY || operation->kind == BY_MEMORY || operation->kind == BY_HOST;
}

static bool conflicts(const struct operation *a, const struct operation *b) {
  if (a->kind == CALL || b->kind == CALL) return false;
  if (a->to == b->to) return true;
  return (copies(a) && a->from == b->to) || (copies(b) && b->from == a->to);
}

static void run_model(struct program *program) {
  for (unsigned i = 0; i < program->count; i++) {
    const struct operation *operation = &program->operations[i];
    if (operation->disabled) continue;
    switch (operation->kind) {
      case FILL: program->model[operation->to] = operation->value; break;
      case BY_MEMORY:
      case BY_HOST:
      case COPY: program->model[operation->to] = program->model[operation->from]; break;
      case INCREMENT:
        program->model[operation->to] = operation->other ? operation->value : program->model[operation->to] + 1;
        break;
      case TWICE: program->model[operation->to] += 2; break;
      default: program->expected_calls += operation->other ? 2 : 1; break;
    }
  }
}

/* ---- as a graph ---- */

#define TRY(call)                           \
  do {                                      \
    const rill_status status_ = (call);     \
    if (status_ != RILL_OK) return status_; \
  } while (0)

/* Creates a graph that increments a cell twice. */
static rill_status make_twice(struct program *program, uint32_t *to, rill_graph *graph) {
  const rill_launch launch = rill_launch_1d(1, 1);
  rill_graph_node node;
  TRY(rill_graph_create(dut.device, graph));
  TRY(rill_graph_add_kernel(*graph, NULL, 0, program->increment, &launch, RILL_ARGS(to), &node));
  return rill_graph_add_kernel(*graph, &node, 1, program->increment, &launch, RILL_ARGS(to), &node);
}

static rill_status add_twice(struct program *program, rill_graph graph, struct operation *operation) {
  rill_graph child;
  TRY(make_twice(program, program->cells + operation->to, &child));
  TRY(rill_graph_add_empty(graph, NULL, 0, &operation->first));
  TRY(rill_graph_add_child(graph, &operation->first, 1, child, &operation->node));
  return rill_graph_release(child);
}

static rill_status add_by_memory(struct program *program, rill_graph graph, struct operation *operation) {
  uint32_t *const to = program->cells + operation->to, *const from = program->cells + operation->from;
  void *memory = NULL;
  rill_graph_node *const node = &operation->node;
  TRY(rill_graph_add_alloc(graph, NULL, 0, 4, &memory, &operation->first));
  TRY(rill_graph_add_copy(graph, &operation->first, 1, memory, from, 4, node));
  TRY(rill_graph_add_copy(graph, node, 1, to, memory, 4, node));
  return pick(program, 2) == 0 ? RILL_OK : rill_graph_add_free(graph, node, 1, memory, node);
}

static rill_status add_by_host(struct program *program, rill_graph graph, struct operation *operation) {
  uint32_t *const to = program->cells + operation->to, *const from = program->cells + operation->from;
  TRY(rill_graph_add_copy(graph, NULL, 0, &operation->pageable, from, 4, &operation->first));
  return rill_graph_add_copy(graph, &operation->first, 1, to, &operation->pageable, 4, &operation->node);
}

static rill_status add_operation(struct program *program, rill_graph graph, struct operation *operation) {
  const rill_launch launch = rill_launch_1d(1, 1);
  uint32_t *to = program->cells + operation->to;
  rill_graph_node *const node = &operation->node;
  rill_status status;
  switch (operation->kind) {
    case FILL:
      status = rill_graph_add_fill(graph, NULL, 0, to, &operation->value, operation->bytes ? 1 : 4,
                                   operation->bytes ? 4 : 1, node);
      break;
    case COPY: status = rill_graph_add_copy(graph, NULL, 0, to, program->cells + operation->from, 4, node); break;
    case INCREMENT:
      status = rill_graph_add_kernel(graph, NULL, 0, program->increment, &launch, RILL_ARGS(to), node);
      break;
    case TWICE: return add_twice(program, graph, operation);
    case BY_MEMORY: return add_by_memory(program, graph, operation);
    case BY_HOST: return add_by_host(program, graph, operation);
    default: status = rill_graph_add_host_call(graph, NULL, 0, count_call, &program->calls, node); break;
  }
  operation->first = *node;
  return status;
}

static rill_status connect(struct program *program, rill_graph graph, unsigned first, unsigned second) {
  for (unsigned i = 0; i < program->count; i++) {
    if (program->before[i][first] || i == first) program->before[i][second] = true;
  }
  return rill_graph_add_edge(graph, program->operations[first].node, program->operations[second].first);
}

/* Adds a last node, which copies all cells to the host. */
static rill_status add_result(struct program *program, rill_graph graph) {
  rill_graph_node last;
  TRY(rill_graph_add_copy(graph, NULL, 0, program->result, program->cells, PROGRAM_CELLS * 4, &last));
  for (unsigned i = 0; i < program->count; i++) TRY(rill_graph_add_edge(graph, program->operations[i].node, last));
  return RILL_OK;
}

static rill_status build(struct program *program, rill_graph *graph) {
  unsigned order[MOST_OPERATIONS];
  program->shape = program->random;
  memset(program->before, 0, sizeof program->before);
  for (unsigned i = 0; i < program->count; i++) {
    const unsigned k = pick(program, i + 1);
    order[i] = order[k];
    order[k] = i;
  }
  TRY(rill_graph_create(dut.device, graph));
  for (unsigned i = 0; i < program->count; i++) TRY(add_operation(program, *graph, &program->operations[order[i]]));
  for (unsigned i = 0; i < program->count; i++) {
    for (unsigned k = i; k-- > 0;) {
      const bool needed = conflicts(&program->operations[k], &program->operations[i]) && !program->before[k][i];
      if (needed || pick(program, 64) == 0) TRY(connect(program, *graph, k, i));
    }
  }
  return add_result(program, *graph);
}

/* ---- as a capture ---- */

static rill_status launch_twice(struct program *program, uint32_t *to, rill_stream stream) {
  rill_graph graph;
  rill_graph_exec exec;
  TRY(make_twice(program, to, &graph));
  TRY(rill_graph_instantiate(graph, &exec));
  TRY(rill_graph_release(graph));
  TRY(rill_graph_launch(exec, stream));
  return rill_graph_exec_release(exec);
}

static rill_status copy_by_memory(uint32_t *to, const uint32_t *from, rill_stream stream) {
  void *memory = NULL;
  TRY(rill_alloc_async(stream, 4, &memory));
  TRY(rill_copy_async(stream, memory, from, 4));
  TRY(rill_copy_async(stream, to, memory, 4));
  return rill_free_async(stream, memory);
}

static rill_status copy_by_host(uint32_t *to, const uint32_t *from, uint32_t *pageable, rill_stream stream) {
  TRY(rill_copy_async(stream, pageable, from, 4));
  return rill_copy_async(stream, to, pageable, 4);
}

static rill_status submit(struct program *program, struct operation *operation, rill_stream stream) {
  const rill_launch launch = rill_launch_1d(1, 1);
  uint32_t *to = program->cells + operation->to;
  switch (operation->kind) {
    case FILL: return rill_fill_async(stream, to, &operation->value, 4, 1);
    case COPY: return rill_copy_async(stream, to, program->cells + operation->from, 4);
    case INCREMENT: return rill_stream_launch(stream, program->increment, &launch, RILL_ARGS(to));
    case TWICE: return launch_twice(program, to, stream);
    case BY_MEMORY: return copy_by_memory(to, program->cells + operation->from, stream);
    case BY_HOST: return copy_by_host(to, program->cells + operation->from, &operation->pageable, stream);
    default: return rill_stream_host_call(stream, count_call, &program->calls);
  }
}

/* Orders two operations by events. `of[k]` is the stream of operation k; `known[a][b]` is the number of operations on
 * stream b that are ordered before the next one on stream a. */
static rill_status order_streams(struct program *program, unsigned first, unsigned second) {
  if (pick(program, 2) == 0) return rill_stream_wait_stream(program->streams[second], program->streams[first]);
  TRY(rill_stream_record_event(program->streams[first], program->events[first], 0));
  return rill_stream_wait_event(program->streams[second], program->events[first], 0);
}

static rill_status capture(struct program *program, rill_graph *graph) {
  unsigned of[MOST_OPERATIONS], known[STREAMS][STREAMS] = { { 0 } };
  bool joined[STREAMS] = { true };
  TRY(rill_stream_capture_begin(program->streams[0], RILL_CAPTURE_THREAD));
  for (unsigned i = 0; i < program->count; i++) {
    const unsigned s = of[i] = pick(program, STREAMS);
    if (!joined[s]) TRY(order_streams(program, 0, s));
    if (!joined[s]) memcpy(known[s], known[0], sizeof known[s]);
    joined[s] = true;
    for (unsigned k = 0; k < i; k++) {
      if (of[k] == s || known[s][of[k]] > k || !conflicts(&program->operations[k], &program->operations[i])) continue;
      TRY(order_streams(program, of[k], s));
      for (unsigned t = 0; t < STREAMS; t++) {
        if (known[s][t] < known[of[k]][t]) known[s][t] = known[of[k]][t];
      }
    }
    TRY(submit(program, &program->operations[i], program->streams[s]));
    known[s][s] = i + 1;
  }
  for (unsigned s = 1; s < STREAMS; s++) {
    if (joined[s]) TRY(order_streams(program, s, 0));
  }
  TRY(rill_copy_async(program->streams[0], program->result, program->cells, PROGRAM_CELLS * 4));
  return rill_stream_capture_end(program->streams[0], graph);
}

/* ---- launches ---- */

/* Replaces the kernel of a kernel node, or restores the first one. */
static rill_status replace_kernel(struct program *program, rill_graph_exec exec, struct operation *operation) {
  const rill_launch launch = rill_launch_1d(1, 1);
  uint32_t *to = program->cells + operation->to;
  operation->other = !operation->other;
  choose_value(program, operation);
  if (operation->other) {
    return rill_graph_exec_replace_kernel(exec, operation->node, program->write, &launch,
                                          RILL_ARGS(to, operation->value));
  }
  return rill_graph_exec_replace_kernel(exec, operation->node, program->increment, &launch, RILL_ARGS(to));
}

static rill_status switch_node(rill_graph_exec exec, struct operation *operation) {
  bool enabled = operation->disabled;
  operation->disabled = !operation->disabled;
  TRY(rill_graph_exec_set_enabled(exec, operation->node, !operation->disabled));
  TRY(rill_graph_exec_is_enabled(exec, operation->node, &enabled));
  return enabled == !operation->disabled ? RILL_OK : RILL_ERROR_INTERNAL;
}

/* Changes one node for later launches. */
static rill_status change(struct program *program, rill_graph_exec exec) {
  struct operation *operation = &program->operations[pick(program, program->count)];
  uint32_t *to = program->cells + operation->to;
  if (operation->kind <= INCREMENT && pick(program, 3) == 0) return switch_node(exec, operation);
  if (operation->kind == INCREMENT && pick(program, 2) == 0) return replace_kernel(program, exec, operation);
  switch (operation->kind) {
    case FILL:
      choose_value(program, operation);
      return rill_graph_exec_set_fill(exec, operation->node, to, &operation->value, operation->bytes ? 1 : 4,
                                      operation->bytes ? 4 : 1);
    case COPY: return rill_graph_exec_set_copy(exec, operation->node, to, program->cells + operation->from, 4);
    case INCREMENT: return rill_graph_exec_set_kernel_arg(exec, operation->node, 0, &to, sizeof to);
    case CALL:
      operation->other = !operation->other;
      return rill_graph_exec_set_host_call(exec, operation->node, operation->other ? count_two_calls : count_call,
                                           &program->calls);
    default: return RILL_OK;
  }
}

/* Updates the object from another graph of the same shape, with other values and memory. */
static rill_status change_all(struct program *program, rill_graph_exec exec) {
  rill_graph_node nodes[MOST_OPERATIONS];
  rill_graph graph;
  for (unsigned i = 0; i < program->count; i++) {
    struct operation *operation = &program->operations[i];
    nodes[i] = operation->node;
    operation->disabled = operation->other = false;
    if (operation->kind == FILL) choose_value(program, operation);
  }
  const unsigned random = program->random;
  program->random = program->shape;
  TRY(build(program, &graph));
  program->random = random;
  for (unsigned i = 0; i < program->count; i++) program->operations[i].node = nodes[i];
  TRY(rill_graph_update(exec, graph));
  return rill_graph_release(graph);
}

/* Replaces the graph with a clone. */
static rill_status replace_by_clone(struct program *program, rill_graph *graph) {
  rill_graph copy;
  TRY(rill_graph_clone(*graph, &copy));
  for (unsigned i = 0; i < program->count; i++) {
    struct operation *operation = &program->operations[i];
    TRY(rill_graph_find_in_clone(copy, operation->node, &operation->node));
  }
  TRY(rill_graph_release(*graph));
  *graph = copy;
  return RILL_OK;
}

static rill_status launch_often(struct program *program, rill_graph graph, bool explicit_nodes) {
  rill_graph_exec exec;
  const unsigned launches = 1 + pick(program, 8);
  if (explicit_nodes && pick(program, 4) == 0) TRY(replace_by_clone(program, &graph));
  TRY(rill_graph_instantiate(graph, &exec));
  TRY(rill_graph_release(graph));
  for (unsigned i = 0; i < launches; i++) {
    if (explicit_nodes && pick(program, 2) == 0) TRY(change(program, exec));
    if (explicit_nodes && pick(program, 4) == 0) TRY(change_all(program, exec));
    TRY(rill_graph_launch(exec, program->streams[pick(program, STREAMS)]));
    run_model(program);
  }
  TRY(rill_graph_exec_release(exec));
  for (unsigned i = 0; i < STREAMS; i++) TRY(rill_stream_synchronize_for(program->streams[i], TIMEOUT_NS));
  return RILL_OK;
}

static const char *check(const struct program *program, unsigned seed, unsigned round) {
  static _Thread_local char text[200];
  for (unsigned i = 0; i < PROGRAM_CELLS; i++) {
    if (program->result[i] == program->model[i]) continue;
    (void)snprintf(text, sizeof text, "seed %u, round %u, cell %u: %u, the model has %u", seed, round, i,
                   program->result[i], program->model[i]);
    return text;
  }
  if (program->calls == program->expected_calls) return NULL;
  (void)snprintf(text, sizeof text, "seed %u, round %u: %u host calls, the model has %u", seed, round, program->calls,
                 program->expected_calls);
  return text;
}

static unsigned first_seed(void) {
  const char *text = getenv("RILL_STRESS_SEED");
  return text != NULL ? (unsigned)strtoul(text, NULL, 10) : 1;
}

static const char *run_program(unsigned index, void *user) {
  struct program *program = &((struct program *)user)[index];
  const unsigned seed = first_seed() + index;
  program->random = seed * 2654435761u;
  for (unsigned round = 0; round < scaled(60); round++) {
    rill_graph graph;
    const bool explicit_nodes = pick(program, 2) == 0;
    make_operations(program);
    REQUIRE_OK(explicit_nodes ? build(program, &graph) : capture(program, &graph));
    REQUIRE_OK(launch_often(program, graph, explicit_nodes));
    const char *wrong = check(program, seed, round);
    if (wrong != NULL) return wrong;
  }
  return NULL;
}

static void run_in_threads(unsigned threads) {
  struct program *programs = calloc(threads, sizeof *programs);
  assert_non_null(programs);
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  for (unsigned i = 0; i < threads; i++) {
    struct program *program = &programs[i];
    program->cells = dut.memory + i * PROGRAM_CELLS;
    program->result = dut.host + i * PROGRAM_CELLS;
    program->increment = new_kernel(&gate_bundle, "increment");
    program->write = new_kernel(&gate_bundle, "set_flag");
    for (unsigned k = 0; k < STREAMS; k++) {
      program->streams[k] = new_stream("of a program");
      program->events[k] = new_event("of a program");
    }
  }
  run_threads(threads, run_program, programs);
  free(programs);
}

static void agrees_with_the_model(void) { run_in_threads(1); }
static void agrees_in_several_threads(void) { run_in_threads(THREADS); }

/* ---- concurrently with waits for the device ---- */

static const char *make_or_wait(unsigned index, void *user) {
  const uint32_t value = index;
  uint32_t *cell = *(uint32_t **)user + index;
  rill_stream stream;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  for (unsigned i = 0; i < scaled(100); i++) {
    rill_graph graph;
    rill_graph_node node;
    rill_graph_exec exec;
    void *p = NULL;
    if (index == 0) {
      REQUIRE_OK(rill_device_synchronize(dut.device));
      REQUIRE_OK(rill_alloc(dut.device, 64, RILL_MEMORY_DEVICE, &p));
      REQUIRE_OK(rill_free(p));
      continue;
    }
    REQUIRE_OK(rill_graph_create(dut.device, &graph));
    REQUIRE_OK(rill_graph_add_fill(graph, NULL, 0, cell, &value, sizeof value, 1, &node));
    REQUIRE_OK(rill_graph_instantiate(graph, &exec));
    REQUIRE_OK(rill_graph_exec_set_fill(exec, node, cell, &value, sizeof value, 1));
    REQUIRE_OK(rill_graph_launch(exec, stream));
    REQUIRE_OK(rill_graph_exec_release(exec));
    REQUIRE_OK(rill_graph_release(graph));
  }
  REQUIRE_OK(rill_stream_synchronize(stream));
  REQUIRE_OK(rill_stream_release(stream));
  return NULL;
}

/* C7.3: graphs are created and changed while other threads wait for the device and free memory. */
static void graphs_are_built_beside_host_waits(void) {
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  run_threads(THREADS, make_or_wait, &dut.memory);
}

/* ---- frees by two threads ---- */

enum { FREES = 32 };

struct freeing {
  rill_stream stream;
  void *memory[FREES];
  _Atomic unsigned freed, ready;
};

static const char *free_all(unsigned index, void *user) {
  struct freeing *freeing = user;
  (void)index;
  for (unsigned i = 0; i < FREES; i++) {
    unsigned looks = 0;
    (void)atomic_fetch_add(&freeing->ready, 1);
    while (atomic_load(&freeing->ready) < 2 * (i + 1)) { /* start both as simultaneously as possible */
      if (++looks % 1000 == 0) (void)sched_yield();
    }
    const rill_status status = rill_free_async(freeing->stream, freeing->memory[i]);
    if (status == RILL_OK) (void)atomic_fetch_add(&freeing->freed, 1);
    if (status != RILL_OK && status != RILL_ERROR_NOT_FOUND) return rill_last_error_text();
  }
  return NULL;
}

/* G31: if two threads free the same memory in a capture, exactly one succeeds, for graph memory and for other memory.
 */
static void only_one_of_two_frees_succeeds(void) {
  if (!rill_device_supports(dut.device, RILL_FEATURE_GRAPH, NULL)) skip_because("no graphs here");
  struct freeing freeing = { .stream = new_stream("capturing") };
  for (unsigned round = 0; round < scaled(600); round++) {
    rill_graph graph;
    for (unsigned i = 0; i < FREES / 2; i++) assert_ok(rill_alloc_async(freeing.stream, 256, &freeing.memory[i]));
    assert_ok(rill_stream_capture_begin(freeing.stream, RILL_CAPTURE_RELAXED));
    for (unsigned i = FREES / 2; i < FREES; i++) assert_ok(rill_alloc_async(freeing.stream, 256, &freeing.memory[i]));
    atomic_store(&freeing.freed, 0);
    atomic_store(&freeing.ready, 0);
    run_threads(2, free_all, &freeing);
    assert_int_equal(atomic_load(&freeing.freed), FREES);
    assert_ok(rill_stream_capture_end(freeing.stream, &graph));
    assert_ok(rill_graph_release(graph));
  }
  assert_completes(freeing.stream);
}

TESTS_ON_EACH_DEVICE("graphs", TEST(agrees_with_the_model), TEST(agrees_in_several_threads),
                     TEST(only_one_of_two_frees_succeeds), TEST(graphs_are_built_beside_host_waits))
