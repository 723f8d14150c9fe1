/* rill/device/cuda_math.h: CUDA's mathematical functions beyond <math.h>. Included by rill/device/cuda_names.h.
 *
 * The fast functions are as accurate as the others, except those that are instructions of NVIDIA GPUs. With clang
 * alone, without libclc, only functions that need no library are declared. */
#ifndef RILL_DEVICE_CUDA_MATH_H
#define RILL_DEVICE_CUDA_MATH_H

#if (defined(RILL_HIP_FREESTANDING) || defined(RILL_CUDA_FREESTANDING)) && !defined(RILL_CLC_MATH)
#define RILL_NO_LIBRARY_ 1
#else
#define RILL_NO_LIBRARY_ 0
#endif

#if !RILL_HIP_HAS_
#ifdef __clang__ /* a sum that uses such a product must not be fused */
#define RILL_NOT_FUSED_ _Pragma("clang fp contract(off)")
#else
#define RILL_NOT_FUSED_
#endif
#define RILL_ROUNDED_(NAME, NUMBER, OPERATOR) \
  RILL_NAME_ NUMBER NAME##_rn(NUMBER x, NUMBER y) { RILL_NOT_FUSED_ return x OPERATOR y; }
RILL_ROUNDED_(__fadd, float, +)
RILL_ROUNDED_(__fsub, float, -)
RILL_ROUNDED_(__fmul, float, *)
RILL_ROUNDED_(__fdiv, float, /)
RILL_ROUNDED_(__dadd, double, +)
RILL_ROUNDED_(__dsub, double, -)
RILL_ROUNDED_(__dmul, double, *)
RILL_ROUNDED_(__ddiv, double, /)
#undef RILL_ROUNDED_
RILL_NAME_ float __fmaf_rn(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
RILL_NAME_ double __fma_rn(double x, double y, double z) { return __builtin_fma(x, y, z); }
RILL_NAME_ float __fsqrt_rn(float x) { return __builtin_sqrtf(x); }
RILL_NAME_ double __dsqrt_rn(double x) { return __builtin_sqrt(x); }
RILL_NAME_ float __frcp_rn(float x) { return 1.0f / x; }
RILL_NAME_ double __drcp_rn(double x) { return 1.0 / x; }
#if !RILL_ON_CUDA
RILL_NAME_ float __fdividef(float x, float y) { return x / y; }
template <int = 0> RILL_NAME_ float rsqrtf(float x) { return 1.0f / __builtin_sqrtf(x); }
#endif
template <int = 0> RILL_NAME_ double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
RILL_NAME_ float __frsqrt_rn(float x) { return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x))); }
#if RILL_ON_CUDA || !RILL_NO_LIBRARY_
/* These are macros, because the C library has internal functions of these names. */
#define __expf rill_fast_expf_
#define __exp10f rill_fast_exp10f_
#define __logf rill_fast_logf_
#define __log2f rill_fast_log2f_
#define __log10f rill_fast_log10f_
#define __powf rill_fast_powf_
#define __sinf rill_fast_sinf_
#define __cosf rill_fast_cosf_
#define __tanf rill_fast_tanf_
#define __sincosf rill_fast_sincosf_
#endif
#if RILL_ON_CUDA
RILL_NAME_ float __fdividef(float x, float y) { return __nvvm_div_approx_f(x, y); }
RILL_NAME_ float rsqrtf(float x) { return __nvvm_rsqrt_approx_f(x); }
RILL_NAME_ float rill_fast_expf_(float x) { return __nvvm_ex2_approx_f(x * 1.44269504088896340736f); }
RILL_NAME_ float rill_fast_exp10f_(float x) { return __nvvm_ex2_approx_f(x * 3.32192809488736234787f); }
RILL_NAME_ float rill_fast_logf_(float x) { return __nvvm_lg2_approx_f(x) * 0.69314718055994530942f; }
RILL_NAME_ float rill_fast_log2f_(float x) { return __nvvm_lg2_approx_f(x); }
RILL_NAME_ float rill_fast_log10f_(float x) { return __nvvm_lg2_approx_f(x) * 0.30102999566398119521f; }
RILL_NAME_ float rill_fast_powf_(float x, float y) { return __nvvm_ex2_approx_f(y * __nvvm_lg2_approx_f(x)); }
RILL_NAME_ float rill_fast_sinf_(float x) { return __nvvm_sin_approx_f(x); }
RILL_NAME_ float rill_fast_cosf_(float x) { return __nvvm_cos_approx_f(x); }
RILL_NAME_ float rill_fast_tanf_(float x) {
  return __nvvm_div_approx_f(__nvvm_sin_approx_f(x), __nvvm_cos_approx_f(x));
}
#elif !RILL_NO_LIBRARY_
RILL_NAME_ float rill_fast_expf_(float x) { return expf(x); }
RILL_NAME_ float rill_fast_exp10f_(float x) { return powf(10.0f, x); }
RILL_NAME_ float rill_fast_logf_(float x) { return logf(x); }
RILL_NAME_ float rill_fast_log2f_(float x) { return log2f(x); }
RILL_NAME_ float rill_fast_log10f_(float x) { return log10f(x); }
RILL_NAME_ float rill_fast_powf_(float x, float y) { return powf(x, y); }
RILL_NAME_ float rill_fast_sinf_(float x) { return sinf(x); }
RILL_NAME_ float rill_fast_cosf_(float x) { return cosf(x); }
RILL_NAME_ float rill_fast_tanf_(float x) { return tanf(x); }
#endif
#if RILL_ON_CUDA || !RILL_NO_LIBRARY_
RILL_NAME_ void rill_fast_sincosf_(float x, float *sine, float *cosine) {
  *sine = rill_fast_sinf_(x);
  *cosine = rill_fast_cosf_(x);
}
#endif
/* These are templates, so the functions of these names in newer C libraries are preferred. */
#if RILL_ON_CPU && RILL_MATHEMATICS
template <int = 0> RILL_NAME_ float sinpif(float x) { return rill_math_sinpif(x); }
template <int = 0> RILL_NAME_ float cospif(float x) { return rill_math_cospif(x); }
template <int = 0> RILL_NAME_ double sinpi(double x) { return rill_math_sinpi(x); }
template <int = 0> RILL_NAME_ double cospi(double x) { return rill_math_cospi(x); }
RILL_NAME_ float normcdff(float x) { return rill_math_normcdff(x); }
#elif !RILL_NO_LIBRARY_
template <int = 0> RILL_NAME_ float sinpif(float x) {
  return static_cast<float>(sin(3.14159265358979323846 * fmod(static_cast<double>(x), 2.0)));
}
template <int = 0> RILL_NAME_ float cospif(float x) {
  return static_cast<float>(cos(3.14159265358979323846 * fmod(static_cast<double>(x), 2.0)));
}
RILL_NAME_ float normcdff(float x) { return 0.5f * erfcf(-0.70710678118654752440f * x); }
template <int = 0> RILL_NAME_ double sinpi(double x) { return sin(3.14159265358979323846 * fmod(x, 2.0)); }
template <int = 0> RILL_NAME_ double cospi(double x) { return cos(3.14159265358979323846 * fmod(x, 2.0)); }
#endif
#if !RILL_NO_LIBRARY_
RILL_NAME_ double normcdf(double x) { return 0.5 * erfc(-0.70710678118654752440 * x); }
#ifndef __USE_GNU /* glibc declares sincosf */
RILL_NAME_ void sincosf(float x, float *sine, float *cosine) { rill_fast_sincosf_(x, sine, cosine); }
RILL_NAME_ void sincos(double x, double *sine, double *cosine) {
  *sine = sin(x);
  *cosine = cos(x);
}
RILL_NAME_ float exp10f(float x) { return powf(10.0f, x); }
RILL_NAME_ double exp10(double x) { return pow(10.0, x); }
#endif
#endif
#endif

#define CUDART_INF_F __builtin_inff()
#define CUDART_NAN_F __builtin_nanf("")
#define CUDART_MAX_NORMAL_F 3.4028234663852886e38f
#define CUDART_PI_F 3.141592654f
#define CUDART_SQRT_TWO_F 1.414213562f
#define CUDART_INF __builtin_inf()
#define CUDART_NAN __builtin_nan("")
#define CUDART_PI 3.1415926535897931e+0
#define CUDART_SQRT_TWO 1.4142135623730951e+0

#define __saturatef rill_saturate_
/** Clamps x to 0 to 1; a NaN becomes 0. */
RILL_NAME_ float rill_saturate_(float x) { return x > 0.0f ? (x < 1.0f ? x : 1.0f) : 0.0f; }

#endif
