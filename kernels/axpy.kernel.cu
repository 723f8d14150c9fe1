/* axpy.kernel.cu: y[i] = a * x[i] + y[i] for i below n.
 *
 *   axpy_f32 axpy_f64
 *
 * Launch: a thread for each 16 bytes (rill_kernels_wide), any block of one dimension; 1024 threads on a GPU.
 * Limits: n > 0, since no launch is of 0 threads; any alignment, multiples of 16 bytes are fastest; x may be y, and
 * they overlap in no other way.
 * Rounding: once, as fma does, whatever the compiler fuses: the same on every device to the last bit.
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
