/* sgemm.kernel.cu: c = alpha * a * b + beta * c, of matrices in rows: a is m x k, b is k x n, c is m x n; lda, ldb and
 * ldc are the elements from a row to the next.  If beta is 0, c is not read.
 *
 *   sgemm          tiles of 128 x 128, 8 x 8 elements of c a thread: for large matrices
 *   sgemm_batched  the same, and: a or b may be transposed (a's memory is k x m then, b's n x k); many products, whose
 *                  matrices begin every stride_a, stride_b, stride_c elements; n elements of a bias, unless it is NULL,
 *                  are added to each row of c
 *   sgemm_16x16    tiles of 16 x 16, one element of c a thread: the textbook's
 *
 * Launch: sgemm and sgemm_batched in blocks of 256 threads of one dimension, sgemm_16x16 in blocks of 16 x 16; a block
 * for each tile of c, all in x and row after row of them, product after product (rill_kernels_sgemm,
 * rill_kernels_sgemm_batched, rill_kernels_sgemm_16x16).
 * Limits: m, n > 0, since no launch is of 0 threads; k may be 0; c overlaps neither a nor b nor another c.  Any
 * alignment; matrices and rows that begin at multiples of 16 bytes are fastest.
 * Rounding: an element's products are summed from the first to the last, each product and sum rounded once (fmaf), then
 * alpha * sum, or beta * c and alpha * sum + that (fmaf); with a bias, beta * c + bias and alpha * sum + that (fmaf, both).
 * So all give the same on every device to the last bit, but for the sign of a zero.
 */
#include <rill/device/kernel.h>

#include "wide.h"

/* bias[i], if there is one. */
static __device__ __forceinline__ const float *at(const float *x, ptrdiff_t i) { return x != nullptr ? x + i : x; }

static __device__ __forceinline__ float blend(float alpha, float sum, float beta, const float *c,
                                              const float *bias = nullptr) {
  if (bias != nullptr) return fmaf(alpha, sum, beta == 0.0f ? *bias : fmaf(beta, *c, *bias));
  return beta == 0.0f ? alpha * sum : fmaf(alpha, sum, beta * *c);
}

/* ---- 16 x 16 ---- */

enum { SMALL = 16 };

RILL_KERNEL_BOUNDED(SMALL *SMALL, sgemm_16x16, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                    int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc) {
  __shared__ float tile_a[SMALL][SMALL], tile_b[SMALL][SMALL];
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
  const unsigned across = static_cast<unsigned>((n + SMALL - 1) / SMALL);
  const ptrdiff_t row = static_cast<ptrdiff_t>(blockIdx.x / across) * SMALL + ty;
  const ptrdiff_t column = static_cast<ptrdiff_t>(blockIdx.x % across) * SMALL + tx;
  float sum = 0.0f;
  for (ptrdiff_t first = 0; first < k; first += SMALL) {
    tile_a[ty][tx] = row < m && first + tx < k ? a[row * lda + first + tx] : 0.0f;
    tile_b[ty][tx] = first + ty < k && column < n ? b[(first + ty) * ldb + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < SMALL; i++) sum = fmaf(tile_a[ty][i], tile_b[i][tx], sum);
    __syncthreads();
  }
  if (row < m && column < n) c[row * ldc + column] = blend(alpha, sum, beta, &c[row * ldc + column]);
}

/* ---- 128 x 128 ---- */

#if RILL_ON_CPU
#include "sgemm_cpu.h"

/* One thread computes the tile, in the cache and registers of its processor. */
static inline void store_tile(const matrix &a, const matrix &b, int64_t m, int64_t n, int64_t k, unsigned tile,
                              float alpha, float beta, float *c, int64_t ldc, const float *bias) {
  const unsigned across = static_cast<unsigned>((n + CPU_SIDE - 1) / CPU_SIDE);
  const ptrdiff_t top = static_cast<ptrdiff_t>(tile / across) * CPU_SIDE;
  const ptrdiff_t left = static_cast<ptrdiff_t>(tile % across) * CPU_SIDE;
  const int rows = static_cast<int>(m - top < CPU_SIDE ? m - top : CPU_SIDE);
  const int columns = static_cast<int>(n - left < CPU_SIDE ? n - left : CPU_SIDE);
  const cpu_tile *const done = multiply_on_cpu(a, b, top, left, rows, columns, k);
  for (int i = 0; i < rows; i++) {
    float *const row = c + (top + i) * ldc + left;
    for (int j = 0; j < columns; j++) row[j] = blend(alpha, done->sums[i][j], beta, &row[j], at(bias, left + j));
  }
}

