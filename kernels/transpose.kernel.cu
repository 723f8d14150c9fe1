/* transpose.kernel.cu: y[column * y_pitch + row] = x[row * x_pitch + column] for row below rows, column below columns.
 * Pitches are in elements: at least `columns` for x and at least `rows` for y.
 *
 *   transpose_f32 transpose_f64   elements of any type with 4 or 8 bytes
 *
 * Launch: blocks of 32 x 8 threads, one for each tile of 32 columns and 64 rows of x. All blocks are in x, in row-major
 * order of their tiles (rill_kernels_transpose).
 * Limits: rows and columns must be at least 1. x and y must not overlap.
 * Rounding: none; elements are only copied.
 */
#include <rill/device/kernel.h>

enum { ACROSS = 32, ALONG = 64, HEIGHT = 8 }; /* columns of a tile, rows of a tile, rows of threads in a block */

/* Transposes a tile of `rows` rows and `columns` columns; a tile at the edge of the matrix is smaller. */
#if RILL_ON_CPU
/* The first thread of a block does the work of all threads, because the host compiler optimizes plain loops best. */
template <class T, class Tile>
static void move_tile(Tile &tile, int rows, int columns, const T *x, ptrdiff_t x_pitch, T *y, ptrdiff_t y_pitch) {
  if (threadIdx.x != 0 || threadIdx.y != 0) return;
  for (int k = 0; k < rows; k++)
    for (int j = 0; j < columns; j++) tile[k][j] = x[k * x_pitch + j];
  for (int j = 0; j < columns; j++)
    for (int k = 0; k < rows; k++) y[j * y_pitch + k] = tile[k][j];
}
#else
template <class T, class Tile>
static __device__ __forceinline__ void move_tile(Tile &tile, int rows, int columns, const T *x, ptrdiff_t x_pitch, T *y,
                                                 ptrdiff_t y_pitch) {
  const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);
#pragma unroll
  for (int k = 0; k < ALONG; k += HEIGHT)
    if (k + ty < rows && tx < columns) tile[k + ty][tx] = x[(k + ty) * x_pitch + tx];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < ACROSS; k += HEIGHT)
#pragma unroll
    for (int j = 0; j < ALONG; j += ACROSS)
      if (j + tx < rows && k + ty < columns) y[(k + ty) * y_pitch + j + tx] = tile[j + tx][k + ty];
}
#endif

/* A row of the tile has one extra element, so that the elements of a column are in different banks of shared memory. */
#define TRANSPOSE(NAME, T)                                                                                    \
  RILL_KERNEL_BOUNDED(ACROSS *HEIGHT, NAME, int64_t rows, int64_t columns, const T *x, int64_t x_pitch, T *y, \
                      int64_t y_pitch) {                                                                      \
    __shared__ T tile[ALONG][ACROSS + 1];                                                                     \
    const unsigned across = static_cast<unsigned>((columns + ACROSS - 1) / ACROSS);                           \
    const ptrdiff_t left = static_cast<ptrdiff_t>(blockIdx.x % across) * ACROSS;                              \
    const ptrdiff_t top = static_cast<ptrdiff_t>(blockIdx.x / across) * ALONG;                                \
    const int high = static_cast<int>(rows - top < ALONG ? rows - top : ALONG);                               \
    const int wide = static_cast<int>(columns - left < ACROSS ? columns - left : ACROSS);                     \
    move_tile(tile, high, wide, x + top * x_pitch + left, x_pitch, y + left * y_pitch + top, y_pitch);        \
  }

TRANSPOSE(transpose_f32, float)
TRANSPOSE(transpose_f64, double)
