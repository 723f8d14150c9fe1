/* rill/device/cuda_freestanding.h: the definitions that nvcc and CUDA's headers would provide, for `clang -x cuda
 * -nocudainc -nocudalib`. Included by rill/device/on_cuda.h.
 *
 * Everything here is a compiler builtin or an instruction and needs no library. Functions that need a library (sinf,
 * expf, powf and the like) are in rill/device/clc_math.h if libclc is installed; otherwise only nvcc has them.
 */
#ifndef RILL_DEVICE_CUDA_FREESTANDING_H
#define RILL_DEVICE_CUDA_FREESTANDING_H

/* __noinline__ is a keyword of clang. */
#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __align__(N) __attribute__((aligned(N)))

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  __host__ __device__ constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  __host__ __device__ constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  __host__ __device__ constexpr operator uint3() const { return { x, y, z }; }
};

#define RILL_CUDA_NAME_ static __device__ __forceinline__

RILL_CUDA_NAME_ uint3 rill_thread_idx() {
  return { static_cast<unsigned>(__nvvm_read_ptx_sreg_tid_x()), static_cast<unsigned>(__nvvm_read_ptx_sreg_tid_y()),
           static_cast<unsigned>(__nvvm_read_ptx_sreg_tid_z()) };
}
RILL_CUDA_NAME_ uint3 rill_block_idx() {
  return { static_cast<unsigned>(__nvvm_read_ptx_sreg_ctaid_x()), static_cast<unsigned>(__nvvm_read_ptx_sreg_ctaid_y()),
           static_cast<unsigned>(__nvvm_read_ptx_sreg_ctaid_z()) };
}
RILL_CUDA_NAME_ dim3 rill_block_dim() {
  return { static_cast<unsigned>(__nvvm_read_ptx_sreg_ntid_x()), static_cast<unsigned>(__nvvm_read_ptx_sreg_ntid_y()),
           static_cast<unsigned>(__nvvm_read_ptx_sreg_ntid_z()) };
}
RILL_CUDA_NAME_ dim3 rill_grid_dim() {
  return { static_cast<unsigned>(__nvvm_read_ptx_sreg_nctaid_x()),
           static_cast<unsigned>(__nvvm_read_ptx_sreg_nctaid_y()),
           static_cast<unsigned>(__nvvm_read_ptx_sreg_nctaid_z()) };
}
#define threadIdx (rill_thread_idx())
#define blockIdx (rill_block_idx())
#define blockDim (rill_block_dim())
#define gridDim (rill_grid_dim())

RILL_CUDA_NAME_ void __threadfence_block() { __nvvm_membar_cta(); }
RILL_CUDA_NAME_ void __threadfence() { __nvvm_membar_gl(); }
RILL_CUDA_NAME_ void __threadfence_system() { __nvvm_membar_sys(); }

/* ---- barriers: __syncthreads is a builtin ---- */

#define RILL_BARRIER_(NAME, INSTRUCTION)                                              \
  RILL_CUDA_NAME_ int NAME(int p) {                                                   \
    int result;                                                                       \
    asm volatile("{ .reg .pred %%p, %%q;\n setp.ne.s32 %%p, %1, 0;\n" INSTRUCTION "}" \
                 : "=r"(result)                                                       \
                 : "r"(p)                                                             \
                 : "memory");                                                         \
    return result;                                                                    \
  }
RILL_BARRIER_(__syncthreads_count, "bar.red.popc.u32 %0, 0, %%p;\n")
RILL_BARRIER_(__syncthreads_and, "bar.red.and.pred %%q, 0, %%p;\n selp.s32 %0, 1, 0, %%q;\n")
RILL_BARRIER_(__syncthreads_or, "bar.red.or.pred %%q, 0, %%p;\n selp.s32 %0, 1, 0, %%q;\n")
#undef RILL_BARRIER_

/* ---- warp functions with CUDA's masks ---- */

RILL_CUDA_NAME_ unsigned __activemask() {
  unsigned mask;
  asm volatile("activemask.b32 %0;" : "=r"(mask));
  return mask;
}
RILL_CUDA_NAME_ void __syncwarp(unsigned mask = ~0u) { __nvvm_bar_warp_sync(mask); }
RILL_CUDA_NAME_ unsigned __ballot_sync(unsigned mask, int p) {
  return static_cast<unsigned>(__nvvm_vote_ballot_sync(mask, p != 0));
}
RILL_CUDA_NAME_ int __all_sync(unsigned mask, int p) { return __nvvm_vote_all_sync(mask, p != 0); }
RILL_CUDA_NAME_ int __any_sync(unsigned mask, int p) { return __nvvm_vote_any_sync(mask, p != 0); }

