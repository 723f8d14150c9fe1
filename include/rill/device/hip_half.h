/* rill/device/hip_half.h: CUDA's functions of half that some versions of HIP lack. Included by
 * rill/device/cuda_names.h for hipcc. These are templates, so HIP's functions of the same names are preferred. */
#ifndef RILL_DEVICE_HIP_HALF_H
#define RILL_DEVICE_HIP_HALF_H

template <int = 0> RILL_NAME_ __half __double2half(double x) { return __float2half(static_cast<float>(x)); }
#define RILL_HALF_OF_TWO_(NAME, OF_FLOATS)                                                           \
  template <int = 0> RILL_NAME_ __half NAME(__half x, __half y) {                                    \
    return __float2half(OF_FLOATS(__half2float(x), __half2float(y)));                                \
  }                                                                                                  \
  template <int = 0> RILL_NAME_ __half2 NAME##2(__half2 x, __half2 y) {                              \
    return __halves2half2(NAME(__low2half(x), __low2half(y)), NAME(__high2half(x), __high2half(y))); \
  }
RILL_HALF_OF_TWO_(__hmax, fmaxf)
RILL_HALF_OF_TWO_(__hmin, fminf)
#undef RILL_HALF_OF_TWO_
template <int = 0> RILL_NAME_ __half htanh(__half x) { return __float2half(tanhf(__half2float(x))); }
template <int = 0> RILL_NAME_ __half2 h2tanh(__half2 x) {
  return __halves2half2(htanh(__low2half(x)), htanh(__high2half(x)));
}

#include <rill/device/half_atomic.h>
template <int = 0> RILL_NAME_ __half atomicAdd(__half *p, __half v) { return rill_half_atomic_add_(p, v); }
template <int = 0> RILL_NAME_ __half2 atomicAdd(__half2 *p, __half2 v) { return rill_half_atomic_add_(p, v); }

#endif
