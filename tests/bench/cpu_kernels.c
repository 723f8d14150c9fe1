/* How fast the cpu device runs kernels: the same work by rill and by plain loops with OpenMP, if the compiler has it,
 * once as C has it and once with -ffast-math, in turns in one run; GB/s or GFLOP/s, the median of many rounds.
 *
 *     cpu_kernels [ROUNDS [WORK]]
 *
 * WORK, the start of a line's name, takes only these.
 *
 * Nothing is judged: the exit status is 1 if something failed or the sides disagree about a result, else 0. */
#include "cpu_kernels.h"

#include "cpu_kernels.rill.h"

#include <math.h>
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct {
  const char *name, *unit;
  double amount; /* bytes or operations */
} works[WORKS] = {
  [SAXPY] = { "saxpy, 256 threads a block", "GB/s", 12.0 * (double)COUNT },
  [TRIAD] = { "triad fp64, 256 threads a block", "GB/s", 24.0 * (double)COUNT },
  [REDUCE] = { "reduction with barriers, 256 threads a block", "GB/s", 4.0 * (double)COUNT },
  [SGEMM] = { "sgemm 512, tiles of 16 x 16 in shared memory", "GFLOP/s",
              2.0 * (double)ORDER *(double)ORDER *(double)ORDER },
  [WARP] = { "sums of warps by shuffles", "GB/s", 4.0 * (double)COUNT },
  [BLOCK] = { "rill_block_sum, 256 threads a block", "GB/s", 4.0 * (double)COUNT },
  [EXP] = { "expf", "GB/s", 8.0 * (double)COUNT },
  [GELU] = { "GELU by tanhf", "GB/s", 8.0 * (double)COUNT },
  [COLUMNS] = { "row by matrix, one thread per column", "GFLOP/s", 2.0 * (double)COUNT },
  [PLAIN_SGEMM] = { "sgemm 512, one thread per element", "GFLOP/s", 2.0 * (double)ORDER *(double)ORDER *(double)ORDER },
  [FORCES] = { "forces between 4096 bodies", "G/s", (double)BODIES *(double)BODIES },
  [FILTER] = { "filter of 32 weights", "GFLOP/s", 2.0 * TAPS *(double)(COUNT - TAPS) },
};

