/* transpose.kernel.cu: y[column * y_pitch + row] = x[row * x_pitch + column] for row below rows, column below columns.
 * Pitches are in elements: at least `columns` for x, at least `rows` for y.
 *
 *   transpose_f32 transpose_f64   elements of 4 and of 8 bytes
 *
 * Launch: blocks of 32 x 8 threads, one for each tile of 32 columns and 64 rows of x, all in x and row after row of
 * them (rill_kernels_transpose).
 * Limits: rows, columns > 0, since no launch is of 0 threads; x and y do not overlap.
 * Exact: nothing is computed.
 */
#include <rill/device/kernel.h>

enum { ACROSS = 32, ALONG = 64, HEIGHT = 8 }; /* columns and rows of a tile, rows of threads */

/* Moves a tile, of which that many rows and columns are there. */
#if RILL_ON_CPU
/* The first thread of a block does the work of all: plain loops are what the host compiler is best at. */
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

/* A row of the tile has one element more, so that a column of it lies in all banks of shared memory. */
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
