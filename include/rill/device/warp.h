/* rill/device/warp.h: warp functions.  Included by rill/device/kernel.h.
 *
 * A warp has 32 threads on NVIDIA GPUs and on the CPU, and 32 or 64 on AMD GPUs (rill_device_info has the size).
 * The threads of a block are numbered with x fastest, then y, then z.  A warp consists of the threads from one
 * multiple of the warp size up to the next.  The position of a thread in its warp is its lane.
 *
 *     float sum = x[i];
 *     for (unsigned step = rill_warp_size() / 2; step > 0; step /= 2) sum += rill_shuffle_down(sum, step);
 *     if (rill_lane() == 0) atomicAdd(total, sum);
 *
 *   rill_lane()                             the caller's lane
 *   rill_warp_size()                        the number of lanes of a warp, 32 or 64
 *   rill_shuffle(v, lane[, width])          the v of the given lane
 *   rill_shuffle_up(v, delta[, width])      the v of the lane `delta` below the caller's
 *   rill_shuffle_down(v, delta[, width])    the v of the lane `delta` above the caller's
 *   rill_shuffle_xor(v, mask[, width])      the v of the lane whose number is the caller's ^ mask
 *   rill_vote_all(p) rill_vote_any(p)       whether p is true for all lanes, for any lane
 *   rill_ballot(p)                          unsigned long long: bit i is the p of lane i
 *   rill_warp_sync()                        synchronizes the lanes; their earlier writes are visible afterwards
 *
 * All lanes of the warp that have not exited must make the same call in the same iteration.  Otherwise the result is
 * undefined on a GPU, which may hang; the CPU backend reports the error and loses the device.  Lanes that have
 * exited, and lanes beyond the end of the block, do not take part: votes ignore them, and their bits of a ballot
 * are 0.
 *
 * A width divides the warp into groups of that many lanes, a power of two, and lanes are numbered within the caller's
 * group. A width above the warp size selects the whole warp. If the selected lane is outside the group, has exited,
 * or does not exist, the result is the caller's own v. v is a trivially copyable value of 1, 2, 4 or 8 bytes. Only
 * rill_warp_sync orders memory accesses.
 */
#ifndef RILL_DEVICE_WARP_H
#define RILL_DEVICE_WARP_H

/* The including file defines rill_lane, rill_warp_size, rill_ballot, rill_vote_all, rill_vote_any, rill_warp_sync and
 * rill_shuffle_from_(v, lane, mask), which returns the v of a lane of the warp, or the caller's own if that lane does
 * not take part; the lanes of the mask make the call.  With RILL_HAS_SHUFFLE_ it defines rill_shuffle_ itself. */

#ifndef RILL_HAS_SHUFFLE_
enum { RILL_SHUFFLE_FROM_, RILL_SHUFFLE_UP_, RILL_SHUFFLE_DOWN_, RILL_SHUFFLE_XOR_ };

/* Returns the v of the lane that is `by` away, in the direction of `kind`.  A width above the warp size selects the
 * whole warp. */
template <class T>
static __device__ __forceinline__ T rill_shuffle_(T v, unsigned kind, unsigned by, unsigned width,
                                                  unsigned long long mask) {
  const unsigned self = rill_lane();
  if (width > rill_warp_size()) width = rill_warp_size();
  const unsigned inside = self & (width - 1);
  switch (kind) {
    case RILL_SHUFFLE_FROM_: return rill_shuffle_from_(v, by < width ? self - inside + by : self, mask);
    case RILL_SHUFFLE_UP_: return rill_shuffle_from_(v, by <= inside ? self - by : self, mask);
    case RILL_SHUFFLE_DOWN_: return rill_shuffle_from_(v, by < width - inside ? self + by : self, mask);
    default: return rill_shuffle_from_(v, by < width ? self ^ by : self, mask);
  }
}
#endif

#define RILL_SHUFFLE_FUNCTION_(NAME, KIND, BY)                                                    \
  template <class T> static __device__ __forceinline__ T NAME(T v, unsigned BY, unsigned width) { \
    return rill_shuffle_(v, KIND, BY, width, ~0ull);                                              \
  }                                                                                               \
  template <class T> static __device__ __forceinline__ T NAME(T v, unsigned BY) {                 \
    return rill_shuffle_(v, KIND, BY, rill_warp_size(), ~0ull);                                   \
  }
RILL_SHUFFLE_FUNCTION_(rill_shuffle, RILL_SHUFFLE_FROM_, lane)
RILL_SHUFFLE_FUNCTION_(rill_shuffle_up, RILL_SHUFFLE_UP_, delta)
RILL_SHUFFLE_FUNCTION_(rill_shuffle_down, RILL_SHUFFLE_DOWN_, delta)
RILL_SHUFFLE_FUNCTION_(rill_shuffle_xor, RILL_SHUFFLE_XOR_, mask)
#undef RILL_SHUFFLE_FUNCTION_

#endif
