/* dialect_reduce.kernel.cu: reductions over warps and blocks.
 *
 * A grid of one block of any shape.  Every thread whose number is a multiple of `drop` ends at once, unless drop is 0.
 * Thread t has the values values[round * threads + t], and writes its six results of a round, sum, least and greatest
 * of its warp and of its block, to results[(round * 6 + which) * threads + t].
 */
#include <rill/device/kernel.h>

#define REDUCTIONS(NAME, TYPE)                                                                   \
  RILL_KERNEL(NAME, unsigned drop, unsigned rounds, const TYPE *values, TYPE *results) {         \
    const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; \
    const unsigned threads = blockDim.x * blockDim.y * blockDim.z;                               \
    if (drop != 0 && thread % drop == 0) return;                                                 \
    for (unsigned round = 0; round < rounds; round++) {                                          \
      const TYPE v = values[round * threads + thread];                                           \
      TYPE *const out = results + round * 6 * threads + thread;                                  \
      out[0 * threads] = rill_warp_sum(v);                                                       \
      out[1 * threads] = rill_warp_min(v);                                                       \
      out[2 * threads] = rill_warp_max(v);                                                       \
      out[3 * threads] = rill_block_sum(v);                                                      \
      out[4 * threads] = rill_block_min(v);                                                      \
      out[5 * threads] = rill_block_max(v);                                                      \
    }                                                                                            \
  }
REDUCTIONS(reduce_int, int)
REDUCTIONS(reduce_unsigned, unsigned)
REDUCTIONS(reduce_long_long, long long)
REDUCTIONS(reduce_unsigned_long, unsigned long)
REDUCTIONS(reduce_float, float)
REDUCTIONS(reduce_double, double)
