/* dialect_checked.kernel.cu: for rillcc --check: a race, and a barrier that not all threads reach. */
#include <rill/device/kernel.h>

RILL_KERNEL(checked_sum, unsigned barriers, unsigned *out) {
  __shared__ unsigned s[40];
  s[threadIdx.x] = 1;
  if (barriers > 0) __syncthreads();
  unsigned sum = 0;
  for (unsigned i = 0; i < blockDim.x; i++) sum += s[i];
  if (threadIdx.x < barriers) __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum * threadIdx.x / 40 + blockIdx.x * blockDim.x;
}
