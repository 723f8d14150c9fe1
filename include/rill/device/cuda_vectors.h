/* rill/device/cuda_vectors.h: CUDA's vector types of 1 to 4 numbers.  Included by rill/device/cuda_names.h. */
#ifndef RILL_DEVICE_CUDA_VECTORS_H
#define RILL_DEVICE_CUDA_VECTORS_H

#define RILL_VECTORS_(NAME, MAKE, NUMBER, TWO, FOUR)                                                                \
  struct NAME##1 {                                                                                                  \
    NUMBER x;                                                                                                       \
  };                                                                                                                \
  struct alignas(TWO) NAME##2 {                                                                                     \
    NUMBER x, y;                                                                                                    \
  };                                                                                                                \
  RILL_VECTOR_3_(NAME, NUMBER)                                                                                      \
  struct alignas(FOUR) NAME##4 {                                                                                    \
    NUMBER x, y, z, w;                                                                                              \
  };                                                                                                                \
  static __host__ __device__ inline constexpr NAME##1 MAKE##1(NUMBER x) { return { x }; }                           \
  static __host__ __device__ inline constexpr NAME##2 MAKE##2(NUMBER x, NUMBER y) { return { x, y }; }              \
  static __host__ __device__ inline constexpr NAME##3 MAKE##3(NUMBER x, NUMBER y, NUMBER z) { return { x, y, z }; } \
  static __host__ __device__ inline constexpr NAME##4 MAKE##4(NUMBER x, NUMBER y, NUMBER z, NUMBER w) {             \
    return { x, y, z, w };                                                                                          \
  }
#define RILL_VECTOR_3_(NAME, NUMBER) \
  struct NAME##3 {                   \
    NUMBER x, y, z;                  \
  };
RILL_VECTORS_(char, make_char, signed char, 2, 4)
RILL_VECTORS_(uchar, make_uchar, unsigned char, 2, 4)
RILL_VECTORS_(short, make_short, short, 4, 8)
RILL_VECTORS_(ushort, make_ushort, unsigned short, 4, 8)
RILL_VECTORS_(int, make_int, int, 8, 16)
RILL_VECTORS_(long, make_long, long, 16, 16)
RILL_VECTORS_(ulong, make_ulong, unsigned long, 16, 16)
RILL_VECTORS_(longlong, make_longlong, long long, 16, 16)
RILL_VECTORS_(ulonglong, make_ulonglong, unsigned long long, 16, 16)
RILL_VECTORS_(float, make_float, float, 8, 16)
RILL_VECTORS_(double, make_double, double, 16, 16)
#undef RILL_VECTOR_3_
#define RILL_VECTOR_3_(NAME, NUMBER) /* uint3 is the type of threadIdx */
RILL_VECTORS_(uint, make_uint, unsigned, 8, 16)
#undef RILL_VECTOR_3_
#undef RILL_VECTORS_

#endif
