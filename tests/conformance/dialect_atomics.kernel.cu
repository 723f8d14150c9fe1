/* dialect_atomics.kernel.cu: every atomic function on every type, at every scope, with all threads at once on the same
 * cells.  One dimension.  The functions for a block use the cells of their block: 16 for each. */
#include <rill/device/kernel.h>

/* What thread i puts in: all bits are in use, and signed types have both signs. */
template <class T> static __device__ T value_of(unsigned i) {
  unsigned long long x = (i + 1) * 0x9e3779b97f4a7c15ull;
  x ^= x >> 29;
  return static_cast<T>(x * 0xbf58476d1ce4e5b9ull);
}

/* Without overflow. */
template <class T> static __device__ T plus(T a, T b) {
  return static_cast<T>(static_cast<unsigned long long>(a) + static_cast<unsigned long long>(b));
}

#define INTEGERS(NAME, SUFFIX, TYPE)                                                                          \
  RILL_KERNEL(NAME##SUFFIX, unsigned first_cell, TYPE *cells, unsigned *seen) {                               \
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;                                                 \
    const TYPE v = value_of<TYPE>(i);                                                                         \
    cells += blockIdx.x * first_cell;                                                                         \
    atomicAdd(&seen[atomicAdd##SUFFIX(&cells[0], 1) + blockIdx.x * (first_cell != 0) * blockDim.x], 1u);      \
    atomicSub##SUFFIX(&cells[1], v);                                                                          \
    atomicAdd##SUFFIX(&cells[3], atomicExch##SUFFIX(&cells[2], v));                                           \
    TYPE expected = 0, found;                                                                                 \
    while ((found = atomicCAS##SUFFIX(&cells[4], expected, plus(expected, v))) != expected) expected = found; \
    atomicMin##SUFFIX(&cells[5], v);                                                                          \
    atomicMax##SUFFIX(&cells[6], v);                                                                          \
    atomicAnd##SUFFIX(&cells[7], ~(static_cast<TYPE>(1) << (i % (8 * sizeof(TYPE) - 5))));                    \
    atomicOr##SUFFIX(&cells[8], static_cast<TYPE>(1) << (i % (8 * sizeof(TYPE) - 3)));                        \
    atomicXor##SUFFIX(&cells[9], v);                                                                          \
  }
#define AT_EACH_SCOPE(FAMILY, NAME, TYPE) \
  FAMILY(NAME, , TYPE)                    \
  FAMILY(NAME, _block, TYPE)              \
  FAMILY(NAME, _system, TYPE)
AT_EACH_SCOPE(INTEGERS, atomics_int, int)
AT_EACH_SCOPE(INTEGERS, atomics_unsigned, unsigned)
AT_EACH_SCOPE(INTEGERS, atomics_long_long, long long)
AT_EACH_SCOPE(INTEGERS, atomics_unsigned_long_long, unsigned long long)
AT_EACH_SCOPE(INTEGERS, atomics_int64, int64_t)
AT_EACH_SCOPE(INTEGERS, atomics_uint64, uint64_t)

/* Counters that go round: up to 9 and to 0, and down from 12 to 0 and to 12. */
#define COUNTERS(NAME, SUFFIX, TYPE)                                                          \
  RILL_KERNEL(NAME##SUFFIX, unsigned first_cell, TYPE *cells) {                               \
    cells += blockIdx.x * first_cell;                                                         \
    const TYPE up = atomicInc##SUFFIX(&cells[0], 9), down = atomicDec##SUFFIX(&cells[1], 12); \
    atomicAdd##SUFFIX(&cells[2], up > 9);                                                     \
    atomicAdd##SUFFIX(&cells[2], down > 12);                                                  \
  }
AT_EACH_SCOPE(COUNTERS, counters, unsigned)

/* Sums of numbers that are exact, whatever the order. */
#define FLOATS(NAME, SUFFIX, TYPE)                                  \
  RILL_KERNEL(NAME##SUFFIX, unsigned first_cell, TYPE *cells) {     \
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;       \
    const TYPE v = static_cast<TYPE>(i % 64) * 0.25f - 4;           \
    cells += blockIdx.x * first_cell;                               \
    atomicAdd##SUFFIX(&cells[0], v);                                \
    atomicAdd##SUFFIX(&cells[2], atomicExch##SUFFIX(&cells[1], v)); \
  }
AT_EACH_SCOPE(FLOATS, atomics_float, float)
AT_EACH_SCOPE(FLOATS, atomics_double, double)

/* The least and the greatest; cells 2 and 3 begin as NaN, and NaNs do not count. */
#define EXTREMES(NAME, TYPE)                                               \
  RILL_KERNEL(NAME, TYPE *cells, TYPE nan) {                               \
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;              \
    const TYPE v = i % 7 == 3 ? nan : static_cast<TYPE>(value_of<int>(i)); \
    rill_atomic_min(&cells[0], v);                                         \
    rill_atomic_max(&cells[1], v);                                         \
    rill_atomic_min(&cells[2], v);                                         \
    rill_atomic_max(&cells[3], v);                                         \
  }
EXTREMES(extremes_float, float)
EXTREMES(extremes_double, double)

/* In shared memory. */
RILL_KERNEL(atomics_shared, int *ints, float *floats) {
  __shared__ int count, least;
  __shared__ unsigned long long bits;
  __shared__ float sum;
  if (threadIdx.x == 0) {
    count = 0;
    least = 1000;
    bits = 0;
    sum = 0;
  }
  __syncthreads();
  atomicAdd(&count, 2);
  atomicMin_block(&least, 500 - static_cast<int>(threadIdx.x));
  atomicOr(&bits, 1ull << (threadIdx.x % 64));
  atomicAdd(&sum, 0.5f);
  __syncthreads();
  if (threadIdx.x != 0) return;
  ints[3 * blockIdx.x] = count;
  ints[3 * blockIdx.x + 1] = least;
  ints[3 * blockIdx.x + 2] = bits == ~0ull;
  floats[blockIdx.x] = sum;
}
