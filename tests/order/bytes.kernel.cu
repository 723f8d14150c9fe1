/* Kernels that use parts of their allocations, for RILL_CHECK=order:precise. */
#include <rill/device/kernel.h>

RILL_KERNEL(write_bytes, unsigned char *p, unsigned n) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = static_cast<unsigned char>(i);
}

/* All of them, though the pointer is not to const. */
RILL_KERNEL(read_bytes, unsigned char *p, unsigned n, unsigned *sum) {
  unsigned all = 0;
  for (unsigned i = 0; i < n; i++) all += p[i];
  *sum = all;
}

RILL_KERNEL(write_every_other, unsigned *p, unsigned n, unsigned first) {
  for (unsigned i = first + 2 * threadIdx.x; i < n; i += 2 * blockDim.x) p[i] = i;
}

/* A square of a matrix with rows of `pitch` bytes. */
RILL_KERNEL(write_rows, unsigned char *p, unsigned pitch, unsigned width, unsigned height) {
  for (unsigned y = threadIdx.x; y < height; y += blockDim.x)
    for (unsigned x = 0; x < width; x++) p[y * pitch + x] = 1;
}

RILL_KERNEL(count, unsigned *p) { atomicAdd(p, 1u); }
RILL_KERNEL(sum_up, float *p) { atomicAdd(p, 1.0f); }

/* Between neighbours, in shared memory that blocks of both kernels have at the same place. */
RILL_KERNEL(reverse_block, unsigned *p) {
  __shared__ unsigned tile[64];
  tile[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

/* The address is in memory, so that no argument tells of it. */
RILL_KERNEL(write_through, unsigned char *const *at, unsigned n) {
  for (unsigned i = threadIdx.x; i < n; i += blockDim.x) (*at)[i] = 2;
}

__device__ unsigned of_module;
RILL_KERNEL(write_variable, unsigned v) { of_module = v; }

/* One shows by a flag that the data is there, the other one waits for that, for so many looks. */
RILL_KERNEL(produce, unsigned *data, unsigned *flag) {
  *data = 1;
  __threadfence();
  atomicExch(flag, 1u);
}
RILL_KERNEL(consume, unsigned *data, unsigned *flag, unsigned looks) {
  for (unsigned i = 0; i < looks && atomicAdd(flag, 0u) == 0; i++) continue;
  *data = 2;
}
RILL_KERNEL(produce_volatile, unsigned *data, unsigned *flag) {
  *data = 1;
  __threadfence();
  *static_cast<volatile unsigned *>(flag) = 1;
}
RILL_KERNEL(consume_volatile, unsigned *data, unsigned *flag, unsigned looks) {
  for (unsigned i = 0; i < looks && *static_cast<volatile unsigned *>(flag) == 0; i++) continue;
  *data = 2;
}
