/* rill/device/cuda_half.h: CUDA's half, half2 and bfloat16, for targets without a vendor header that has them.
 * Included by rill/device/cuda_names.h. Each operation is computed as float and rounded once (rill/device/half.h). */
#ifndef RILL_DEVICE_CUDA_HALF_H
#define RILL_DEVICE_CUDA_HALF_H

/* Rounds s + e to odd, where e is less than the last digit of s. If s + e is not a float, the result is the adjacent
 * float whose last bit is 1. A second rounding to fewer digits then meets no tie and is correct. */
template <class RillT> RILL_NAME_ float rill_to_odd_(float s, RillT e) {
  const unsigned bits = rill_float_bits_(s), nearer = (e < 0) != (s < 0) ? 1 : 0;
  return rill_float_of_bits_(e < 0 || e > 0 ? (bits - nearer) | 1u : bits);
}
#ifdef __clang__ /* also with -ffast-math */
#define RILL_EXACTLY_ _Pragma("clang fp reassociate(off)")
#else
#define RILL_EXACTLY_
#endif
/* Returns a float that rounds to the correctly rounded a * b + c. The product and the error of the sum are exact,
 * whether or not a compiler fuses them. */
RILL_NAME_ float rill_fused_(rill_half a, rill_half b, rill_half c) {
  RILL_EXACTLY_
  const float p = rill_to_float(a) * rill_to_float(b), q = rill_to_float(c), s = p + q, r = s - p;
  return rill_to_odd_(s, (p - (s - r)) + (q - r));
}
/* If the sum in double is inexact and is a float, it equals one of the two operands, and the other operand is the
 * error. */
RILL_NAME_ float rill_fused_(rill_bfloat16 a, rill_bfloat16 b, rill_bfloat16 c) {
  RILL_EXACTLY_
  const double p = static_cast<double>(rill_to_float(a)) * rill_to_float(b), q = rill_to_float(c), s = p + q;
  const float f = static_cast<float>(s);
  const double beside = s - f, lost = s == p ? q : s == q ? p : 0.0;
  return rill_to_odd_(f, beside == 0 ? lost : beside); /* if s is infinite, s - f is a NaN and f stays infinite */
}
#undef RILL_EXACTLY_
template <class RillT> RILL_NAME_ RillT rill_of_bits_(RillT x, unsigned bits) {
  x.number.bits = static_cast<unsigned short>(bits);
  return x;
}

/* Rounding to an integer keeps the sign, so copying the sign changes no result. It prevents clang from rounding in half
 * precision, which is not vectorized. */
#define RILL_ROUNDED_(RESULT, X) __builtin_copysignf(RESULT, X)

