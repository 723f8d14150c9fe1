/* basic.kernel.cu: small kernels for tests, tools and first programs.
 *
 * Launch: one dimension, any block size, at least n threads (rill_launch_1d). Further threads do nothing.
 *
 *   fill         x[i] = value
 *   scale        x[i] = a * x[i]
 *   axpy         y[i] = a * x[i] + y[i]      (one rounding or two: see Rounding in rill/device/kernel.h)
 *   vector_add   z[i] = x[i] + y[i]
 *   block_sum    sums[b] = the sum of x over block b; the block size must be a power of two, with one float
 *                of dynamic shared memory per thread
 *   count_equal  adds the number of x[i] that equal value to *count
 */
#include <rill/device/kernel.h>

/* The index is signed and as wide as a pointer, so that the host compiler can see that neighbouring threads access
 * adjacent elements. */
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

/* Adds in a tree whose shape depends only on the block size, so the result is bit-identical on every device. */
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