/* Splits a value of up to 8 bytes into words of 4 bytes. The last operand of the instruction contains the width and
 * the last reachable lane: lane 31, or the first lane for shuffles up. */
template <class RillT> struct rill_words_ {
  static_assert(__is_trivially_copyable(RillT) && sizeof(RillT) <= 8, "a trivially copyable value of at most 8 bytes");
  int word[sizeof(RillT) == 8 ? 2 : 1];
};
#define RILL_SHUFFLE_(NAME, BUILTIN, BY, LAST)                                                       \
  template <class RillT> RILL_CUDA_NAME_ RillT NAME(unsigned mask, RillT v, BY by, int width = 32) { \
    rill_words_<RillT> words = {};                                                                   \
    __builtin_memcpy(&words, &v, sizeof v);                                                          \
    for (int &word : words.word) {                                                                   \
      word = BUILTIN(mask, word, static_cast<int>(by), (32 - width) << 8 | LAST);                    \
    }                                                                                                \
    __builtin_memcpy(&v, &words, sizeof v);                                                          \
    return v;                                                                                        \
  }
RILL_SHUFFLE_(__shfl_sync, __nvvm_shfl_sync_idx_i32, int, 31)
RILL_SHUFFLE_(__shfl_up_sync, __nvvm_shfl_sync_up_i32, unsigned, 0)
RILL_SHUFFLE_(__shfl_down_sync, __nvvm_shfl_sync_down_i32, unsigned, 31)
RILL_SHUFFLE_(__shfl_xor_sync, __nvvm_shfl_sync_bfly_i32, int, 31)
#undef RILL_SHUFFLE_

RILL_CUDA_NAME_ void __nanosleep(unsigned ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns)); }

/* ---- assert, printf, memory ---- */

/* Provided by the driver. */
extern "C" __device__ int vprintf(const char *, const char *);
extern "C" __device__ int printf(const char *, ...); /* clang compiles it to vprintf */
extern "C" __device__ __attribute__((noreturn)) void __assertfail(const char *, const char *, unsigned, const char *,
                                                                  size_t);
/* Called by assert of <assert.h>. */
RILL_CUDA_NAME_ void __assert_fail(const char *text, const char *file, unsigned line, const char *function) {
  __assertfail(text, file, line, function, sizeof(char));
}
RILL_CUDA_NAME_ void *memcpy(void *to, const void *from, size_t size) { return __builtin_memcpy(to, from, size); }
RILL_CUDA_NAME_ void *memset(void *to, int value, size_t size) { return __builtin_memset(to, value, size); }

/* ---- loads and stores with cache hints ---- */

/* CUDA's generic pointers to device memory are valid addresses for these instructions. */
#define RILL_LOAD_(NAME, SUFFIX, VOLATILE, ...)                                                                      \
  template <class RillT> RILL_CUDA_NAME_ RillT NAME(const RillT *p) {                                                \
    static_assert(__is_trivially_copyable(RillT), "a trivially copyable value");                                     \
    RillT v;                                                                                                         \
    if constexpr (sizeof(RillT) == 1) {                                                                              \
      unsigned short bits;                                                                                           \
      asm VOLATILE("ld.global" SUFFIX ".u8 %0, [%1];" : "=h"(bits) : "l"(p)__VA_ARGS__);                             \
      const unsigned char byte = static_cast<unsigned char>(bits);                                                   \
      __builtin_memcpy(&v, &byte, sizeof v);                                                                         \
    } else if constexpr (sizeof(RillT) == 2) {                                                                       \
      unsigned short bits;                                                                                           \
      asm VOLATILE("ld.global" SUFFIX ".u16 %0, [%1];" : "=h"(bits) : "l"(p)__VA_ARGS__);                            \
      __builtin_memcpy(&v, &bits, sizeof v);                                                                         \
    } else if constexpr (sizeof(RillT) == 4) {                                                                       \
      unsigned bits;                                                                                                 \
      asm VOLATILE("ld.global" SUFFIX ".u32 %0, [%1];" : "=r"(bits) : "l"(p)__VA_ARGS__);                            \
      __builtin_memcpy(&v, &bits, sizeof v);                                                                         \
    } else if constexpr (sizeof(RillT) == 8) {                                                                       \
      unsigned long long bits;                                                                                       \
      asm VOLATILE("ld.global" SUFFIX ".u64 %0, [%1];" : "=l"(bits) : "l"(p)__VA_ARGS__);                            \
      __builtin_memcpy(&v, &bits, sizeof v);                                                                         \
    } else {                                                                                                         \
      static_assert(sizeof(RillT) == 16, "1, 2, 4, 8 or 16 bytes");                                                  \
      unsigned long long bits[2];                                                                                    \
      asm VOLATILE("ld.global" SUFFIX ".v2.u64 {%0, %1}, [%2];" : "=l"(bits[0]), "=l"(bits[1]) : "l"(p)__VA_ARGS__); \
      __builtin_memcpy(&v, bits, sizeof v);                                                                          \
    }                                                                                                                \
    return v;                                                                                                        \
  }
