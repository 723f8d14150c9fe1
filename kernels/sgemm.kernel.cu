/* sgemm.kernel.cu: matrix products c = alpha * a * b + beta * c in row-major order. a is m x k, b is k x n, and c is
 * m x n. lda, ldb and ldc are the distances in elements from one row to the next. If beta is 0, c is not read.
 *
 *   sgemm             Tiles of 128 x 128, with 16 x 8 elements of c per thread: for large matrices.
 *   sgemm_batched     Like sgemm, with these additions. a or b may be transposed (a is then stored as k x m, b as
 *                     n x k). A launch computes several products, whose matrices are stride_a, stride_b and stride_c
 *                     elements apart. Unless bias is NULL, its n elements are added to each row of c.
 *   sgemm_batched_64  Like sgemm_batched, with tiles of 64 x 64 and 8 x 8 elements per thread: for products with so few
 *                     tiles of 128 x 128 that multiprocessors would be idle (rill_kernels_sgemm_many chooses).
 *   sgemm_16x16       Tiles of 16 x 16, with one element of c per thread: the textbook version.
 *
 * Launch: one-dimensional blocks of 128 threads (sgemm_batched_64: 64 threads; sgemm_16x16: blocks of 16 x 16), one for
 * each tile of c. All blocks are in x: the tiles of a product in row-major order, one product after another
 * (rill_kernels_sgemm, rill_kernels_sgemm_batched, rill_kernels_sgemm_batched_64, rill_kernels_sgemm_16x16).
 * Limits: m and n must be at least 1; k may be 0. c must not overlap a, b or another c. Matrices may have any
 * alignment; those whose rows all begin at multiples of 16 bytes are fastest.
 * Rounding: the products of an element are summed from first to last, and each product and its addition are rounded
 * once (fmaf). The result is alpha * sum if beta is 0, else fmaf(alpha, sum, beta * c). With a bias it is
 * fmaf(alpha, sum, bias) if beta is 0, else fmaf(alpha, sum, fmaf(beta, c, bias)). All four kernels compute the same
 * bits on every device, except for the sign of a zero.
 */
#include <rill/device/kernel.h>

#include "wide.h"

/* Returns the address of x[i], or NULL if x is NULL. */
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

/* ---- 128 x 128 and 64 x 64: tiles of SIDE x SIDE, computed by SIDE threads ---- */

/* A matrix whose element (i, j) is x[i * ld + j], or x[j * ld + i] if it is transposed. */
struct matrix {
  const float *x;
  ptrdiff_t ld;
  bool transposed;
};

#if RILL_ON_CPU
#include "sgemm_cpu.h"

/* Computes a tile in one thread, in the cache and registers of its processor. */
template <int SIDE, bool SHORT>
static inline void compute_tile(int thread, const matrix &a, const matrix &b, int64_t m, int64_t n, int64_t k,
                                ptrdiff_t top, ptrdiff_t left, float alpha, float beta, float *c, int64_t ldc,
                                const float *bias) {
  if (thread != 0) return;
  const int rows = static_cast<int>(m - top < SIDE ? m - top : SIDE);
  const int columns = static_cast<int>(n - left < SIDE ? n - left : SIDE);
  const cpu_tile *const done = multiply_on_cpu(a, b, top, left, rows, columns, k);
  for (int i = 0; i < rows; i++) {
    float *const row = c + (top + i) * ldc + left;
    for (int j = 0; j < columns; j++) row[j] = blend(alpha, done->sums[i][j], beta, &row[j], at(bias, left + j));
  }
}
#else

/* A group of 32 threads that run together computes SIDE / 2 x 64 sums. The threads are arranged in 4 rows of 8, and
 * each computes ROWS x COLUMNS sums, in pieces of 4 x 4. A row of threads reads 128 adjacent bytes of shared memory at
 * a time. Threads whose numbers differ only in bit 0 read the same elements of a, and threads whose numbers differ only
 * in bit 1 read the same elements of b. NVIDIA GPUs then serve twice as many threads at a time. */
