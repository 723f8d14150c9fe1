/* rill/device/cuda_atomic.h: the atomic functions of rill/device/kernel.h that CUDA lacks.  Included by
 * rill/device/on_cuda.h.
 *
 * CUDA has atomic functions for int, unsigned and unsigned long long, and some for long long. All functions here are
 * templates, so a CUDA function with the same types is preferred.
 */
#ifndef RILL_DEVICE_CUDA_ATOMIC_H
#define RILL_DEVICE_CUDA_ATOMIC_H

#include <rill/device/atomic_types.h>

template <class T> constexpr bool rill_is_wide = rill_is_integer<T> && sizeof(T) == 8;
template <> constexpr bool rill_is_wide<unsigned long long> = false;
template <class T> constexpr bool rill_is_eight_bytes = rill_is_integer<T> && sizeof(T) == 8;
template <class T> constexpr bool rill_is_double = false;
template <> constexpr bool rill_is_double<double> = true;
template <class T> constexpr bool rill_is_signed = static_cast<T>(-1) < static_cast<T>(0);

/* One line for each function, because compilers print these lines if no overload fits a call. */
#define RILL_ATOMIC_(NAME)                                                                                       \
  template <class T> static __device__ __forceinline__ RILL_FOR_(rill_is_wide) NAME(T *p, rill_same_type<T> v) { \
    using word = unsigned long long;                                                                             \
    return static_cast<T>(NAME(reinterpret_cast<word *>(p), static_cast<word>(v)));                              \
  }
RILL_ATOMIC_(atomicAdd)
RILL_ATOMIC_(atomicAdd_block)
RILL_ATOMIC_(atomicAdd_system)
RILL_ATOMIC_(atomicExch)
RILL_ATOMIC_(atomicExch_block)
RILL_ATOMIC_(atomicExch_system)
RILL_ATOMIC_(atomicAnd)
RILL_ATOMIC_(atomicAnd_block)
RILL_ATOMIC_(atomicAnd_system)
RILL_ATOMIC_(atomicOr)
RILL_ATOMIC_(atomicOr_block)
RILL_ATOMIC_(atomicOr_system)
RILL_ATOMIC_(atomicXor)
RILL_ATOMIC_(atomicXor_block)
RILL_ATOMIC_(atomicXor_system)
#undef RILL_ATOMIC_

#define RILL_ATOMIC_(NAME)                                                                                       \
  template <class T> static __device__ __forceinline__ RILL_FOR_(rill_is_wide) NAME(T *p, rill_same_type<T> v) { \
    if constexpr (rill_is_signed<T>) {                                                                           \
      return static_cast<T>(NAME(reinterpret_cast<long long *>(p), static_cast<long long>(v)));                  \
    } else {                                                                                                     \
      using word = unsigned long long;                                                                           \
      return static_cast<T>(NAME(reinterpret_cast<word *>(p), static_cast<word>(v)));                            \
    }                                                                                                            \
  }
RILL_ATOMIC_(atomicMin)
RILL_ATOMIC_(atomicMin_block)
RILL_ATOMIC_(atomicMin_system)
RILL_ATOMIC_(atomicMax)
RILL_ATOMIC_(atomicMax_block)
RILL_ATOMIC_(atomicMax_system)
#undef RILL_ATOMIC_

#define RILL_ATOMIC_(NAME, ADD)                                                                      \
  template <class T>                                                                                 \
  static __device__ __forceinline__ RILL_FOR_(rill_is_eight_bytes) NAME(T *p, rill_same_type<T> v) { \
    using word = unsigned long long;                                                                 \
    return static_cast<T>(ADD(reinterpret_cast<word *>(p), 0 - static_cast<word>(v)));               \
  }
RILL_ATOMIC_(atomicSub, atomicAdd)
RILL_ATOMIC_(atomicSub_block, atomicAdd_block)
RILL_ATOMIC_(atomicSub_system, atomicAdd_system)
#undef RILL_ATOMIC_

#define RILL_ATOMIC_(NAME)                                                                                       \
  template <class T>                                                                                             \
  static __device__ __forceinline__ RILL_FOR_(rill_is_wide)                                                      \
      NAME(T *p, rill_same_type<T> expected, rill_same_type<T> v) {                                              \
    using word = unsigned long long;                                                                             \
    return static_cast<T>(NAME(reinterpret_cast<word *>(p), static_cast<word>(expected), static_cast<word>(v))); \
  }
RILL_ATOMIC_(atomicCAS)
RILL_ATOMIC_(atomicCAS_block)
RILL_ATOMIC_(atomicCAS_system)
#undef RILL_ATOMIC_

#define RILL_ATOMIC_(NAME)                                                                                         \
  template <class T> static __device__ __forceinline__ RILL_FOR_(rill_is_double) NAME(T *p, rill_same_type<T> v) { \
    using word = unsigned long long;                                                                               \
    const word bits = static_cast<word>(__double_as_longlong(v));                                                  \
    return __longlong_as_double(static_cast<long long>(NAME(reinterpret_cast<word *>(p), bits)));                  \
  }
RILL_ATOMIC_(atomicExch)
RILL_ATOMIC_(atomicExch_block)
RILL_ATOMIC_(atomicExch_system)
#undef RILL_ATOMIC_

#include <rill/device/atomic_float.h>

#endif
