/* rill_kernels.h: launch shapes for the kernels of this folder, and functions that make all launches of a reduction, a
 * scan or a matrix product.
 *
 * The headers that rillcc writes declare a typed launch function for each kernel. This header computes the shape:
 *
 *     #include "axpy.rill.h"
 *     #include "rill_kernels.h"
 *     const rill_launch launch = rill_kernels_wide(n, sizeof *x, 1024);
 *     axpy_f32_launch(stream, &launch, n, 2.0f, x, y);
 *
 *     rill_kernels_sum_f32(stream, n, x, total);   // several launches; *total is in device memory
 *
 * If n is 0, or if a grid cannot have as many blocks as n needs, a launch of the shape fails.
 *
 * Pitfall: results are in device memory, and are valid only after the stream's work has finished.
 *
 * Any thread may call these functions at any time.
 */
#ifndef RILL_KERNELS_H
#define RILL_KERNELS_H

#include <rill/rill.h>

RILL_EXTERN_C_BEGIN

/* ---- shapes ---- */

enum {
  RILL_KERNELS_TILE_BYTES = 16384, /* per tile of reduce.kernel.cu and scan.kernel.cu: 256 threads, 64 bytes each */
  RILL_KERNELS_HISTOGRAM_VALUES = 16384 /* minimum per block */
};

/** Returns how many parts of size `part` are needed to hold n, or 0 if `part` is 0. */
static inline uint64_t rill_kernels_parts(uint64_t n, uint64_t part) {
  return part == 0 ? 0 : n / part + (n % part != 0);
}

/** Returns a launch of a * b * c blocks, all in x. grid.x is 0 if their number does not fit in 32 bits. */
static inline rill_launch rill_kernels_grid(uint64_t a, uint64_t b, uint64_t c, uint32_t block_x, uint32_t block_y) {
  rill_launch launch = RILL_LAUNCH_INIT;
  const bool fits = a <= UINT32_MAX && b <= UINT32_MAX && c <= UINT32_MAX && (b == 0 || a <= UINT32_MAX / b) &&
                    (c == 0 || a * b <= UINT32_MAX / c);
  launch.grid.x = fits ? (uint32_t)(a * b * c) : 0;
  launch.block.x = block_x;
  launch.block.y = block_y;
  return launch;
}

/** Returns the shape of fill, axpy and stream_*: one thread for every 16 bytes of n elements. */
static inline rill_launch rill_kernels_wide(uint64_t n, size_t element_size, uint32_t block) {
  return rill_launch_1d(rill_kernels_parts(n, 16 / element_size), block);
}

/** Returns the shape of one pass of sum, min, max, dot or scan. */
static inline rill_launch rill_kernels_tiles(uint64_t n, size_t element_size) {
  return rill_kernels_grid(rill_kernels_parts(n, RILL_KERNELS_TILE_BYTES / element_size), 1, 1, 256, 1);
}

/** Returns the size of the state of scan in bytes, or 0 if scan needs no state. */
static inline uint64_t rill_kernels_scan_state(uint64_t n, size_t element_size) {
  const uint64_t tiles = rill_kernels_parts(n, RILL_KERNELS_TILE_BYTES / element_size);
  const uint64_t groups = rill_kernels_parts(tiles, 32);
  return tiles <= 1 ? 0 : (16 + (tiles + 2 * groups + 1) * (element_size / 4)) * sizeof(uint64_t);
}

/** Returns the shape of stencil5 for blocks of block_x x block_y threads: one thread for every 16 bytes of 2 rows. */
static inline rill_launch rill_kernels_stencil5(uint64_t width, uint64_t height, size_t element_size, uint32_t block_x,
                                                uint32_t block_y) {
  return rill_kernels_grid(rill_kernels_parts(width, 16 / element_size * block_x),
                           rill_kernels_parts(height, 2 * (uint64_t)block_y), 1, block_x, block_y);
}