enum { DEPTH = 8, COLUMNS = 8 };
template <int SIDE> constexpr int ROWS = SIDE / 8;
/* Vectors of 4 elements per row. One extra vector pads the row, because some tiles are written column by column. */
template <int SIDE> constexpr int PITCH = SIDE / 4 + 1;
template <int SIDE> using tile_memory = wide<float>[DEPTH][PITCH<SIDE>];
/* Two tiles of a and two of b, and afterwards 32 rows of sums. */
template <int SIDE> using memory = tile_memory<SIDE>[4];
template <int SIDE> using thread_sums = float[ROWS<SIDE>][COLUMNS];

/* The rows of a or the columns of b that a tile needs; `sums` is their number. Each holds one factor of each of the k
 * products: factor p of row or column s is x[s * ld + p] if `along`, else x[p * ld + s]. */
struct operand {
  const float *x;
  ptrdiff_t ld;
  bool along;
  int sums;
};

template <int SIDE>
static __device__ __forceinline__ operand find_operand(const float *x, ptrdiff_t ld, bool along, ptrdiff_t begin,
                                                       ptrdiff_t count) {
  const int sums = static_cast<int>(count - begin < SIDE ? count - begin : SIDE);
  return { x + (along ? begin * ld : begin), ld, along, sums };
}

/* Returns whether the operand can be loaded in fours, each of which is either completely inside the matrix or
 * completely outside. */
static __device__ __forceinline__ bool are_fours(const operand &o) {
  return o.ld % 4 == 0 && are_aligned(o.x) && (o.along || o.sums % 4 == 0);
}

/* The elements of an operand that a thread loads for a tile. Four are the same factor of adjacent rows (columns) or, if
 * `turned`, adjacent factors of one row (column). Four more are SIDE / 2 rows (columns) further. With FOURS, four are
 * loaded at once. */
struct part {
  const float *from;
  ptrdiff_t each, second, step; /* distance to the next element, to the second four, to the next tile */
  int depth, there, place;      /* of the first element: its factor, the rows or columns left, its place in tile */
  bool turned;
};

template <int SIDE, bool FOURS> static __device__ __forceinline__ part find_part(const operand &o, int thread) {
  part p;
  p.turned = FOURS && o.along;
  const int sum = p.turned ? thread / 2 : o.along ? thread / 8 * 4 : thread % (SIDE / 8) * 4;
  p.depth = p.turned ? thread % 2 * 4 : o.along ? thread % 8 : thread / (SIDE / 8);
  p.there = o.sums - sum;
  p.place = p.depth * PITCH<SIDE> * 4 + sum;
  p.each = o.along ? o.ld : 1;
  p.from = o.x + (o.along ? sum * o.ld + p.depth : p.depth * o.ld + sum);
  p.second = SIDE / 2 * p.each;
  p.step = o.along ? DEPTH : DEPTH * o.ld;
  return p;
}

/* Loads a thread's elements of a tile and advances to the next tile; `left` products remain. Elements outside the
 * matrix become 0. With FOURS, at least DEPTH products must remain, and `fours` keeps its zeros outside the matrix. */
template <int SIDE, bool FOURS>
static __device__ __forceinline__ void load_part(part &p, ptrdiff_t left, wide<float> (&fours)[2]) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    const float *from = p.from + i * p.second;
    const int there = p.there - i * SIDE / 2;
    if (FOURS) {
      if (there > 0) fours[i] = load_wide(from);
    } else {
      const int count = p.depth < left ? there : 0;
#pragma unroll
      for (int j = 0; j < 4; j++, from += p.each) fours[i].at[j] = j < count ? *from : 0.0f;
    }
  }
  p.from += p.step;
}

