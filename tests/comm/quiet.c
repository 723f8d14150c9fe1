/* The end of communicators with the stand-ins of NCCL and RCCL, which abort the program if a communicator is destroyed
 * while an operation of several ranks is submitted, in flight or in a graph.  Here: all that were released have ended
 * when the process is quiet, although others live; nothing keeps submissions waiting; and one device needs no quiet. */
#include "ranks.h"

#include <comm_control.h>
#include <fake_control.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

enum { STREAMS = 3, SLOTS = 4, GRAPHS = 2, STEPS = 60 };

static const struct rill_fake_comm *engine;
static const struct rill_fake *driver;
static rill_device gpus[MAX_RANKS];
static uint32_t ranks;
static rill_comm lasting[MAX_RANKS]; /* lives during all tests */
static rill_stream streams[MAX_RANKS][STREAMS];
static int64_t *memory[MAX_RANKS][STREAMS]; /* of a stream: the rank's number and 1, and the sum of all */

/* ---- before each test ---- */

static void begin(void) {
  if (engine != NULL) return;
  ranks = find_devices(gpus);
  create_comms(gpus, ranks, NULL, lasting);
  const bool cuda = strcmp(getenv("RILL_TEST_DEVICE"), "cuda") == 0;
  driver = rill_fake_find(cuda ? "libcuda.so.1" : "libamdhip64.so.7");
  engine = rill_fake_comm_find(cuda ? "libnccl.so.2" : "librccl.so.1");
  assert_non_null(engine);
  for (uint32_t i = 0; i < ranks; i++) {
    for (uint32_t s = 0; s < STREAMS; s++) {
      const int64_t own = i + 1;
      uintptr_t native; /* used by others before a capture */
      assert_ok(rill_stream_create(gpus[i], NULL, &streams[i][s]));
      assert_ok(rill_stream_native(streams[i][s], &native));
      assert_ok(rill_alloc(gpus[i], 2 * sizeof own, RILL_MEMORY_PINNED, (void **)&memory[i][s]));
      memory[i][s][0] = own;
    }
  }
}

static bool forgets_graphs(void) { return getenv("RILL_FAKE_MISSING") != NULL; }

static rill_status sum(rill_comm comm, uint32_t rank, uint32_t stream) {
  int64_t *const at = memory[rank][stream];
  return rill_comm_all_reduce(comm, streams[rank][stream], at + 1, at, 1, RILL_COMM_INT64, RILL_COMM_SUM);
}

static void sum_on_all(const rill_comm comms[], uint32_t first, uint32_t stream) {
  for (uint32_t i = first; i < ranks; i++) assert_comm(sum(comms[i], i, stream));
}

static void release_all(const rill_comm comms[]) {
  for (uint32_t i = 0; i < ranks; i++) assert_comm(rill_comm_release(comms[i]));
}

static void synchronize_all(void) {
  for (uint32_t i = 0; i < ranks; i++) {
    for (uint32_t s = 0; s < STREAMS; s++) assert_ok(rill_stream_synchronize(streams[i][s]));
  }
}

static void engine_has(size_t live) {
  const uint64_t until = now_ns() + TIMEOUT_NS;
  while (engine->live() != live && now_ns() < until) let_pass_ns(MILLISECOND);
  assert_int_equal(engine->live(), live);
}

/* Waits until a function of the driver or the engine has been called so often. */
static void wait_for_calls(uint64_t (*calls)(const char *), const char *function, uint64_t count) {
  const uint64_t until = now_ns() + TIMEOUT_NS;
  while (calls(function) < count && now_ns() < until) let_pass_ns(MILLISECOND);
  assert_true(calls(function) >= count);
}

static const char *query(void) {
  return strcmp(getenv("RILL_TEST_DEVICE"), "cuda") == 0 ? "cuEventQuery" : "hipEventQuery";
}

/* ---- one after the other ---- */

/* The first rank's operation waits for the others, with other communicators released before and after. */
static void operations_of_others_are_awaited(void) {
  begin();
  static const unsigned counts[] = { 1, 100, 1000 };
  const size_t before = driver->live("*");
  for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
    rill_comm released[MAX_RANKS];
    for (unsigned i = 0; i < counts[k]; i++) {
      create_comms(gpus, ranks, NULL, released);
      if (i == 0) assert_comm(sum(lasting[0], 0, 0));
      if (i % 100 == 0) sum_on_all(released, 0, 1);
      release_all(released);
    }
    assert_int_equal(engine->live(), (counts[k] + 1) * ranks);
    wait_for_calls(driver->calls, query(), driver->calls(query()) + 10); /* it has not ended */
    assert_int_equal(engine->live(), (counts[k] + 1) * ranks);
    sum_on_all(lasting, 1, 0);
    engine_has(ranks);
    synchronize_all();
    for (uint32_t i = 0; i < ranks; i++) assert_int_equal(memory[i][0][1], ranks * (ranks + 1) / 2);
    const uint64_t until = now_ns() + TIMEOUT_NS;
    while (driver->live("*") > before + 16 * ranks && now_ns() < until) let_pass_ns(MILLISECOND);
    assert_true(driver->live("*") <= before + 16 * ranks);
  }
}

