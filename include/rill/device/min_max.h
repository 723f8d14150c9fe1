/* rill/device/min_max.h: the overloads of min and max of CUDA and HIP, for targets without a vendor header that has
 * them. A comparison of an int with an unsigned converts the int to unsigned, as in CUDA.
 *
 * They are templates, so functions of the program with these names are preferred. Many programs have such functions
 * for compilers other than nvcc. */
#ifndef RILL_DEVICE_MIN_MAX_H
#define RILL_DEVICE_MIN_MAX_H

#define RILL_MIN_MAX_(RESULT, A, B)                                                                           \
  template <int = 0> static __device__ __forceinline__ constexpr RESULT min(A a, B b) {                       \
    return static_cast<RESULT>(a) < static_cast<RESULT>(b) ? static_cast<RESULT>(a) : static_cast<RESULT>(b); \
  }                                                                                                           \
  template <int = 0> static __device__ __forceinline__ constexpr RESULT max(A a, B b) {                       \
    return static_cast<RESULT>(a) < static_cast<RESULT>(b) ? static_cast<RESULT>(b) : static_cast<RESULT>(a); \
  }
RILL_MIN_MAX_(int, int, int)
RILL_MIN_MAX_(unsigned, unsigned, unsigned)
RILL_MIN_MAX_(unsigned, int, unsigned)
RILL_MIN_MAX_(unsigned, unsigned, int)
RILL_MIN_MAX_(long, long, long)
RILL_MIN_MAX_(unsigned long, unsigned long, unsigned long)
RILL_MIN_MAX_(unsigned long, long, unsigned long)
RILL_MIN_MAX_(unsigned long, unsigned long, long)
RILL_MIN_MAX_(long long, long long, long long)
RILL_MIN_MAX_(unsigned long long, unsigned long long, unsigned long long)
RILL_MIN_MAX_(unsigned long long, long long, unsigned long long)
RILL_MIN_MAX_(unsigned long long, unsigned long long, long long)
#undef RILL_MIN_MAX_

/* If one operand is a NaN, the other is returned, as in CUDA. */
#define RILL_MIN_MAX_(RESULT, A, B, FMIN, FMAX)                               \
  template <int = 0> static __device__ __forceinline__ RESULT min(A a, B b) { \
    return FMIN(static_cast<RESULT>(a), static_cast<RESULT>(b));              \
  }                                                                           \
  template <int = 0> static __device__ __forceinline__ RESULT max(A a, B b) { \
    return FMAX(static_cast<RESULT>(a), static_cast<RESULT>(b));              \
  }
RILL_MIN_MAX_(float, float, float, fminf, fmaxf)
RILL_MIN_MAX_(double, double, double, fmin, fmax)
RILL_MIN_MAX_(double, float, double, fmin, fmax)
RILL_MIN_MAX_(double, double, float, fmin, fmax)
#undef RILL_MIN_MAX_

#endif
