/* reduce.kernel.cu: one pass of a sum, a minimum, a maximum or a dot product, with one result per tile.
 *
 *   sum_i32 sum_f32 sum_f64   out[tile] = the sum of x[i]; integers are summed modulo 2^32
 *   min_i32 min_f32 min_f64   out[tile] = the smallest x[i]; NaNs are ignored, unless all x[i] are NaNs
 *   max_i32 max_f32 max_f64   out[tile] = the largest x[i]; NaNs are ignored, unless all x[i] are NaNs
 *   dot_f32 dot_f64           out[tile] = the sum of x[i] * y[i]
 *
 * A tile is 64 bytes of x for each of 256 threads: 4096 elements of 4 bytes, or 2048 elements of 8 bytes. The last tile
 * may be shorter. rill_kernels.h has functions that launch passes until one result is left.
 *
 * Launch: one block of 256 threads for each tile (rill_kernels_tiles).
 * Limits: n must be at least 1. Arrays may have any alignment; multiples of 16 bytes are fastest. out must not be x or
 * y.
 * Rounding: the order of the additions depends on n alone (fold_tile of wide.h, then a tree of 256), and products are
 * fused with their additions (fma), so the result is bit-identical on every device. Within a tile, an element goes
 * through at most 3 + 3 + 8 rounded additions (4 bytes) or 3 + 1 + 8 (8 bytes).
 */
#include <rill/device/kernel.h>

#include "wide.h"

struct plus {
  __device__ __forceinline__ int operator()(int a, int b) const {
    return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b));
  }
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
  __device__ __forceinline__ double operator()(double a, double b) const { return a + b; }
  __device__ __forceinline__ float operator()(float sum, float x, float y) const { return fmaf(x, y, sum); }
  __device__ __forceinline__ double operator()(double sum, double x, double y) const { return fma(x, y, sum); }
};

/* `a != a` is true for a NaN. */
struct lesser {
  template <class T> __device__ __forceinline__ T operator()(T a, T b) const { return b < a || a != a ? b : a; }
};
struct greater {
  template <class T> __device__ __forceinline__ T operator()(T a, T b) const { return a < b || a != a ? b : a; }
};

#if RILL_ON_CPU
/* The first thread of a block does the work of all threads, in the same order as on a GPU. The first loop folds the
 * rounds, for all threads and elements in memory order. The test for the first thread comes before any load, so that
 * no loop over the other threads remains. */
template <class T, class Operation, class... In>
static inline void reduce_elements(ptrdiff_t n, T start, Operation operation, T *out, const In *...in) {
  constexpr int COUNT = wide<T>::COUNT, ROUND = TILE_THREADS * COUNT;
  alignas(64) T results[ROUND], part[TILE_THREADS];
  if (TILE<T> <= n) {
    for (int i = 0; i < ROUND; i++) {
      T result = start;
      for (int r = 0; r < TILE_ROUNDS; r++) result = operation(result, in[r * ROUND + i]...);
      results[i] = result;
    }
  } else {
    for (int i = 0; i < ROUND; i++) results[i] = start;
    for (int i = 0; i < n; i++) results[i % ROUND] = operation(results[i % ROUND], in[i]...);
  }
  for (int thread = 0; thread < TILE_THREADS; thread++) {
    part[thread] = results[thread * COUNT];
    for (int k = 1; k < COUNT; k++) part[thread] = operation(part[thread], results[thread * COUNT + k]);
  }
  for (int half = TILE_THREADS / 2; half > 0; half /= 2)
    for (int thread = 0; thread < half; thread++) part[thread] = operation(part[thread], part[thread + half]);
  out[blockIdx.x] = part[0];
}

/* Passes pointers to the tile, so that compilers can see that the elements are adjacent in memory. */
template <class T, class Operation, class... In>
static inline void reduce_tile(ptrdiff_t base, ptrdiff_t n, T start, Operation operation, T *out, const In *...in) {
  if (threadIdx.x != 0) return;
  reduce_elements(n - base, start, operation, out, (in + base)...);
}

/* If the result so far is a number, it stays a number whatever the next element is. If the first element of a tile is a
 * number, no further NaN test is needed, and each step is one instruction. */
struct lesser_number {
  template <class T> T operator()(T a, T b) const { return b < a ? b : a; }
};
struct greater_number {
  template <class T> T operator()(T a, T b) const { return a < b ? b : a; }
};
template <class T, class OfNumbers, class Operation>
static inline void find_extreme(ptrdiff_t base, ptrdiff_t n, OfNumbers of_numbers, Operation operation, T *out,
                                const T *x) {
  if (threadIdx.x != 0) return;
  if (x[base] == x[base]) reduce_tile(base, n, x[base], of_numbers, out, x);
  else reduce_tile(base, n, x[base], operation, out, x);
}
#define LEAST(T) find_extreme(BASE(T), n, lesser_number(), lesser(), out, x)
#define GREATEST(T) find_extreme(BASE(T), n, greater_number(), greater(), out, x)
#else
template <class T, class Operation, class... In>
static __device__ __forceinline__ void reduce_tile(ptrdiff_t base, ptrdiff_t n, T start, Operation operation, T *out,
                                                   const In *...in) {
  __shared__ T part[TILE_THREADS];
  const int thread = static_cast<int>(threadIdx.x);
  part[thread] = fold_tile(base, thread, n, start, operation, operation, in...);
  __syncthreads();
  for (int half = TILE_THREADS / 2; half > 0; half /= 2) {
    if (thread < half) part[thread] = operation(part[thread], part[thread + half]);
    __syncthreads();
  }
  if (thread == 0) out[blockIdx.x] = part[0];
}
#define LEAST(T) reduce_tile(BASE(T), n, x[BASE(T)], lesser(), out, x)
#define GREATEST(T) reduce_tile(BASE(T), n, x[BASE(T)], greater(), out, x)
#endif

#define BASE(T) (static_cast<ptrdiff_t>(blockIdx.x) * TILE<T>)

#define KERNELS(SUFFIX, T)                                                         \
  RILL_KERNEL_BOUNDED(TILE_THREADS, sum_##SUFFIX, int64_t n, const T *x, T *out) { \
    reduce_tile(BASE(T), n, T(0), plus(), out, x);                                 \
  }                                                                                \
  RILL_KERNEL_BOUNDED(TILE_THREADS, min_##SUFFIX, int64_t n, const T *x, T *out) { \
    LEAST(T);                                                                      \
  }                                                                                \
  RILL_KERNEL_BOUNDED(TILE_THREADS, max_##SUFFIX, int64_t n, const T *x, T *out) { \
    GREATEST(T);                                                                   \
  }

KERNELS(i32, int32_t)
KERNELS(f32, float)
KERNELS(f64, double)

RILL_KERNEL_BOUNDED(TILE_THREADS, dot_f32, int64_t n, const float *x, const float *y, float *out) {
  reduce_tile(BASE(float), n, 0.0f, plus(), out, x, y);
}
RILL_KERNEL_BOUNDED(TILE_THREADS, dot_f64, int64_t n, const double *x, const double *y, double *out) {
  reduce_tile(BASE(double), n, 0.0, plus(), out, x, y);
}