template <int SIDE>
static __device__ __forceinline__ void put_part(const part &p, const wide<float> (&fours)[2], tile_memory<SIDE> &to) {
#pragma unroll
  for (int i = 0; i < 2; i++) {
    float *const place = &to[0][0].at[0] + p.place + i * SIDE / 2;
    if (!p.turned) store_wide(place, fours[i]);
    else
#pragma unroll
      for (int j = 0; j < 4; j++) place[j * PITCH<SIDE> * 4] = fours[i].at[j];
  }
}

/* Keeps clang for AMD GPUs from interleaving the products of several depths, which would need more registers than a
 * thread has. The sums are passed in pairs because some of these GPUs multiply pairs at once. */
template <int SIDE> static __device__ __forceinline__ void keep_order(thread_sums<SIDE> &sums) {
#ifdef __AMDGCN__
  typedef float pair __attribute__((ext_vector_type(2)));
#pragma unroll
  for (int i = 0; i < ROWS<SIDE>; i++)
#pragma unroll
    for (int j = 0; j < COLUMNS; j += 2) {
      pair two = { sums[i][j], sums[i][j + 1] };
      asm volatile("" : "+v"(two)::"memory");
      sums[i][j] = two.x;
      sums[i][j + 1] = two.y;
    }
#else
  (void)sums;
#endif
}

/* Adds the next k products of a thread's rows and columns to its sums.
 *
 * While the threads multiply one pair of tiles, they load the next pair into registers. Shared memory holds two pairs,
 * so that the next pair can be written while other threads still read the current one. A thread also loads its next
 * factors from shared memory while it multiplies the current ones, even from one pair of tiles to the next. */
template <int SIDE, bool FOURS>
static __device__ __forceinline__ void multiply(int thread, const operand &first, const operand &second, ptrdiff_t k,
                                                int row, int column, memory<SIDE> &tiles, thread_sums<SIDE> &sums) {
  part a = find_part<SIDE, FOURS>(first, thread), b = find_part<SIDE, FOURS>(second, thread);
  wide<float> next_a[2] = {}, next_b[2] = {}, of_a[2][ROWS<SIDE> / 4], of_b[2][COLUMNS / 4];
  load_part<SIDE, FOURS>(a, k, next_a);
  load_part<SIDE, FOURS>(b, k, next_b);
  put_part<SIDE>(a, next_a, tiles[0]);
  put_part<SIDE>(b, next_b, tiles[2]);
  if (k > DEPTH) {
    load_part<SIDE, FOURS>(a, k - DEPTH, next_a);
    load_part<SIDE, FOURS>(b, k - DEPTH, next_b);
  }
  __syncthreads();
#pragma unroll
  for (int g = 0; g < ROWS<SIDE> / 4; g++) of_a[0][g] = tiles[0][0][row / 4 + g * 4];
#pragma unroll
  for (int g = 0; g < COLUMNS / 4; g++) of_b[0][g] = tiles[2][0][column / 4 + g * 8];
  int current = 0;
  for (; k > 0; k -= DEPTH) {
#pragma unroll
    for (int d = 0; d < DEPTH; d++) {
      if (d == DEPTH - 1 && k > DEPTH) {
        current = 1 - current;
        put_part<SIDE>(a, next_a, tiles[current]);
        put_part<SIDE>(b, next_b, tiles[2 + current]);
        if (k > 2 * DEPTH) {
          load_part<SIDE, FOURS>(a, k - 2 * DEPTH, next_a);
          load_part<SIDE, FOURS>(b, k - 2 * DEPTH, next_b);
        }
        __syncthreads();
      }
      const int now = d % 2, next = 1 - now;
#pragma unroll
      for (int g = 0; g < ROWS<SIDE> / 4; g++) of_a[next][g] = tiles[current][(d + 1) % DEPTH][row / 4 + g * 4];
#pragma unroll
      for (int g = 0; g < COLUMNS / 4; g++) of_b[next][g] = tiles[2 + current][(d + 1) % DEPTH][column / 4 + g * 8];
#pragma unroll
      for (int i = 0; i < ROWS<SIDE>; i++)
#pragma unroll
        for (int j = 0; j < COLUMNS; j++)
          sums[i][j] = fmaf(of_a[now][i / 4].at[i % 4], of_b[now][j / 4].at[j % 4], sums[i][j]);
      keep_order<SIDE>(sums);
    }
  }
}

