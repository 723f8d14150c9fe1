/* rill/device/half.h: 16-bit floating-point types, for kernels and for the C and C++ programs that launch them.
 *
 *   rill_half       IEEE binary16: 11 bits of precision, up to 65504
 *   rill_bfloat16   the upper half of a float: 8 bits of precision, the range of a float
 *
 * The types are for storage; arithmetic is done in float:
 *
 *     RILL_KERNEL(scale, int n, float a, rill_half *x) {
 *       const int i = blockIdx.x * blockDim.x + threadIdx.x;
 *       if (i < n) x[i] = rill_to_half(a * rill_to_float(x[i]));
 *     }
 *
 *   rill_to_half(f) rill_to_bfloat16(f)                      convert a float, rounding to nearest even
 *   rill_half_to_float(h) rill_bfloat16_to_float(b)          convert exactly
 *   rill_to_float(x)                                         C++: converts either type
 *   + - * / (and += ...), -x, == != < <= > >=                C++: computed as float, then rounded as above
 *
 * All compilers and devices compute the same bits, except that a NaN becomes an unspecified NaN.  Values that are too
 * large become infinite.  Values below half of the smallest subnormal number become 0.
 */
#ifndef RILL_DEVICE_HALF_H
#define RILL_DEVICE_HALF_H

#if defined(__CUDACC_RTC__) || defined(__HIPCC_RTC__)
#include <rill/device/on_rtc.h>
#else
#include <stdint.h>
#include <string.h>
#endif

#if defined(__CUDACC__) || defined(__HIP__)
#define RILL_HALF_ static __host__ __device__ inline
#else
#define RILL_HALF_ static inline
#endif
/* Uses the processor's conversion if it has one.  g++ supports the type on aarch64 from 13 on. */
#if defined(__cplusplus) && !defined(__CUDA_ARCH__) && defined(__FLT16_MANT_DIG__) && \
    (defined(__AMDGCN__) || defined(__F16C__) || (defined(__aarch64__) && (defined(__clang__) || __GNUC__ >= 13)))
#define RILL_HALF_NATIVE_ 1
#endif

typedef struct rill_half {
  uint16_t bits;
} rill_half;

typedef struct rill_bfloat16 {
  uint16_t bits;
} rill_bfloat16;

RILL_HALF_ uint32_t rill_float_bits_(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

RILL_HALF_ float rill_float_of_bits_(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* ---- conversions by integers, the same everywhere ---- */

RILL_HALF_ float rill_half_to_float_by_bits_(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000u) << 16, magnitude = half & 0x7fffu;
  if (magnitude > 0x7c00u) return rill_float_of_bits_(sign | 0x7fc00000u | magnitude << 13);
  if (magnitude == 0x7c00u) return rill_float_of_bits_(sign | 0x7f800000u);
  if (magnitude >= 0x0400u) return rill_float_of_bits_(sign | ((magnitude << 13) + (112u << 23)));
  /* Subnormal numbers are multiples of 2^-24. */
  return rill_float_of_bits_(sign | rill_float_bits_((float)magnitude * 5.9604644775390625e-8f));
}

RILL_HALF_ uint16_t rill_half_by_bits_(float f) {
  const uint32_t bits = rill_float_bits_(f), sign = bits >> 16 & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return (uint16_t)(sign | 0x7e00u | (magnitude >> 13 & 0x3ffu));
  if (magnitude >= 0x47800000u) return (uint16_t)(sign | 0x7c00u); /* 65536 */
  if (magnitude >= 0x38800000u) {                                  /* 2^-14, the least normal number */
    const uint32_t rebased = magnitude - (112u << 23);
    return (uint16_t)(sign | (rebased + 0xfffu + (rebased >> 13 & 1u)) >> 13);
  }
  /* The last bit of a float in [0.5, 1) is 2^-24, like that of a subnormal half, so the addition rounds. */
  return (uint16_t)(sign | (rill_float_bits_(rill_float_of_bits_(magnitude) + 0.5f) - 0x3f000000u));
}

/* ---- conversions ---- */

/** Converts `half` exactly. */
RILL_HALF_ float rill_half_to_float(rill_half half) {
#if defined(__CUDA_ARCH__)
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(half.bits));
  return f;
#elif defined(RILL_HALF_NATIVE_)
  _Float16 native;
  memcpy(&native, &half.bits, sizeof native);
  return (float)native;
#else
  return rill_half_to_float_by_bits_(half.bits);
#endif
}

/** Converts to the nearest half, rounding ties to even. */
RILL_HALF_ rill_half rill_to_half(float f) {
  rill_half half;
#if defined(__CUDA_ARCH__)
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half.bits) : "f"(f));
#elif defined(RILL_HALF_NATIVE_)
  const _Float16 native = (_Float16)f;
  memcpy(&half.bits, &native, sizeof native);
