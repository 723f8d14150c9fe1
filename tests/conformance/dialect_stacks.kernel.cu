/* dialect_stacks.kernel.cu: kernels with large arrays of their own, in each form that a kernel of the cpu has. */
#include <rill/device/kernel.h>

/* A sum that needs all of the array, whose address no compiler can see through. */
template <int Count> static __device__ __forceinline__ unsigned sum_of(unsigned seed) {
  unsigned a[Count];
  unsigned *const volatile there = a;
  unsigned *const p = there;
  for (int i = 0; i < Count; i++) p[i] = seed + static_cast<unsigned>(i);
  unsigned sum = 0;
  for (int i = Count; i-- > 0;) sum += p[i];
  return sum;
}

/* 80 KB in loops. */
RILL_KERNEL(large_in_loops, unsigned *out) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  out[t] = sum_of<20000>(t);
}

/* The same between barriers. */
RILL_KERNEL(large_between_barriers, unsigned *out) {
  __shared__ unsigned first;
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) first = t;
  __syncthreads();
  const unsigned sum = sum_of<20000>(t);
  __syncthreads();
  out[t] = sum + (first - blockIdx.x * blockDim.x);
}

static __device__ __attribute__((noinline)) void meet() { __syncthreads(); }

/* Across a barrier in a function: each thread on a stack of its own. */
template <int Count> static __device__ __forceinline__ void across_barriers(unsigned *out) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned a[Count];
  unsigned *const volatile there = a;
  unsigned *const p = there;
  for (int i = 0; i < Count; i++) p[i] = t + static_cast<unsigned>(i);
  meet();
  unsigned sum = 0;
  for (int i = Count; i-- > 0;) sum += p[i];
  meet();
  out[t] = sum;
}

RILL_KERNEL(large_on_fibers, unsigned *out) { across_barriers<20000>(out); }
RILL_KERNEL(larger_on_fibers, unsigned *out) { across_barriers<250000>(out); }
RILL_KERNEL(small_on_fibers, unsigned *out) { across_barriers<100>(out); }

static __device__ __attribute__((noinline)) unsigned far_below(unsigned t) { return sum_of<30000>(t); }

RILL_KERNEL(large_in_function, unsigned *out) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  meet();
  out[t] = far_below(t);
}

/* As much as there may be. */
RILL_KERNEL(largest, unsigned *out) { out[threadIdx.x] = sum_of<2000000>(threadIdx.x); }