RILL_KERNEL_BOUNDED(256, sgemm, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                    const float *b, int64_t ldb, float beta, float *c, int64_t ldc) {
  if (threadIdx.x != 0) return;
  store_tile({ a, lda, false }, { b, ldb, false }, m, n, k, blockIdx.x, alpha, beta, c, ldc, nullptr);
}

RILL_KERNEL_BOUNDED(256, sgemm_batched, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                    int64_t stride_a, int32_t transpose_a, const float *b, int64_t ldb, int64_t stride_b,
                    int32_t transpose_b, float beta, float *c, int64_t ldc, int64_t stride_c, const float *bias) {
  if (threadIdx.x != 0) return;
  const unsigned tiles = static_cast<unsigned>((n + CPU_SIDE - 1) / CPU_SIDE * ((m + CPU_SIDE - 1) / CPU_SIDE));
  const ptrdiff_t product = static_cast<ptrdiff_t>(blockIdx.x / tiles);
  store_tile({ a + product * stride_a, lda, transpose_a != 0 }, { b + product * stride_b, ldb, transpose_b != 0 }, m, n,
             k, blockIdx.x % tiles, alpha, beta, c + product * stride_c, ldc, bias);
}
#else

/* 32 threads that run together share 32 x 64 elements of the tile, 4 in a column and 8 in a row: each has 4 x 4 of them
 * in each of the four quarters.  What a row of threads reads of shared memory lies together, 128 bytes at a time.  And
 * threads whose numbers differ by 1 share what they read of a, those whose numbers differ by 2 what they read of b:
 * where that is so, NVIDIA GPUs read for twice as many of them at a time. */
enum { SIDE = 128, DEPTH = 8, THREADS = 256, QUARTER_ROWS = 16, QUARTER_COLUMNS = 32 };
/* Of 4 elements each; one more in a row of a's tile, which is written down its columns. */
enum { PITCH_A = SIDE / 4 + 1, PITCH_B = SIDE / 4 };

/* How many of four elements are there, of those from `i` on that are below `end`; ALL if they are and can be loaded
 * at once. */
enum { ALL = 5 };
static __device__ __forceinline__ int count_four(ptrdiff_t i, ptrdiff_t end, bool aligned) {
  const ptrdiff_t count = end - i;
  return count <= 0 ? 0 : count < 4 ? static_cast<int>(count) : aligned ? ALL : 4;
}

static __device__ __forceinline__ wide<float> load_four(const float *p, int count) {
  if (count == ALL) return load_wide(p);
  wide<float> four;
#pragma unroll
  for (int j = 0; j < 4; j++) four.at[j] = j < count ? p[j] : 0.0f;
  return four;
}

static __device__ __forceinline__ void store_four(float *row, ptrdiff_t i, ptrdiff_t end, bool aligned,
                                                  const float *sums, float alpha, float beta,
                                                  const float *bias = nullptr) {
  if (aligned && i + 4 <= end) {
    wide<float> four = {};
    if (beta != 0.0f) four = load_wide(row + i);
    for (int j = 0; j < 4; j++) four.at[j] = blend(alpha, sums[j], beta, &four.at[j], at(bias, i + j));
    store_wide(row + i, four);
    return;
  }
  for (int j = 0; j < 4; j++)
    if (i + j < end) row[i + j] = blend(alpha, sums[j], beta, &row[i + j], at(bias, i + j));
}

/* sums += a column of 8 times a row of 8, for each depth of the tiles. */
template <int PITCH>
static __device__ __forceinline__ void multiply_tiles(const wide<float> (&tile_a)[DEPTH][PITCH_A],
                                                      const wide<float> (&tile_b)[DEPTH][PITCH], int row, int column,
                                                      float (&sums)[8][8]) {
#pragma unroll 2 /* more takes so many registers that one block has a multiprocessor of an H100 to itself */
  for (int d = 0; d < DEPTH; d++) {
    const wide<float> a[2] = { tile_a[d][row / 4], tile_a[d][(row + QUARTER_ROWS) / 4] };
    const wide<float> b[2] = { tile_b[d][column / 4], tile_b[d][(column + QUARTER_COLUMNS) / 4] };
#pragma unroll
    for (int i = 0; i < 8; i++)
#pragma unroll
      for (int j = 0; j < 8; j++) sums[i][j] = fmaf(a[i / 4].at[i % 4], b[j / 4].at[j % 4], sums[i][j]);
  }
}