/* Writes 4 rows of a thread's sums to shared memory, as rows `row` to `row` + 3. */
template <int SIDE>
static __device__ __forceinline__ void put_rows(const float (*sums)[COLUMNS], int row, int column, memory<SIDE> &rows) {
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int g = 0; g < COLUMNS / 4; g++) {
      wide<float> four;
#pragma unroll
      for (int j = 0; j < 4; j++) four.at[j] = sums[i][g * 4 + j];
      rows[(row + i) / DEPTH][(row + i) % DEPTH][column / 4 + g * 8] = four;
    }
}

/* Stores one column of 16 rows of sums, starting at row `first`, to c, starting at row `r`. If beta is not 0, reads the
 * old elements of c first. The loop is not unrolled: fetching the instructions for all sums would take longer than a
 * short product. */
template <int SIDE>
static __device__ __forceinline__ void store_rows(const memory<SIDE> &rows, int first, ptrdiff_t r, int64_t m,
                                                  ptrdiff_t column, int64_t n, float alpha, float beta, float *c,
                                                  int64_t ldc, const float *bias) {
  if (column >= n) return;
  const int x = static_cast<int>(column % SIDE), count = static_cast<int>(m - r < 16 ? m - r : 16);
  c += r * ldc + column;
#pragma unroll 1
  for (int i = 0; i < count; i += DEPTH, c += DEPTH * ldc) {
    float old[DEPTH];
#pragma unroll
    for (int j = 0; j < DEPTH; j++) old[j] = beta != 0.0f && i + j < count ? c[j * ldc] : 0.0f;
#pragma unroll
    for (int j = 0; j < DEPTH; j++) {
      const float sum = rows[(first + i) / DEPTH][j][x / 4].at[x % 4];
      if (i + j < count) c[j * ldc] = blend(alpha, sum, beta, &old[j], at(bias, column));
    }
  }
}