#else
  half.bits = rill_half_by_bits_(f);
#endif
  return half;
}

/** Converts `number` exactly. */
RILL_HALF_ float rill_bfloat16_to_float(rill_bfloat16 number) {
  return rill_float_of_bits_((uint32_t)number.bits << 16);
}

/** Converts to the nearest bfloat16, rounding ties to even. */
RILL_HALF_ rill_bfloat16 rill_to_bfloat16(float f) {
  const uint32_t bits = rill_float_bits_(f);
  rill_bfloat16 number;
  if ((bits & 0x7fffffffu) > 0x7f800000u) number.bits = (uint16_t)(bits >> 16 | 0x40u); /* stays a NaN */
  else number.bits = (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  return number;
}

#ifdef __cplusplus
RILL_HALF_ float rill_to_float(rill_half x) { return rill_half_to_float(x); }
RILL_HALF_ float rill_to_float(rill_bfloat16 x) { return rill_bfloat16_to_float(x); }

#define RILL_HALF_ARITHMETIC_(TYPE, FROM, OPERATOR)                                                              \
  RILL_HALF_ TYPE operator OPERATOR(TYPE a, TYPE b) { return FROM(rill_to_float(a) OPERATOR rill_to_float(b)); } \
  RILL_HALF_ TYPE &operator OPERATOR##=(TYPE &a, TYPE b) {                                                       \
    return a = FROM(rill_to_float(a) OPERATOR rill_to_float(b));                                                 \
  }
#if defined(__CUDACC__) || defined(__HIP__)
#define RILL_HALF_COMPARISON_(OPERATOR) \
  RILL_HALF_ bool operator OPERATOR(rill_half a, rill_half b) { return rill_to_float(a) OPERATOR rill_to_float(b); }
#else
/* Compares as integers: no conversion, and twice as many elements per vector as with floats. */
RILL_HALF_ int16_t rill_half_order_(rill_half x) {
  const int16_t magnitude = static_cast<int16_t>(x.bits & 0x7fffu);
  return static_cast<int16_t>(x.bits >> 15 ? -magnitude : magnitude);
}
RILL_HALF_ bool rill_half_is_nan_(rill_half x) { return (x.bits & 0x7fffu) > 0x7c00u; }
#define RILL_HALF_COMPARISON_(OPERATOR)                                                                     \
  RILL_HALF_ bool operator OPERATOR(rill_half a, rill_half b) {                                             \
    const bool without_order = 0 OPERATOR 1 && 1 OPERATOR 0; /* true only for != */                         \
    return rill_half_is_nan_(a) || rill_half_is_nan_(b) ? without_order                                     \
                                                        : rill_half_order_(a) OPERATOR rill_half_order_(b); \
  }
#endif
#define RILL_BFLOAT16_COMPARISON_(OPERATOR)                             \
  RILL_HALF_ bool operator OPERATOR(rill_bfloat16 a, rill_bfloat16 b) { \
    return rill_to_float(a) OPERATOR rill_to_float(b);                  \
  }
#define RILL_HALF_COMPARISONS_(COMPARISON) \
  COMPARISON(==)                           \
  COMPARISON(!=)                           \
  COMPARISON(<)                            \
  COMPARISON(<=)                           \
  COMPARISON(>)                            \
  COMPARISON(>=)
#define RILL_HALF_OPERATORS_(TYPE, FROM)                    \
  RILL_HALF_ARITHMETIC_(TYPE, FROM, +)                      \
  RILL_HALF_ARITHMETIC_(TYPE, FROM, -)                      \
  RILL_HALF_ARITHMETIC_(TYPE, FROM, *)                      \
  RILL_HALF_ARITHMETIC_(TYPE, FROM, /)                      \
  RILL_HALF_ TYPE operator-(TYPE x) {                       \
    TYPE negated;                                           \
    negated.bits = static_cast<uint16_t>(x.bits ^ 0x8000u); \
    return negated;                                         \
  }
RILL_HALF_OPERATORS_(rill_half, rill_to_half)
RILL_HALF_OPERATORS_(rill_bfloat16, rill_to_bfloat16)
RILL_HALF_COMPARISONS_(RILL_HALF_COMPARISON_)
RILL_HALF_COMPARISONS_(RILL_BFLOAT16_COMPARISON_)
#undef RILL_HALF_OPERATORS_
#undef RILL_HALF_COMPARISON_
#undef RILL_BFLOAT16_COMPARISON_
#undef RILL_HALF_COMPARISONS_
#undef RILL_HALF_ARITHMETIC_
#endif

#endif