/* While the threads work on one pair of tiles, the next pair is on its way to registers; there are two pairs, so that
 * it can be written while other threads still read the first. */
RILL_KERNEL_BOUNDED(THREADS, sgemm, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                    const float *b, int64_t ldb, float beta, float *c, int64_t ldc) {
  __shared__ wide<float> tile_a[2][DEPTH][PITCH_A], tile_b[2][DEPTH][PITCH_B];
  const int thread = static_cast<int>(threadIdx.x);
  const unsigned across = static_cast<unsigned>((n + SIDE - 1) / SIDE);
  const ptrdiff_t top = static_cast<ptrdiff_t>(blockIdx.x / across) * SIDE;
  const ptrdiff_t left = static_cast<ptrdiff_t>(blockIdx.x % across) * SIDE;

  /* What the thread loads: four elements of a row of a, and of a row of b.  The last pair of tiles may be smaller. */
  const int a_row = thread / 2, a_depth = thread % 2 * 4, b_depth = thread / 32, b_column = thread % 32 * 4;
  const bool a_aligned = lda % 4 == 0 && are_aligned(a), b_aligned = ldb % 4 == 0 && are_aligned(b);
  const int steps = static_cast<int>((k + DEPTH - 1) / DEPTH);
  const ptrdiff_t last = (k - 1) / DEPTH * DEPTH;
  const int a_count = top + a_row < m ? count_four(a_depth, DEPTH, a_aligned) : 0;
  const int a_last = top + a_row < m ? count_four(last + a_depth, k, a_aligned) : 0;
  const int b_count = count_four(left + b_column, n, b_aligned);
  const int b_last = last + b_depth < k ? b_count : 0;
  const float *a_from = a + (top + a_row) * lda + a_depth;
  const float *b_from = b + b_depth * ldb + left + b_column;
  const ptrdiff_t b_step = DEPTH * ldb;

  /* What it computes. */
  const int row = thread / 64 * 32 + (thread >> 1 & 1) * 4 + (thread >> 4 & 1) * 8;
  const int column = thread / 32 % 2 * 64 + (thread & 1) * 4 + (thread >> 2 & 3) * 8;
  float sums[8][8];
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) sums[i][j] = 0.0f;

  wide<float> next_a = load_four(a_from, steps > 1 ? a_count : a_last);
  wide<float> next_b = load_four(b_from, steps > 1 ? b_count : b_last);
  int current = 0;
  for (int remaining = steps; remaining > 0; remaining--) {
#pragma unroll
    for (int j = 0; j < 4; j++) tile_a[current][a_depth + j][a_row / 4].at[a_row % 4] = next_a.at[j];
    tile_b[current][b_depth][b_column / 4] = next_b;
    __syncthreads();
    if (remaining > 1) {
      a_from += DEPTH;
      b_from += b_step;
      next_a = load_four(a_from, remaining > 2 ? a_count : a_last);
      next_b = load_four(b_from, remaining > 2 ? b_count : b_last);
    }
    multiply_tiles(tile_a[current], tile_b[current], row, column, sums);
    current = 1 - current;
  }

  const bool c_aligned = ldc % 4 == 0 && are_aligned(c);
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const ptrdiff_t r = top + row + i / 4 * QUARTER_ROWS + i % 4;
    if (r < m) {
      store_four(c + r * ldc, left + column, n, c_aligned, &sums[i][0], alpha, beta);
      store_four(c + r * ldc, left + column + QUARTER_COLUMNS, n, c_aligned, &sums[i][4], alpha, beta);
    }
  }
}

/* What a thread loads of a matrix whose rows or columns are `count` sums each: four elements that follow one another in
 * memory, which are of one sum (`along` the products), or of four. */
struct part {
  const float *from;
  ptrdiff_t step;
  int sum, depth; /* where they go in the tile */
  int here, last; /* how many are there, and in the last pair of tiles */
  bool along;
};