static double now(void) { /* ns */
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* ---- rill ---- */

static rill_device device;
static rill_stream stream;
static float *x, *y, *z, *c, *sums;
static double *dx, *dy, *dz;

static void *allocate(size_t size) {
  void *p = NULL;
  return rill_alloc(device, size, RILL_MEMORY_DEVICE, &p) == RILL_OK ? p : NULL;
}

static const char *open_rill(void) {
  if (rill_device_open("cpu", &device) != RILL_OK || rill_stream_create(device, NULL, &stream) != RILL_OK)
    return rill_last_error_text();
  x = allocate(COUNT * sizeof *x);
  y = allocate(COUNT * sizeof *y);
  z = allocate(COUNT * sizeof *z);
  c = allocate((size_t)ORDER * ORDER * sizeof *c);
  sums = allocate(COUNT / WARP_THREADS * sizeof *sums);
  dx = allocate(COUNT * sizeof *dx);
  dy = allocate(COUNT * sizeof *dy);
  dz = allocate(COUNT * sizeof *dz);
  if (x == NULL || y == NULL || z == NULL || c == NULL || sums == NULL || dx == NULL || dy == NULL || dz == NULL)
    return rill_last_error_text();
  for (size_t i = 0; i < COUNT; i++) {
    x[i] = fill_x(i);
    y[i] = fill_y(i);
    z[i] = 0;
    dx[i] = (double)fill_x(i);
    dy[i] = (double)fill_y(i);
    dz[i] = 0;
  }
  return NULL;
}

static bool run_rill(enum work work) {
  const rill_launch line = rill_launch_1d(COUNT, THREADS);
  rill_launch square = RILL_LAUNCH_INIT;
  square.grid = (rill_dim3){ ORDER / TILE, ORDER / TILE, 1 };
  square.block = (rill_dim3){ TILE, TILE, 1 };
  const rill_launch across = rill_launch_1d(COUNT / ROWS, THREADS), bodies = rill_launch_1d(BODIES, THREADS);
  rill_launch rows = square;
  rows.grid = (rill_dim3){ ORDER / THREADS, ORDER, 1 };
  rows.block = (rill_dim3){ THREADS, 1, 1 };
  rill_status status = RILL_OK;
  switch (work) {
    case SAXPY: status = saxpy_launch(stream, &line, COUNT, 0.0f, x, y); break;
    case TRIAD: status = triad_launch(stream, &line, COUNT, 2.0, dx, dy, dz); break;
    case REDUCE: status = reduce_launch(stream, &line, COUNT, x, sums); break;
    case WARP: status = warp_sum_launch(stream, &line, COUNT, x, sums); break;
    case BLOCK: status = block_sum_launch(stream, &line, COUNT, x, sums); break;
    case EXP: status = exponential_launch(stream, &line, COUNT, x, z); break;
    case COLUMNS: status = columns_launch(stream, &across, ROWS, COUNT / ROWS, y, x, z); break;
    case PLAIN_SGEMM: status = plain_sgemm_launch(stream, &rows, ORDER, x, y, c); break;
    case FORCES: status = forces_launch(stream, &bodies, BODIES, x, y, sums); break;
    case FILTER: status = filter_launch(stream, &line, COUNT, TAPS, x, y, z); break;
    case GELU: status = gelu_launch(stream, &line, COUNT, x, z); break;
    default: status = sgemm_launch(stream, &square, ORDER, x, y, c); break;
  }
  return status == RILL_OK && rill_stream_synchronize(stream) == RILL_OK;
}

static double check_rill(enum work work) {
  double total = 0;
  for (size_t i = 0; work == SAXPY && i < COUNT; i++) total += (double)y[i];
  for (size_t i = 0; work == TRIAD && i < COUNT; i++) total += dz[i];
  for (size_t i = 0; (work == REDUCE || work == BLOCK) && i < COUNT / THREADS; i++) total += (double)sums[i];
  for (size_t i = 0; work == WARP && i < COUNT / WARP_THREADS; i++) total += (double)sums[i];
  for (size_t i = 0; (work == EXP || work == GELU) && i < COUNT; i++) total += (double)z[i];
  for (size_t i = 0; work == COLUMNS && i < COUNT / ROWS; i++) total += (double)z[i];
  for (size_t i = 0; work == FORCES && i < BODIES; i++) total += (double)sums[i];
  for (size_t i = 0; work == FILTER && i < COUNT - TAPS; i++) total += (double)z[i];
  for (size_t i = 0; (work == SGEMM || work == PLAIN_SGEMM) && i < (size_t)ORDER * ORDER; i++) total += (double)c[i];
  return total;
}

const struct side rill_side = { "rill", open_rill, run_rill, check_rill };

/* ---- all ---- */

enum { SIDES = 3, MOST_ROUNDS = 1000 };
static const struct side *sides[SIDES] = {
  &rill_side,
#ifdef BENCH_OPENMP
  &openmp_side,
  &fast_math_side,
#endif
};

/* Threads of OpenMP go on looking for work for some 20 ms, on the processors that the next side is to use: first the
 * benchmark waits until they sleep, then an uncounted run wakes the side's own threads. */
static bool run(const struct side *side, enum work work, double *time) {
  (void)nanosleep(&(struct timespec){ .tv_nsec = 40000000 }, NULL);
  for (int i = 0; i < 2; i++) {
    const double start = now();
    if (!side->run(work)) return false;
    *time = now() - start;
  }
  return true;
}

static int compare(const void *a, const void *b) {
  const double first = *(const double *)a, second = *(const double *)b;
  return (first > second) - (first < second);
}

static double median(double *times, int count) {
  qsort(times, (size_t)count, sizeof *times, compare);
  return (times[(count - 1) / 2] + times[count / 2]) / 2;
}

static bool measure(enum work work, int rounds) {
  static double times[SIDES][MOST_ROUNDS];
  double typical[SIDES] = { 0 }, results[SIDES] = { 0 };
  for (int round = 0; round < rounds; round++) {
    for (int k = 0; k < SIDES; k++) {
      const int i = (k + round) % SIDES; /* none is always the first */
      if (sides[i] == NULL || run(sides[i], work, &times[i][round])) continue;
      (void)fprintf(stderr, "cpu_kernels: %s: %s failed\n", works[work].name, sides[i]->name);
      return false;
    }
  }
  (void)printf("%-46s", works[work].name);
  bool agree = true;
  for (int i = 0; i < SIDES; i++) {
    if (sides[i] == NULL) {
      (void)printf(" %9s", "-");
      continue;
    }
    typical[i] = median(times[i], rounds);
    results[i] = sides[i]->check(work);
    agree = agree && fabs(results[i] - results[0]) <= 1e-3 * fabs(results[0]);
    (void)printf(" %9.2f", works[work].amount / typical[i]);
  }
  (void)printf(" %-8s", works[work].unit);
  for (int i = 1; i < SIDES; i++) {
    if (sides[i] != NULL) (void)printf(" %9.2f", typical[i] / typical[0]);
    else (void)printf(" %9s", "-");
  }
  (void)printf("\n");
  if (!agree)
    (void)fprintf(stderr, "cpu_kernels: %s: the results are %g, %g, %g\n", works[work].name, results[0], results[1],
                  results[2]);
  return agree;
}

int main(int count, char **arguments) {
  const int rounds = count > 1 ? atoi(arguments[1]) : 15;
  if (rounds < 1 || rounds > MOST_ROUNDS) {
    (void)fprintf(stderr, "cpu_kernels: %s rounds; 1 to %d are possible\n", arguments[1], MOST_ROUNDS);
    return 2;
  }
  for (int i = 0; i < SIDES; i++) {
    const char *why = sides[i] != NULL ? sides[i]->open() : "the compiler has no OpenMP";
    if (why == NULL) continue;
    (void)printf("# %s: %s\n", sides[i] != NULL ? sides[i]->name : i == 1 ? "OpenMP" : "fast math", why);
    if (i == 0) return 1;
    sides[i] = NULL;
  }
  (void)printf("%-46s %9s %9s %9s %-8s %9s %9s\n", "", "rill", "OpenMP", "fast math", "", "/ OpenMP", "/ fast");
  bool good = true;
  const char *const only = count > 2 ? arguments[2] : "";
  for (enum work work = 0; work < WORKS; work++)
    if (strncmp(works[work].name, only, strlen(only)) == 0) good = measure(work, rounds) && good;
  return good ? 0 : 1;
}
