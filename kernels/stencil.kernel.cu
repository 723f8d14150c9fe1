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

/* Written so that the host compiler makes vector code of it: places in x, not pointers into it, and one condition. */
#define STENCIL(SUFFIX, T, FMA)                                                                                      \
  RILL_KERNEL(stencil5_##SUFFIX, int64_t width, int64_t height, T center, T near, const T *x, T *y) {                \
    const unsigned across = static_cast<unsigned>((width + blockDim.x - 1) / blockDim.x);                            \
    const ptrdiff_t i = static_cast<ptrdiff_t>(blockIdx.x % across) * blockDim.x + threadIdx.x;                      \
    const ptrdiff_t j = static_cast<ptrdiff_t>(blockIdx.x / across) * blockDim.y + threadIdx.y;                      \
    const ptrdiff_t at = j * width + i;                                                                              \
    if (i >= width || j >= height) return;                                                                           \
    if (i == 0 || i == width - 1 || j == 0 || j == height - 1) {                                                     \
      y[at] = x[at];                                                                                                 \
      return;                                                                                                        \
    }                                                                                                                \
    y[at] = FMA(near, (x[at - 1] + x[at + 1]) + (x[at - width] + x[at + width]), center * x[at]);                    \
  }                                                                                                                  \
  RILL_KERNEL(stencil7_##SUFFIX, int64_t width, int64_t height, int64_t depth, T center, T near, const T *x, T *y) { \
    const unsigned across = static_cast<unsigned>((width + blockDim.x - 1) / blockDim.x);                            \
    const unsigned down = static_cast<unsigned>((height + blockDim.y - 1) / blockDim.y);                             \
    const unsigned tile_row = blockIdx.x / across;                                                                   \
    const ptrdiff_t i = static_cast<ptrdiff_t>(blockIdx.x % across) * blockDim.x + threadIdx.x;                      \
    const ptrdiff_t j = static_cast<ptrdiff_t>(tile_row % down) * blockDim.y + threadIdx.y;                          \
    const ptrdiff_t k = tile_row / down, plane = width * height;                                                     \
    const ptrdiff_t at = k * plane + j * width + i;                                                                  \
    if (i >= width || j >= height) return;                                                                           \
    if (i == 0 || i == width - 1 || j == 0 || j == height - 1 || k == 0 || k == depth - 1) {                         \
      y[at] = x[at];                                                                                                 \
      return;                                                                                                        \
    }                                                                                                                \
    const T flat = (x[at - 1] + x[at + 1]) + (x[at - width] + x[at + width]);                                        \
    y[at] = FMA(near, flat + (x[at - plane] + x[at + plane]), center * x[at]);                                       \
  }

STENCIL(f32, float, fmaf)
STENCIL(f64, double, fma)
