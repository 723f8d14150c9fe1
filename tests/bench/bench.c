#include "bench.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

static double now(void) { /* ns */
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void sleep_ms(long ms) { (void)nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL); }

/* ---- batches in turn ---- */

enum { MAX_ROUNDS = 1000, MIN_ROUNDS = 40, MAX_CALLS = 4096 };
enum { ENOUGH_CALLS = 32 };
static const double short_ns = 20e3, long_ns = 2e6; /* mostly not interrupted */
static const double budget_ns = 0.5e9;

static bool time_batch(bench_batch *batch, void *worker, size_t n, bool (*drain)(void), double *ns) {
  const double start = now();
  if (!batch(worker, n)) return false;
  *ns = now() - start;
  return drain();
}

/* Returns the number of calls in a batch: enough to take long compared with reading the clock, after a warm-up. */
static bool choose_calls(bench_batch *batch, void *worker, bool (*drain)(void), size_t *calls) {
  for (*calls = 1; *calls < MAX_CALLS; *calls *= 2) {
    double least = long_ns;
    for (int i = 0; i < 5; i++) {
      double ns = 0;
      if (!time_batch(batch, worker, *calls, drain, &ns)) return false;
      if (ns < least) least = ns;
    }
    if (least >= long_ns || (least >= short_ns && *calls >= ENOUGH_CALLS)) break;
  }
  return true;
}

static int compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static struct bench_time summary(double *samples, size_t count) {
  qsort(samples, count, sizeof *samples, compare);
  return (struct bench_time){ samples[0], samples[count / 2] };
}

bool bench_measure(const struct bench_side *const sides[BENCH_SIDES], void *const workers[BENCH_SIDES],
                   enum bench_operation operation, bool (*drain)(void), struct bench_time times[BENCH_SIDES],
                   size_t *failed) {
  static double samples[BENCH_SIDES][MAX_ROUNDS];
  bench_batch *batches[BENCH_SIDES];
  const bool from_idle = operation == BENCH_idle_round_trip;
  const double parts = operation == BENCH_hundred ? 100 : 1;
  size_t calls = 1, rounds = 0;
  for (size_t i = 0; i < BENCH_SIDES; i++) {
    times[i] = (struct bench_time){ -1, -1 };
    const bool there = sides[i] != NULL && (sides[i]->lacks == NULL || !sides[i]->lacks(operation));
    batches[i] = there ? sides[i]->batches[operation] : NULL;
  }
  for (size_t i = 0; i < BENCH_SIDES; i++) {
    size_t least = calls;
    *failed = i;
    if (batches[i] == NULL) continue;
    if (!from_idle && !choose_calls(batches[i], workers[i], drain, &least)) return false;
    if (least > calls) calls = least;
  }
  const double start = now();
  while (rounds < MAX_ROUNDS && (rounds < MIN_ROUNDS || now() - start < budget_ns)) {
    for (size_t k = 0; k < BENCH_SIDES; k++) {
      const size_t i = (k + rounds) % BENCH_SIDES; /* no side is always the first */
      *failed = i;
      if (batches[i] == NULL) continue;
      if (from_idle) sleep_ms(1);
      if (!time_batch(batches[i], workers[i], calls, drain, &samples[i][rounds])) return false;
      samples[i][rounds] /= (double)calls * parts;
    }
    rounds++;
  }
  for (size_t i = 0; i < BENCH_SIDES; i++) {
    if (batches[i] != NULL) times[i] = summary(samples[i], rounds);
  }
  return true;
}

/* ---- threads ---- */

enum { THREAD_CALLS = 64, THREAD_MS = 40 };

struct crowd {
  const struct bench_side *side;
  bench_batch *batch;
  pthread_barrier_t barrier;
  _Atomic bool stop, failed;
};

struct member {
  struct crowd *crowd;
  void *worker;
  pthread_t thread;
  double start, end;
  size_t calls;
};

static void *run_member(void *p) {
  struct member *me = p;
  struct crowd *crowd = me->crowd;
  if (!crowd->side->enter() || !crowd->batch(me->worker, THREAD_CALLS)) atomic_store(&crowd->failed, true);
  (void)pthread_barrier_wait(&crowd->barrier);
  me->start = now();
  while (!atomic_load(&crowd->stop) && !atomic_load(&crowd->failed)) {
    if (!crowd->batch(me->worker, THREAD_CALLS)) atomic_store(&crowd->failed, true);
    me->calls += THREAD_CALLS;
  }
  me->end = now();
  return NULL;
}

bool bench_threads(const struct bench_side *side, void *const workers[BENCH_THREADS], enum bench_operation operation,
                   double *per_second) {
  struct crowd crowd = { .side = side, .batch = side->batches[operation] };
  struct member members[BENCH_THREADS] = { 0 };
  size_t started = 0, calls = 0;
  double start = 0, end = 0;
  (void)pthread_barrier_init(&crowd.barrier, NULL, BENCH_THREADS + 1);
  for (; started < BENCH_THREADS; started++) {
    members[started] = (struct member){ .crowd = &crowd, .worker = workers[started] };
    if (pthread_create(&members[started].thread, NULL, run_member, &members[started]) != 0) abort();
  }
  (void)pthread_barrier_wait(&crowd.barrier);
  sleep_ms(THREAD_MS);
  atomic_store(&crowd.stop, true);
  for (size_t i = 0; i < BENCH_THREADS; i++) {
    (void)pthread_join(members[i].thread, NULL);
    if (i == 0 || members[i].start < start) start = members[i].start;
    if (i == 0 || members[i].end > end) end = members[i].end;
    calls += members[i].calls;
  }
  (void)pthread_barrier_destroy(&crowd.barrier);
  *per_second = (double)calls / (end - start) * 1e9;
  return !atomic_load(&crowd.failed);
}
