/* scan.kernel.cu: running sums of each tile, one pass of a scan: reduce, then scan.
 *
 *   scan_i32 scan_f32 scan_f64   y[i] = before + x[first of the tile] + ... + x[i], or without x[i] if `exclusive`
 *                                is not 0; `before` is offsets[tile], or 0 if offsets is NULL.  Integers: modulo 2^32
 *
 * A tile is that of reduce.kernel.cu, and so the offsets are the exclusive scan of what its sum kernels give.
 * rill_kernels.h has functions that launch the passes.  (A scan in one pass, whose blocks wait for the blocks before
 * them, is faster on some GPUs; but nothing says that a block waited for ever runs.)
 *
 * Launch: a block of 256 threads for each tile (rill_kernels_tiles).
 * Limits: n > 0, since no launch is of 0 threads; any alignment; y may be x, and they overlap in no other way.
 * Rounding: the order depends on n alone, so the same on every device to the last bit: the 16 (f64: 8) elements of a
 * thread from first to last, the threads' sums in 8 steps in which each adds what stands 1, 2, 4 ... 128 before it.
 * Running sums of nonnegative numbers may fall by a rounding from one tile or thread to the next.
 */
#include <rill/device/kernel.h>

#include "wide.h"

/* Shared memory has 32 banks of 4 bytes: each 128 bytes leave one element out, and threads that each read their own
 * elements in turn do not meet in one bank. */
template <class T> static __device__ __forceinline__ constexpr int padded(int i) { return i + i / static_cast<int>(128 / sizeof(T)); }
template <class T> constexpr int EACH = TILE<T> / TILE_THREADS; /* elements of a thread */

/* Integers as unsigned, which wrap. */
#define SCAN(SUFFIX, T, SUM)                                                                                       \
  RILL_KERNEL_BOUNDED(TILE_THREADS, scan_##SUFFIX, int64_t n, int exclusive, const T *x, const T *offsets, T *y) { \
    __shared__ SUM tile[padded<T>(TILE<T>)];                                                                       \
    __shared__ SUM sums[2][TILE_THREADS];                                                                          \
    const int thread = static_cast<int>(threadIdx.x);                                                              \
    const ptrdiff_t base = static_cast<ptrdiff_t>(blockIdx.x) * TILE<T>;                                           \
    for (int k = 0; k < EACH<T>; k++) {                                                                            \
      const int i = k * TILE_THREADS + thread;                                                                     \
      tile[padded<T>(i)] = base + i < n ? static_cast<SUM>(x[base + i]) : SUM(0);                                  \
    }                                                                                                              \
    __syncthreads();                                                                                               \
    SUM sum = tile[padded<T>(thread * EACH<T>)];                                                                   \
    for (int k = 1; k < EACH<T>; k++) sum += tile[padded<T>(thread * EACH<T> + k)];                                \
    sums[0][thread] = sum;                                                                                         \
    __syncthreads();                                                                                               \
    int from = 0;                                                                                                  \
    for (int step = 1; step < TILE_THREADS; step *= 2) {                                                           \
      const SUM mine = sums[from][thread];                                                                         \
      sums[1 - from][thread] = thread < step ? mine : sums[from][thread - step] + mine;                            \
      from = 1 - from;                                                                                             \
      __syncthreads();                                                                                             \
    }                                                                                                              \
    SUM running = thread == 0 ? SUM(0) : sums[from][thread - 1];                                                   \
    if (offsets != nullptr) running += static_cast<SUM>(offsets[blockIdx.x]);                                      \
    for (int k = 0; k < EACH<T>; k++) {                                                                            \
      SUM *const place = &tile[padded<T>(thread * EACH<T> + k)];                                                   \
      const SUM before = running;                                                                                  \
      running += *place;                                                                                           \
      *place = exclusive != 0 ? before : running;                                                                  \
    }                                                                                                              \
    __syncthreads();                                                                                               \
    for (int k = 0; k < EACH<T>; k++) {                                                                            \
      const int i = k * TILE_THREADS + thread;                                                                     \
      if (base + i < n) y[base + i] = static_cast<T>(tile[padded<T>(i)]);                                          \
    }                                                                                                              \
  }

SCAN(i32, int32_t, uint32_t)
SCAN(f32, float, float)
SCAN(f64, double, double)
