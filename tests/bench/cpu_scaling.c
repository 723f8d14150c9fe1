/* How the cpu device scales: launches, memory and arithmetic with 1, 2, 4 ... workers, up to all processors; with
 * OpenMP beside it on as many threads, if the compiler has it.  The fastest of many rounds.
 *
 *     cpu_scaling [ROUNDS [MOST]]
 *
 *   launch      one block, until the host knows that it is done: microseconds
 *   blocks      65,536 blocks of a thread: nanoseconds for each
 *   streams     as many threads as workers, each with a stream, launches in a row: millions a second, all together
 *   triad       of three arrays of 128 MiB: GB/s.  Touched first by the caller; by a fill of rill; the same in OpenMP
 *   small       a triad of three arrays of 256 KiB for each worker, again and again: GB/s
 *   reduce      with barriers: GB/s
 *   sgemm       512, tiles in shared memory: GFLOP/s; and plain loops in OpenMP
 *
 * Nothing is judged: the exit status is 1 if something failed, else 0.  On a machine with several sockets compare the
 * three columns of triad. */
#include "cpu_kernels.h"

#include "cpu_kernels.rill.h"

#include <pthread.h>
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef BENCH_OPENMP
#include <omp.h>
#endif

enum { SMALL_COUNT = 1 << 15, BLOCKS = 65536, STREAM_LAUNCHES = 20000, MOST_WORKERS = 1024 };

static rill_device device;
static rill_stream stream;
static int rounds = 10;

static double now(void) { /* ns */
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void need(rill_status status, const char *what) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "cpu_scaling: %s: %s\n", what, rill_last_error_text());
  exit(1);
}
#define NEED(call) need((call), #call)

static void *allocate(size_t size) {
  void *p = NULL;
  NEED(rill_alloc(device, size, RILL_MEMORY_DEVICE, &p));
  return p;
}

/* The least time of one of `again` runs that follow each other. */
static double fastest(void (*run)(void *), void *what, int again) {
  double best = 1e300;
  for (int round = 0; round <= rounds; round++) {
    const double start = now();
    for (int i = 0; i < again; i++) run(what);
    NEED(rill_stream_synchronize(stream));
    const double ns = (now() - start) / again;
    if (round > 0 && ns < best) best = ns;
  }
  return best;
}

/* ---- the works ---- */

static void launch_and_wait(void *unused) {
  (void)unused;
  const rill_launch one = rill_launch_1d(1, 1);
  NEED(saxpy_launch(stream, &one, 0, 0.0f, NULL, NULL));
  NEED(rill_stream_synchronize(stream));
}

static void launch_blocks(void *unused) {
  (void)unused;
  const rill_launch many = rill_launch_1d(BLOCKS, 1);
  NEED(saxpy_launch(stream, &many, 0, 0.0f, NULL, NULL));
}

struct arrays {
  int count;
  double *x, *y, *z;
};

static void run_triad(void *what) {
  const struct arrays *const a = what;
  const rill_launch line = rill_launch_1d((uint64_t)a->count, THREADS);
  NEED(triad_launch(stream, &line, a->count, 2.0, a->x, a->y, a->z));
}

static float *x, *y, *c, *sums;

static void run_reduce(void *unused) {
  (void)unused;
  const rill_launch line = rill_launch_1d(COUNT, THREADS);
  NEED(reduce_launch(stream, &line, COUNT, x, sums));
}

static void run_sgemm(void *unused) {
  (void)unused;
  rill_launch square = RILL_LAUNCH_INIT;
  square.grid = (rill_dim3){ ORDER / TILE, ORDER / TILE, 1 };
  square.block = (rill_dim3){ TILE, TILE, 1 };
  NEED(sgemm_launch(stream, &square, ORDER, x, y, c));
}

static void *launch_in_a_row(void *unused) {
  (void)unused;
  rill_stream own;
  const rill_launch one = rill_launch_1d(1, 1);
  NEED(rill_stream_create(device, NULL, &own));
  for (int i = 0; i < STREAM_LAUNCHES; i++) NEED(saxpy_launch(own, &one, 0, 0.0f, NULL, NULL));
  NEED(rill_stream_synchronize(own));
  NEED(rill_stream_release(own));
  return NULL;
}

/* Launches a second of all threads together. */
static double launches_of_threads(uint32_t count) {
  pthread_t threads[MOST_WORKERS];
  double best = 0;
  for (int round = 0; round < 3; round++) {
    uint32_t started = 0;
    const double start = now();
    while (started < count && pthread_create(&threads[started], NULL, launch_in_a_row, NULL) == 0) started++;
    for (uint32_t i = 0; i < started; i++) (void)pthread_join(threads[i], NULL);
    const double rate = (double)(started * STREAM_LAUNCHES) / (now() - start) * 1e9;
    if (rate > best) best = rate;
  }
  return best;
}

