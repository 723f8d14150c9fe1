/* transpose.kernel.cu: y[column * y_pitch + row] = x[row * x_pitch + column] for row below rows, column below columns.
 * Pitches are in elements: at least `columns` for x, at least `rows` for y.
 *
 *   transpose_f32 transpose_f64   elements of 4 and of 8 bytes
 *
 * Launch: blocks of 32 x 8 threads, one for each tile of 32 x 32 elements of x, all in x and row after row of them
 * (rill_kernels_transpose).
 * Limits: rows, columns > 0, since no launch is of 0 threads; x and y do not overlap.
 * Exact: nothing is computed.
 */
#include <rill/device/kernel.h>

enum { SIDE = 32, HEIGHT = 8 };

/* A row of the tile has one element more, so that a column of it lies in all banks of shared memory. */
#define TRANSPOSE(NAME, T)                                                                                  \
  RILL_KERNEL_BOUNDED(SIDE *HEIGHT, NAME, int64_t rows, int64_t columns, const T *x, int64_t x_pitch, T *y, \
                      int64_t y_pitch) {                                                                    \
    __shared__ T tile[SIDE][SIDE + 1];                                                                      \
    const int tx = static_cast<int>(threadIdx.x), ty = static_cast<int>(threadIdx.y);                       \
    const unsigned across = static_cast<unsigned>((columns + SIDE - 1) / SIDE);                             \
    const ptrdiff_t left = static_cast<ptrdiff_t>(blockIdx.x % across) * SIDE;                              \
    const ptrdiff_t top = static_cast<ptrdiff_t>(blockIdx.x / across) * SIDE;                               \
    if (left + tx < columns)                                                                                \
      for (int k = ty; k < SIDE; k += HEIGHT)                                                               \
        if (top + k < rows) tile[k][tx] = x[(top + k) * x_pitch + left + tx];                               \
    __syncthreads();                                                                                        \
    if (top + tx < rows)                                                                                    \
      for (int k = ty; k < SIDE; k += HEIGHT)                                                               \
        if (left + k < columns) y[(left + k) * y_pitch + top + tx] = tile[tx][k];                           \
  }

TRANSPOSE(transpose_f32, float)
TRANSPOSE(transpose_f64, double)
