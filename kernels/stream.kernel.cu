/* stream.kernel.cu: the kernels with which McCalpin's STREAM measures memory bandwidth, for i below n. The dot product
 * is in reduce.kernel.cu.
 *
 *   stream_copy_f32  stream_copy_f64    c[i] = a[i]
 *   stream_scale_f32 stream_scale_f64   b[i] = s * c[i]
 *   stream_add_f32   stream_add_f64     c[i] = a[i] + b[i]
 *   stream_triad_f32 stream_triad_f64   a[i] = b[i] + s * c[i]
 *
 * Launch: one thread for every 16 bytes (rill_kernels_wide), in one-dimensional blocks of any size; on a GPU use 1024
 * threads.
 * Limits: n must be at least 1. Arrays may have any alignment; multiples of 16 bytes are fastest. Two arrays may be the
 * same, but must not overlap otherwise.
 * Rounding: each element is rounded once, including product and sum of the triad (fma), so the result is bit-identical
 * on every device.
 */
#include <rill/device/kernel.h>

#include "wide.h"

#define STREAM(SUFFIX, T, FMA)                                                       \
  RILL_KERNEL(stream_copy_##SUFFIX, int64_t n, const T *a, T *c) {                   \
    map_wide(                                                                        \
        GLOBAL_INDEX, n, [](T ai) { return ai; }, c, a);                             \
  }                                                                                  \
  RILL_KERNEL(stream_scale_##SUFFIX, int64_t n, T s, const T *c, T *b) {             \
    map_wide(                                                                        \
        GLOBAL_INDEX, n, [s](T ci) { return s * ci; }, b, c);                        \
  }                                                                                  \
  RILL_KERNEL(stream_add_##SUFFIX, int64_t n, const T *a, const T *b, T *c) {        \
    map_wide(                                                                        \
        GLOBAL_INDEX, n, [](T ai, T bi) { return ai + bi; }, c, a, b);               \
  }                                                                                  \
  RILL_KERNEL(stream_triad_##SUFFIX, int64_t n, T s, const T *b, const T *c, T *a) { \
    map_wide(                                                                        \
        GLOBAL_INDEX, n, [s](T bi, T ci) { return FMA(s, ci, bi); }, a, b, c);       \
  }

STREAM(f32, float, fmaf)
STREAM(f64, double, fma)