#define RILL_NUMBER_(NAME, BITS, TO)                                                                         \
  struct NAME {                                                                                              \
    BITS number;                                                                                             \
    NAME() = default;                                                                                        \
    RILL_NAMED_ NAME(BITS x) : number(x) {}                                                                  \
    RILL_NAMED_ NAME(float x) : number(TO(x)) {}                                                             \
    RILL_NAMED_ NAME(double x) : number(TO(static_cast<float>(x))) {}                                        \
    RILL_NAMED_ NAME(int x) : number(TO(static_cast<float>(x))) {}                                           \
    RILL_NAMED_ NAME(unsigned x) : number(TO(static_cast<float>(x))) {}                                      \
    RILL_NAMED_ operator float() const { return rill_to_float(number); }                                     \
  };                                                                                                         \
  RILL_NUMBER_OPERATOR_(NAME, +)                                                                             \
  RILL_NUMBER_OPERATOR_(NAME, -)                                                                             \
  RILL_NUMBER_OPERATOR_(NAME, *)                                                                             \
  RILL_NUMBER_OPERATOR_(NAME, /)                                                                             \
  RILL_NUMBER_COMPARES_(NAME, ==)                                                                            \
  RILL_NUMBER_COMPARES_(NAME, !=)                                                                            \
  RILL_NUMBER_COMPARES_(NAME, <)                                                                             \
  RILL_NUMBER_COMPARES_(NAME, <=)                                                                            \
  RILL_NUMBER_COMPARES_(NAME, >)                                                                             \
  RILL_NUMBER_COMPARES_(NAME, >=)                                                                            \
  RILL_NAME_ NAME operator-(NAME a) { return NAME(-a.number); }                                              \
  RILL_NAME_ NAME __hadd(NAME a, NAME b) { return a + b; }                                                   \
  RILL_NAME_ NAME __hsub(NAME a, NAME b) { return a - b; }                                                   \
  RILL_NAME_ NAME __hmul(NAME a, NAME b) { return a * b; }                                                   \
  RILL_NAME_ NAME __hdiv(NAME a, NAME b) { return a / b; }                                                   \
  RILL_NAME_ NAME __hneg(NAME a) { return -a; }                                                              \
  RILL_NAME_ NAME __habs(NAME a) { return rill_of_bits_(a, a.number.bits & 0x7fffu); }                       \
  RILL_NAME_ NAME __hfma(NAME a, NAME b, NAME c) { return NAME(rill_fused_(a.number, b.number, c.number)); } \
  RILL_NAME_ NAME __hmax(NAME a, NAME b) {                                                                   \
    const NAME equal = rill_of_bits_(a, b == b ? a.number.bits & b.number.bits : a.number.bits);             \
    return a > b ? a : b > a || a != a ? b : equal;                                                          \
  }                                                                                                          \
  RILL_NAME_ NAME __hmin(NAME a, NAME b) {                                                                   \
    const NAME equal = rill_of_bits_(a, b == b ? a.number.bits | b.number.bits : a.number.bits);             \
    return a < b ? a : b < a || a != a ? b : equal;                                                          \
  }                                                                                                          \
  RILL_NAME_ bool __heq(NAME a, NAME b) { return a == b; }                                                   \
  RILL_NAME_ bool __hne(NAME a, NAME b) { return a != b; }                                                   \
  RILL_NAME_ bool __hlt(NAME a, NAME b) { return a < b; }                                                    \
  RILL_NAME_ bool __hle(NAME a, NAME b) { return a <= b; }                                                   \
  RILL_NAME_ bool __hgt(NAME a, NAME b) { return a > b; }                                                    \
  RILL_NAME_ bool __hge(NAME a, NAME b) { return a >= b; }                                                   \
  RILL_NAME_ bool __hisnan(NAME a) { return a != a; }                                                        \
  struct alignas(4) NAME##2 {                                                                                \
    NAME x, y;                                                                                               \
    NAME##2() = default;                                                                                     \
    RILL_NAMED_ NAME##2(NAME x_, NAME y_) : x(x_), y(y_) {}                                                  \
  };                                                                                                         \
  RILL_PAIR_OPERATOR_(NAME, +, __hadd2)                                                                      \
  RILL_PAIR_OPERATOR_(NAME, -, __hsub2)                                                                      \
  RILL_PAIR_OPERATOR_(NAME, *, __hmul2)                                                                      \
  RILL_PAIR_OPERATOR_(NAME, /, __h2div)                                                                      \
  RILL_NAME_ NAME##2 operator-(NAME##2 a) { return NAME##2(-a.x, -a.y); }                                    \
  RILL_NAME_ bool operator==(NAME##2 a, NAME##2 b) { return a.x == b.x && a.y == b.y; }                      \
  RILL_NAME_ bool operator!=(NAME##2 a, NAME##2 b) { return a.x != b.x && a.y != b.y; }                      \
  RILL_PAIR_COMPARES_(NAME, ==, eq)                                                                          \
  RILL_PAIR_COMPARES_(NAME, !=, ne)                                                                          \
  RILL_PAIR_COMPARES_(NAME, <, lt)                                                                           \
  RILL_PAIR_COMPARES_(NAME, <=, le)                                                                          \
  RILL_PAIR_COMPARES_(NAME, >, gt)                                                                           \
  RILL_PAIR_COMPARES_(NAME, >=, ge)                                                                          \
  RILL_NAME_ NAME##2 __hneg2(NAME##2 a) { return -a; }                                                       \
  RILL_NAME_ NAME##2 __habs2(NAME##2 a) { return NAME##2(__habs(a.x), __habs(a.y)); }                        \
  RILL_NAME_ NAME##2 __hmax2(NAME##2 a, NAME##2 b) { return NAME##2(__hmax(a.x, b.x), __hmax(a.y, b.y)); }   \
  RILL_NAME_ NAME##2 __hmin2(NAME##2 a, NAME##2 b) { return NAME##2(__hmin(a.x, b.x), __hmin(a.y, b.y)); }   \
  RILL_NUMBER_MATH_(NAME, sqrt, __builtin_sqrtf(x))                                                          \
  RILL_NUMBER_MATH_(NAME, rsqrt, 1.0f / __builtin_sqrtf(x))                                                  \
  RILL_NUMBER_MATH_(NAME, rcp, 1.0f / static_cast<float>(x))                                                 \
  RILL_NUMBER_MATH_(NAME, floor, RILL_ROUNDED_(__builtin_floorf(x), x))                                      \
  RILL_NUMBER_MATH_(NAME, ceil, RILL_ROUNDED_(__builtin_ceilf(x), x))                                        \
  RILL_NUMBER_MATH_(NAME, trunc, RILL_ROUNDED_(__builtin_truncf(x), x))                                      \
  RILL_NUMBER_MATH_(NAME, rint, RILL_ROUNDED_(__builtin_rintf(x), x))                                        \
  RILL_NAME_ NAME##2 __hfma2(NAME##2 a, NAME##2 b, NAME##2 c) {                                              \
    return NAME##2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));                                            \
  }
#define RILL_NUMBER_OPERATOR_(NAME, OPERATOR)                          \
  RILL_NAME_ NAME operator OPERATOR(NAME a, NAME b) {                  \
    return NAME(static_cast<float>(a) OPERATOR static_cast<float>(b)); \
  }                                                                    \
  RILL_NAME_ NAME &operator OPERATOR##=(NAME &a, NAME b) { return a = a OPERATOR b; }
#define RILL_NUMBER_COMPARES_(NAME, OPERATOR) \
  RILL_NAME_ bool operator OPERATOR(NAME a, NAME b) { return a.number OPERATOR b.number; }
#define RILL_PAIR_OPERATOR_(NAME, OPERATOR, FUNCTION)                                                                \
  RILL_NAME_ NAME##2 operator OPERATOR(NAME##2 a, NAME##2 b) { return NAME##2(a.x OPERATOR b.x, a.y OPERATOR b.y); } \
  RILL_NAME_ NAME##2 &operator OPERATOR##=(NAME##2 & a, NAME##2 b) { return a = a OPERATOR b; }                      \
  RILL_NAME_ NAME##2 FUNCTION(NAME##2 a, NAME##2 b) { return a OPERATOR b; }
/* Compares each element (1 or 0), or returns whether both comparisons are true. */
#define RILL_PAIR_COMPARES_(NAME, OPERATOR, FUNCTION)                                           \
  RILL_NAME_ NAME##2 __h##FUNCTION##2(NAME##2 a, NAME##2 b) {                                   \
    return NAME##2(NAME(a.x OPERATOR b.x ? 1.0f : 0.0f), NAME(a.y OPERATOR b.y ? 1.0f : 0.0f)); \
  }                                                                                             \
  RILL_NAME_ bool __hb##FUNCTION##2(NAME##2 a, NAME##2 b) { return a.x OPERATOR b.x && a.y OPERATOR b.y; }
