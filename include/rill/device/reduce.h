/* rill/device/reduce.h: sum, minimum and maximum over a warp or a block.  Included by rill/device/kernel.h.
 *
 *     const float sum = rill_block_sum(i < n ? x[i] : 0.0f);
 *     if (threadIdx.x == 0) atomicAdd(total, sum);
 *
 *   rill_warp_sum(v)  rill_warp_min(v)  rill_warp_max(v)      over the lanes of the caller's warp
 *   rill_block_sum(v) rill_block_min(v) rill_block_max(v)     over the threads of the block, which can have any shape
 *
 * v is an int, an unsigned, an 8-byte integer, a float or a double. Every caller receives the result. All lanes of
 * the warp, or all threads of the block, that have not exited must make the same call; exited threads are ignored.
 * The block functions are also barriers.
 *
 * Values are combined in the order of a balanced tree: each thread with its neighbour, each pair with the next pair,
 * and so on, with the lower thread on the left and exited threads left out. The result of a block therefore has the
 * same bits on every device, and the result of a warp on all devices with the same warp size. Integer sums wrap. If
 * one operand of min or max is a NaN, the other is returned.
 */
#ifndef RILL_DEVICE_REDUCE_H
#define RILL_DEVICE_REDUCE_H

/* ---- operators ---- */

#define RILL_OPERATION_ static __device__ __forceinline__
struct rill_sum_ {
  RILL_OPERATION_ int of(int a, int b) { return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)); }
  RILL_OPERATION_ long of(long a, long b) {
    return static_cast<long>(static_cast<unsigned long>(a) + static_cast<unsigned long>(b));
  }
  RILL_OPERATION_ long long of(long long a, long long b) {
    return static_cast<long long>(static_cast<unsigned long long>(a) + static_cast<unsigned long long>(b));
  }
  RILL_OPERATION_ unsigned of(unsigned a, unsigned b) { return a + b; }
  RILL_OPERATION_ unsigned long of(unsigned long a, unsigned long b) { return a + b; }
  RILL_OPERATION_ unsigned long long of(unsigned long long a, unsigned long long b) { return a + b; }
  RILL_OPERATION_ float of(float a, float b) { return a + b; }
  RILL_OPERATION_ double of(double a, double b) { return a + b; }
};
/* `a != a` is true for a NaN. Works for vectors as well. */
struct rill_min_ {
  template <class T> RILL_OPERATION_ T of(T a, T b) { return ((b < a) | (a != a)) ? b : a; }
};
struct rill_max_ {
  template <class T> RILL_OPERATION_ T of(T a, T b) { return ((a < b) | (a != a)) ? b : a; }
};
#undef RILL_OPERATION_

/* Reduces the values whose flag is set in the order of a balanced tree, in place. */
template <class Operation, class T>
static __device__ inline T rill_reduce_some_(T *values, unsigned char *there, unsigned count) {
  for (; count > 1; count = (count + 1) / 2) {
    for (unsigned i = 0; i < count; i += 2) {
      const bool left = there[i] != 0, right = i + 1 < count && there[i + 1] != 0;
      const T a = values[i], b = values[right ? i + 1 : i];
      values[i / 2] = left && right ? Operation::of(a, b) : right ? b : a;
      there[i / 2] = left || right;
    }
  }
  return values[0];
}

#if RILL_ON_CPU
#include <rill/device/host_reduce.h>
#else
#include <rill/device/gpu_reduce.h>
#endif

#define RILL_REDUCTION_(NAME, OPERATION, REDUCE)                               \
  template <class T> static __device__ __forceinline__ T NAME(T v) {           \
    using checked = decltype(rill_sum_::of(v, v)); /* fails for other types */ \
    return REDUCE<OPERATION, checked>(v);                                      \
  }
RILL_REDUCTION_(rill_warp_sum, rill_sum_, rill_warp_reduce_)
RILL_REDUCTION_(rill_warp_min, rill_min_, rill_warp_reduce_)
RILL_REDUCTION_(rill_warp_max, rill_max_, rill_warp_reduce_)
RILL_REDUCTION_(rill_block_sum, rill_sum_, rill_block_reduce_)
RILL_REDUCTION_(rill_block_min, rill_min_, rill_block_reduce_)
RILL_REDUCTION_(rill_block_max, rill_max_, rill_block_reduce_)
#undef RILL_REDUCTION_

#endif
