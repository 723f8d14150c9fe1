/* rill/device/cuda_warp.h: CUDA's functions for warps of 32 lanes.  Included by rill/device/cuda_names.h.
 *
 * They are macros: newer HIP has functions of these names, which are for whole waves.
 */
#ifndef RILL_DEVICE_CUDA_WARP_H
#define RILL_DEVICE_CUDA_WARP_H

/* The lane in the warp of 32; what the calling lane's half of a wave says. */
RILL_NAME_ unsigned rill_cuda_lane_() { return rill_lane() & 31; }
RILL_NAME_ unsigned rill_cuda_half_(unsigned long long ballot) {
  return static_cast<unsigned>(ballot >> (rill_lane() & 32));
}

#if defined(RILL_CUDA_FREESTANDING) /* which has CUDA's */
#define rill_cuda_ballot_ __ballot_sync
#define rill_cuda_active_ __activemask
#define rill_cuda_sync_ __syncwarp
#define rill_cuda_any_ __any_sync
#define rill_cuda_all_ __all_sync
#define rill_cuda_shfl_ __shfl_sync
#define rill_cuda_shfl_up_ __shfl_up_sync
#define rill_cuda_shfl_down_ __shfl_down_sync
#define rill_cuda_shfl_xor_ __shfl_xor_sync
#else
#if defined(RILL_HAS_SHUFFLE_)
RILL_NAME_ unsigned rill_cuda_ballot_(unsigned mask, bool p) { return rill_ir_ballot(p ? 1 : 0, mask) & mask; }
RILL_NAME_ unsigned rill_cuda_active_() { return rill_ir_active(); }
RILL_NAME_ void rill_cuda_sync_(unsigned mask = ~0u) { rill_ir_warp_sync(mask); }
#else
RILL_NAME_ unsigned rill_cuda_ballot_(unsigned mask, bool p) { return rill_cuda_half_(rill_ballot(p)) & mask; }
RILL_NAME_ unsigned rill_cuda_active_() { return rill_cuda_half_(rill_ballot(true)); }
RILL_NAME_ void rill_cuda_sync_(unsigned = ~0u) { rill_warp_sync(); }
#endif
RILL_NAME_ int rill_cuda_any_(unsigned mask, bool p) { return rill_cuda_ballot_(mask, p) != 0; }
RILL_NAME_ int rill_cuda_all_(unsigned mask, bool p) { return rill_cuda_ballot_(mask, !p) == 0; }

/* Groups of `width` lanes.  A lane's number is taken modulo the width; what comes from beyond the group's ends is the
 * caller's own, but for __shfl_xor_sync, which reaches into groups below. */
template <class RillT> RILL_NAME_ RillT rill_cuda_shfl_(unsigned mask, RillT v, int from, int width = 32) {
  const unsigned lanes = static_cast<unsigned>(width);
  return rill_shuffle_(v, RILL_SHUFFLE_FROM_, static_cast<unsigned>(from) & (lanes - 1), lanes, mask);
}
template <class RillT> RILL_NAME_ RillT rill_cuda_shfl_up_(unsigned mask, RillT v, unsigned by, int width = 32) {
  return rill_shuffle_(v, RILL_SHUFFLE_UP_, by, static_cast<unsigned>(width), mask);
}
template <class RillT> RILL_NAME_ RillT rill_cuda_shfl_down_(unsigned mask, RillT v, unsigned by, int width = 32) {
  return rill_shuffle_(v, RILL_SHUFFLE_DOWN_, by, static_cast<unsigned>(width), mask);
}
template <class RillT> RILL_NAME_ RillT rill_cuda_shfl_xor_(unsigned mask, RillT v, int by, int width = 32) {
  const unsigned lanes = static_cast<unsigned>(width), bits = static_cast<unsigned>(by);
  if (bits < lanes) return rill_shuffle_(v, RILL_SHUFFLE_XOR_, bits, lanes, mask);
  const unsigned lane = rill_cuda_lane_(), other = (lane ^ bits) & 31;
  return rill_shuffle_(v, RILL_SHUFFLE_FROM_, other <= (lane | (lanes - 1)) ? other : lane, 32, mask);
}
#define __shfl_sync rill_cuda_shfl_
#define __shfl_up_sync rill_cuda_shfl_up_
#define __shfl_down_sync rill_cuda_shfl_down_
#define __shfl_xor_sync rill_cuda_shfl_xor_
#define __ballot_sync rill_cuda_ballot_
#define __any_sync rill_cuda_any_
#define __all_sync rill_cuda_all_
#define __activemask rill_cuda_active_
#define __syncwarp rill_cuda_sync_
#endif

