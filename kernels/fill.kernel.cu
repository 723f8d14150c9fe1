/* fill.kernel.cu: x[i] = value for i below n.
 *
 *   fill_f32 fill_f64
 *
 * Launch: a thread for each 16 bytes (rill_kernels_wide), any block of one dimension; 1024 threads on a GPU.
 * Limits: n > 0, since no launch is of 0 threads; any alignment, multiples of 16 bytes are fastest.
 * Exact: the value arrives as it is, a NaN's payload too.
 */
#include <rill/device/kernel.h>

#include "wide.h"

#define FILL(NAME, T)                                     \
  RILL_KERNEL(NAME, int64_t n, T value, T *x) {           \
    map_wide(                                             \
        GLOBAL_INDEX, n, [value]() { return value; }, x); \
  }

FILL(fill_f32, float)
FILL(fill_f64, double)
