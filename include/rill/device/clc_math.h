/* rill/device/clc_math.h: the functions of <math.h> on GPUs, taken from libclc, LLVM's OpenCL C library. They replace a
 * vendor's device library. rillcc defines RILL_CLC_MATH if it links libclc's bitcode for the target;
 * rill/device/kernel.h then includes this header before <math.h>.
 *
 * libclc has a function for each type, with its C++ mangled name: _Z3expf is exp(float). docs/reference/KERNELS.md
 * lists their accuracy. The functions must be declared before those of <math.h>. Otherwise device code would call the
 * functions of <math.h>, which the compiler turns into fast instructions of the GPU.
 */
#ifndef RILL_DEVICE_CLC_MATH_H
#define RILL_DEVICE_CLC_MATH_H

#define RILL_CLC_ __attribute__((device, const))
#define RILL_CLC_INLINE_ static __attribute__((device, always_inline)) inline
/* Integers are converted to double. float is also converted if the other argument has another type. */
template <bool> struct rill_clc_if {};
template <> struct rill_clc_if<true> { typedef double type; };
#define RILL_CLC_1_(NAME, SYMBOL)                                                                          \
  extern "C" RILL_CLC_ float rill_clc_##NAME##f(float) __asm__(SYMBOL "f");                                \
  extern "C" RILL_CLC_ double rill_clc_##NAME(double) __asm__(SYMBOL "d");                                 \
  RILL_CLC_INLINE_ float NAME##f(float x) { return rill_clc_##NAME##f(x); }                                \
  RILL_CLC_INLINE_ float NAME(float x) { return rill_clc_##NAME##f(x); }                                   \
  RILL_CLC_INLINE_ double NAME(double x) { return rill_clc_##NAME(x); }                                    \
  template <class RillT> RILL_CLC_INLINE_ typename rill_clc_if<__is_integral(RillT)>::type NAME(RillT x) { \
    return rill_clc_##NAME(static_cast<double>(x));                                                        \
  }                                                                                                        \
  namespace std {                                                                                          \
  using ::NAME;                                                                                            \
  using ::NAME##f;                                                                                         \
  }
#define RILL_CLC_2_(NAME, SYMBOL)                                                                               \
  extern "C" RILL_CLC_ float rill_clc_##NAME##f(float, float) __asm__(SYMBOL "ff");                             \
  extern "C" RILL_CLC_ double rill_clc_##NAME(double, double) __asm__(SYMBOL "dd");                             \
  RILL_CLC_INLINE_ float NAME##f(float x, float y) { return rill_clc_##NAME##f(x, y); }                         \
  RILL_CLC_INLINE_ float NAME(float x, float y) { return rill_clc_##NAME##f(x, y); }                            \
  RILL_CLC_INLINE_ double NAME(double x, double y) { return rill_clc_##NAME(x, y); }                            \
  template <class RillX, class RillY>                                                                           \
  RILL_CLC_INLINE_ typename rill_clc_if<__is_arithmetic(RillX) && __is_arithmetic(RillY)>::type NAME(RillX x,   \
                                                                                                     RillY y) { \
    return rill_clc_##NAME(static_cast<double>(x), static_cast<double>(y));                                     \
  }                                                                                                             \
  namespace std {                                                                                               \
  using ::NAME;                                                                                                 \
  using ::NAME##f;                                                                                              \
  }

RILL_CLC_1_(exp, "_Z3exp")
RILL_CLC_1_(exp2, "_Z4exp2")
RILL_CLC_1_(exp10, "_Z5exp10")
RILL_CLC_1_(expm1, "_Z5expm1")
RILL_CLC_1_(log, "_Z3log")
RILL_CLC_1_(log2, "_Z4log2")
RILL_CLC_1_(log10, "_Z5log10")
RILL_CLC_1_(log1p, "_Z5log1p")
RILL_CLC_1_(sin, "_Z3sin")
RILL_CLC_1_(cos, "_Z3cos")
RILL_CLC_1_(tan, "_Z3tan")
RILL_CLC_1_(asin, "_Z4asin")
RILL_CLC_1_(acos, "_Z4acos")
RILL_CLC_1_(atan, "_Z4atan")
RILL_CLC_1_(sinh, "_Z4sinh")
RILL_CLC_1_(cosh, "_Z4cosh")
RILL_CLC_1_(tanh, "_Z4tanh")
RILL_CLC_1_(asinh, "_Z5asinh")
RILL_CLC_1_(acosh, "_Z5acosh")
RILL_CLC_1_(atanh, "_Z5atanh")
RILL_CLC_1_(erf, "_Z3erf")
RILL_CLC_1_(cbrt, "_Z4cbrt")
RILL_CLC_2_(pow, "_Z3pow")
RILL_CLC_2_(atan2, "_Z5atan2")
RILL_CLC_2_(fmod, "_Z4fmod")
RILL_CLC_2_(remainder, "_Z9remainder")
RILL_CLC_2_(hypot, "_Z5hypot")
RILL_CLC_2_(fdim, "_Z4fdim")
RILL_CLC_2_(nextafter, "_Z9nextafter")

/* Small results of the float version are wrong in the last two digits. */
extern "C" RILL_CLC_ double rill_clc_erfc(double) __asm__("_Z4erfcd");
RILL_CLC_INLINE_ double erfc(double x) { return rill_clc_erfc(x); }
RILL_CLC_INLINE_ float erfc(float x) { return static_cast<float>(rill_clc_erfc(static_cast<double>(x))); }
RILL_CLC_INLINE_ float erfcf(float x) { return erfc(x); }
namespace std {
using ::erfc;
using ::erfcf;
} // namespace std

/* Functions that compile to a few instructions. */
#define RILL_CLC_EXACT_(FLOAT, F)                                                                     \
  RILL_CLC_INLINE_ FLOAT round##F(FLOAT x) { return __builtin_round##F(x); }                          \
  RILL_CLC_INLINE_ FLOAT nearbyint##F(FLOAT x) { return __builtin_rint##F(x); }                       \
  RILL_CLC_INLINE_ long lround##F(FLOAT x) { return static_cast<long>(__builtin_round##F(x)); }       \
  RILL_CLC_INLINE_ long lrint##F(FLOAT x) { return static_cast<long>(__builtin_rint##F(x)); }         \
  RILL_CLC_INLINE_ long long llround##F(FLOAT x) { return static_cast<long>(__builtin_round##F(x)); } \
  RILL_CLC_INLINE_ long long llrint##F(FLOAT x) { return static_cast<long>(__builtin_rint##F(x)); }   \
  RILL_CLC_INLINE_ FLOAT ldexp##F(FLOAT x, int e) { return __builtin_ldexp##F(x, e); }                \
  RILL_CLC_INLINE_ FLOAT frexp##F(FLOAT x, int *e) { return __builtin_frexp##F(x, e); }               \
  RILL_CLC_INLINE_ FLOAT modf##F(FLOAT x, FLOAT *integral) {                                          \
    *integral = __builtin_trunc##F(x);                                                                \
    return __builtin_copysign##F(__builtin_isinf(x) ? 0 : x - *integral, x);                          \
  }                                                                                                   \
  RILL_CLC_INLINE_ void sincos##F(FLOAT x, FLOAT *sine, FLOAT *cosine) {                              \
    *sine = sin##F(x);                                                                                \
    *cosine = cos##F(x);                                                                              \
  }
RILL_CLC_EXACT_(float, f)
RILL_CLC_EXACT_(double, )
#undef RILL_CLC_EXACT_
#undef RILL_CLC_1_
#undef RILL_CLC_2_
#undef RILL_CLC_
#undef RILL_CLC_INLINE_

#endif