#define RILL_STORE_(NAME, SUFFIX)                                                                                    \
  template <class RillT> RILL_CUDA_NAME_ void NAME(RillT *p, RillT v) {                                              \
    static_assert(__is_trivially_copyable(RillT), "a trivially copyable value");                                     \
    unsigned long long bits[2] = {};                                                                                 \
    __builtin_memcpy(bits, &v, sizeof v);                                                                            \
    const unsigned low = static_cast<unsigned>(bits[0]);                                                             \
    if constexpr (sizeof(RillT) == 1)                                                                                \
      asm volatile("st.global" SUFFIX ".u8 [%0], %1;" ::"l"(p), "h"(static_cast<short>(low)) : "memory");            \
    else if constexpr (sizeof(RillT) == 2)                                                                           \
      asm volatile("st.global" SUFFIX ".u16 [%0], %1;" ::"l"(p), "h"(static_cast<short>(low)) : "memory");           \
    else if constexpr (sizeof(RillT) == 4)                                                                           \
      asm volatile("st.global" SUFFIX ".u32 [%0], %1;" ::"l"(p), "r"(low) : "memory");                               \
    else if constexpr (sizeof(RillT) == 8)                                                                           \
      asm volatile("st.global" SUFFIX ".u64 [%0], %1;" ::"l"(p), "l"(bits[0]) : "memory");                           \
    else asm volatile("st.global" SUFFIX ".v2.u64 [%0], {%1, %2};" ::"l"(p), "l"(bits[0]), "l"(bits[1]) : "memory"); \
  }
#define RILL_MEMORY_ : "memory"
RILL_LOAD_(__ldg, ".nc", )
RILL_LOAD_(__ldca, ".ca", volatile, RILL_MEMORY_)
RILL_LOAD_(__ldcg, ".cg", volatile, RILL_MEMORY_)
RILL_LOAD_(__ldcs, ".cs", volatile, RILL_MEMORY_)
RILL_LOAD_(__ldlu, ".lu", volatile, RILL_MEMORY_)
RILL_LOAD_(__ldcv, ".cv", volatile, RILL_MEMORY_)
RILL_STORE_(__stwb, ".wb")
RILL_STORE_(__stcg, ".cg")
RILL_STORE_(__stcs, ".cs")
RILL_STORE_(__stwt, ".wt")
#undef RILL_MEMORY_
#undef RILL_LOAD_
#undef RILL_STORE_

/* ---- exactly rounded functions of one or a few instructions ---- */

#define RILL_MATH_1_(NAME)                                                  \
  RILL_CUDA_NAME_ float NAME##f(float x) { return __builtin_##NAME##f(x); } \
  RILL_CUDA_NAME_ double NAME(double x) { return __builtin_##NAME(x); }
#define RILL_MATH_2_(NAME)                                                              \
  RILL_CUDA_NAME_ float NAME##f(float x, float y) { return __builtin_##NAME##f(x, y); } \
  RILL_CUDA_NAME_ double NAME(double x, double y) { return __builtin_##NAME(x, y); }
RILL_MATH_1_(sqrt)
RILL_MATH_1_(fabs)
RILL_MATH_1_(floor)
RILL_MATH_1_(ceil)
RILL_MATH_1_(trunc)
RILL_MATH_1_(rint)
RILL_MATH_2_(fmin)
RILL_MATH_2_(fmax)
RILL_MATH_2_(copysign)
#undef RILL_MATH_1_
#undef RILL_MATH_2_
RILL_CUDA_NAME_ float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
RILL_CUDA_NAME_ double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
RILL_CUDA_NAME_ int abs(int x) { return __builtin_abs(x); }
RILL_CUDA_NAME_ float nanf(const char *) { return __builtin_nanf(""); } /* ignores the tag */
RILL_CUDA_NAME_ double nan(const char *) { return __builtin_nan(""); }

#include <rill/device/min_max.h>

#endif
