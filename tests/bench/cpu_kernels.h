/* cpu_kernels.h: the workloads of cpu_kernels.c, and the sides compared with rill. */
#ifndef RILL_TESTS_BENCH_CPU_KERNELS_H
#define RILL_TESTS_BENCH_CPU_KERNELS_H

#include <stdbool.h>
#include <stddef.h>

enum work { SAXPY, TRIAD, REDUCE, SGEMM, WARP, BLOCK, EXP, GELU, COLUMNS, PLAIN_SGEMM, FORCES, FILTER, WORKS };

/* COUNT numbers; the matrices have ORDER rows and columns, but for one of ROWS rows that has COUNT elements; BODIES
 * attract each other; a filter has TAPS weights. */
enum {
  COUNT = 1 << 24,
  THREADS = 256,
  WARP_THREADS = 32,
  ORDER = 512,
  TILE = 16,
  ROWS = 1024,
  BODIES = 4096,
  TAPS = 32,
};

/* A side does each work on arrays of its own that it filled with fill(), and returns when it is done. */
struct side {
  const char *name;
  /* NULL, or why it is not here. */
  const char *(*open)(void);
  bool (*run)(enum work work);
  /* A checksum of the results; equal on all sides except for rounding. */
  double (*check)(enum work work);
};

extern const struct side rill_side;
extern const struct side openmp_side, fast_math_side; /* where the compiler has OpenMP */

static inline float fill_x(size_t i) { return (float)(i % 7) * 0.25f; }
static inline float fill_y(size_t i) { return (float)(i % 5) * 0.5f; }

#endif