/* Stores four elements of a row of c, starting at element i. Elements from `end` on are skipped. */
static __device__ __forceinline__ void store_four(float *row, ptrdiff_t i, ptrdiff_t end, bool aligned,
                                                  const float *sums, float alpha, float beta, const float *bias) {
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

/* Computes a tile. SHORT is for products with a small k; it makes products with a large k 5 % slower. */
template <int SIDE, bool SHORT>
static __device__ __forceinline__ void compute_tile(int thread, const matrix &a, const matrix &b, int64_t m, int64_t n,
                                                    int64_t k, ptrdiff_t top, ptrdiff_t left, float alpha, float beta,
                                                    float *c, int64_t ldc, const float *bias) {
  __shared__ memory<SIDE> tiles;
  operand of_a = find_operand<SIDE>(a.x, a.ld, !a.transposed, top, m);
  operand of_b = find_operand<SIDE>(b.x, b.ld, b.transposed, left, n);
  constexpr int HALF = SIDE / 2, IN_ROW = SIDE / 64; /* IN_ROW: groups of 32 threads side by side */
  const int row = thread / 32 / IN_ROW * HALF + (thread >> 1 & 1) * 4 + (thread >> 4 & 1) * 8;
  const int column = thread / 32 % IN_ROW * 64 + (thread & 1) * 4 + (thread >> 2 & 3) * 8;
  thread_sums<SIDE> sums;
#pragma unroll
  for (int i = 0; i < ROWS<SIDE>; i++)
#pragma unroll
    for (int j = 0; j < COLUMNS; j++) sums[i][j] = 0.0f;
  const ptrdiff_t most = are_fours(of_a) && are_fours(of_b) ? k / DEPTH * DEPTH : 0;
  if (most > 0) multiply<SIDE, true>(thread, of_a, of_b, most, row, column, tiles, sums);
  if (most < k) {
    __syncthreads(); /* before the tiles are overwritten */
    of_a.x += of_a.along ? most : most * of_a.ld;
    of_b.x += of_b.along ? most : most * of_b.ld;
    multiply<SIDE, false>(thread, of_a, of_b, k - most, row, column, tiles, sums);
  }

  if constexpr (!SHORT) {
    const bool c_aligned = ldc % 4 == 0 && are_aligned(c);
#pragma unroll
    for (int i = 0; i < ROWS<SIDE>; i++) {
      const ptrdiff_t r = top + row + i / 4 * 16 + i % 4;
      if (r >= m) continue;
#pragma unroll
      for (int g = 0; g < COLUMNS / 4; g++)
        store_four(c + r * ldc, left + column + g * 32, n, c_aligned, &sums[i][g * 4], alpha, beta, bias);
    }
  } else {
#pragma unroll
    for (int i = 0; i < ROWS<SIDE>; i += 4) {
      __syncthreads();
      put_rows<SIDE>(&sums[i], row / HALF * 16 + row % 16, column, tiles);
      __syncthreads();
#pragma unroll 1
      for (int half = 0; half < 2; half++)
        store_rows<SIDE>(tiles, half * 16, top + half * HALF + i * 4, m, left + thread, n, alpha, beta, c, ldc, bias);
    }
  }
}
#endif

/* RILL_MIN_BLOCKS is chosen so that each thread gets the registers that it needs. */
RILL_KERNEL_BOUNDED(RILL_MIN_BLOCKS(128, 2), sgemm, int64_t m, int64_t n, int64_t k, float alpha, const float *a,
                    int64_t lda, const float *b, int64_t ldb, float beta, float *c, int64_t ldc) {
  const unsigned across = static_cast<unsigned>((n + 127) / 128);
  const ptrdiff_t top = static_cast<ptrdiff_t>(blockIdx.x / across) * 128;
  const ptrdiff_t left = static_cast<ptrdiff_t>(blockIdx.x % across) * 128;
  compute_tile<128, false>(static_cast<int>(threadIdx.x), { a, lda, false }, { b, ldb, false }, m, n, k, top, left,
                           alpha, beta, c, ldc, nullptr);
}

#define SGEMM_BATCHED(NAME, SIDE, BLOCKS)                                                                              \
  RILL_KERNEL_BOUNDED(RILL_MIN_BLOCKS(SIDE, BLOCKS), NAME, int64_t m, int64_t n, int64_t k, float alpha,               \
                      const float *a, int64_t lda, int64_t stride_a, int32_t transpose_a, const float *b, int64_t ldb, \
                      int64_t stride_b, int32_t transpose_b, float beta, float *c, int64_t ldc, int64_t stride_c,      \
                      const float *bias) {                                                                             \
    const unsigned across = static_cast<unsigned>((n + SIDE - 1) / SIDE);                                              \
    const unsigned tiles = across * static_cast<unsigned>((m + SIDE - 1) / SIDE), tile = blockIdx.x % tiles;           \
    const ptrdiff_t product = static_cast<ptrdiff_t>(blockIdx.x / tiles);                                              \
    const ptrdiff_t top = static_cast<ptrdiff_t>(tile / across) * SIDE;                                                \
    const ptrdiff_t left = static_cast<ptrdiff_t>(tile % across) * SIDE;                                               \
    compute_tile<SIDE, true>(static_cast<int>(threadIdx.x), { a + product * stride_a, lda, transpose_a != 0 },         \
                             { b + product * stride_b, ldb, transpose_b != 0 }, m, n, k, top, left, alpha, beta,       \
                             c + product * stride_c, ldc, bias);                                                       \
  }
SGEMM_BATCHED(sgemm_batched, 128, 2)
SGEMM_BATCHED(sgemm_batched_64, 64, 6)
