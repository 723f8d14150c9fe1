/* stencil.kernel.cu: one step of a stencil: each point becomes a weighted sum of itself and its nearest neighbours.
 *
 *   stencil5_f32 stencil5_f64   in a plane: y = center * x + near * ((left + right) + (up + down))
 *   stencil7_f32 stencil7_f64   in space:   y = center * x + near * (((left + right) + (up + down)) + (below + above))
 *
 * Points lie row after row (and plane after plane) without gaps.  Those at the border, which lack a neighbour, are
 * copied.
 *
 * Launch: one thread a point; blocks of any size in two dimensions, one for each tile of its size, all in x: row after
 * row of tiles, and plane after plane (rill_kernels_grid2d, rill_kernels_grid3d); 64 x 4 threads on a GPU.
 * Limits: sizes > 0, since no launch is of 0 threads; x and y do not overlap.
 * Rounding: the sums as written, center * x once, and the last product and sum once, together (fma): the same on
 * every device to the last bit.
 */
#include <rill/device/kernel.h>

#define STENCIL(SUFFIX, T, FMA)                                                                                      \
  RILL_KERNEL(stencil5_##SUFFIX, int64_t width, int64_t height, T center, T near, const T *x, T *y) {                \
    const unsigned across = static_cast<unsigned>((width + blockDim.x - 1) / blockDim.x);                            \
    const ptrdiff_t i = static_cast<ptrdiff_t>(blockIdx.x % across) * blockDim.x + threadIdx.x;                      \
    const ptrdiff_t j = static_cast<ptrdiff_t>(blockIdx.x / across) * blockDim.y + threadIdx.y;                      \
    if (i >= width || j >= height) return;                                                                           \
    const T *const p = x + j * width + i;                                                                            \
    T value = *p;                                                                                                    \
    if (i > 0 && i < width - 1 && j > 0 && j < height - 1)                                                           \
      value = FMA(near, (p[-1] + p[1]) + (p[-width] + p[width]), center * value);                                    \
    y[j * width + i] = value;                                                                                        \
  }                                                                                                                  \
  RILL_KERNEL(stencil7_##SUFFIX, int64_t width, int64_t height, int64_t depth, T center, T near, const T *x, T *y) { \
    const unsigned across = static_cast<unsigned>((width + blockDim.x - 1) / blockDim.x);                            \
    const unsigned down = static_cast<unsigned>((height + blockDim.y - 1) / blockDim.y);                             \
    const unsigned tile_row = blockIdx.x / across;                                                                   \
    const ptrdiff_t i = static_cast<ptrdiff_t>(blockIdx.x % across) * blockDim.x + threadIdx.x;                      \
    const ptrdiff_t j = static_cast<ptrdiff_t>(tile_row % down) * blockDim.y + threadIdx.y;                          \
    const ptrdiff_t k = tile_row / down;                                                                             \
    if (i >= width || j >= height) return;                                                                           \
    const ptrdiff_t plane = width * height;                                                                          \
    const T *const p = x + k * plane + j * width + i;                                                                \
    T value = *p;                                                                                                    \
    if (i > 0 && i < width - 1 && j > 0 && j < height - 1 && k > 0 && k < depth - 1)                                 \
      value = FMA(near, ((p[-1] + p[1]) + (p[-width] + p[width])) + (p[-plane] + p[plane]), center * value);         \
    y[k * plane + j * width + i] = value;                                                                            \
  }

STENCIL(f32, float, fmaf)
STENCIL(f64, double, fma)
