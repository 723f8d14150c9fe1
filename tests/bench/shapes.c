/* How fast the cpu device runs many shapes of loops, beside plain C by other compilers: on one thread and on all, in
 * turns in one run.  A line has rill's time and how many times as long plain C takes; the last one has the medians.
 *
 *     shapes [-s] [-b] [-r ROUNDS] [NAME...]
 *
 * -s: small sizes, and the results alone.  -b: rill alone, and how much faster loops are with a useless barrier in
 * them. NAME, the start of a shape's name, takes only these.
 *
 * Times are the least of the rounds, and are not judged: the exit status is 1 if something failed or a result differs.
 */
#include "shapes.h"

#include "shapes_team.h"

#include "shapes.rill.h"
#ifndef SHAPES_WITHOUT_BARRIERS /* compiling them takes as long as all else */
#include "shapes_barriers.rill.h"
#endif

#include <getopt.h>
#include <math.h>
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- the table ---- */

typedef uint16_t half; /* as results are compared */

enum type { TYPE_float, TYPE_double, TYPE_int, TYPE_uint8_t, TYPE_half };

/* By how much a result may differ from plain C's, of 1 more than it; and how many results may differ by more. */
struct tolerance {
  double relative, share;
};
#define EXACT \
  { 0, 0 }
#define ROUNDED \
  { 1e-5, 0 }
#define ORDERED \
  { 1e-4, 0 }
#define MATH \
  { 2e-5, 0 }
#define ANGLES \
  { 2e-4, 0 } /* large ones, of which the last bit counts */
#define HALF \
  { 1e-3, 0 }
#define CHAOTIC \
  { 0, 0.02 } /* what a last bit decides */

typedef rill_status launch_function(rill_stream stream, const struct shape_data *d);

struct shape {
  const char *name;
  size_t small_n, n, k;
  enum type type;
  size_t (*count)(const struct shape_data *d); /* of results */
  struct tolerance tolerance;
  launch_function *launches[2]; /* without and with barriers, or NULL */
  shape_function *functions[2]; /* by gcc and clang, or NULL */
};

enum { THREADS_PER_BLOCK = 256, WARP_SIZE = 32 };

static rill_launch grid(int x, int y, int z, int block_x, int block_y) {
  rill_launch launch = RILL_LAUNCH_INIT;
  launch.grid = (rill_dim3){ (uint32_t)x, (uint32_t)y, (uint32_t)z };
  launch.block = (rill_dim3){ (uint32_t)block_x, (uint32_t)block_y, 1 };
  return launch;
}

#define ARGS(...) __VA_ARGS__
#define GRID grid
#define BLOCKS(count) grid(count, 1, 1, THREADS_PER_BLOCK, 1)
#define THREADS(count) BLOCKS(((count) + THREADS_PER_BLOCK - 1) / THREADS_PER_BLOCK)
#define WARPS(count) THREADS((count)*WARP_SIZE)

#define V (const void *)/* for a parameter of another type */

/* The arguments' names, of which a launch uses some. */
#define NAMES(d)                                                                                 \
  const int n = (int)(d)->n, k = (int)(d)->k;                                                    \
  const float *const x = (d)->x, *const y = (d)->y;                                              \
  const double *const dx = (d)->dx;                                                              \
  const void *const blocks = (d)->blocks, *const b = (d)->b;                                     \
  const int *const index = (d)->index, *const sorted = (d)->sorted, *const starts = (d)->starts; \
  const rill_half *const h = (const void *)(d)->h;                                               \
  const uint8_t *const bytes = (d)->bytes;                                                       \
  void *const z = (d)->z, *const work = (d)->work;                                               \
  (void)n, (void)k, (void)x, (void)y, (void)dx, (void)blocks, (void)b, (void)index;              \
  (void)sorted, (void)starts, (void)h, (void)bytes, (void)z, (void)work

#define LAUNCH(name, launch_, arguments)                                          \
  static rill_status run_##name(rill_stream stream, const struct shape_data *d) { \
    NAMES(d);                                                                     \
    const rill_launch launch = launch_;                                           \
    return name##_launch(stream, &launch, arguments);                             \
  }
#define COUNT(name, results)                               \
  static size_t count_##name(const struct shape_data *d) { \
    NAMES(d);                                              \
    return (size_t)(results);                              \
  }
