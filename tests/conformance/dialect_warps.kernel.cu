/* dialect_warps.kernel.cu: what threads do together with their warp and their block.
 *
 * Blocks of any shape, a grid of one block.  Every thread whose number is a multiple of `drop` ends at once, unless
 * drop is 0.  What thread t finds out in round r lies at [r * threads + t].
 */
#include <rill/device/kernel.h>

static __device__ unsigned thread_number() {
  return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
}
static __device__ unsigned thread_count() { return blockDim.x * blockDim.y * blockDim.z; }
static __device__ bool ends_at_once(unsigned drop) { return drop != 0 && thread_number() % drop == 0; }

RILL_KERNEL(warp_places, unsigned *lanes, unsigned *sizes) {
  lanes[thread_number()] = rill_lane();
  sizes[thread_number()] = rill_warp_size();
}

/* Rounds: for each width (0: none is given), for each amount, the four shuffles. */
template <class T>
static __device__ void shuffle_all(unsigned drop, const unsigned *widths, unsigned width_count, const unsigned *amounts,
                                   unsigned amount_count, const T *values, T *results) {
  if (ends_at_once(drop)) return;
  const T v = values[thread_number()];
  T *out = results + thread_number();
  for (unsigned i = 0; i < width_count; i++) {
    for (unsigned j = 0; j < amount_count; j++) {
      const unsigned width = widths[i], amount = amounts[j];
      if (width == 0) {
        out[0 * thread_count()] = rill_shuffle(v, amount);
        out[1 * thread_count()] = rill_shuffle_up(v, amount);
        out[2 * thread_count()] = rill_shuffle_down(v, amount);
        out[3 * thread_count()] = rill_shuffle_xor(v, amount);
      } else {
        out[0 * thread_count()] = rill_shuffle(v, amount, width);
        out[1 * thread_count()] = rill_shuffle_up(v, amount, width);
        out[2 * thread_count()] = rill_shuffle_down(v, amount, width);
        out[3 * thread_count()] = rill_shuffle_xor(v, amount, width);
      }
      out += 4 * thread_count();
    }
  }
}
#define SHUFFLES(NAME, TYPE)                                                                              \
  RILL_KERNEL(NAME, unsigned drop, const unsigned *widths, unsigned width_count, const unsigned *amounts, \
              unsigned amount_count, const TYPE *values, TYPE *results) {                                 \
    shuffle_all(drop, widths, width_count, amounts, amount_count, values, results);                       \
  }
SHUFFLES(shuffle_char, unsigned char)
SHUFFLES(shuffle_short, short)
SHUFFLES(shuffle_int, int)
SHUFFLES(shuffle_unsigned, unsigned)
SHUFFLES(shuffle_long_long, long long)
SHUFFLES(shuffle_unsigned_long_long, unsigned long long)
SHUFFLES(shuffle_float, float)
SHUFFLES(shuffle_double, double)

/* Bit r of a thread's word is what it says in round r, of 32. */
RILL_KERNEL(votes, unsigned drop, const unsigned *words, unsigned long long *ballots, unsigned char *all,
            unsigned char *any) {
  if (ends_at_once(drop)) return;
  for (unsigned round = 0; round < 32; round++) {
    const bool p = (words[thread_number()] >> round & 1) != 0;
    const unsigned at = round * thread_count() + thread_number();
    ballots[at] = rill_ballot(p);
    all[at] = rill_vote_all(p);
    any[at] = rill_vote_any(p);
  }
}

/* The same for the whole block; a predicate that is true need not be 1. */
RILL_KERNEL(counts, unsigned drop, const unsigned *words, int *count, unsigned char *all, unsigned char *any) {
  if (ends_at_once(drop)) return;
  for (unsigned round = 0; round < 32; round++) {
    const int p = static_cast<int>(words[thread_number()] & 1u << round);
    const unsigned at = round * thread_count() + thread_number();
    count[at] = __syncthreads_count(p);
    all[at] = __syncthreads_and(p) != 0;
    any[at] = __syncthreads_or(p) != 0;
  }
}

/* Each lane hands its number to the next one of its warp through shared memory, over and over. */
RILL_KERNEL(hand_on, unsigned rounds, unsigned *out) {
  RILL_DYNAMIC_SHARED(unsigned, slots);
  const unsigned first = thread_number() - rill_lane();
  const unsigned left = thread_count() - first, lanes = left < rill_warp_size() ? left : rill_warp_size();
  const unsigned next = first + (rill_lane() + 1) % lanes;
  unsigned mine = thread_number();
  for (unsigned i = 0; i < rounds; i++) {
    slots[next] = mine;
    rill_warp_sync();
    mine = slots[thread_number()];
    rill_warp_sync();
  }
  out[thread_number()] = mine;
}

/* The sum of x as people write it: in each warp by shuffles, then of the warps' sums by the first warp. */
RILL_KERNEL(block_total, const unsigned *x, unsigned *total) {
  __shared__ __align__(16) unsigned sums[64];
  const unsigned lane = rill_lane(), warp = thread_number() / rill_warp_size();
  const unsigned warps = (thread_count() + rill_warp_size() - 1) / rill_warp_size();
  unsigned sum = x[thread_number()];
  for (unsigned step = rill_warp_size() / 2; step > 0; step /= 2) {
    const unsigned other = rill_shuffle_down(sum, step);
    if (lane + step < rill_warp_size() && thread_number() + step < thread_count()) sum += other;
  }
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (warp != 0) return;
  sum = lane < warps ? sums[lane] : 0;
  for (unsigned step = rill_warp_size() / 2; step > 0; step /= 2) {
    const unsigned other = rill_shuffle_xor(sum, step);
    if ((lane ^ step) < thread_count()) sum += other;
  }
  if (lane == 0) *total = sum;
}
