/* backends/cpu/job.c: how the parts of an operation are distributed to workers. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/queue.h"
#include "backends/cpu/workers_state.h"
#include "core/object/handle.h"
#include "support/testing.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* An operation that records which of its parts were run, and by which worker. */
enum { WORKERS = 4, MOST_RUNS = 1 << 16 };
struct run {
  uint64_t first, end;
  uint32_t worker;
  uint32_t number; /* of runs before it */
};
struct notes {
  uint64_t parts;
  enum cpu_sharing sharing;
  _Atomic uint64_t *before; /* number of unfinished parts of the preceding operation; NULL if there is none */
  _Atomic uint64_t left;
  void (*in_between)(const struct run *run);
  _Atomic bool early; /* some parts were run before the preceding operation was complete */
  _Atomic uint32_t count;
  struct run *runs;
};
struct noting_op {
  struct cpu_op op;
  struct notes *notes;
};

static void note(struct cpu_op *op, uint64_t first, uint64_t end) {
  struct notes *const notes = ((struct noting_op *)op)->notes;
  const struct run run = { first, end, rill__cpu_worker_self()->number, atomic_fetch_add(&notes->count, 1) };
  if (run.number < MOST_RUNS) notes->runs[run.number] = run;
  if (notes->before != NULL && atomic_load(notes->before) != 0) notes->early = true;
  if (notes->in_between != NULL) notes->in_between(&run);
  atomic_fetch_sub(&notes->left, end - first);
}

static bool share(struct cpu_queue *queue, struct cpu_op *op) {
  const struct notes *const notes = ((struct noting_op *)op)->notes;
  return rill__cpu_workers_share(queue, op, notes->parts, notes->sharing, note);
}

static void submit(struct cpu_queue *queue, struct notes *notes) {
  struct noting_op *op = NULL;
  notes->left = notes->parts;
  notes->runs = malloc(MOST_RUNS * sizeof *notes->runs);
  assert_non_null(notes->runs);
  assert_ok(rill__cpu_queue_begin(queue, sizeof *op, &op));
  op->op.run = share;
  op->op.end = NULL;
  op->notes = notes;
  (void)rill__cpu_queue_commit(queue);
}

static int compare(const void *a, const void *b) {
  const struct run *const one = a, *const other = b;
  return one->first < other->first ? -1 : one->first > other->first;
}

/* Checks the model: the ranges that were run cover all parts, each exactly once. */
static void check(struct notes *notes) {
  const uint32_t count = notes->count;
  assert_in_range(count, 1, MOST_RUNS);
  qsort(notes->runs, count, sizeof *notes->runs, compare);
  uint64_t next = 0;
  for (uint32_t i = 0; i < count; i++) {
    assert_int_equal(notes->runs[i].first, next);
    assert_true(notes->runs[i].end > next);
    next = notes->runs[i].end;
  }
  assert_int_equal(next, notes->parts);
  assert_int_equal(notes->left, 0);
  assert_false(notes->early);
  free(notes->runs);
}

static struct cpu_queue *new_queue(void) {
  struct cpu_queue *queue = NULL;
  struct rill__thread *const self = rill__enter("new_queue");
  assert_ok(rill__cpu_queue_new(rill__find(dut.device.id, RILL__DEVICE), 1, &queue));
  rill__leave(&self);
  return queue;
}

static void wait_for(struct cpu_queue *queue) {
  assert_true(rill__cpu_queue_wait(queue, cpu_queue_submitted(queue), RILL__FOREVER, true));
}

/* ---- processor affinity ---- */

/* smallest number of processors of a worker; number of workers that are present */
static _Atomic int allowed, together;

static void count_allowed(const struct run *run) {
  cpu_set_t set;
  (void)run;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) < allowed) allowed = CPU_COUNT(&set);
  atomic_fetch_add(&together, 1);
  while (atomic_load(&together) < WORKERS) sched_yield();
}

/* A worker may run on all processors of the process, even if the thread that started it may not. This must be the first
 * test, because this thread then starts the workers. */