#define RILL_NUMBER_MATH_(NAME, FUNCTION, RESULT)              \
  RILL_NAME_ NAME h##FUNCTION(NAME x) { return NAME(RESULT); } \
  RILL_NAME_ NAME##2 h2##FUNCTION(NAME##2 x) { return NAME##2(h##FUNCTION(x.x), h##FUNCTION(x.y)); }
RILL_NUMBER_(__half, rill_half, rill_to_half)
RILL_NUMBER_(__nv_bfloat16, rill_bfloat16, rill_to_bfloat16)
#if !RILL_NO_LIBRARY_
#define RILL_LIBRARY_MATH_(NAME)            \
  RILL_NUMBER_MATH_(NAME, exp, expf(x))     \
  RILL_NUMBER_MATH_(NAME, exp2, exp2f(x))   \
  RILL_NUMBER_MATH_(NAME, log, logf(x))     \
  RILL_NUMBER_MATH_(NAME, log2, log2f(x))   \
  RILL_NUMBER_MATH_(NAME, log10, log10f(x)) \
  RILL_NUMBER_MATH_(NAME, sin, sinf(x))     \
  RILL_NUMBER_MATH_(NAME, cos, cosf(x))     \
  RILL_NUMBER_MATH_(NAME, tanh, tanhf(x))