static void capture_all(const rill_comm comms[], rill_graph_exec execs[]) {
  for (uint32_t i = 0; i < ranks; i++) {
    rill_graph graph;
    assert_ok(rill_stream_capture_begin(streams[i][0], RILL_CAPTURE_THREAD));
    assert_comm(sum(comms[i], i, 0));
    assert_ok(rill_stream_capture_end(streams[i][0], &graph));
    assert_ok(rill_graph_instantiate(graph, &execs[i]));
    assert_ok(rill_graph_release(graph));
  }
}

/* Graphs of a communicator that lives, of one that was released, and one that is destroyed while it runs. */
static void graphs_are_awaited(void) {
  begin();
  rill_comm released[MAX_RANKS], with_graph[MAX_RANKS];
  rill_graph_exec of_lasting[MAX_RANKS], of_released[MAX_RANKS];
  create_comms(gpus, ranks, NULL, released);
  create_comms(gpus, ranks, NULL, with_graph);
  capture_all(lasting, of_lasting);
  capture_all(with_graph, of_released);
  release_all(released);
  for (uint32_t i = 0; i < ranks; i++) assert_ok(rill_graph_launch(of_released[i], streams[i][0]));
  release_all(with_graph);
  synchronize_all();
  for (uint32_t i = 0; i < ranks; i++) assert_ok(rill_graph_exec_release(of_released[i]));
  assert_int_equal(engine->live(), 3 * ranks);
  assert_ok(rill_graph_launch(of_lasting[0], streams[0][0]));
  for (uint32_t i = 0; i < ranks; i++) {
    if (i > 0) assert_ok(rill_graph_launch(of_lasting[i], streams[i][0]));
    assert_int_equal(engine->live(), 3 * ranks);
    assert_ok(rill_graph_exec_release(of_lasting[i]));
  }
  synchronize_all();
  if (forgets_graphs()) {
    assert_int_equal(engine->live(), 3 * ranks);
    return;
  }
  engine_has(ranks);
  assert_ok(rill_stream_capture_begin(streams[0][0], RILL_CAPTURE_THREAD)); /* a capture that is dropped */
  rill_graph graph;
  assert_comm(sum(lasting[0], 0, 0));
  assert_ok(rill_stream_capture_end(streams[0][0], &graph));
  create_comms(gpus, ranks, NULL, released);
  release_all(released);
  assert_int_equal(engine->live(), 2 * ranks);
  assert_ok(rill_graph_release(graph));
  engine_has(ranks);
}

static void use_streams(void) {
  const size_t before = driver->live("*");
  const unsigned rounds = scaled(400);
  for (unsigned k = 0; k < rounds; k++) {
    rill_stream own[MAX_RANKS];
    for (uint32_t i = 0; i < ranks; i++) assert_ok(rill_stream_create(gpus[i], NULL, &own[i]));
    for (uint32_t i = 0; i < ranks; i++) assert_comm(rill_comm_barrier(lasting[i], own[i]));
    for (uint32_t i = 0; i < ranks && k % 2 == 0; i++) assert_ok(rill_stream_synchronize(own[i]));
    for (uint32_t i = 0; i < ranks; i++) assert_ok(rill_stream_release(own[i]));
  }
  const uint64_t until = now_ns() + TIMEOUT_NS;
  while (driver->live("*") > before + 200 + 16 * ranks && now_ns() < until) let_pass_ns(MILLISECOND);
  assert_true(driver->live("*") <= before + 200 + 16 * ranks);
}

/* Streams are not kept: neither by an operation in flight, nor by one that has ended, with and without communicators
 * that wait for a graph. */
static void streams_come_and_go(void) {
  begin();
  rill_comm released[MAX_RANKS];
  rill_graph_exec execs[MAX_RANKS];
  use_streams();
  create_comms(gpus, ranks, NULL, released);
  if (!forgets_graphs()) capture_all(lasting, execs);
  release_all(released);
  if (!forgets_graphs()) use_streams();
  for (uint32_t i = 0; i < ranks && !forgets_graphs(); i++) assert_ok(rill_graph_exec_release(execs[i]));
  engine_has(ranks);
}

/* A graph lives, and an operation of another communicator waits for a rank. */
static void a_process_may_exit_at_any_time(void) {
  begin();
  assert_int_equal(system("\"$RILL_COMM_SELF\" exit"), 0);
}