#ifdef SHAPES_WITHOUT_BARRIERS
#define OPTIONS "sr:"
#define BY_BARRIERS(name) NULL
#define LAUNCH_BARRIERS(name, launch, arguments)
#else
#define OPTIONS "sbr:"
#define BY_BARRIERS(name) run_barriers_##name
#define LAUNCH_BARRIERS(name, launch, arguments) LAUNCH(barriers_##name, ARGS(launch), ARGS(arguments))
#endif
#define SHAPE(name, small_n, n_, k_, type, results, tolerance, launch, arguments) \
  LAUNCH(name, ARGS(launch), ARGS(arguments))                                     \
  COUNT(name, results)
#define LOOP(name, small_n, n_, k_, type, results, tolerance, launch, arguments) \
  LAUNCH(name, ARGS(launch), ARGS(arguments))                                    \
  LAUNCH_BARRIERS(name, ARGS(launch), ARGS(arguments))                           \
  COUNT(name, results)
#include "shapes.def"
#undef SHAPE
#undef LOOP

#define SHAPE(name, ...) extern shape_function gcc_##name, clang_##name;
#define LOOP SHAPE
#include "shapes.def"
#undef SHAPE
#undef LOOP

#ifdef SHAPES_GCC
#define BY_GCC(name) gcc_##name
#else
#define BY_GCC(name) NULL
#endif
#ifdef SHAPES_CLANG
#define BY_CLANG(name) clang_##name
#else
#define BY_CLANG(name) NULL
#endif

