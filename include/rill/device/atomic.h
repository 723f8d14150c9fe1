/* rill/device/atomic.h: CUDA's atomic functions, for targets without a vendor header that has them. Included by
 * rill/device/on_host.h and rill/device/on_hip.h; rill/device/kernel.h lists them.
 *
 * The including file defines rill_fetch_add_<scope>(p, v), _exchange_, _min_, _max_, _and_, _or_ and _xor_, and the
 * scopes RILL_SCOPE_BLOCK_, _DEVICE_ and _SYSTEM_, which are of type int. It also defines
 * rill_compare_exchange_<scope>(p, &expected, v). If *p differs from `expected`, this function stores *p in
 * `expected` and returns false.
 *
 * All functions are templates, so a vendor function with the same types is preferred.
 */
#ifndef RILL_DEVICE_ATOMIC_H
#define RILL_DEVICE_ATOMIC_H

#include <rill/device/atomic_types.h>

/** Replaces *p by update(*p) atomically and returns the old value. */
template <int Scope, class T, class Update>
RILL_UNCHECKED_ static __device__ __forceinline__ T rill_atomic_update_(T *p, Update update) {
  T old = *const_cast<volatile T *>(p);
  RILL_UPDATE_BEGINS_(p, sizeof(T));
  while (!rill_compare_exchange_<Scope>(p, &old, update(old))) continue;
  RILL_UPDATE_ENDS_();
  return old;
}

#define RILL_ATOMIC_(TYPES, NAME, FUNCTION, SCOPE)                                                        \
  template <class T> static __device__ __forceinline__ RILL_FOR_(TYPES) NAME(T *p, rill_same_type<T> v) { \
    return FUNCTION<SCOPE>(p, v);                                                                         \
  }
#define RILL_ATOMICS_(SUFFIX, SCOPE)                                                                                   \
  RILL_ATOMIC_(rill_is_number, atomicAdd##SUFFIX, rill_fetch_add_, SCOPE)                                              \
  RILL_ATOMIC_(rill_is_number, atomicExch##SUFFIX, rill_fetch_exchange_, SCOPE)                                        \
  RILL_ATOMIC_(rill_is_integer, atomicMin##SUFFIX, rill_fetch_min_, SCOPE)                                             \
  RILL_ATOMIC_(rill_is_integer, atomicMax##SUFFIX, rill_fetch_max_, SCOPE)                                             \
  RILL_ATOMIC_(rill_is_integer, atomicAnd##SUFFIX, rill_fetch_and_, SCOPE)                                             \
  RILL_ATOMIC_(rill_is_integer, atomicOr##SUFFIX, rill_fetch_or_, SCOPE)                                               \
  RILL_ATOMIC_(rill_is_integer, atomicXor##SUFFIX, rill_fetch_xor_, SCOPE)                                             \
  template <class T>                                                                                                   \
  static __device__ __forceinline__ RILL_FOR_(rill_is_integer) atomicSub##SUFFIX(T *p, rill_same_type<T> v) {          \
    return rill_fetch_add_<SCOPE>(p, static_cast<T>(0ull - static_cast<unsigned long long>(v)));                       \
  }                                                                                                                    \
  template <class T>                                                                                                   \
  static __device__ __forceinline__ RILL_FOR_(rill_is_integer)                                                         \
      atomicCAS##SUFFIX(T *p, rill_same_type<T> expected, rill_same_type<T> v) {                                       \
    rill_compare_exchange_<SCOPE>(p, &expected, v);                                                                    \
    return expected;                                                                                                   \
  }                                                                                                                    \
  template <class T>                                                                                                   \
  static __device__ __forceinline__ RILL_FOR_(rill_is_unsigned_int) atomicInc##SUFFIX(T *p, rill_same_type<T> limit) { \
    return rill_atomic_update_<SCOPE>(p, [limit](T old) { return old >= limit ? 0 : old + 1; });                       \
  }                                                                                                                    \
  template <class T>                                                                                                   \
  static __device__ __forceinline__ RILL_FOR_(rill_is_unsigned_int) atomicDec##SUFFIX(T *p, rill_same_type<T> limit) { \
    return rill_atomic_update_<SCOPE>(p, [limit](T old) { return old == 0 || old > limit ? limit : old - 1; });        \
  }
RILL_ATOMICS_(, RILL_SCOPE_DEVICE_)
RILL_ATOMICS_(_block, RILL_SCOPE_BLOCK_)
RILL_ATOMICS_(_system, RILL_SCOPE_SYSTEM_)
#undef RILL_ATOMICS_
#undef RILL_ATOMIC_

#include <rill/device/atomic_float.h>

#endif