static int leave_with_graphs(void) {
  rill_comm released[MAX_RANKS];
  rill_graph_exec execs[MAX_RANKS];
  begin();
  create_comms(gpus, ranks, NULL, released);
  capture_all(lasting, execs);
  release_all(released);
  (void)alarm(45); /* graphs are not waited for at exit, which would take a minute */
  return 0;
}

/* ---- at random ---- */

/* Programs that all ranks draw from one seed, each rank on its own thread. */
static struct {
  uint64_t seed;
  rill_comm_id ids[STEPS];
  atomic_uint met; /* ranks that have come to meetings */
} plan;

struct captured {
  rill_graph_exec exec;
  uint32_t stream, slot;
};

struct program {
  uint64_t random, own; /* the same on all ranks; of this rank */
  uint32_t rank, meetings;
  rill_comm slots[SLOTS];
  bool watched[SLOTS];
  struct captured graphs[GRAPHS];
};

static uint32_t draw(uint64_t *random, uint32_t below) {
  *random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (uint32_t)((*random >> 33) % below);
}

static const char *fill_slot(struct program *p, uint32_t slot, uint32_t step) {
  p->watched[slot] = draw(&p->random, 2) == 0;
  if (draw(&p->random, 4) == 0) {
    COMM(rill_comm_split(lasting[p->rank], 0, p->rank, NULL, &p->slots[slot]));
    p->watched[slot] = false;
    return NULL;
  }
  COMM(rill_comm_create(gpus[p->rank], &plan.ids[step], ranks, p->rank,
                        RILL_COMM_OPTIONS(.timeout_ns = p->watched[slot] ? TIMEOUT_NS : 0), &p->slots[slot]));
  return NULL;
}

static const char *empty_slot(struct program *p, uint32_t slot) {
  COMM(rill_comm_release(p->slots[slot]));
  p->slots[slot] = RILL_NULL_COMM;
  return NULL;
}

static const char *drop_graph(struct captured *graph) {
  RUN(rill_graph_exec_release(graph->exec));
  *graph = (struct captured){ .slot = SLOTS };
  return NULL;
}

static const char *capture_one(struct program *p, struct captured *graph, uint32_t slot, uint32_t stream) {
  rill_graph captured;
  const rill_stream on = streams[p->rank][stream];
  RUN(rill_graph_exec_release(graph->exec));
  RUN(rill_stream_capture_begin(on, RILL_CAPTURE_THREAD));
  COMM(sum(p->slots[slot], p->rank, stream));
  RUN(rill_stream_capture_end(on, &captured));
  RUN(rill_graph_instantiate(captured, &graph->exec));
  RUN(rill_graph_release(captured));
  graph->stream = stream;
  graph->slot = slot;
  return NULL;
}

static const char *meet(struct program *p) {
  const uint64_t until = now_ns() + TIMEOUT_NS;
  atomic_fetch_add(&plan.met, 1);
  p->meetings++;
  while (atomic_load(&plan.met) < p->meetings * ranks && now_ns() < until) let_pass_ns(MILLISECOND / 10);
  return atomic_load(&plan.met) < p->meetings * ranks ? "another rank has not come" : NULL;
}

/* Aborts a communicator whose streams do not report it, with operations in flight, and releases it.  Graphs with its
 * operations stay, and are not launched any more.  The ranks meet, because an operation of a rank that has not aborted
 * waits forever for one that has. */
static const char *abort_slot(struct program *p, uint32_t slot) {
  if (p->watched[slot]) return NULL;
  const char *const failure = meet(p);
  if (failure != NULL) return failure;
  for (uint32_t g = 0; g < GRAPHS; g++) {
    if (p->graphs[g].slot == slot) p->graphs[g].slot = SLOTS;
  }
  COMM(rill_comm_abort(p->slots[slot]));
  return empty_slot(p, slot);
}

static const char *sum_grouped(struct program *p, uint32_t slot, uint32_t stream) {
  COMM(rill_comm_group_begin());
  COMM(sum(lasting[p->rank], p->rank, stream));
  COMM(sum(p->slots[slot], p->rank, (stream + 1) % STREAMS));
  COMM(rill_comm_group_end());
  return NULL;
}

