/* basic.kernel.cu: the small kernels that everything starts with.
 *
 * One dimension; any block size; the grid covers n threads (rill_launch_1d).  Threads past n do nothing.
 *
 *   fill         x[i] = value
 *   scale        x[i] = a * x[i]
 *   axpy         y[i] = a * x[i] + y[i]      (one rounding or two: rill/device/kernel.h, Rounding)
 *   vector_add   z[i] = x[i] + y[i]
 *   block_sum    sums[b] = the sum of x over block b; a power of two threads a block, and one float of
 *                dynamic shared memory a thread
 *   count_equal  *count += how many x[i] are equal to value
 */
#include <rill/device/kernel.h>

/* Signed and as wide as a pointer: the host compiler then sees that neighbours are neighbours in memory. */
#define GLOBAL_INDEX (static_cast<ptrdiff_t>(blockIdx.x) * blockDim.x + threadIdx.x)

RILL_KERNEL(fill, int n, float value, float *x) {
  const ptrdiff_t i = GLOBAL_INDEX;
  if (i < n) x[i] = value;
}

RILL_KERNEL(scale, int n, float a, float *x) {
  const ptrdiff_t i = GLOBAL_INDEX;
  if (i < n) x[i] = a * x[i];
}

RILL_KERNEL(axpy, int n, float a, const float *x, float *y) {
  const ptrdiff_t i = GLOBAL_INDEX;
  if (i < n) y[i] = a * x[i] + y[i];
}

RILL_KERNEL(vector_add, int n, const float *x, const float *y, float *z) {
  const ptrdiff_t i = GLOBAL_INDEX;
  if (i < n) z[i] = x[i] + y[i];
}

/* A tree whose shape depends on the block size alone, so the same on every device to the last bit. */
RILL_KERNEL(block_sum, int n, const float *x, float *sums) {
  RILL_DYNAMIC_SHARED(float, partial);
  const ptrdiff_t i = GLOBAL_INDEX;
  partial[threadIdx.x] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}

RILL_KERNEL(count_equal, int n, unsigned value, const unsigned *x, unsigned *count) {
  const ptrdiff_t i = GLOBAL_INDEX;
  if (i < n && x[i] == value) atomicAdd(count, 1u);
}
