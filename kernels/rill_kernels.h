/* rill_kernels.h: launching the kernels of this folder: shapes for those of one launch, functions for those of several.
 *
 * rillcc's headers declare a typed launch function for each kernel; the shape that it wants is made here:
 *
 *     #include "axpy.rill.h"
 *     #include "rill_kernels.h"
 *     const rill_launch launch = rill_kernels_wide(n, sizeof *x, 1024);
 *     axpy_f32_launch(stream, &launch, n, 2.0f, x, y);
 *
 *     rill_kernels_sum_f32(stream, n, x, total);   // as many launches as it takes; *total is in device memory
 *
 * A shape of nothing (n 0), and one that no grid has the blocks for, have a grid that a launch refuses. Pitfall:
 * results are in device memory, and there when the stream's work is done.
 */
#ifndef RILL_KERNELS_H
#define RILL_KERNELS_H

#include <rill/rill.h>

RILL_EXTERN_C_BEGIN

/* ---- shapes ---- */

enum {
  RILL_KERNELS_TILE_BYTES = 16384,      /* of reduce.kernel.cu and scan.kernel.cu: 256 threads, 64 bytes each */
  RILL_KERNELS_HISTOGRAM_VALUES = 16384 /* of a block, at least */
};

/** How many parts of that size hold n; 0 if the size is 0. */
static inline uint64_t rill_kernels_parts(uint64_t n, uint64_t part) {
  return part == 0 ? 0 : n / part + (n % part != 0);
}

/** A grid of a x b x c blocks, all of them in x; 0 if there are more than 32 bits count. */
static inline rill_launch rill_kernels_grid(uint64_t a, uint64_t b, uint64_t c, uint32_t block_x, uint32_t block_y) {
  rill_launch launch = RILL_LAUNCH_INIT;
  const bool fits = a <= UINT32_MAX && b <= UINT32_MAX && c <= UINT32_MAX && (b == 0 || a <= UINT32_MAX / b) &&
                    (c == 0 || a * b <= UINT32_MAX / c);
  launch.grid.x = fits ? (uint32_t)(a * b * c) : 0;
  launch.block.x = block_x;
  launch.block.y = block_y;
  return launch;
}

/** fill, axpy, stream_*: a thread for each 16 bytes of n elements. */
static inline rill_launch rill_kernels_wide(uint64_t n, size_t element_size, uint32_t block) {
  return rill_launch_1d(rill_kernels_parts(n, 16 / element_size), block);
}

/** sum, min, max, dot, scan: one pass. */
static inline rill_launch rill_kernels_tiles(uint64_t n, size_t element_size) {
  return rill_kernels_grid(rill_kernels_parts(n, RILL_KERNELS_TILE_BYTES / element_size), 1, 1, 256, 1);
}

/** scan: the bytes of its state, 0 if it needs none. */
static inline uint64_t rill_kernels_scan_state(uint64_t n, size_t element_size) {
  const uint64_t tiles = rill_kernels_parts(n, RILL_KERNELS_TILE_BYTES / element_size);
  const uint64_t groups = rill_kernels_parts(tiles, 32);
  return tiles <= 1 ? 0 : (16 + (tiles + 2 * groups + 1) * (element_size / 4)) * sizeof(uint64_t);
}

/** stencil5, of blocks of that size: a thread for each 16 bytes of 2 rows. */
static inline rill_launch rill_kernels_stencil5(uint64_t width, uint64_t height, size_t element_size, uint32_t block_x,
                                                uint32_t block_y) {
  return rill_kernels_grid(rill_kernels_parts(width, 16 / element_size * block_x),
                           rill_kernels_parts(height, 2 * (uint64_t)block_y), 1, block_x, block_y);
}

/** stencil7, of blocks of that size: a thread for each 16 bytes of 4 planes. */
static inline rill_launch rill_kernels_stencil7(uint64_t width, uint64_t height, uint64_t depth, size_t element_size,
                                                uint32_t block_x, uint32_t block_y) {
  return rill_kernels_grid(rill_kernels_parts(width, 16 / element_size * block_x), rill_kernels_parts(height, block_y),
                           rill_kernels_parts(depth, 4), block_x, block_y);
}

/** copy2d, of blocks of that size. */
static inline rill_launch rill_kernels_copy2d(uint64_t width, uint64_t height, uint32_t block_x, uint32_t block_y) {
  return rill_kernels_grid(rill_kernels_parts(width, block_x), rill_kernels_parts(height, 4 * (uint64_t)block_y), 1,
                           block_x, block_y);
}

/** transpose. */
static inline rill_launch rill_kernels_transpose(uint64_t rows, uint64_t columns) {
  return rill_kernels_grid(rill_kernels_parts(columns, 32), rill_kernels_parts(rows, 64), 1, 32, 8);
}

/** sgemm, where c has m rows and n columns. */
static inline rill_launch rill_kernels_sgemm(uint64_t m, uint64_t n) {
  return rill_kernels_grid(rill_kernels_parts(n, 128), rill_kernels_parts(m, 128), 1, 128, 1);
}

/** sgemm_batched, where each c has m rows and n columns. */
static inline rill_launch rill_kernels_sgemm_batched(uint64_t m, uint64_t n, uint64_t batch) {
  return rill_kernels_grid(rill_kernels_parts(n, 128), rill_kernels_parts(m, 128), batch, 128, 1);
}

/** sgemm_batched_64, where each c has m rows and n columns. */
static inline rill_launch rill_kernels_sgemm_batched_64(uint64_t m, uint64_t n, uint64_t batch) {
  return rill_kernels_grid(rill_kernels_parts(n, 64), rill_kernels_parts(m, 64), batch, 64, 1);
}

