/* warp_sum.kernel.cu: the sum of many numbers, in one kernel for warps of 32 and of 64 threads. */
#include <assert.h>

#include <rill/device/kernel.h>

/* Adds the sum of x[0 .. n-1] to `*total`. Launch: one dimension, with complete warps in each block. */
RILL_KERNEL(warp_sum, int n, const rill_half *x, float *total) {
  __shared__ float sums[32]; /* one per warp of a block: at most 1024 / 32 */
  const unsigned lane = rill_lane(), warp = threadIdx.x / rill_warp_size(), warps = blockDim.x / rill_warp_size();
  assert(blockDim.x % rill_warp_size() == 0);

  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += rill_to_float(x[i]);

  for (unsigned step = rill_warp_size() / 2; step > 0; step /= 2) sum += rill_shuffle_down(sum, step);
  if (lane == 0) sums[warp] = sum;
  __syncthreads();
  if (warp != 0) return; /* all threads of the warp return, and no barrier follows */

  sum = lane < warps ? sums[lane] : 0;
  for (unsigned step = rill_warp_size() / 2; step > 0; step /= 2) sum += rill_shuffle_down(sum, step);
  if (lane == 0) atomicAdd(total, sum);
}
