/* shapes.h: data of the kernels of shapes.kernel.cu and the functions of shapes_plain.c. */
#ifndef RILL_TESTS_BENCH_SHAPES_H
#define RILL_TESTS_BENCH_SHAPES_H

#include <stddef.h>
#include <stdint.h>

/* How many elements each array has; a table row's sizes must fit. */
enum { FLOATS = 1 << 22, SPARSE_ROWS = 1 << 14, INDEX_RANGE = 1 << 20, Q4_BLOCKS = 1 << 16, OUTPUT_BYTES = 4 * FLOATS };

struct q4_block {
  float scale;
  uint8_t pairs[16];
};

/* Inputs, which all sides share, and outputs.  All arrays but `starts` and `blocks` have FLOATS elements. */
struct shape_data {
  size_t n, k;          /* the row's sizes */
  const float *x, *y;   /* in [-1, 1) and in [0.25, 1.25) */
  const double *dx;     /* as x */
  const uint16_t *h;    /* as x, in half precision */
  const uint16_t *b;    /* as x, in bfloat16 */
  const int *index;     /* each run of INDEX_RANGE is a permutation of the numbers below that */
  const int *sorted;    /* 0, 3, 6... */
  const int *starts;    /* SPARSE_ROWS + 1 places, 8 to 39 apart */
  const uint8_t *bytes; /* any */
  const struct q4_block *blocks;
  void *z, *work;
};

/* Does the units from `first` to `last` of a shape. */
typedef void shape_function(const struct shape_data *d, size_t first, size_t last);

#endif
