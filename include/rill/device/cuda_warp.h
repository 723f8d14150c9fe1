/* rill/device/cuda_warp.h: CUDA's functions for warps of 32 lanes.  Included by rill/device/cuda_names.h.
 *
 * These are macros, because newer versions of HIP have functions of these names for whole waves.
 */
#ifndef RILL_DEVICE_CUDA_WARP_H
#define RILL_DEVICE_CUDA_WARP_H

/* Return the lane in the warp of 32, and the part of a ballot for the caller's half of a wave. */
RILL_NAME_ unsigned rill_cuda_lane_() { return rill_lane() & 31; }
RILL_NAME_ unsigned rill_cuda_half_(unsigned long long ballot) {
  return static_cast<unsigned>(ballot >> (rill_lane() & 32));
}

#if defined(RILL_CUDA_FREESTANDING) /* clang has builtins for CUDA's functions */
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
#if RILL_ON_CPU
/* Converts a mask of the caller's 32 lanes to a mask of the whole warp. */
RILL_NAME_ unsigned long long rill_cuda_lanes_(unsigned mask) {
  return static_cast<unsigned long long>(mask) << (rill_lane() & 32);
}
RILL_NAME_ unsigned rill_cuda_ballot_(unsigned mask, bool p) {
  return rill_cuda_half_(rill_ballot_among_(p, rill_cuda_lanes_(mask))) & mask;
}
RILL_NAME_ unsigned rill_cuda_active_() { return rill_cuda_half_(rill_active_()); }
RILL_NAME_ void rill_cuda_sync_(unsigned mask = ~0u) { rill_warp_sync_among_(rill_cuda_lanes_(mask)); }
#else
/* On an AMD GPU the lanes that run together are those that reached the call together; no lane waits for others. */
RILL_NAME_ unsigned long long rill_cuda_lanes_(unsigned mask) { return mask; }
RILL_NAME_ unsigned rill_cuda_ballot_(unsigned mask, bool p) { return rill_cuda_half_(rill_ballot(p)) & mask; }
RILL_NAME_ unsigned rill_cuda_active_() { return rill_cuda_half_(rill_ballot(true)); }
RILL_NAME_ void rill_cuda_sync_(unsigned = ~0u) { rill_warp_sync(); }
#endif
RILL_NAME_ int rill_cuda_any_(unsigned mask, bool p) { return rill_cuda_ballot_(mask, p) != 0; }
RILL_NAME_ int rill_cuda_all_(unsigned mask, bool p) { return rill_cuda_ballot_(mask, !p) == 0; }

/* Shuffles within groups of `width` lanes. The lane number is taken modulo the width. If the source lane is outside
 * the group, the result is the caller's value, except that __shfl_xor_sync can read from lower groups. */
template <class RillT> RILL_NAME_ RillT rill_cuda_shfl_(unsigned mask, RillT v, int from, int width = 32) {
  const unsigned lanes = static_cast<unsigned>(width);
  return rill_shuffle_(v, RILL_SHUFFLE_FROM_, static_cast<unsigned>(from) & (lanes - 1), lanes, rill_cuda_lanes_(mask));
}
template <class RillT> RILL_NAME_ RillT rill_cuda_shfl_up_(unsigned mask, RillT v, unsigned by, int width = 32) {
  return rill_shuffle_(v, RILL_SHUFFLE_UP_, by, static_cast<unsigned>(width), rill_cuda_lanes_(mask));
}
template <class RillT> RILL_NAME_ RillT rill_cuda_shfl_down_(unsigned mask, RillT v, unsigned by, int width = 32) {
  return rill_shuffle_(v, RILL_SHUFFLE_DOWN_, by, static_cast<unsigned>(width), rill_cuda_lanes_(mask));
}
/* Makes a single call in which all lanes take part, although lanes may pass different numbers. */
template <class RillT> RILL_NAME_ RillT rill_cuda_shfl_xor_(unsigned mask, RillT v, int by, int width = 32) {
  const unsigned bits = static_cast<unsigned>(by) & 31, lane = rill_cuda_lane_();
  const RillT there = rill_shuffle_(v, RILL_SHUFFLE_XOR_, bits, 32, rill_cuda_lanes_(mask));
  return (lane ^ bits) <= (lane | (static_cast<unsigned>(width) - 1)) ? there : v;
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

/* Pauses for an unspecified time, which is enough for polling. */
RILL_NAME_ void rill_cuda_nanosleep_(unsigned) { rill_pause(); }
#define __nanosleep rill_cuda_nanosleep_
#endif

#include <rill/device/cuda_reduce.h>

template <class RillT> RILL_NAME_ bool rill_cuda_same_(RillT a, RillT b) {
  static_assert(sizeof(RillT) <= 8, "numbers of 4 or 8 bytes");
  unsigned long long x = 0, y = 0;
  __builtin_memcpy(&x, &a, sizeof a);
  __builtin_memcpy(&y, &b, sizeof b);
  return x == y;
}
/* Returns the lanes of the mask that have not exited and pass the same bits. Every lane reads all others, so that the
 * shuffles are the same for all lanes. Values of lanes outside the mask are ignored. */
template <class RillT> RILL_NAME_ unsigned rill_cuda_match_any_(unsigned mask, RillT v) {
  unsigned same = 0;
  for (int lane = 0; lane < 32; lane++) same |= (rill_cuda_same_(rill_cuda_shfl_(mask, v, lane), v) ? 1u : 0u) << lane;
  return same & rill_cuda_ballot_(mask, true);
}
/* Returns the lanes of the mask that have not exited if all of them pass the same bits, otherwise 0. */
template <class RillT> RILL_NAME_ unsigned rill_cuda_match_all_(unsigned mask, RillT v, int *all) {
  const unsigned lanes = rill_cuda_ballot_(mask, true);
  const RillT first = rill_cuda_shfl_(mask, v, __builtin_ctz(lanes));
  *all = rill_cuda_all_(mask, rill_cuda_same_(first, v));
  return *all ? lanes : 0;
}

#define __match_any_sync rill_cuda_match_any_
#define __match_all_sync rill_cuda_match_all_
#if RILL_HIP_HAS_
#define warpSize 32
#else
static constexpr int warpSize = 32;
#endif

#endif
