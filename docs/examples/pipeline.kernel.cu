/* The kernel of pipeline.cu. RILL_KERNEL replaces `__global__ void`; its arguments are the name and the parameters. */
#include <rill/device/kernel.h>

RILL_KERNEL(scale_and_sum, int n, float a, float *x, float *sums) {
  __shared__ float part[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = 0;
  if (i < n) value = x[i] *= a;
  part[threadIdx.x] = value;
  __syncthreads();
  for (int half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) atomicAdd(sums, part[0]);
}
