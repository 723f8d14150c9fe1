/* rill/device/host_atomic.h: CUDA's atomic functions on the cpu, for the types that CUDA has them for.
 * Included by rill/device/on_host.h.  Each returns the old value and orders nothing else, as on a GPU.
 */
#ifndef RILL_DEVICE_HOST_ATOMIC_H
#define RILL_DEVICE_HOST_ATOMIC_H

#define RILL_ATOMIC_(NAME, BUILTIN, TYPE) \
  static inline TYPE NAME(TYPE *p, TYPE v) { return BUILTIN(p, v, __ATOMIC_RELAXED); }
#define RILL_ATOMIC_INTEGERS_(NAME, BUILTIN) \
  RILL_ATOMIC_(NAME, BUILTIN, int)           \
  RILL_ATOMIC_(NAME, BUILTIN, unsigned)      \
  RILL_ATOMIC_(NAME, BUILTIN, unsigned long long)
RILL_ATOMIC_INTEGERS_(atomicAdd, __atomic_fetch_add)
RILL_ATOMIC_INTEGERS_(atomicExch, __atomic_exchange_n)
RILL_ATOMIC_INTEGERS_(atomicAnd, __atomic_fetch_and)
RILL_ATOMIC_INTEGERS_(atomicOr, __atomic_fetch_or)
RILL_ATOMIC_INTEGERS_(atomicXor, __atomic_fetch_xor)
RILL_ATOMIC_(atomicSub, __atomic_fetch_sub, int)
RILL_ATOMIC_(atomicSub, __atomic_fetch_sub, unsigned)
#undef RILL_ATOMIC_INTEGERS_
#undef RILL_ATOMIC_

/** Replaces *p by update(*p) at one stroke; gives the old value.  For what has no instruction. */
template <class T, class Update> static inline T rill_atomic_update(T *p, Update update) {
  T old, next;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  do next = update(old);
  while (!__atomic_compare_exchange(p, &old, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return old;
}

#define RILL_ATOMIC_(TYPE)                                                                   \
  static inline TYPE atomicMin(TYPE *p, TYPE v) {                                            \
    return rill_atomic_update(p, [v](TYPE old) { return old < v ? old : v; });               \
  }                                                                                          \
  static inline TYPE atomicMax(TYPE *p, TYPE v) {                                            \
    return rill_atomic_update(p, [v](TYPE old) { return old < v ? v : old; });               \
  }                                                                                          \
  static inline TYPE atomicCAS(TYPE *p, TYPE expected, TYPE v) {                             \
    __atomic_compare_exchange_n(p, &expected, v, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED); \
    return expected;                                                                         \
  }
RILL_ATOMIC_(int)
RILL_ATOMIC_(unsigned)
RILL_ATOMIC_(unsigned long long)
#undef RILL_ATOMIC_

static inline float atomicAdd(float *p, float v) {
  return rill_atomic_update(p, [v](float old) { return old + v; });
}
static inline double atomicAdd(double *p, double v) {
  return rill_atomic_update(p, [v](double old) { return old + v; });
}
static inline float atomicExch(float *p, float v) {
  float old;
  __atomic_exchange(p, &v, &old, __ATOMIC_RELAXED);
  return old;
}

#endif
