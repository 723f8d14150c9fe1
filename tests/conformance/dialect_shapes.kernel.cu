/* dialect_shapes.kernel.cu: each thread stores a value at its place in the grid, and counts its visit. */
#include <rill/device/kernel.h>

#include "dialect_shapes.h"

#define T(AXIS) threadIdx.AXIS
#define B(AXIS) blockIdx.AXIS
#define D(AXIS) blockDim.AXIS
#define G(AXIS) gridDim.AXIS

#define SHAPE(NAME, VALUE)                                          \
  RILL_KERNEL(shape_##NAME, unsigned nx, unsigned ny, unsigned *values, unsigned *visits) {   \
    values[PLACE] = VALUE;                                          \
    atomicAdd(&visits[PLACE], 1u);                                  \
  }
SHAPES(SHAPE)

/* The same, computed with 64 bits. */
RILL_KERNEL(shape_wide, unsigned nx, unsigned ny, unsigned *values, unsigned *visits) {
  const size_t x = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  const size_t y = static_cast<size_t>(blockIdx.y) * blockDim.y + threadIdx.y;
  const size_t place = x + nx * (y + ny * INDEX(z));
  values[place] = static_cast<unsigned>(x * 3 + y);
  atomicAdd(&visits[place], 1u);
}

/* Threads exchange values with a neighbour in their block, through shared memory or a warp. */
RILL_KERNEL(shape_shared, unsigned nx, unsigned ny, unsigned *values, unsigned *visits) {
  __shared__ unsigned all[1024];
  const unsigned number = T(x) + D(x) * (T(y) + D(y) * T(z)), threads = D(x) * D(y) * D(z);
  all[number] = static_cast<unsigned>(PLACE);
  __syncthreads();
  values[PLACE] = all[(number + 1) % threads];
  atomicAdd(&visits[PLACE], 1u);
}
