/* A consumer's kernel. */
#include <rill/device/kernel.h>

#include "factor.h"

RILL_KERNEL(scale, int n, const unsigned *x, unsigned *y) {
  const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = FACTOR * x[i];
}
