/* dialect.kernel.cu: every part of the kernel dialect once, for every compiler. */
#include <rill/device/kernel.h>

#include "dialect_helpers.h"

__constant__ float gain = 3.0f;
__constant__ int table[4] = { 1, 2, 4, 8 };
__device__ unsigned long long hits;
namespace {
__device__ int hidden; /* no host finds it */
}

static __device__ __noinline__ int next_hidden() { return ++hidden; }

/* Argument kinds: sizes 1 to 8, so that padding shows. */
RILL_KERNEL(arguments, signed char a, short b, int c, long long d, float e, double f, const void *p, bool g,
            unsigned char h, double *out) {
  out[0] = a;
  out[1] = b;
  out[2] = c;
  out[3] = static_cast<double>(d);
  out[4] = e;
  out[5] = f;
  out[6] = p == out;
  out[7] = g;
  out[8] = h;
}

RILL_KERNEL(no_arguments) { atomicAdd(&hits, 1ull); }

RILL_KERNEL_BOUNDED(RILL_MIN_BLOCKS(64, 2), constants, int n, float *__restrict__ out) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = gain * static_cast<float>(table[i % 4]);
}

/* Indices in three dimensions, in the kernel and in a function that it calls. */
RILL_KERNEL(indices, unsigned *in_kernel, unsigned *in_helper) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  const unsigned i = block * (blockDim.x * blockDim.y * blockDim.z) + thread;
  in_kernel[i] = i;
  in_helper[i] = linear_index();
}

/* Every thread sees what the one before it wrote, and is still itself after the barrier. */
RILL_KERNEL(rotate, unsigned *out) {
  RILL_DYNAMIC_SHARED(unsigned, slots);
  __shared__ unsigned total;
  slots[threadIdx.x] = threadIdx.x;
  if (threadIdx.x == 0) total = blockDim.x;
  __syncthreads();
  out[linear_index()] = slots[(threadIdx.x + 1) % total];
}

RILL_KERNEL(atomics, int *i, unsigned *u, unsigned long long *l, float *f, double *d) {
  atomicAdd(&i[0], 2);
  atomicSub(&i[1], 2);
  atomicExch(&i[2], 7);
  atomicCAS(&i[3], 0, 9);
  atomicMin(&i[4], -5);
  atomicMax(&i[5], 5);
  atomicAnd(&i[6], 6);
  atomicOr(&i[7], 6);
  atomicXor(&i[8], 6);
  atomicAdd(&u[0], 2u);
  atomicSub(&u[1], 2u);
  atomicExch(&u[2], 7u);
  atomicCAS(&u[3], 0u, 9u);
  atomicMin(&u[4], 5u);
  atomicMax(&u[5], 5u);
  atomicAnd(&u[6], 6u);
  atomicOr(&u[7], 6u);
  atomicXor(&u[8], 6u);
  atomicAdd(&l[0], 2ull);
  atomicExch(&l[2], 7ull);
  atomicCAS(&l[3], 0ull, 9ull);
  atomicMin(&l[4], 5ull);
  atomicMax(&l[5], 5ull);
  atomicAnd(&l[6], 6ull);
  atomicOr(&l[7], 6ull);
  atomicXor(&l[8], 6ull);
  atomicAdd(&f[0], 0.5f);
  atomicExch(&f[1], 2.0f);
  atomicAdd(&d[0], 0.25);
  __threadfence_block();
  __threadfence();
  __threadfence_system();
}

RILL_KERNEL(math, float x, double y, int i, float *f, double *d, int *n) {
  f[0] = sqrtf(x);
  f[1] = fabsf(-x);
  f[2] = fminf(x, 1.0f) + fmaxf(x, 1.0f);
  f[3] = floorf(x) + ceilf(x) + truncf(x) + rintf(x);
  f[4] = fmaf(x, x, 1.0f);
  f[5] = min(x, 2.0f) + max(x, 2.0f);
  d[0] = sqrt(y) + fabs(-y);
  d[1] = fmin(y, 1.0) + fmax(y, 1.0) + floor(y) + ceil(y) + trunc(y) + rint(y) + fma(y, y, 1.0);
  d[2] = min(y, 2.0) + max(y, 2.0);
  n[0] = abs(i);
  n[1] = min(i, 3) + max(i, 3);
  n[2] = static_cast<int>(min(5u, 3u) + max(5u, 3u));
  n[3] = static_cast<int>(min(5ull, 3ull) + max(5ull, 3ull));
  n[4] = next_hidden();
}

RILL_KERNEL_BOUNDED(64, hints, const int *from, int *to) {
  __stwb(&to[0], __ldg(&from[0]));
  __stcg(&to[1], __ldcg(&from[1]));
  __stcs(&to[2], __ldcs(&from[2]));
  __stwt(&to[3], __ldca(&from[3]) + __ldlu(&from[4]) + __ldcv(&from[5]));
}

RILL_KERNEL(wait_a_little, const unsigned *flag, unsigned long long *wide, unsigned long long *elapsed) {
  const unsigned long long start = rill_clock_ns();
  while (rill_load_acquire(flag) == 0 && rill_clock_ns() - start < 1000) rill_pause();
  rill_store_release(wide, rill_load_acquire(wide) + 1);
  *elapsed = rill_clock_ns() - start;
}