static const struct shape shapes[] = {
#define SHAPE(name, small_n, n, k, type, results, tolerance, launch, arguments)                                        \
  {                                                                                                                    \
    #name, small_n, n, k, TYPE_##type, count_##name, tolerance, { run_##name, NULL }, { BY_GCC(name), BY_CLANG(name) } \
  },
#define LOOP(name, small_n, n, k, type, results, tolerance, launch, arguments) \
  { #name,                                                                     \
    small_n,                                                                   \
    n,                                                                         \
    k,                                                                         \
    TYPE_##type,                                                               \
    count_##name,                                                              \
    tolerance,                                                                 \
    { run_##name, BY_BARRIERS(name) },                                         \
    { BY_GCC(name), BY_CLANG(name) } },
#include "shapes.def"
};

/* ---- the data ---- */

static rill_device device;
static rill_stream stream;
static struct shape_data data;

static void check(bool good, const char *what) {
  if (good) return;
  (void)fprintf(stderr, "shapes: %s: %s\n", what, rill_last_error_text());
  exit(1);
}

static void *allocate(size_t size) {
  void *p = NULL;
  check(rill_alloc(device, size, RILL_MEMORY_DEVICE, &p) == RILL_OK, "rill_alloc");
  return p;
}

static uint32_t mix(uint32_t v) {
  v = (v ^ v >> 16) * 0x7feb352du;
  v = (v ^ v >> 15) * 0x846ca68bu;
  return v ^ v >> 16;
}

/* One of a permutation of the numbers below INDEX_RANGE: each step can be undone. */
static int permute(uint32_t v) {
  v = (v * 0x2c1b3c6du) & (INDEX_RANGE - 1);
  v = ((v ^ v >> 9) * 0x297a2d39u) & (INDEX_RANGE - 1);
  return (int)(v ^ v >> 11);
}

static void fill_inputs(void) {
  float *x = allocate(FLOATS * sizeof *x), *y = allocate(FLOATS * sizeof *y);
  double *dx = allocate(FLOATS * sizeof *dx);
  uint16_t *h = allocate(FLOATS * sizeof *h), *b = allocate(FLOATS * sizeof *b);
  int *index = allocate(FLOATS * sizeof *index), *sorted = allocate(FLOATS * sizeof *sorted);
  int *starts = allocate((SPARSE_ROWS + 1) * sizeof *starts);
  uint8_t *bytes = allocate(FLOATS);
  struct q4_block *blocks = allocate(Q4_BLOCKS * sizeof *blocks);
  for (uint32_t i = 0; i < FLOATS; i++) {
    const uint32_t random = mix(i);
    uint32_t bits = 0;
    x[i] = (float)(random >> 8) * 0x1p-23f - 1.0f;
    y[i] = (float)(mix(~i) >> 8) * 0x1p-24f + 0.25f;
    memcpy(&bits, &x[i], sizeof bits);
    dx[i] = (double)x[i];
    h[i] = rill_to_half(x[i]).bits;
    b[i] = (uint16_t)(bits >> 16);
    index[i] = permute(i);
    sorted[i] = (int)(3 * i);
    bytes[i] = (uint8_t)random;
  }
  starts[0] = 0;
  for (uint32_t i = 0; i < SPARSE_ROWS; i++) starts[i + 1] = starts[i] + 8 + (int)(mix(i) % 32);
  for (uint32_t i = 0; i < Q4_BLOCKS; i++) {
    blocks[i].scale = y[i];
    memcpy(blocks[i].pairs, &bytes[sizeof blocks->pairs * i], sizeof blocks->pairs);
  }
  data = (struct shape_data){ 0, 0, x, y, dx, h, b, index, sorted, starts, bytes, blocks, NULL, NULL };
  data.z = allocate(OUTPUT_BYTES);
  data.work = allocate(OUTPUT_BYTES);
  memset(data.z, 0, OUTPUT_BYTES);
  memset(data.work, 0, OUTPUT_BYTES);
}

/* ---- the results ---- */

static size_t size_of(enum type type) {
  static const size_t sizes[] = { sizeof(float), sizeof(double), sizeof(int), sizeof(uint8_t), sizeof(half) };
  return sizes[type];
}

static double element(enum type type, const void *results, size_t i) {
  switch (type) {
    case TYPE_float: return (double)((const float *)results)[i];
    case TYPE_double: return ((const double *)results)[i];
    case TYPE_int: return (double)((const int *)results)[i];
    case TYPE_uint8_t: return (double)((const uint8_t *)results)[i];
    default: return (double)rill_half_to_float(((const rill_half *)results)[i]);
  }
}

/* Whether plain C's results, in `expected`, are those in z. */
static bool agree(const struct shape *shape, const char *side, const void *expected) {
  const size_t count = shape->count(&data);
  size_t wrong = 0, first = 0;
  for (size_t i = count; i-- > 0;) {
    const double a = element(shape->type, expected, i), b = element(shape->type, data.z, i);
    if (fabs(a - b) <= shape->tolerance.relative * (1 + fabs(a))) continue;
    wrong++;
    first = i;
  }
  if ((double)wrong <= shape->tolerance.share * (double)count) return true;
  (void)fprintf(stderr, "shapes: %s: %s: %zu of %zu results differ, the first is number %zu: %.9g, not %.9g\n",
                shape->name, side, wrong, count, first, element(shape->type, data.z, first),
                element(shape->type, expected, first));
  return false;
}

/* ---- the sides ---- */

enum { RILL, BARRIERS, GCC, CLANG, SIDES };
static const char *const side_names[SIDES] = { "rill", "rill with barriers", "gcc", "clang" };

static bool exists(const struct shape *shape, int side) {
  return side < GCC ? shape->launches[side] != NULL : shape->functions[side - GCC] != NULL;
}

static void run(const struct shape *shape, int side, bool all) {
  if (side < GCC) {
    check(shape->launches[side](stream, &data) == RILL_OK, shape->name);
    check(rill_stream_synchronize(stream) == RILL_OK, shape->name);
  } else if (all) {
    team_run(shape->functions[side - GCC], &data);
  } else {
    shape->functions[side - GCC](&data, 0, data.n);
  }
}

/* Compares the results of all sides, each on all threads. */
static bool compare(const struct shape *shape) {
  const size_t bytes = shape->count(&data) * size_of(shape->type);
  void *const expected = malloc(bytes);
  bool good = true, first = true;
  check(expected != NULL && bytes <= OUTPUT_BYTES, "memory for results");
  for (int side = SIDES - 1; side >= 0; side--) {
    if (!exists(shape, side)) continue;
    memset(data.z, 0, bytes);
    run(shape, side, true);
    if (first) memcpy(expected, data.z, bytes);
    else good = agree(shape, side_names[side], expected) && good;
    first = false;
  }
  free(expected);
  return good;
}

/* ---- times ---- */

static double now(void) { /* ns */
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static const double batch_ns = 1e6;

/* ns of one run, after one that wakes the threads and is not counted. */
static double time_run(const struct shape *shape, int side, bool all) {
  int count = 0;
  run(shape, side, all);
  const double start = now();
  double ns = 0;
  while (ns < batch_ns) {
    run(shape, side, all);
    count++;
    ns = now() - start;
  }
  return ns / count;
}

/* The least time of each side; infinite for one that is not to run. */
static void measure(const struct shape *shape, const bool wanted[SIDES], uint32_t threads, int rounds,
                    double best[SIDES]) {
  check(rill_device_set_workers(device, threads) == RILL_OK, "rill_device_set_workers");
  for (int side = 0; side < SIDES; side++) best[side] = INFINITY;
  for (int round = 0; round < rounds; round++) {
    for (int side = 0; side < SIDES; side++) {
      if (!wanted[side] || !exists(shape, side)) continue;
      (void)nanosleep(&(struct timespec){ .tv_nsec = 100000 }, NULL); /* the others' threads fall asleep */
      const double ns = time_run(shape, side, threads != 1);
      if (ns < best[side]) best[side] = ns;
    }
  }
}

/* ---- the lines ---- */

enum { SHAPES = sizeof shapes / sizeof *shapes, COLUMNS = 2 * SIDES };
static double ratios[COLUMNS][SHAPES];
static size_t counts[COLUMNS];

static void print_ratio(int column, double ratio) {
  (void)printf(" %6.2f |", ratio);
  ratios[column][counts[column]++] = ratio;
}

static void print_shape(const struct shape *shape, const bool wanted[SIDES], uint32_t threads, int rounds) {
  double best[2][SIDES];
  measure(shape, wanted, 1, rounds, best[0]);
  measure(shape, wanted, threads, rounds, best[1]);
  (void)printf("| %-17s |", shape->name);
  for (int all = 0; all < 2; all++) {
    (void)printf(" %9.1f |", best[all][RILL] / 1e3);
    for (int side = BARRIERS; side < SIDES; side++) {
      if (!wanted[side]) continue;
      const double ratio = side == BARRIERS ? best[all][RILL] / best[all][side] : best[all][side] / best[all][RILL];
      print_ratio(SIDES * all + side, ratio);
    }
  }
  (void)printf("\n");
  (void)fflush(stdout);
}

static void print_head(const bool wanted[SIDES], uint32_t threads) {
  int columns = 0;
  (void)printf("| %-17s |", "");
  for (uint32_t i = 0; i < 2; i++) {
    (void)printf(" rill, %u: us |", (unsigned)(i > 0 ? threads : 1));
    for (int side = BARRIERS; side < SIDES; side++) {
      if (!wanted[side]) continue;
      (void)printf(" %s, %u |", side_names[side], (unsigned)(i > 0 ? threads : 1));
      columns++;
    }
  }
  (void)printf("\n| --- |");
  for (columns += 2; columns > 0; columns--) (void)printf(" --- |");
  (void)printf("\n");
}

static int compare_numbers(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void print_medians(void) {
  (void)printf("| %-17s |", "median");
  for (int column = 0; column < COLUMNS; column++) {
    if (column % SIDES == RILL) (void)printf(" %9s |", "");
    if (counts[column] == 0) continue;
    qsort(ratios[column], counts[column], sizeof **ratios, compare_numbers);
    (void)printf(" %6.2f |", ratios[column][counts[column] / 2]);
  }
  (void)printf("\n");
}

static bool is_chosen(const char *name, char **prefixes) {
  if (*prefixes == NULL) return true;
  for (; *prefixes != NULL; prefixes++)
    if (strncmp(name, *prefixes, strlen(*prefixes)) == 0) return true;
  return false;
}

int main(int count, char **arguments) {
  bool small = false, barriers = false, good = true;
  int rounds = 10;
  for (int option = 0; (option = getopt(count, arguments, OPTIONS)) != -1;) {
    if (option == 's') small = true;
    else if (option == 'b') barriers = true;
    else if (option == 'r') rounds = atoi(optarg);
    else return 1;
  }
  const bool wanted[SIDES] = { [RILL] = true, [BARRIERS] = barriers, [GCC] = !barriers, [CLANG] = !barriers };
  uint32_t threads = 0;
  check(rill_device_open("cpu", &device) == RILL_OK, "rill_device_open");
  check(rill_stream_create(device, NULL, &stream) == RILL_OK, "rill_stream_create");
  check(rill_device_get_workers(device, &threads) == RILL_OK, "rill_device_get_workers");
  if (!team_start(threads)) return 1;
  fill_inputs();
  if (!small) print_head(wanted, threads);
  for (const struct shape *shape = shapes; shape < shapes + SHAPES; shape++) {
    if (!is_chosen(shape->name, arguments + optind) || (barriers && !exists(shape, BARRIERS))) continue;
    data.n = small ? shape->small_n : shape->n;
    data.k = shape->k;
    if (!compare(shape)) good = false;
    else if (!small) print_shape(shape, wanted, threads, rounds);
  }
  if (!small) print_medians();
  return good ? 0 : 1;
}