/** Returns the shape of stencil7 for blocks of block_x x block_y threads: one thread for every 16 bytes of 4 planes. */
static inline rill_launch rill_kernels_stencil7(uint64_t width, uint64_t height, uint64_t depth, size_t element_size,
                                                uint32_t block_x, uint32_t block_y) {
  return rill_kernels_grid(rill_kernels_parts(width, 16 / element_size * block_x), rill_kernels_parts(height, block_y),
                           rill_kernels_parts(depth, 4), block_x, block_y);
}

/** Returns the shape of copy2d for blocks of block_x x block_y threads. */
static inline rill_launch rill_kernels_copy2d(uint64_t width, uint64_t height, uint32_t block_x, uint32_t block_y) {
  return rill_kernels_grid(rill_kernels_parts(width, block_x), rill_kernels_parts(height, 4 * (uint64_t)block_y), 1,
                           block_x, block_y);
}

/** Returns the shape of transpose, where x has `rows` rows and `columns` columns. */
static inline rill_launch rill_kernels_transpose(uint64_t rows, uint64_t columns) {
  return rill_kernels_grid(rill_kernels_parts(columns, 32), rill_kernels_parts(rows, 64), 1, 32, 8);
}

/** Returns the shape of sgemm, where c has m rows and n columns. */
static inline rill_launch rill_kernels_sgemm(uint64_t m, uint64_t n) {
  return rill_kernels_grid(rill_kernels_parts(n, 128), rill_kernels_parts(m, 128), 1, 128, 1);
}

/** Returns the shape of sgemm_batched, where each c has m rows and n columns. */
static inline rill_launch rill_kernels_sgemm_batched(uint64_t m, uint64_t n, uint64_t batch) {
  return rill_kernels_grid(rill_kernels_parts(n, 128), rill_kernels_parts(m, 128), batch, 128, 1);
}

/** Returns the shape of sgemm_batched_64, where each c has m rows and n columns. */
static inline rill_launch rill_kernels_sgemm_batched_64(uint64_t m, uint64_t n, uint64_t batch) {
  return rill_kernels_grid(rill_kernels_parts(n, 64), rill_kernels_parts(m, 64), batch, 64, 1);
}

/** Returns the shape of sgemm_16x16, where c has m rows and n columns. */
static inline rill_launch rill_kernels_sgemm_16x16(uint64_t m, uint64_t n) {
  return rill_kernels_grid(rill_kernels_parts(n, 16), rill_kernels_parts(m, 16), 1, 16, 16);
}

/** Returns the shape of histogram, with its dynamic shared memory, on a device with `compute_units` compute units. */
static inline rill_launch rill_kernels_histogram(uint64_t n, uint32_t bins, uint32_t compute_units) {
  const uint64_t wanted = rill_kernels_parts(n, RILL_KERNELS_HISTOGRAM_VALUES), most = (uint64_t)compute_units * 8;
  rill_launch launch = rill_kernels_grid(wanted < most ? wanted : most, 1, 1, 256, 1);
  launch.shared_mem_bytes = bins > UINT32_MAX / 4 ? UINT32_MAX : bins * 4;
  return launch;
}

/* ---- matrix products ---- */

/** Describes `batch` products of float matrices in row-major order: c = alpha * a * b + beta * c + bias.
 *
 *  a has m rows and k columns, b has k rows and n columns, and c has m rows and n columns. If transpose_a or
 *  transpose_b is set, that matrix is stored in column-major order instead. lda, ldb and ldc are the distances in
 *  elements from one row (in column-major order, one column) to the next. stride_a, stride_b and stride_c are the
 *  distances in elements from one matrix of the batch to the next; if stride_a or stride_b is 0, all products use the
 *  same a or b. bias is NULL or an array of n elements that is added to each row of c in every product. If beta is 0,
 *  c is not read. */
typedef struct rill_kernels_sgemm_problem {
  uint64_t m, n, k, batch;
  float alpha, beta;
  bool transpose_a, transpose_b;
  const float *a, *b, *bias;
  float *c;
  uint64_t lda, ldb, ldc, stride_a, stride_b, stride_c;
} rill_kernels_sgemm_problem;

