/* rill/device/vectors.h: CUDA's vector types under rill's names, for the C and C++ programs that launch kernels.
 *
 *   rill_float4                  float4, with the same size and alignment.  All types have 1 to 4 members x, y, z, w.
 *                                (HIP's own headers align four 8-byte members to 32 bytes, rill to 16.)
 *   rill_char rill_uchar rill_short rill_ushort rill_int rill_uint rill_long rill_ulong rill_longlong rill_ulonglong
 *   rill_float rill_double       each followed by 1, 2, 3 or 4
 *   rill_half2 rill_bfloat162    half2 and __nv_bfloat162
 *
 * The header that rillcc writes includes this file if a kernel has a parameter of such a type:
 *
 *     rill_float4 *points;
 *     RILL_NEW(device, RILL_MEMORY_DEVICE, n, &points);
 *     move_launch(stream, &launch, n, points);               // __global__ void move(int n, float4 *points)
 *
 * CUDA's and HIP's headers can also be included, before or after this file.  Their types are different types for the
 * compiler, so cast pointers.
 */
#ifndef RILL_DEVICE_VECTORS_H
#define RILL_DEVICE_VECTORS_H

#include <rill/device/half.h>

#define RILL_VECTOR_(NAME, ALIGNMENT, NUMBER, ...) \
  typedef struct NAME {                            \
    NUMBER __VA_ARGS__;                            \
  } __attribute__((aligned(ALIGNMENT))) NAME;
#define RILL_VECTORS_OF_(NAME, NUMBER, ONE, TWO, FOUR) \
  RILL_VECTOR_(NAME##1, ONE, NUMBER, x)                \
  RILL_VECTOR_(NAME##2, TWO, NUMBER, x, y)             \
  RILL_VECTOR_(NAME##3, ONE, NUMBER, x, y, z)          \
  RILL_VECTOR_(NAME##4, FOUR, NUMBER, x, y, z, w)
RILL_VECTORS_OF_(rill_char, signed char, 1, 2, 4)
RILL_VECTORS_OF_(rill_uchar, unsigned char, 1, 2, 4)
RILL_VECTORS_OF_(rill_short, short, 2, 4, 8)
RILL_VECTORS_OF_(rill_ushort, unsigned short, 2, 4, 8)
RILL_VECTORS_OF_(rill_int, int, 4, 8, 16)
RILL_VECTORS_OF_(rill_uint, unsigned, 4, 8, 16)
RILL_VECTORS_OF_(rill_long, long, sizeof(long), 16, 16)
RILL_VECTORS_OF_(rill_ulong, unsigned long, sizeof(long), 16, 16)
RILL_VECTORS_OF_(rill_longlong, long long, 8, 16, 16)
RILL_VECTORS_OF_(rill_ulonglong, unsigned long long, 8, 16, 16)
RILL_VECTORS_OF_(rill_float, float, 4, 8, 16)
RILL_VECTORS_OF_(rill_double, double, 8, 16, 16)
RILL_VECTOR_(rill_half2, 4, rill_half, x, y)
RILL_VECTOR_(rill_bfloat162, 4, rill_bfloat16, x, y)
#undef RILL_VECTORS_OF_
#undef RILL_VECTOR_

#endif