static __device__ __forceinline__ part find_part(const float *x, ptrdiff_t ld, bool along, int thread, ptrdiff_t begin,
                                                 ptrdiff_t count, ptrdiff_t k) {
  const bool aligned = ld % 4 == 0 && are_aligned(x);
  const ptrdiff_t last = (k - 1) / DEPTH * DEPTH;
  part p;
  p.along = along;
  p.sum = along ? thread / 2 : thread % 32 * 4;
  p.depth = along ? thread % 2 * 4 : thread / 32;
  p.step = along ? DEPTH : DEPTH * ld;
  if (along) {
    p.from = x + (begin + p.sum) * ld + p.depth;
    p.here = begin + p.sum < count ? count_four(p.depth, DEPTH, aligned) : 0;
    p.last = begin + p.sum < count ? count_four(last + p.depth, k, aligned) : 0;
  } else {
    p.from = x + p.depth * ld + begin + p.sum;
    p.here = count_four(begin + p.sum, count, aligned);
    p.last = last + p.depth < k ? p.here : 0;
  }
  return p;
}

static __device__ __forceinline__ void put_part(const part &p, const wide<float> &four,
                                                wide<float> (&tile)[DEPTH][PITCH_A]) {
  if (p.along) {
#pragma unroll
    for (int j = 0; j < 4; j++) tile[p.depth + j][p.sum / 4].at[p.sum % 4] = four.at[j];
  } else {
    tile[p.depth][p.sum / 4] = four;
  }
}

RILL_KERNEL_BOUNDED(THREADS, sgemm_batched, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                    int64_t stride_a, int32_t transpose_a, const float *b, int64_t ldb, int64_t stride_b,
                    int32_t transpose_b, float beta, float *c, int64_t ldc, int64_t stride_c, const float *bias) {
  __shared__ wide<float> tile_a[2][DEPTH][PITCH_A], tile_b[2][DEPTH][PITCH_A];
  const int thread = static_cast<int>(threadIdx.x);
  const unsigned across = static_cast<unsigned>((n + SIDE - 1) / SIDE);
  const unsigned tiles = across * static_cast<unsigned>((m + SIDE - 1) / SIDE), tile = blockIdx.x % tiles;
  const ptrdiff_t product = static_cast<ptrdiff_t>(blockIdx.x / tiles);
  const ptrdiff_t top = static_cast<ptrdiff_t>(tile / across) * SIDE;
  const ptrdiff_t left = static_cast<ptrdiff_t>(tile % across) * SIDE;
  part of_a = find_part(a + product * stride_a, lda, transpose_a == 0, thread, top, m, k);
  part of_b = find_part(b + product * stride_b, ldb, transpose_b != 0, thread, left, n, k);
  c += product * stride_c;

  const int row = thread / 64 * 32 + (thread >> 1 & 1) * 4 + (thread >> 4 & 1) * 8;
  const int column = thread / 32 % 2 * 64 + (thread & 1) * 4 + (thread >> 2 & 3) * 8;
  float sums[8][8];
#pragma unroll
  for (int i = 0; i < 8; i++)
#pragma unroll
    for (int j = 0; j < 8; j++) sums[i][j] = 0.0f;

  const int steps = static_cast<int>((k + DEPTH - 1) / DEPTH);
  wide<float> next_a = load_four(of_a.from, steps > 1 ? of_a.here : of_a.last);
  wide<float> next_b = load_four(of_b.from, steps > 1 ? of_b.here : of_b.last);
  int current = 0;
  for (int remaining = steps; remaining > 0; remaining--) {
    put_part(of_a, next_a, tile_a[current]);
    put_part(of_b, next_b, tile_b[current]);
    __syncthreads();
    if (remaining > 1) {
      of_a.from += of_a.step;
      of_b.from += of_b.step;
      next_a = load_four(of_a.from, remaining > 2 ? of_a.here : of_a.last);
      next_b = load_four(of_b.from, remaining > 2 ? of_b.here : of_b.last);
    }
    multiply_tiles(tile_a[current], tile_b[current], row, column, sums);
    current = 1 - current;
  }

  const bool c_aligned = ldc % 4 == 0 && are_aligned(c);
#pragma unroll
  for (int i = 0; i < 8; i++) {
    const ptrdiff_t r = top + row + i / 4 * QUARTER_ROWS + i % 4;
    if (r >= m) continue;
    store_four(c + r * ldc, left + column, n, c_aligned, &sums[i][0], alpha, beta, bias);
    store_four(c + r * ldc, left + column + QUARTER_COLUMNS, n, c_aligned, &sums[i][4], alpha, beta, bias);
  }
}
#endif
