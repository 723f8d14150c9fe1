/* What dialect.kernel.cu calls, in a file of its own so that the dependency file has something to name. */
#ifndef DIALECT_HELPERS_H
#define DIALECT_HELPERS_H

/* The index of this thread among all of the grid, from inside a function. */
static __device__ unsigned linear_index() {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  return block * (blockDim.x * blockDim.y * blockDim.z) + thread;
}

#endif