RILL_LIBRARY_MATH_(__half)
RILL_LIBRARY_MATH_(__nv_bfloat16)
#undef RILL_LIBRARY_MATH_
#endif
#undef RILL_NUMBER_
#undef RILL_ROUNDED_
#undef RILL_NUMBER_OPERATOR_
#undef RILL_NUMBER_COMPARES_
#undef RILL_NUMBER_MATH_
#undef RILL_PAIR_OPERATOR_
#undef RILL_PAIR_COMPARES_
typedef __half half;
typedef __half2 half2;
typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

RILL_NAME_ __half __float2half(float x) { return __half(x); }
RILL_NAME_ __half __float2half_rn(float x) { return __half(x); }
RILL_NAME_ float __half2float(__half x) { return x; }
RILL_NAME_ __half2 __float2half2_rn(float x) { return __half2(__half(x), __half(x)); }
RILL_NAME_ __half2 __floats2half2_rn(float x, float y) { return __half2(__half(x), __half(y)); }
RILL_NAME_ __half2 __float22half2_rn(float2 x) { return __half2(__half(x.x), __half(x.y)); }
RILL_NAME_ float2 __half22float2(__half2 x) { return make_float2(x.x, x.y); }
RILL_NAME_ __half2 __half2half2(__half x) { return __half2(x, x); }
RILL_NAME_ __half2 __halves2half2(__half x, __half y) { return __half2(x, y); }
RILL_NAME_ __half2 make_half2(__half x, __half y) { return __half2(x, y); }
RILL_NAME_ __half __low2half(__half2 x) { return x.x; }
RILL_NAME_ __half __high2half(__half2 x) { return x.y; }
RILL_NAME_ float __low2float(__half2 x) { return x.x; }
RILL_NAME_ float __high2float(__half2 x) { return x.y; }
RILL_NAME_ int __half2int_rn(__half x) { return static_cast<int>(__builtin_rintf(x)); }
RILL_NAME_ int __half2int_rz(__half x) { return static_cast<int>(static_cast<float>(x)); }
RILL_NAME_ __half __int2half_rn(int x) { return __half(x); }
RILL_NAME_ unsigned short __half_as_ushort(__half x) { return x.number.bits; }
RILL_NAME_ __half __ushort_as_half(unsigned short bits) {
  rill_half number;
  number.bits = bits;
  return __half(number);
}
/* Returns the half next to `x`: away from zero if `by` is 1, towards zero if it is -1. */
RILL_NAME_ __half rill_half_beside_(__half x, int by) {
  return __ushort_as_half(static_cast<unsigned short>(x.number.bits + by));
}
RILL_NAME_ __half __float2half_rz(float x) {
  const __half nearest(x);
  return __builtin_fabsf(nearest) > __builtin_fabsf(x) ? rill_half_beside_(nearest, -1) : nearest;
}
RILL_NAME_ __half __float2half_ru(float x) {
  const __half nearest(x);
  return static_cast<float>(nearest) < x ? rill_half_beside_(nearest, __builtin_signbit(x) ? -1 : 1) : nearest;
}
RILL_NAME_ __half __float2half_rd(float x) {
  const __half nearest(x);
  return static_cast<float>(nearest) > x ? rill_half_beside_(nearest, __builtin_signbit(x) ? 1 : -1) : nearest;
}
RILL_NAME_ __nv_bfloat16 __float2bfloat16(float x) { return __nv_bfloat16(x); }
RILL_NAME_ __nv_bfloat16 __float2bfloat16_rn(float x) { return __nv_bfloat16(x); }
RILL_NAME_ float __bfloat162float(__nv_bfloat16 x) { return x; }
RILL_NAME_ __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return __nv_bfloat162(__nv_bfloat16(x), __nv_bfloat16(y));
}
RILL_NAME_ float2 __bfloat1622float2(__nv_bfloat162 x) { return make_float2(x.x, x.y); }
RILL_NAME_ __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return __nv_bfloat162(x, y); }
RILL_NAME_ __half __uint2half_rn(unsigned x) { return __half(x); }
RILL_NAME_ __half __double2half(double x) { return __half(x); }
RILL_NAME_ unsigned __half2uint_rn(__half x) { return __float2uint_rn(x); }
RILL_NAME_ unsigned __half2uint_rz(__half x) { return __float2uint_rz(x); }
RILL_NAME_ short __half_as_short(__half x) { return static_cast<short>(x.number.bits); }
RILL_NAME_ __half __short_as_half(short bits) { return __ushort_as_half(static_cast<unsigned short>(bits)); }
RILL_NAME_ __half2 __low2half2(__half2 x) { return __half2(x.x, x.x); }
RILL_NAME_ __half2 __high2half2(__half2 x) { return __half2(x.y, x.y); }
RILL_NAME_ __half2 __lows2half2(__half2 x, __half2 y) { return __half2(x.x, y.x); }
RILL_NAME_ __half2 __highs2half2(__half2 x, __half2 y) { return __half2(x.y, y.y); }
RILL_NAME_ __half2 __lowhigh2highlow(__half2 x) { return __half2(x.y, x.x); }
RILL_NAME_ unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.number.bits; }
RILL_NAME_ __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  rill_bfloat16 number;
  number.bits = bits;
  return __nv_bfloat16(number);
}
RILL_NAME_ __nv_bfloat16 __double2bfloat16(double x) { return __nv_bfloat16(x); }
RILL_NAME_ __nv_bfloat16 __int2bfloat16_rn(int x) { return __nv_bfloat16(x); }
RILL_NAME_ int __bfloat162int_rn(__nv_bfloat16 x) { return __float2int_rn(x); }
RILL_NAME_ int __bfloat162int_rz(__nv_bfloat16 x) { return __float2int_rz(x); }
RILL_NAME_ __nv_bfloat162 __float2bfloat162_rn(float x) { return __nv_bfloat162(__nv_bfloat16(x), __nv_bfloat16(x)); }
RILL_NAME_ __nv_bfloat162 __float22bfloat162_rn(float2 x) { return __floats2bfloat162_rn(x.x, x.y); }
RILL_NAME_ __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return __nv_bfloat162(x, x); }
RILL_NAME_ __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return __nv_bfloat162(x, y); }
RILL_NAME_ __nv_bfloat16 __low2bfloat16(__nv_bfloat162 x) { return x.x; }
RILL_NAME_ __nv_bfloat16 __high2bfloat16(__nv_bfloat162 x) { return x.y; }
RILL_NAME_ float __low2float(__nv_bfloat162 x) { return x.x; }
RILL_NAME_ float __high2float(__nv_bfloat162 x) { return x.y; }

#include <rill/device/half_atomic.h>
RILL_NAME_ __half atomicAdd(__half *p, __half v) { return rill_half_atomic_add_(p, v); }
RILL_NAME_ __half2 atomicAdd(__half2 *p, __half2 v) { return rill_half_atomic_add_(p, v); }
RILL_NAME_ __nv_bfloat16 atomicAdd(__nv_bfloat16 *p, __nv_bfloat16 v) { return rill_half_atomic_add_(p, v); }
RILL_NAME_ __nv_bfloat162 atomicAdd(__nv_bfloat162 *p, __nv_bfloat162 v) { return rill_half_atomic_add_(p, v); }

#endif