/** sgemm_16x16, where c has m rows and n columns. */
static inline rill_launch rill_kernels_sgemm_16x16(uint64_t m, uint64_t n) {
  return rill_kernels_grid(rill_kernels_parts(n, 16), rill_kernels_parts(m, 16), 1, 16, 16);
}

/** histogram, on a device of that many compute units. */
static inline rill_launch rill_kernels_histogram(uint64_t n, uint32_t bins, uint32_t compute_units) {
  const uint64_t wanted = rill_kernels_parts(n, RILL_KERNELS_HISTOGRAM_VALUES), most = (uint64_t)compute_units * 8;
  rill_launch launch = rill_kernels_grid(wanted < most ? wanted : most, 1, 1, 256, 1);
  launch.shared_mem_bytes = bins > UINT32_MAX / 4 ? UINT32_MAX : bins * 4;
  return launch;
}

/* ---- matrix products ---- */

/** Products of float matrices in rows: c = alpha * a * b + beta * c + bias, `batch` times.
 *
 *  a has m rows and k columns, b k rows and n columns, c m rows and n columns; a transposed one is given as its
 * columns, one after the other.  ld... is how many elements lie from one row (column, if transposed) to the next,
 * stride_... from one matrix of the batch to the next; 0 takes the same one for all (of a and b).  bias is NULL or n
 * elements that are added to each row of c, the same ones for all of the batch.  If beta is 0, c is not read. */
typedef struct rill_kernels_sgemm_problem {
  uint64_t m, n, k, batch;
  float alpha, beta;
  bool transpose_a, transpose_b;
  const float *a, *b, *bias;
  float *c;
  uint64_t lda, ldb, ldc, stride_a, stride_b, stride_c;
} rill_kernels_sgemm_problem;

/** Computes them all in one launch.
 *
 *  The same on every device to the last bit, but for the sign of a zero; sgemm.kernel.cu says in which order.
 *
 *   Errors:  those of rill_stream_launch_ref: INVALID_ARGUMENT if m, n or batch is 0.
 *   Threads: any. */
RILL_NODISCARD rill_status rill_kernels_sgemm_many(rill_stream stream, const rill_kernels_sgemm_problem *problem);

/* ---- reductions and scans ---- */

/* What all of these have in common: x, y and out are in memory of the stream's device; out is one element for a
 * reduction, n for a scan.  Passes follow one another on the stream, with scratch memory from the device's default
 * pool.  If a call fails, earlier passes may have been enqueued; out is then not to be used.
 *
 *   Errors:  those of rill_stream_launch_ref (INVALID_ARGUMENT if n is 0), rill_alloc_async and rill_free_async.
 *   Threads: any. */

/** *out = the sum of n elements; of integers modulo 2^32.
 *
 *  The shape of the sum depends on n alone: the same on every device to the last bit.  An element goes through at most
 *  14 (float) or 12 (double) roundings for each factor of 4096 or 2048 in n, begun. */
RILL_NODISCARD rill_status rill_kernels_sum_i32(rill_stream stream, uint64_t n, const int32_t *x, int32_t *out);
RILL_NODISCARD rill_status rill_kernels_sum_f32(rill_stream stream, uint64_t n, const float *x, float *out);
RILL_NODISCARD rill_status rill_kernels_sum_f64(rill_stream stream, uint64_t n, const double *x, double *out);

/** *out = the least of n elements.  NaNs do not count, unless there is nothing else. */
RILL_NODISCARD rill_status rill_kernels_min_i32(rill_stream stream, uint64_t n, const int32_t *x, int32_t *out);
RILL_NODISCARD rill_status rill_kernels_min_f32(rill_stream stream, uint64_t n, const float *x, float *out);
RILL_NODISCARD rill_status rill_kernels_min_f64(rill_stream stream, uint64_t n, const double *x, double *out);

/** *out = the greatest of n elements.  NaNs do not count, unless there is nothing else. */
RILL_NODISCARD rill_status rill_kernels_max_i32(rill_stream stream, uint64_t n, const int32_t *x, int32_t *out);
RILL_NODISCARD rill_status rill_kernels_max_f32(rill_stream stream, uint64_t n, const float *x, float *out);
RILL_NODISCARD rill_status rill_kernels_max_f64(rill_stream stream, uint64_t n, const double *x, double *out);

/** *out = the sum of x[i] * y[i], each product fused into its sum.  Otherwise as the sums. */
RILL_NODISCARD rill_status rill_kernels_dot_f32(rill_stream stream, uint64_t n, const float *x, const float *y,
                                                float *out);
RILL_NODISCARD rill_status rill_kernels_dot_f64(rill_stream stream, uint64_t n, const double *x, const double *y,
                                                double *out);

/** out[i] = x[0] + ... + x[i], or without x[i] if `exclusive`; of integers modulo 2^32.  out may be x.
 *
 *  The same on every device to the last bit. */
RILL_NODISCARD rill_status rill_kernels_scan_i32(rill_stream stream, uint64_t n, bool exclusive, const int32_t *x,
                                                 int32_t *out);
RILL_NODISCARD rill_status rill_kernels_scan_f32(rill_stream stream, uint64_t n, bool exclusive, const float *x,
                                                 float *out);
RILL_NODISCARD rill_status rill_kernels_scan_f64(rill_stream stream, uint64_t n, bool exclusive, const double *x,
                                                 double *out);

RILL_EXTERN_C_END

#endif
