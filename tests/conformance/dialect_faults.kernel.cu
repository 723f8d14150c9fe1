/* dialect_faults.kernel.cu: kernels that stop at an assertion, or for ever. */
#undef NDEBUG
#include <assert.h>

#include <rill/device/kernel.h>

/* Fails in the thread whose number in the grid is `bad`. */
RILL_KERNEL(assert_in_kernel, unsigned bad, unsigned *out) {
  const unsigned number = blockIdx.x * blockDim.x + threadIdx.x;
  assert(number != bad);
  out[number] = number;
}

static __device__ __noinline__ unsigned checked(unsigned number, unsigned bad) {
  assert(number != bad);
  return number + 1;
}

/* The same in a function, with threads that wait for each other. */
RILL_KERNEL(assert_in_function, unsigned bad, unsigned *out) {
  __shared__ unsigned last;
  if (threadIdx.x == blockDim.x - 1) last = threadIdx.x;
  __syncthreads();
  const unsigned number = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned next = checked(number, bad);
  __syncthreads();
  out[number] = rill_shuffle(next - 1, rill_lane()) + (last + 1 - blockDim.x);
}

/* Against the rules: some threads at a barrier of the block, the others of their warp in a function of it. */
RILL_KERNEL(wait_for_ever, unsigned *out) {
  if (threadIdx.x % 2 == 0) __syncthreads();
  else rill_warp_sync();
  out[threadIdx.x] = 1;
}

#define NDEBUG
#include <assert.h>

RILL_KERNEL(assert_nothing, unsigned bad, unsigned *out) {
  const unsigned number = blockIdx.x * blockDim.x + threadIdx.x;
  assert(number != bad);
  out[number] = number;
}