/** Computes all products of a problem in one launch.
 *
 *  The result is bit-identical on every device, except for the sign of a zero. sgemm.kernel.cu describes the order of
 *  the operations.
 *
 *   Errors:  those of rill_stream_launch_ref, including INVALID_ARGUMENT if m, n or batch is 0. */
RILL_NODISCARD rill_status rill_kernels_sgemm_many(rill_stream stream, const rill_kernels_sgemm_problem *problem);

/* ---- reductions and scans ---- */

/* In all of the following functions, x, y and out are in memory of the stream's device. out has one element for a
 * reduction and n elements for a scan. The passes run in order on the stream and use scratch memory from the device's
 * default pool. If a call fails, some passes may already have been enqueued, and the contents of out are unspecified.
 *
 *   Errors:  those of rill_stream_launch_ref (INVALID_ARGUMENT if n is 0), rill_alloc_async and rill_free_async. */

/** Computes the sum of n elements; integers are summed modulo 2^32.
 *
 *  The order of the additions depends on n alone, so the result is bit-identical on every device. Each pass reduces
 *  up to 4096 elements (double: 2048) to one, with at most 14 roundings (double: 12) per element. */
RILL_NODISCARD rill_status rill_kernels_sum_i32(rill_stream stream, uint64_t n, const int32_t *x, int32_t *out);
RILL_NODISCARD rill_status rill_kernels_sum_f32(rill_stream stream, uint64_t n, const float *x, float *out);
RILL_NODISCARD rill_status rill_kernels_sum_f64(rill_stream stream, uint64_t n, const double *x, double *out);

/** Finds the smallest of n elements. NaNs are ignored; the result is a NaN only if all elements are NaNs. */
RILL_NODISCARD rill_status rill_kernels_min_i32(rill_stream stream, uint64_t n, const int32_t *x, int32_t *out);
RILL_NODISCARD rill_status rill_kernels_min_f32(rill_stream stream, uint64_t n, const float *x, float *out);
RILL_NODISCARD rill_status rill_kernels_min_f64(rill_stream stream, uint64_t n, const double *x, double *out);

/** Finds the largest of n elements. NaNs are ignored; the result is a NaN only if all elements are NaNs. */
RILL_NODISCARD rill_status rill_kernels_max_i32(rill_stream stream, uint64_t n, const int32_t *x, int32_t *out);
RILL_NODISCARD rill_status rill_kernels_max_f32(rill_stream stream, uint64_t n, const float *x, float *out);
RILL_NODISCARD rill_status rill_kernels_max_f64(rill_stream stream, uint64_t n, const double *x, double *out);

/** Computes the sum of x[i] * y[i]. Each product is fused with its addition (fma). The order of the additions and the
 *  number of roundings are those of rill_kernels_sum_*. */
RILL_NODISCARD rill_status rill_kernels_dot_f32(rill_stream stream, uint64_t n, const float *x, const float *y,
                                                float *out);
RILL_NODISCARD rill_status rill_kernels_dot_f64(rill_stream stream, uint64_t n, const double *x, const double *y,
                                                double *out);

/** Computes prefix sums: out[i] = x[0] + ... + x[i], without x[i] if `exclusive`. Integers are summed modulo 2^32. out
 *  may be x.
 *
 *  The result is bit-identical on every device. */
RILL_NODISCARD rill_status rill_kernels_scan_i32(rill_stream stream, uint64_t n, bool exclusive, const int32_t *x,
                                                 int32_t *out);
RILL_NODISCARD rill_status rill_kernels_scan_f32(rill_stream stream, uint64_t n, bool exclusive, const float *x,
                                                 float *out);
RILL_NODISCARD rill_status rill_kernels_scan_f64(rill_stream stream, uint64_t n, bool exclusive, const double *x,
                                                 double *out);

RILL_EXTERN_C_END

#endif