static const char *run_step(struct program *p, uint32_t step) {
  const uint32_t kind = draw(&p->random, 16), slot = draw(&p->random, SLOTS), stream = draw(&p->random, STREAMS);
  struct captured *const graph = &p->graphs[draw(&p->random, GRAPHS)];
  if (draw(&p->own, 8) == 0) RUN(rill_stream_synchronize(streams[p->rank][draw(&p->own, STREAMS)]));
  if (p->slots[slot].id == 0) return fill_slot(p, slot, step);
  switch (kind) {
    case 0:
    case 1: return empty_slot(p, slot);
    case 2: return draw(&p->random, 4) == 0 ? abort_slot(p, slot) : NULL;
    case 3: return forgets_graphs() ? NULL : capture_one(p, graph, slot, stream);
    case 4: return drop_graph(graph);
    case 5:
    case 6:
      if (graph->exec.id == 0 || graph->slot == SLOTS) return NULL;
      if (p->slots[graph->slot].id == 0) return drop_graph(graph); /* the communicator must outlive launches */
      RUN(rill_graph_launch(graph->exec, streams[p->rank][graph->stream]));
      return NULL;
    case 7: return sum_grouped(p, slot, stream);
    default: COMM(sum(p->slots[slot], p->rank, stream)); return NULL;
  }
  return NULL;
}

/* In each of the next lines, releases come before, between or after the end of what they belong to. */
static const char *finish(struct program *p) {
  const bool releases_first = draw(&p->own, 2) == 0;
  const char *failure = NULL;
  for (uint32_t i = 0; i < SLOTS && failure == NULL && releases_first; i++) failure = empty_slot(p, i);
  for (uint32_t s = 0; s < STREAMS; s++) {
    COMM(sum(lasting[p->rank], p->rank, s));
    RUN(rill_stream_synchronize(streams[p->rank][s]));
    REQUIRE(memory[p->rank][s][1] == ranks * (ranks + 1) / 2);
    memory[p->rank][s][1] = 0;
  }
  for (uint32_t i = 0; i < GRAPHS && failure == NULL; i++) failure = drop_graph(&p->graphs[i]);
  for (uint32_t i = 0; i < SLOTS && failure == NULL && !releases_first; i++) failure = empty_slot(p, i);
  return failure;
}

static const char *run_program(unsigned rank, void *unused) {
  struct program p = { .random = plan.seed, .own = plan.seed * 31 + rank, .rank = rank };
  const char *failure = NULL;
  (void)unused;
  for (uint32_t i = 0; i < GRAPHS; i++) p.graphs[i].slot = SLOTS;
  for (uint32_t i = 0; i < STEPS && failure == NULL; i++) failure = run_step(&p, i);
  return failure != NULL ? failure : finish(&p);
}

static void programs_of_threads(void) {
  begin();
  const unsigned programs = scaled(60);
  for (unsigned k = 0; k < programs; k++) {
    const char *const seed = getenv("RILL_SEED");
    plan.seed = (seed != NULL ? strtoull(seed, NULL, 10) : 1) * 1000 + k;
    for (uint32_t i = 0; i < STEPS; i++) assert_comm(rill_comm_id_create(gpus[0], &plan.ids[i]));
    atomic_store(&plan.met, 0);
    run_threads(ranks, run_program, NULL);
    if (k % 3 == 2) engine_has(ranks);
  }
  engine_has(ranks);
}

/* ---- one device ---- */

/* A communicator ends while another one has an operation in flight, as soon as no graph has its own operations. */
static void one_device_needs_no_quiet(void) {
  begin();
  rill_comm released[MAX_RANKS];
  rill_graph_exec execs[MAX_RANKS];
  const uint64_t destroyed = engine->calls("ncclCommDestroy");
  driver->pause(0);
  assert_comm(sum(lasting[0], 0, 1));
  create_comms(gpus, ranks, NULL, released);
  release_all(released);
  wait_for_calls(engine->calls, "ncclCommDestroy", destroyed + 1);
  create_comms(gpus, ranks, NULL, released);
  capture_all(released, execs);
  release_all(released);
  assert_int_equal(engine->calls("ncclCommDestroy"), destroyed + 1);
  assert_ok(rill_graph_exec_release(execs[0]));
  wait_for_calls(engine->calls, "ncclCommDestroy", destroyed + 2);
  driver->resume(0);
  engine_has(1);
}

int main(int argc, char **argv) {
  if (argc > 1) return leave_with_graphs();
  if (setenv("RILL_COMM_SELF", argv[0], 1) != 0) return EXIT_FAILURE;
  static const struct test alone[] = { TEST(one_device_needs_no_quiet) };
  static const struct test tests[] = {
    TEST(operations_of_others_are_awaited), TEST(streams_come_and_go), TEST(programs_of_threads),
    TEST(a_process_may_exit_at_any_time),   TEST(graphs_are_awaited),
  };
  const char *const devices = getenv("RILL_FAKE_DEVICES");
  if (devices != NULL && strcmp(devices, "1") == 0) return RUN_ONCE("the end of communicators of one device", alone);
  return RUN_ONCE("the end of communicators", tests);
}
