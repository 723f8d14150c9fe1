/* rill/device/cuda_atomic.h: the atomic functions of rill/device/kernel.h that CUDA lacks.  Included by
 * rill/device/on_cuda.h.
 *
 * CUDA has them for int, unsigned and unsigned long long, and some for long long.  All are templates: a function of
 * CUDA's with the same types goes first.
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

#define RILL_ATOMIC_(NAME)                                                                                       \
  template <class T> static __device__ __forceinline__ RILL_FOR_(rill_is_wide) NAME(T *p, rill_same_type<T> v) { \
    using word = unsigned long long;                                                                             \
    return static_cast<T>(NAME(reinterpret_cast<word *>(p), static_cast<word>(v)));                              \
  }
#define RILL_ATOMIC_ORDER_(NAME)                                                                                 \
  template <class T> static __device__ __forceinline__ RILL_FOR_(rill_is_wide) NAME(T *p, rill_same_type<T> v) { \
    if constexpr (rill_is_signed<T>)                                                                             \
      return static_cast<T>(NAME(reinterpret_cast<long long *>(p), static_cast<long long>(v)));                  \
    else {                                                                                                       \
      using word = unsigned long long;                                                                           \
      return static_cast<T>(NAME(reinterpret_cast<word *>(p), static_cast<word>(v)));                            \
    }                                                                                                            \
  }
#define RILL_ATOMICS_(SUFFIX)                                                                                     \
  RILL_ATOMIC_(atomicAdd##SUFFIX)                                                                                 \
  RILL_ATOMIC_(atomicExch##SUFFIX)                                                                                \
  RILL_ATOMIC_(atomicAnd##SUFFIX)                                                                                 \
  RILL_ATOMIC_(atomicOr##SUFFIX)                                                                                  \
  RILL_ATOMIC_(atomicXor##SUFFIX)                                                                                 \
  RILL_ATOMIC_ORDER_(atomicMin##SUFFIX)                                                                           \
  RILL_ATOMIC_ORDER_(atomicMax##SUFFIX)                                                                           \
  template <class T>                                                                                              \
  static __device__ __forceinline__ RILL_FOR_(rill_is_eight_bytes) atomicSub##SUFFIX(T *p, rill_same_type<T> v) { \
    using word = unsigned long long;                                                                              \
    return static_cast<T>(atomicAdd##SUFFIX(reinterpret_cast<word *>(p), 0 - static_cast<word>(v)));              \
  }                                                                                                               \
  template <class T>                                                                                              \
  static __device__ __forceinline__ RILL_FOR_(rill_is_wide)                                                       \
      atomicCAS##SUFFIX(T *p, rill_same_type<T> expected, rill_same_type<T> v) {                                  \
    using word = unsigned long long;                                                                              \
    return static_cast<T>(                                                                                        \
        atomicCAS##SUFFIX(reinterpret_cast<word *>(p), static_cast<word>(expected), static_cast<word>(v)));       \
  }                                                                                                               \
  template <class T>                                                                                              \
  static __device__ __forceinline__ RILL_FOR_(rill_is_double) atomicExch##SUFFIX(T *p, rill_same_type<T> v) {     \
    return __longlong_as_double(static_cast<long long>(atomicExch##SUFFIX(                                        \
        reinterpret_cast<unsigned long long *>(p), static_cast<unsigned long long>(__double_as_longlong(v)))));   \
  }
RILL_ATOMICS_()
RILL_ATOMICS_(_block)
RILL_ATOMICS_(_system)
#undef RILL_ATOMICS_
#undef RILL_ATOMIC_ORDER_
#undef RILL_ATOMIC_

#include <rill/device/atomic_float.h>

#endif
