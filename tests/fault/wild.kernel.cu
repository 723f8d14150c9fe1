/* wild.kernel.cu: kernels that do what a processor refuses, and some that do not. */
#include <rill/device/kernel.h>

/* Thread `bad` of the grid stores at `p`; the others write their numbers. */
RILL_KERNEL(store, unsigned bad, unsigned *p, unsigned *out) {
  const unsigned number = blockIdx.x * blockDim.x + threadIdx.x;
  if (number == bad) *static_cast<volatile unsigned *>(p) = number;
  out[number] = number;
}

static __device__ __attribute__((noinline)) void store_there(unsigned *p, unsigned value) {
  *static_cast<volatile unsigned *>(p) = value;
}

RILL_KERNEL(store_in_function, unsigned *p) { store_there(p, threadIdx.x); }

/* The first thread of every block does. */
RILL_KERNEL(store_everywhere, unsigned *p) {
  if (threadIdx.x == 0) *static_cast<volatile unsigned *>(p + blockIdx.x) = blockIdx.x;
}

static __device__ __attribute__((noinline)) void meet() { __syncthreads(); }

/* A barrier in a function: each thread runs on a stack of its own. */
RILL_KERNEL(store_on_fibers, unsigned bad, unsigned *p, unsigned *out) {
  meet();
  if (threadIdx.x == bad) *static_cast<volatile unsigned *>(p) = 1;
  meet();
  out[threadIdx.x] = threadIdx.x;
}

RILL_KERNEL(divide, int a, int b, int *out) { out[threadIdx.x] = a / b; }

RILL_KERNEL(stop, unsigned *out) {
  if (*out == 0) __builtin_trap();
}

/* Through a pointer, so that no compiler knows how deep this goes. */
typedef unsigned (*deep)(unsigned depth, const void *self);
static __device__ __attribute__((noinline)) unsigned go_deep(unsigned depth, const void *self) {
  volatile unsigned room[64];
  room[depth % 64] = depth;
  if (depth == 0) return room[0];
  const deep next = *static_cast<const deep *>(self);
  return next(depth - 1, self) + room[depth % 64];
}
static __device__ deep volatile deepest = go_deep;

RILL_KERNEL(overflow, unsigned depth, unsigned *out) {
  const deep next = deepest;
  out[threadIdx.x] = next(depth, &next);
}

RILL_KERNEL(overflow_on_fibers, unsigned depth, unsigned *out) {
  const deep next = deepest;
  meet();
  out[threadIdx.x] = next(depth, &next);
  meet();
}
