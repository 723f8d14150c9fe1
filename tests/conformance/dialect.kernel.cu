/* dialect.kernel.cu: variables of the device, functions, templates, structs, and printing. */
#include <stdio.h>

#include <rill/device/kernel.h>

#include "dialect_types.h"

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

/* ---- variables ---- */

__constant__ int constant_scalar = -7;
__constant__ double constant_table[2][3] = { { 1, 2, 3 }, { 4, 5, 6 } };
__constant__ struct dialect_point constant_point = { 1.5f, -2, 40000000000ll };
__device__ unsigned long long device_count = 5;
__device__ float device_array[8];
static __device__ int hidden_count;

RILL_KERNEL(read_constants, double *out) {
  out[0] = constant_scalar;
  for (int i = 0; i < 6; i++) out[1 + i] = constant_table[i / 3][i % 3];
  out[7] = constant_point.x;
  out[8] = constant_point.y;
  out[9] = static_cast<double>(constant_point.z);
}

/* What one launch leaves, the next one finds. */
RILL_KERNEL(change_globals, float v) {
  atomicAdd(&device_count, 1ull);
  atomicAdd(&hidden_count, 1);
  if (INDEX < 8) device_array[INDEX] += v;
}
RILL_KERNEL(read_globals, unsigned long long *counts, float *array) {
  counts[0] = device_count;
  counts[1] = static_cast<unsigned long long>(hidden_count);
  for (int i = 0; i < 8; i++) array[i] = device_array[i];
}

/* ---- functions, templates, namespaces, classes ---- */

namespace shapes {
struct accumulator {
  int sum, least;
  __device__ explicit accumulator(int first) : sum(first), least(first) {}
  __device__ accumulator &operator+=(int v) {
    sum += v;
    least = min(least, v);
    return *this;
  }
};
template <class T, int N> static __device__ __forceinline__ T power(T base) {
  if constexpr (N == 0) return 1;
  else return base * power<T, N - 1>(base);
}
} // namespace shapes

static __device__ __noinline__ int far_index(int step) { return static_cast<int>(INDEX) * step; }

template <class F> static __device__ int apply(F f, int x) { return f(f(x)); }

RILL_KERNEL(use_functions, int *out) {
  const int i = static_cast<int>(INDEX);
  shapes::accumulator sum(i);
  for (int j = 1; j <= 3; j++) sum += far_index(-j);
  out[4 * i] = sum.sum;
  out[4 * i + 1] = sum.least;
  out[4 * i + 2] = shapes::power<int, 3>(i);
  out[4 * i + 3] = apply([i](int x) { return 2 * x + i; }, 5);
}

/* ---- structs ---- */

RILL_KERNEL(take_structs, struct dialect_point p, const struct dialect_point *array, unsigned char between,
            dialect_matrix m, double *out) {
  const unsigned i = INDEX;
  struct dialect_point q = array[i];
  q.x += p.x;
  q.z += p.z;
  out[i] = q.x + q.y + static_cast<double>(q.z) + between + m.values[i % 3][i % 2];
}

/* ---- indices ---- */

/* Each thread writes all that it knows of its place. */
RILL_KERNEL(places, struct dialect_place *out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  struct dialect_place *p = out + block * (blockDim.x * blockDim.y * blockDim.z) + thread;
  p->thread[0] = threadIdx.x, p->thread[1] = threadIdx.y, p->thread[2] = threadIdx.z;
  p->block[0] = blockIdx.x, p->block[1] = blockIdx.y, p->block[2] = blockIdx.z;
  p->block_size[0] = blockDim.x, p->block_size[1] = blockDim.y, p->block_size[2] = blockDim.z;
  p->grid_size[0] = gridDim.x, p->grid_size[1] = gridDim.y, p->grid_size[2] = gridDim.z;
}

/* More than 2^32 of anything. */
RILL_KERNEL(wide_arithmetic, unsigned long long a, long long b, size_t n, unsigned long long *out) {
  out[0] = a * 3 + static_cast<unsigned long long>(b);
  out[1] = static_cast<unsigned long long>(b / 7);
  out[2] = static_cast<unsigned long long>(b % 7);
  out[3] = a >> 33 | a << 31;
  out[4] = n;
  unsigned long long bytes[2] = { 0, 0 };
  memcpy(&bytes[1], &a, sizeof a);
  memset(&bytes[0], 0x5a, 3);
  out[5] = bytes[0] ^ bytes[1];
}

/* What is stored as one type is there when it is read as another. */
template <class A, class B> static __device__ void see_as_both(A *a, B *b, A *as_a, B *as_b) {
  as_a[0] = *a;
  *b = static_cast<B>(7);
  as_a[1] = *a;
  as_b[0] = *b;
  *a = static_cast<A>(2);
  as_b[1] = *b;
}

RILL_KERNEL(see_bytes, float *f, int *i, double *d, short *s, float *floats, int *ints, double *doubles, short *shorts) {
  see_as_both(f, i, floats, ints);
  see_as_both(d, s, doubles, shorts);
}

/* ---- printing: not with clang alone ---- */

RILL_KERNEL(print_line, int i, double v) {
#ifndef RILL_HIP_FREESTANDING
  printf("dialect: %d %.2f\n", i, v);
#endif
}