/* Pages that nobody has touched are where the first thread is that does. */
static double triad_rate(bool by_rill) {
  struct arrays a = { COUNT, allocate(COUNT * sizeof *a.x), allocate(COUNT * sizeof *a.x),
                      allocate(COUNT * sizeof *a.x) };
  double *const all[] = { a.x, a.y, a.z };
  const double zero = 0;
  for (int i = 0; i < 3; i++) {
    if (by_rill) NEED(rill_fill_async(stream, all[i], &zero, sizeof zero, COUNT));
    else memset(all[i], 0, COUNT * sizeof zero);
  }
  NEED(rill_stream_synchronize(stream));
  const double ns = fastest(run_triad, &a, 1);
  for (int i = 0; i < 3; i++) NEED(rill_free(all[i]));
  return 24.0 * (double)COUNT / ns;
}

static double small_rate(uint32_t workers) {
  const int count = (int)workers * SMALL_COUNT;
  const size_t size = (size_t)count * sizeof(double);
  struct arrays a = { count, allocate(size), allocate(size), allocate(size) };
  double *const all[] = { a.x, a.y, a.z };
  const double zero = 0;
  for (int i = 0; i < 3; i++) NEED(rill_fill_async(stream, all[i], &zero, sizeof zero, (size_t)count));
  const double ns = fastest(run_triad, &a, 50);
  for (int i = 0; i < 3; i++) NEED(rill_free(all[i]));
  return 24.0 * count / ns;
}

/* ---- OpenMP ---- */

#ifdef BENCH_OPENMP
static double openmp_rate(enum work work) {
  static const double amounts[WORKS] = { [TRIAD] = 24.0 * COUNT, [SGEMM] = 2.0 * ORDER * ORDER * ORDER };
  double best = 1e300;
  for (int round = 0; round <= rounds; round++) {
    const double start = now();
    (void)openmp_side.run(work);
    const double ns = now() - start;
    if (round > 0 && ns < best) best = ns;
  }
  return amounts[work] / best;
}

/* Once, on all processors: what it touches first is spread over them. */
static bool openmp_begin(void) { return openmp_side.open() == NULL; }
static void openmp_threads(uint32_t count) { omp_set_num_threads((int)count); }
#else
static double openmp_rate(enum work work) { return (void)work, 0; }
static bool openmp_begin(void) { return true; }
static void openmp_threads(uint32_t count) { (void)count; }
#endif

static void measure(uint32_t workers) {
  NEED(rill_device_set_workers(device, workers));
  openmp_threads(workers);
  (void)printf("%7u %8.2f %8.1f %8.2f", workers, fastest(launch_and_wait, NULL, 200) / 1e3,
               fastest(launch_blocks, NULL, 1) / (double)BLOCKS, launches_of_threads(workers) / 1e6);
  (void)printf(" %8.1f %8.1f %8.1f", triad_rate(false), triad_rate(true), openmp_rate(TRIAD));
  (void)printf(" %8.1f %8.1f", small_rate(workers), 4.0 * (double)COUNT / fastest(run_reduce, NULL, 1));
  (void)printf(" %8.1f %8.1f\n", 2.0 * (double)((int64_t)ORDER * ORDER * ORDER) / fastest(run_sgemm, NULL, 1),
               openmp_rate(SGEMM));
  (void)fflush(stdout);
}

int main(int count, char **arguments) {
  uint32_t most = 0;
  if (count > 1) rounds = atoi(arguments[1]);
  NEED(rill_device_open("cpu", &device));
  NEED(rill_stream_create(device, NULL, &stream));
  NEED(rill_device_get_workers(device, &most));
  if (count > 2) most = (uint32_t)atoi(arguments[2]);
  if (rounds < 1 || most < 1 || most > MOST_WORKERS || !openmp_begin()) return 1;
  x = allocate(COUNT * sizeof *x);
  y = allocate(COUNT * sizeof *y);
  c = allocate((size_t)ORDER * ORDER * sizeof *c);
  sums = allocate(COUNT / THREADS * sizeof *sums);
  for (size_t i = 0; i < COUNT; i++) {
    x[i] = fill_x(i);
    y[i] = fill_y(i);
  }
  (void)printf("%7s %8s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", "", "launch", "blocks", "streams", "triad", "triad",
               "triad", "small", "reduce", "sgemm", "sgemm");
  (void)printf("%7s %8s %8s %8s %8s %8s %8s %8s %8s %8s %8s\n", "workers", "us", "ns", "M/s", "caller", "fill",
               "OpenMP", "GB/s", "GB/s", "GFLOP/s", "OpenMP");
  for (uint32_t workers = 1; workers < most; workers *= 2) measure(workers);
  measure(most);
  return 0;
}
