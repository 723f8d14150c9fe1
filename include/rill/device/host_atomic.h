/* rill/device/host_atomic.h: the functions that rill/device/atomic.h needs, for the CPU. Included by
 * rill/device/on_host.h. As on a GPU, the order is relaxed. Every scope is the system scope. */
#ifndef RILL_DEVICE_HOST_ATOMIC_H
#define RILL_DEVICE_HOST_ATOMIC_H

#include <rill/device/atomic_types.h>

#define RILL_SCOPE_BLOCK_ 0
#define RILL_SCOPE_DEVICE_ 1
#define RILL_SCOPE_SYSTEM_ 2

template <int Scope, class T> static inline bool rill_compare_exchange_(T *p, T *expected, rill_same_type<T> v) {
  return __atomic_compare_exchange(p, expected, &v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

template <int Scope, class T, class Update> static inline T rill_atomic_update_(T *p, Update update);

template <int Scope, class T> static inline T rill_fetch_add_(T *p, T v) {
  if constexpr (rill_is_integer<T>) return __atomic_fetch_add(p, v, __ATOMIC_RELAXED);
  else return rill_atomic_update_<Scope>(p, [v](T old) { return old + v; });
}
template <int Scope, class T> static inline T rill_fetch_exchange_(T *p, T v) {
  T old;
  __atomic_exchange(p, &v, &old, __ATOMIC_RELAXED);
  return old;
}
template <int Scope, class T> static inline T rill_fetch_min_(T *p, T v) {
  return rill_atomic_update_<Scope>(p, [v](T old) { return old < v ? old : v; });
}
template <int Scope, class T> static inline T rill_fetch_max_(T *p, T v) {
  return rill_atomic_update_<Scope>(p, [v](T old) { return old < v ? v : old; });
}
template <int Scope, class T> static inline T rill_fetch_and_(T *p, T v) {
  return __atomic_fetch_and(p, v, __ATOMIC_RELAXED);
}
template <int Scope, class T> static inline T rill_fetch_or_(T *p, T v) {
  return __atomic_fetch_or(p, v, __ATOMIC_RELAXED);
}
template <int Scope, class T> static inline T rill_fetch_xor_(T *p, T v) {
  return __atomic_fetch_xor(p, v, __ATOMIC_RELAXED);
}

#include <rill/device/atomic.h>

#endif
