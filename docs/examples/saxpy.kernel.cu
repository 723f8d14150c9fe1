/* y = a x + y, compiled by rillcc for every device. */
#include <rill/device/kernel.h>

RILL_KERNEL(saxpy, int n, float a, const float *x, float *y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
