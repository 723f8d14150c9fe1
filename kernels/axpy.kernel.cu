/* axpy.kernel.cu: y[i] = a * x[i] + y[i] for i below n.
 *
 *   axpy_f32 axpy_f64
 *
 * Launch: one thread for every 16 bytes (rill_kernels_wide), in one-dimensional blocks of any size; on a GPU use 1024
 * threads.
 * Limits: n must be at least 1. Arrays may have any alignment; multiples of 16 bytes are fastest. x may be y, but must
 * not overlap it otherwise.
 * Rounding: each element is rounded once, by an explicit fma, so the result is bit-identical on every device.
 */
#include <rill/device/kernel.h>

#include "wide.h"

#define AXPY(NAME, T, FMA)                                                     \
  RILL_KERNEL(NAME, int64_t n, T a, const T *x, T *y) {                        \
    map_wide(                                                                  \
        GLOBAL_INDEX, n, [a](T xi, T yi) { return FMA(a, xi, yi); }, y, x, y); \
  }

AXPY(axpy_f32, float, fmaf)
AXPY(axpy_f64, double, fma)
