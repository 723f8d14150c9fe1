/* rill/device/cuda_reduce.h: CUDA's __reduce_add_sync and related functions, for 4-byte integers. Included by
 * rill/device/cuda_warp.h, and by rill/device/cuda_names.h for nvcc, which has these functions only from sm_80 on.
 *
 * The lanes of the mask that have not exited get the reduction of their values. The mask can be any set of lanes.
 */
#ifndef RILL_DEVICE_CUDA_REDUCE_H
#define RILL_DEVICE_CUDA_REDUCE_H

#if RILL_ON_CPU && RILL_REGIONS
/* Reduces the values of `lanes` in a loop. `lanes` has at least one lane. */
template <class rill_operation, class RillT>
static unsigned rill_cuda_reduce_lanes_(const unsigned *values, unsigned lanes) {
  if (lanes == ~0u) {
    RillT all = static_cast<RillT>(values[0]);
    for (unsigned lane = 1; lane < 32; lane++) all = rill_operation::of(all, static_cast<RillT>(values[lane]));
    return static_cast<unsigned>(all);
  }
  RillT all = static_cast<RillT>(values[__builtin_ctz(lanes)]);
  for (unsigned rest = lanes & (lanes - 1); rest != 0; rest &= rest - 1)
    all = rill_operation::of(all, static_cast<RillT>(values[__builtin_ctz(rest)]));
  return static_cast<unsigned>(all);
}
template <class rill_operation, class RillT> RILL_NAME_ RillT rill_cuda_reduce_(unsigned mask, RillT v) {
  return static_cast<RillT>(
      rill_ir_reduce32(static_cast<unsigned>(v), &rill_cuda_reduce_lanes_<rill_operation, RillT>, mask));
}
#else
/* Uses five exchanges if all 32 lanes take part. Otherwise reads each lane of the mask in turn. */
template <class rill_operation, class RillT> RILL_NAME_ RillT rill_cuda_reduce_(unsigned mask, RillT v) {
  const unsigned lanes = __ballot_sync(mask, 1);
  if (lanes == ~0u) {
    for (int by = 16; by > 0; by /= 2) v = rill_operation::of(v, __shfl_xor_sync(mask, v, by));
    return v;
  }
  RillT all = __shfl_sync(mask, v, __ffs(static_cast<int>(lanes)) - 1);
  for (unsigned rest = lanes & (lanes - 1); rest != 0; rest &= rest - 1)
    all = rill_operation::of(all, __shfl_sync(mask, v, __ffs(static_cast<int>(rest)) - 1));
  return all;
}
#endif

#define RILL_CUDA_REDUCE_(NAME, NUMBER, RESULT)                                        \
  struct NAME##of_##NUMBER##_ {                                                        \
    static __device__ __forceinline__ NUMBER of(NUMBER a, NUMBER b) { return RESULT; } \
  };                                                                                   \
  RILL_NAME_ NUMBER NAME(unsigned mask, NUMBER v) { return rill_cuda_reduce_<NAME##of_##NUMBER##_>(mask, v); }
RILL_CUDA_REDUCE_(rill_cuda_reduce_and_, unsigned, a &b)
RILL_CUDA_REDUCE_(rill_cuda_reduce_or_, unsigned, a | b)
RILL_CUDA_REDUCE_(rill_cuda_reduce_xor_, unsigned, a ^ b)
RILL_CUDA_REDUCE_(rill_cuda_reduce_add_, unsigned, a + b)
RILL_CUDA_REDUCE_(rill_cuda_reduce_min_, unsigned, a < b ? a : b)
RILL_CUDA_REDUCE_(rill_cuda_reduce_max_, unsigned, a < b ? b : a)
RILL_CUDA_REDUCE_(rill_cuda_reduce_min_, int, a < b ? a : b)
RILL_CUDA_REDUCE_(rill_cuda_reduce_max_, int, a < b ? b : a)
RILL_NAME_ int rill_cuda_reduce_add_(unsigned mask, int v) {
  return static_cast<int>(rill_cuda_reduce_add_(mask, static_cast<unsigned>(v)));
}
#undef RILL_CUDA_REDUCE_

#define __reduce_add_sync rill_cuda_reduce_add_
#define __reduce_min_sync rill_cuda_reduce_min_
#define __reduce_max_sync rill_cuda_reduce_max_
#define __reduce_and_sync rill_cuda_reduce_and_
#define __reduce_or_sync rill_cuda_reduce_or_
#define __reduce_xor_sync rill_cuda_reduce_xor_

#endif