static void workers_are_not_bound(void) {
  struct cpu_queue *queues[WORKERS];
  struct notes all[WORKERS];
  cpu_set_t before, one;
  size_t first = 0;
  assert_ok(rill_device_set_workers(dut.device, WORKERS));
  assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
  while (!CPU_ISSET(first, &before)) first++;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  allowed = CPU_SETSIZE;
  assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
  for (unsigned i = 0; i < WORKERS; i++) {
    queues[i] = new_queue();
    all[i] = (struct notes){ .parts = 1, .in_between = count_allowed };
    submit(queues[i], &all[i]);
  }
  for (unsigned i = 0; i < WORKERS; i++) wait_for(queues[i]);
  assert_int_equal(sched_setaffinity(0, sizeof before, &before), 0);
  assert_int_equal(allowed, CPU_COUNT(&before));
  for (unsigned i = 0; i < WORKERS; i++) {
    check(&all[i]);
    rill__cpu_queue_release(queues[i]);
  }
  assert_ok(rill_device_set_workers(dut.device, 0));
}

/* ---- each part once ---- */

static void nap(const struct run *run) {
  for (uint64_t i = run->first % 64; i > 0; i--) cpu_relax();
}

static uint64_t next_random(uint64_t *seed) {
  *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return *seed >> 33;
}

static uint64_t random_parts(uint64_t *seed) {
  static const uint64_t around[] = { 1, 2, 7, 16, 100, 4096, 70000, UINT64_C(1) << 24, UINT64_C(1) << 40 };
  const uint64_t most = around[next_random(seed) % (sizeof around / sizeof *around)];
  return 1 + (next_random(seed) << 20 ^ next_random(seed)) % (2 * most);
}

/* Runs operations of several queues concurrently, some by range and some in order, while the number of workers changes.
 * Each part of each operation must run exactly once, after the whole preceding operation. */
static void runs_each_part_once(void) {
  enum { QUEUES = 4, OPERATIONS = 12 };
  static struct notes all[QUEUES][OPERATIONS];
  struct cpu_queue *queues[QUEUES];
  uint64_t seed = 31;
  for (unsigned q = 0; q < QUEUES; q++) queues[q] = new_queue();
  for (unsigned round = 0; round < scaled(60); round++) {
    memset(all, 0, sizeof all);
    for (unsigned i = 0; i < QUEUES * OPERATIONS; i++) {
      const unsigned q = i % QUEUES, k = i / QUEUES;
      struct notes *const notes = &all[q][k];
      notes->parts = random_parts(&seed);
      notes->sharing = next_random(&seed) % 4 == 0 ? CPU_IN_ORDER : CPU_BY_PLACE;
      notes->in_between = next_random(&seed) % 2 == 0 ? nap : NULL;
      if (k > 0) notes->before = &all[q][k - 1].left;
      if (next_random(&seed) % 8 == 0)
        assert_ok(rill_device_set_workers(dut.device, 1 + (uint32_t)next_random(&seed) % 9));
      submit(queues[q], notes);
    }
    for (unsigned q = 0; q < QUEUES; q++) wait_for(queues[q]);
    for (unsigned i = 0; i < QUEUES * OPERATIONS; i++) check(&all[i % QUEUES][i / QUEUES]);
  }
  for (unsigned q = 0; q < QUEUES; q++) rill__cpu_queue_release(queues[q]);
  assert_ok(rill_device_set_workers(dut.device, 0));
}

/* ---- distribution of the parts ---- */

enum { EACH = 8 };

static _Atomic uint32_t arrived;

/* Returns whether a run includes this part of its range. */
static bool has(const struct run *run, uint64_t part) {
  return run->first % EACH <= part && part < run->first % EACH + (run->end - run->first);
}

/* In each range, the first part runs long enough for other workers to be woken, and the second part waits until all are
 * present. */