/* All lanes of `mask` get the result, by five exchanges. */
#define RILL_CUDA_REDUCE_(NAME, NUMBER, NOTHING, RESULT)                                                             \
  RILL_NAME_ NUMBER NAME(unsigned mask, NUMBER v) {                                                                  \
    NUMBER a = (mask >> rill_cuda_lane_() & 1) != 0 ? v : static_cast<NUMBER>(NOTHING);                              \
    for (int by = 16; by > 0; by /= 2) {                                                                             \
      const NUMBER other = rill_cuda_shfl_xor_(mask, a, by);                                                         \
      const NUMBER b =                                                                                               \
          (mask >> (rill_cuda_lane_() ^ static_cast<unsigned>(by)) & 1) != 0 ? other : static_cast<NUMBER>(NOTHING); \
      a = static_cast<NUMBER>(RESULT);                                                                               \
    }                                                                                                                \
    return a;                                                                                                        \
  }
RILL_CUDA_REDUCE_(rill_cuda_reduce_and_, unsigned, ~0u, a &b)
RILL_CUDA_REDUCE_(rill_cuda_reduce_or_, unsigned, 0, a | b)
RILL_CUDA_REDUCE_(rill_cuda_reduce_xor_, unsigned, 0, a ^ b)
RILL_CUDA_REDUCE_(rill_cuda_reduce_add_, unsigned, 0, a + b)
RILL_CUDA_REDUCE_(rill_cuda_reduce_min_, unsigned, ~0u, a < b ? a : b)
RILL_CUDA_REDUCE_(rill_cuda_reduce_max_, unsigned, 0, a < b ? b : a)
RILL_CUDA_REDUCE_(rill_cuda_reduce_min_, int, 0x7fffffff, a < b ? a : b)
RILL_CUDA_REDUCE_(rill_cuda_reduce_max_, int, -0x7fffffff - 1, a < b ? b : a)
RILL_NAME_ int rill_cuda_reduce_add_(unsigned mask, int v) {
  return static_cast<int>(rill_cuda_reduce_add_(mask, static_cast<unsigned>(v)));
}
#undef RILL_CUDA_REDUCE_

template <class RillT> RILL_NAME_ bool rill_cuda_same_(RillT a, RillT b) {
  static_assert(sizeof(RillT) <= 8, "numbers of 4 or 8 bytes");
  unsigned long long x = 0, y = 0;
  __builtin_memcpy(&x, &a, sizeof a);
  __builtin_memcpy(&y, &b, sizeof b);
  return x == y;
}
/* The lanes of `mask` that give the same bits; all of them if they all do, or none. */
template <class RillT> RILL_NAME_ unsigned rill_cuda_match_any_(unsigned mask, RillT v) {
  unsigned same = 0;
  for (int lane = 0; lane < 32; lane++) {
    if ((mask >> lane & 1) == 0) continue;
    if (rill_cuda_same_(rill_cuda_shfl_(mask, v, lane), v)) same |= 1u << lane;
  }
  return same;
}
template <class RillT> RILL_NAME_ unsigned rill_cuda_match_all_(unsigned mask, RillT v, int *all) {
  *all = rill_cuda_all_(mask, rill_cuda_same_(rill_cuda_shfl_(mask, v, __builtin_ctz(mask)), v));
  return *all ? mask : 0;
}

#define __match_any_sync rill_cuda_match_any_
#define __match_all_sync rill_cuda_match_all_
#define __reduce_add_sync rill_cuda_reduce_add_
#define __reduce_min_sync rill_cuda_reduce_min_
#define __reduce_max_sync rill_cuda_reduce_max_
#define __reduce_and_sync rill_cuda_reduce_and_
#define __reduce_or_sync rill_cuda_reduce_or_
#define __reduce_xor_sync rill_cuda_reduce_xor_
#if RILL_HIP_HAS_
#define warpSize 32
#else
static constexpr int warpSize = 32;
#endif

#endif
