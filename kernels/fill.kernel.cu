/* fill.kernel.cu: x[i] = value for i below n.
 *
 *   fill_f32 fill_f64
 *
 * Launch: one thread for every 16 bytes (rill_kernels_wide), in one-dimensional blocks of any size; on a GPU use 1024
 * threads.
 * Limits: n must be at least 1. The array may have any alignment; multiples of 16 bytes are fastest.
 * Rounding: none; the value is stored unchanged, including the payload of a NaN.
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
