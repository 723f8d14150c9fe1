/* rill/device/warp.h: what the threads of a warp do together.  Included by rill/device/kernel.h.
 *
 * A warp is 32 threads on NVIDIA GPUs and on the cpu, 32 or 64 on AMD GPUs (rill_device_info says which).
 * Threads of a block are numbered with x fastest, then y, then z; a warp is the threads of the numbers from one
 * multiple of the warp's size up to the next, and a thread's place in it is its lane.
 *
 *     float sum = x[i];
 *     for (unsigned step = rill_warp_size() / 2; step > 0; step /= 2) sum += rill_shuffle_down(sum, step);
 *     if (rill_lane() == 0) atomicAdd(total, sum);
 *
 *   rill_lane()                             the caller's lane
 *   rill_warp_size()                        lanes of a warp, 32 or 64
 *   rill_shuffle(v, lane[, width])          the v of the lane with that number
 *   rill_shuffle_up(v, delta[, width])      of the lane that many below the caller's
 *   rill_shuffle_down(v, delta[, width])    of the lane that many above
 *   rill_shuffle_xor(v, mask[, width])      of the lane whose number is the caller's ^ mask
 *   rill_vote_all(p) rill_vote_any(p)       whether p is true of all lanes, of any
 *   rill_ballot(p)                          unsigned long long: bit i is lane i's p
 *   rill_warp_sync()                        waits for the lanes; what they wrote to memory before is seen after
 *
 * A call is one of the whole warp: every lane that has not ended makes it, the same one, in the same iteration.
 * If one does not, a GPU may give wrong values or hang; the cpu backend says so and gives the device up.
 * Lanes that have ended, or that the block is too small to have, take no part: a vote is over the others, and
 * their bit of a ballot is 0.
 *
 * A width cuts the warp into groups of that many lanes, a power of two; lanes are then counted from the start of
 * the caller's group.  A width above the warp's size is the whole warp.  A lane outside the group (of any number),
 * one that has ended or one that the block does not have gives the caller's own v.  v is any plain value of 1, 2, 4
 * or 8 bytes.  Of these functions only rill_warp_sync orders memory.
 */
#ifndef RILL_DEVICE_WARP_H
#define RILL_DEVICE_WARP_H

/* The file that includes this one has rill_lane, rill_warp_size, rill_ballot, rill_vote_all, rill_vote_any,
 * rill_warp_sync, and rill_shuffle_from_(v, lane, mask): the v of a lane of the warp, the caller's own if it takes no
 * part; the lanes of the mask make the call.
 * Or, with RILL_HAS_SHUFFLE_, rill_shuffle_ itself: whose v is the business of what runs the lanes. */

#ifndef RILL_HAS_SHUFFLE_
enum { RILL_SHUFFLE_FROM_, RILL_SHUFFLE_UP_, RILL_SHUFFLE_DOWN_, RILL_SHUFFLE_XOR_ };

/* The v of the lane that is `by` away, as the kind says; a width above the warp's size is the whole warp. */
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
