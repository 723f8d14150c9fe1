/* rill/device/hip_atomic.h: the functions that rill/device/atomic.h needs, for AMD GPUs. Included by
 * rill/device/on_hip.h.
 *
 * With hipcc most atomic functions come from the HIP headers, which lack the block scope and some types. */
#ifndef RILL_DEVICE_HIP_ATOMIC_H
#define RILL_DEVICE_HIP_ATOMIC_H

#include <rill/device/atomic_types.h>

#define RILL_SCOPE_BLOCK_ __HIP_MEMORY_SCOPE_WORKGROUP
#define RILL_SCOPE_DEVICE_ __HIP_MEMORY_SCOPE_AGENT
#define RILL_SCOPE_SYSTEM_ __HIP_MEMORY_SCOPE_SYSTEM

template <int Scope, class T>
static __device__ __forceinline__ bool rill_compare_exchange_(T *p, T *expected, rill_same_type<T> v) {
  return __hip_atomic_compare_exchange_strong(p, expected, v, __ATOMIC_RELAXED, __ATOMIC_RELAXED, Scope);
}
#define RILL_FETCH_(NAME, BUILTIN)                                                    \
  template <int Scope, class T> static __device__ __forceinline__ T NAME(T *p, T v) { \
    return BUILTIN(p, v, __ATOMIC_RELAXED, Scope);                                    \
  }
RILL_FETCH_(rill_add_, __hip_atomic_fetch_add)
RILL_FETCH_(rill_fetch_exchange_, __hip_atomic_exchange)
RILL_FETCH_(rill_fetch_min_, __hip_atomic_fetch_min)
RILL_FETCH_(rill_fetch_max_, __hip_atomic_fetch_max)
RILL_FETCH_(rill_fetch_and_, __hip_atomic_fetch_and)
RILL_FETCH_(rill_fetch_or_, __hip_atomic_fetch_or)
RILL_FETCH_(rill_fetch_xor_, __hip_atomic_fetch_xor)
#undef RILL_FETCH_

/* PCIe has no atomic addition of floats. An instruction for it has no effect on host memory, or is atomic only among
 * the threads of the GPU. For system scope the addition is therefore a loop, which does not depend on the
 * compiler. */
template <int Scope, class T> static __device__ __forceinline__ T rill_fetch_add_(T *p, T v) {
  if (Scope != RILL_SCOPE_SYSTEM_ || !rill_is_floating<T>) return rill_add_<Scope>(p, v);
  T old = *const_cast<volatile T *>(p);
  while (!rill_compare_exchange_<Scope>(p, &old, old + v)) continue;
  return old;
}

#include <rill/device/atomic.h>

#endif
