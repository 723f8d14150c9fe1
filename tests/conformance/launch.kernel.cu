/* launch.kernel.cu: kernels that show what a launch gave them. */
#include <rill/device/kernel.h>

/* Variables that the host finds by name. */
__constant__ unsigned factors[4];
static __constant__ double offset_of_all;
__device__ unsigned total;

RILL_KERNEL(nothing) {}

/* Gives the constants, and counts in `total`. */
RILL_KERNEL(give_constants, unsigned *out, double *offset) {
  for (int i = 0; i < 4; i++) out[i] = factors[i];
  *offset = offset_of_all;
  atomicAdd(&total, 1u);
}

RILL_KERNEL(store, unsigned value, unsigned *out) { *out = value; }

/* Every scalar type, so that sizes and padding show. */
RILL_KERNEL(scalars, signed char a, unsigned short b, int c, unsigned long long d, float e, double f, bool g, char h,
            double *out) {
  out[0] = a;
  out[1] = b;
  out[2] = c;
  out[3] = static_cast<double>(d);
  out[4] = e;
  out[5] = f;
  out[6] = g;
  out[7] = h;
}

RILL_KERNEL(sum_of_many, int a0, int a1, int a2, int a3, int a4, int a5, int a6, int a7, int a8, int a9, int a10,
            int a11, int a12, int a13, int a14, int a15, int a16, int a17, int a18, int a19, int a20, int a21, int a22,
            int a23, int a24, int a25, int a26, int a27, int a28, int a29, int a30, unsigned *out) {
  *out = static_cast<unsigned>(a0 + a1 + a2 + a3 + a4 + a5 + a6 + a7 + a8 + a9 + a10 + a11 + a12 + a13 + a14 + a15 +
                               a16 + a17 + a18 + a19 + a20 + a21 + a22 + a23 + a24 + a25 + a26 + a27 + a28 + a29 + a30);
}

/* Each thread counts itself at its place in the whole grid, x fastest, and block after block. */
RILL_KERNEL(count_threads, unsigned *count) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  atomicAdd(&count[block * (blockDim.x * blockDim.y * blockDim.z) + thread], 1u);
}

/* Turns each block of x around, through dynamic shared memory. */
RILL_KERNEL(reverse_blocks, unsigned *x) {
  RILL_DYNAMIC_SHARED(unsigned, values);
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  values[threadIdx.x] = x[i];
  __syncthreads();
  x[i] = values[blockDim.x - 1 - threadIdx.x];
}

/* The sum of a block's numbers 0, 1, 2 ..., through static shared memory. */
RILL_KERNEL_BOUNDED(256, add_up, unsigned *sums) {
  __shared__ unsigned values[256];
  values[threadIdx.x] = threadIdx.x;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = values[0];
}

/* Writes the last byte of the dynamic shared memory of `bytes` and reads it back. */
RILL_KERNEL(touch_shared, unsigned bytes, unsigned *out) {
  RILL_DYNAMIC_SHARED(unsigned char, memory);
  memory[bytes - 1] = 77;
  *out = memory[bytes - 1];
}
