/* histogram.kernel.cu: adds to counts[bin] the number of x[i] in that bin, for i below n.
 *
 *   histogram_i32                 bin = x[i] - low
 *   histogram_f32 histogram_f64   bin = (x[i] - low) * scale, rounded down
 *
 * Values whose bin is not one of 0 ... bins - 1 are not counted, and neither are NaNs.
 *
 * Each block counts in its dynamic shared memory and finally adds its counts to `counts`. A few blocks with many values
 * each are therefore fast, and many values in the same bin are slow.
 *
 * Launch: one-dimensional grid and blocks of any size (rill_kernels_histogram: 256 threads and at least 16384 values
 * per block), with bins * 4 bytes of dynamic shared memory, which limits `bins`.
 * Limits: n and bins must be at least 1. n must be less than 2^32 times the number of blocks.
 * Rounding: counts are exact and do not depend on the order. x[i] - low and its product with scale are rounded in the
 * element type; if they are exact, the bin is exact as well.
 */
#include <rill/device/kernel.h>

#include "wide.h"

/* Returns the bin, or -1 if the value is not counted. The comparisons are false for a NaN. */
static __device__ __forceinline__ int bin_of(int32_t x, int32_t low, int32_t, int bins) {
  const int64_t bin = static_cast<int64_t>(x) - low;
  return bin >= 0 && bin < bins ? static_cast<int>(bin) : -1;
}
template <class T> static __device__ __forceinline__ int bin_of(T x, T low, T scale, int bins) {
  const T bin = (x - low) * scale;
  return bin >= T(0) && bin < static_cast<T>(bins) ? static_cast<int>(bin) : -1;
}

static __device__ __forceinline__ void add_count(uint64_t *count, unsigned more) {
  if (more != 0) atomicAdd(reinterpret_cast<unsigned long long *>(count), static_cast<unsigned long long>(more));
}

#if RILL_ON_CPU
/* The first thread of a block does the work of all threads. It counts neighbouring values in separate tables: with one
 * table, two values in the same bin would make the second increment wait for the store of the first. */
enum { TABLES = 4, TABLE_BINS = 1024, STRIP = 64 };

template <class T>
static inline void count_values(ptrdiff_t n, const T *x, T low, T scale, int bins, unsigned *mine, uint64_t *counts) {
  static thread_local unsigned tables[TABLES][1 + TABLE_BINS]; /* bin 0 is for values that are not counted */
  if (threadIdx.x != 0) return;
  const bool fits = bins <= TABLE_BINS;
  const ptrdiff_t each = (n + gridDim.x - 1) / gridDim.x, first = each * blockIdx.x;
  const ptrdiff_t end = first + each < n ? first + each : n;
  for (int bin = 0; bin < bins; bin++) mine[bin] = 0;
  for (int t = 0; t < TABLES && fits; t++)
    for (int bin = 0; bin <= bins; bin++) tables[t][bin] = 0;
  for (ptrdiff_t i = first; i < end; i += STRIP) {
    int found[STRIP];
    const int count = static_cast<int>(end - i < STRIP ? end - i : STRIP);
    for (int k = 0; k < count; k++) found[k] = bin_of(x[i + k], low, scale, bins);
    for (int k = count; k < STRIP; k++) found[k] = -1;
    if (fits) {
      for (int k = 0; k < STRIP; k += TABLES)
        for (int t = 0; t < TABLES; t++) tables[t][1 + found[k + t]]++;
    } else {
      for (int k = 0; k < count; k++)
        if (found[k] >= 0) mine[found[k]]++;
    }
  }
  for (int bin = 0; bin < bins; bin++) {
    unsigned count = mine[bin];
    for (int t = 0; t < TABLES && fits; t++) count += tables[t][1 + bin];
    add_count(&counts[bin], count);
  }
}
#else
/* Loads 16 bytes at a time, to keep enough loads of x in flight. */
template <class T>
static __device__ __forceinline__ void count_values(ptrdiff_t n, const T *x, T low, T scale, int bins, unsigned *mine,
                                                    uint64_t *counts) {
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int bin = thread; bin < bins; bin += threads) mine[bin] = 0;
  __syncthreads();
  const int each = wide<T>::COUNT;
  const bool aligned = are_aligned(x);
  const ptrdiff_t step = static_cast<ptrdiff_t>(gridDim.x) * threads * each;
  for (ptrdiff_t i = (static_cast<ptrdiff_t>(blockIdx.x) * threads + thread) * each; i < n; i += step) {
    const wide<T> values = load_part(x + i, n - i, aligned);
    const int count = n - i < each ? static_cast<int>(n - i) : each;
    for (int k = 0; k < each; k++) {
      const int bin = bin_of(values.at[k], low, scale, bins);
      if (k < count && bin >= 0) atomicAdd(mine + bin, 1u);
    }
  }
  __syncthreads();
  for (int bin = thread; bin < bins; bin += threads) add_count(&counts[bin], mine[bin]);
}
#endif

#define HISTOGRAM(scale)                 \
  RILL_DYNAMIC_SHARED(unsigned, shared); \
  count_values(n, x, low, scale, bins, shared, counts)

RILL_KERNEL(histogram_i32, int64_t n, const int32_t *x, int32_t low, int bins, uint64_t *counts) {
  HISTOGRAM(int32_t(0));
}
RILL_KERNEL(histogram_f32, int64_t n, const float *x, float low, float scale, int bins, uint64_t *counts) {
  HISTOGRAM(scale);
}
RILL_KERNEL(histogram_f64, int64_t n, const double *x, double low, double scale, int bins, uint64_t *counts) {
  HISTOGRAM(scale);
}
