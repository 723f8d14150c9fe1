/* scale.kernel.cu: multiplies n numbers by a factor. */
#include <rill/device/kernel.h>

RILL_KERNEL(scale, int n, float factor, float *x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}
