/* rill/device/cuda_clang_atomic.h: the functions that rill/device/atomic.h needs, for NVIDIA GPUs and clang without
 * CUDA. Included by rill/device/on_cuda.h. */
#ifndef RILL_DEVICE_CUDA_CLANG_ATOMIC_H
#define RILL_DEVICE_CUDA_CLANG_ATOMIC_H

#include <rill/device/atomic_types.h>

#define RILL_SCOPE_BLOCK_ 0
#define RILL_SCOPE_DEVICE_ 1
#define RILL_SCOPE_SYSTEM_ 2

/* clang has no scopes before version 18. Up to version 19 it compiles all scopes as device scope, which is too narrow
 * for the system scope, so the system scope uses other builtins. */
#if __has_builtin(__scoped_atomic_fetch_add)
#define RILL_SCOPED_(NAME, ...) __scoped_atomic_##NAME(__VA_ARGS__, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE)
#define RILL_SCOPED_CAS_(P, EXPECTED, V) \
  __scoped_atomic_compare_exchange_n(P, EXPECTED, V, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED, __MEMORY_SCOPE_DEVICE)
#else
#define RILL_SCOPED_(NAME, ...) __atomic_##NAME(__VA_ARGS__, __ATOMIC_RELAXED)
#define RILL_SCOPED_CAS_(P, EXPECTED, V) \
  __atomic_compare_exchange_n(P, EXPECTED, V, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED)
#endif

/* ---- system scope, for each type that has instructions ---- */

#define RILL_OF_SYSTEM_(NAME, NUMBER, LETTER, INSTRUCTION)                                                   \
  static __device__ __forceinline__ NUMBER rill_system_##NAME##_(NUMBER *p, NUMBER v) {                      \
    NUMBER old;                                                                                              \
    asm volatile("atom.sys." INSTRUCTION " %0, [%1], %2;" : "=" LETTER(old) : "l"(p), LETTER(v) : "memory"); \
    return old;                                                                                              \
  }
#define RILL_OF_INTEGERS_(NAME, OPERATION, SIGNED, UNSIGNED)         \
  RILL_OF_SYSTEM_(NAME, int, "r", OPERATION SIGNED "32")             \
  RILL_OF_SYSTEM_(NAME, unsigned, "r", OPERATION UNSIGNED "32")      \
  RILL_OF_SYSTEM_(NAME, long, "l", OPERATION SIGNED "64")            \
  RILL_OF_SYSTEM_(NAME, unsigned long, "l", OPERATION UNSIGNED "64") \
  RILL_OF_SYSTEM_(NAME, long long, "l", OPERATION SIGNED "64")       \
  RILL_OF_SYSTEM_(NAME, unsigned long long, "l", OPERATION UNSIGNED "64")
RILL_OF_INTEGERS_(add, "add", ".u", ".u")
RILL_OF_INTEGERS_(exchange, "exch", ".b", ".b")
RILL_OF_INTEGERS_(min, "min", ".s", ".u")
RILL_OF_INTEGERS_(max, "max", ".s", ".u")
RILL_OF_INTEGERS_(and, "and", ".b", ".b")
RILL_OF_INTEGERS_(or, "or", ".b", ".b")
RILL_OF_INTEGERS_(xor, "xor", ".b", ".b")
RILL_OF_SYSTEM_(add, float, "f", "add.f32")
RILL_OF_SYSTEM_(add, double, "d", "add.f64")
RILL_OF_SYSTEM_(exchange, float, "f", "exch.b32")
RILL_OF_SYSTEM_(exchange, double, "d", "exch.b64")
#undef RILL_OF_INTEGERS_
#undef RILL_OF_SYSTEM_

template <class T> static __device__ __forceinline__ T rill_system_cas_(T *p, T expected, T v) {
  T old;
  if constexpr (sizeof(T) == 4)
    asm volatile("atom.sys.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(p), "r"(expected), "r"(v) : "memory");
  else asm volatile("atom.sys.cas.b64 %0, [%1], %2, %3;" : "=l"(old) : "l"(p), "l"(expected), "l"(v) : "memory");
  return old;
}

/* ---- all scopes ---- */

template <int Scope, class T>
static __device__ __forceinline__ bool rill_compare_exchange_(T *p, T *expected, rill_same_type<T> v) {
  if constexpr (Scope == RILL_SCOPE_SYSTEM_) {
    const T old = rill_system_cas_(p, *expected, v);
    const bool done = old == *expected;
    *expected = old;
    return done;
  } else {
    return RILL_SCOPED_CAS_(p, expected, v);
  }
}
#define RILL_FETCH_(NAME, SCOPED)                                                                     \
  template <int Scope, class T> static __device__ __forceinline__ T rill_fetch_##NAME##_(T *p, T v) { \
    if constexpr (Scope == RILL_SCOPE_SYSTEM_) return rill_system_##NAME##_(p, v);                    \
    else return RILL_SCOPED_(SCOPED, p, v);                                                           \
  }
RILL_FETCH_(add, fetch_add)
RILL_FETCH_(min, fetch_min)
RILL_FETCH_(max, fetch_max)
RILL_FETCH_(and, fetch_and)
RILL_FETCH_(or, fetch_or)
RILL_FETCH_(xor, fetch_xor)
#undef RILL_FETCH_
template <size_t Bytes> struct rill_bits_of_ { using type = unsigned __attribute__((__may_alias__)); };
template <> struct rill_bits_of_<8> { using type = unsigned long long __attribute__((__may_alias__)); };
template <int Scope, class T> static __device__ __forceinline__ T rill_fetch_exchange_(T *p, T v) {
  if constexpr (Scope == RILL_SCOPE_SYSTEM_) {
    return rill_system_exchange_(p, v);
  } else {
    typename rill_bits_of_<sizeof(T)>::type bits;
    __builtin_memcpy(&bits, &v, sizeof v);
    bits = RILL_SCOPED_(exchange_n, reinterpret_cast<decltype(bits) *>(p), bits);
    __builtin_memcpy(&v, &bits, sizeof v);
    return v;
  }
}
#undef RILL_SCOPED_
#undef RILL_SCOPED_CAS_

#include <rill/device/atomic.h>

/* These functions are preferred to the templates, which loop. */
#define RILL_WRAPPING_(NAME, INSTRUCTION)                                                              \
  static __device__ __forceinline__ unsigned NAME(unsigned *p, unsigned limit) {                       \
    unsigned old;                                                                                      \
    asm volatile("atom" INSTRUCTION ".u32 %0, [%1], %2;" : "=r"(old) : "l"(p), "r"(limit) : "memory"); \
    return old;                                                                                        \
  }
RILL_WRAPPING_(atomicInc, ".inc")
RILL_WRAPPING_(atomicInc_block, ".cta.inc")
RILL_WRAPPING_(atomicInc_system, ".sys.inc")
RILL_WRAPPING_(atomicDec, ".dec")
RILL_WRAPPING_(atomicDec_block, ".cta.dec")
RILL_WRAPPING_(atomicDec_system, ".sys.dec")
#undef RILL_WRAPPING_

#endif