static void meet(const struct run *run) {
  const uint64_t start = cpu_now();
  while (has(run, 0) && cpu_now() - start < 200000) cpu_relax();
  if (!has(run, 1)) return;
  atomic_fetch_add(&arrived, 1);
  while (atomic_load(&arrived) % WORKERS != 0) sched_yield();
}

/* Once all workers are present, the worker with the range's number ran the first parts of each range every time. */
static void workers_run_the_same_parts_every_time(void) {
  struct cpu_queue *const queue = new_queue();
  assert_ok(rill_device_set_workers(dut.device, WORKERS));
  for (unsigned round = 0; round < scaled(20); round++) {
    struct notes notes = { .parts = WORKERS * EACH, .sharing = CPU_BY_PLACE, .in_between = meet };
    submit(queue, &notes);
    wait_for(queue);
    for (uint32_t i = 0; i < notes.count; i++) {
      const struct run *const run = &notes.runs[i];
      if (has(run, 0) || has(run, 1)) assert_int_equal(run->worker, run->first / EACH);
    }
    check(&notes);
  }
  rill__cpu_queue_release(queue);
  assert_ok(rill_device_set_workers(dut.device, 0));
}

/* ---- busy workers ---- */

static _Atomic bool held;

static void hold(const struct run *run) {
  (void)run;
  while (atomic_load(&held)) sched_yield();
}

/* If a worker is busy with another queue, the available workers run its range without delay. */
static void others_run_the_parts_of_a_busy_worker(void) {
  struct cpu_queue *const busy = new_queue(), *const queue = new_queue();
  assert_ok(rill_device_set_workers(dut.device, WORKERS));
  struct notes blocks = { .parts = 1, .sharing = CPU_BY_PLACE, .in_between = hold };
  held = true;
  submit(busy, &blocks);
  for (unsigned round = 0; round < scaled(20); round++) {
    struct notes notes = { .parts = 1000, .sharing = CPU_BY_PLACE, .in_between = nap };
    submit(queue, &notes);
    wait_for(queue);
    check(&notes);
  }
  held = false;
  wait_for(busy);
  check(&blocks);
  rill__cpu_queue_release(busy);
  rill__cpu_queue_release(queue);
  assert_ok(rill_device_set_workers(dut.device, 0));
}

/* ---- many jobs ---- */

enum { MANY = CPU_GATES + 19 };
static _Atomic uint32_t begun;

static void wait_for_all_jobs(const struct run *run) {
  if (run->number == 0) atomic_fetch_add(&begun, 1);
  while (atomic_load(&begun) < MANY) let_pass_ns(100000);
}

/* More jobs run at the same time than workers can join.  Each job waits until all have started. */
static void more_jobs_than_gates(void) {
  static struct notes all[MANY];
  struct cpu_queue *queues[MANY];
  assert_ok(rill_device_set_workers(dut.device, MANY + 10));
  for (unsigned i = 0; i < MANY; i++) queues[i] = new_queue();
  for (unsigned round = 0; round < scaled(3); round++) {
    memset(all, 0, sizeof all);
    begun = 0;
    for (unsigned i = 0; i < MANY; i++) {
      all[i] = (struct notes){ .parts = 2 + i % 9 * i, .in_between = wait_for_all_jobs };
      all[i].sharing = i % 3 == 0 ? CPU_IN_ORDER : CPU_BY_PLACE;
      submit(queues[i], &all[i]);
    }
    for (unsigned i = 0; i < MANY; i++) wait_for(queues[i]);
    for (unsigned i = 0; i < MANY; i++) check(&all[i]);
  }
  for (unsigned i = 0; i < MANY; i++) rill__cpu_queue_release(queues[i]);
  assert_ok(rill_device_set_workers(dut.device, 0));
}

TESTS_ON_EACH_DEVICE("parts of operations on the cpu", TEST(workers_are_not_bound),
                     TEST(workers_run_the_same_parts_every_time), TEST(runs_each_part_once),
                     TEST(others_run_the_parts_of_a_busy_worker), TEST(more_jobs_than_gates))
