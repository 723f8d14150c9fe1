/* copy2d.kernel.cu: copies the rows of an image or a matrix: dst[row * dst_pitch + i] = src[row * src_pitch + i] for i
 * below width and row below height. Widths and pitches are in elements.
 *
 *   copy2d_f32 copy2d_f64   elements of any type with 4 or 8 bytes
 *
 * Launch: two-dimensional blocks of any size; on a GPU use 64 x 4 threads. Each block copies a tile that is as wide as
 * the block and four times as high. All blocks are in x, in row-major order of their tiles (rill_kernels_copy2d).
 * Limits: width and height must be at least 1. src and dst must not overlap.
 * Rounding: none; bits are copied unchanged.
 */
#include <rill/device/kernel.h>

enum { ROWS = 4 }; /* per thread; several rows keep more loads in flight */

#define COPY2D(NAME, T, BITS)                                                                                    \
  RILL_KERNEL(NAME, int64_t width, int64_t height, const T *src, int64_t src_pitch, T *dst, int64_t dst_pitch) { \
    const BITS *const from = reinterpret_cast<const BITS *>(src);                                                \
    BITS *const to = reinterpret_cast<BITS *>(dst);                                                              \
    const unsigned across = static_cast<unsigned>((width + blockDim.x - 1) / blockDim.x);                        \
    const ptrdiff_t i = static_cast<ptrdiff_t>(blockIdx.x % across) * blockDim.x + threadIdx.x;                  \
    const ptrdiff_t row = static_cast<ptrdiff_t>(blockIdx.x / across) * (ROWS * blockDim.y) + threadIdx.y;       \
    const ptrdiff_t step = blockDim.y;                                                                           \
    if (i >= width) return;                                                                                      \
    BITS values[ROWS];                                                                                           \
    for (int k = 0; k < ROWS; k++)                                                                               \
      if (row + k * step < height) values[k] = from[(row + k * step) * src_pitch + i];                           \
    for (int k = 0; k < ROWS; k++)                                                                               \
      if (row + k * step < height) to[(row + k * step) * dst_pitch + i] = values[k];                             \
  }

COPY2D(copy2d_f32, float, uint32_t)
COPY2D(copy2d_f64, double, uint64_t)
