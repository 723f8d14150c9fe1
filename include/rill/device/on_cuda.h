/* rill/device/on_cuda.h: the kernel dialect for NVIDIA GPUs.  Included by rill/device/kernel.h.
 *
 * nvcc provides most of the dialect.  With RILL_CUDA_FREESTANDING clang compiles it without CUDA's headers and
 * libraries.
 */
#ifndef RILL_DEVICE_ON_CUDA_H
#define RILL_DEVICE_ON_CUDA_H

#ifdef RILL_CUDA_FREESTANDING
#include <rill/device/cuda_freestanding.h>
#endif

#define RILL_KERNEL(NAME, ...) extern "C" __global__ void NAME(__VA_ARGS__)
#define RILL_KERNEL_BOUNDED(THREADS, NAME, ...) extern "C" __global__ void __launch_bounds__(THREADS) NAME(__VA_ARGS__)
#define RILL_MIN_BLOCKS(THREADS, BLOCKS) THREADS, BLOCKS
/* Taking the address forces the instance to be generated. */
#define RILL_KERNEL_INSTANCE(NAME, ...) static const auto rill_instance_##NAME __attribute__((__used__)) = +__VA_ARGS__

/* All kernels of a source share one array, because CUDA allows only one type per name. */
#define RILL_DYNAMIC_SHARED(TYPE, NAME)                                \
  extern __shared__ __align__(16) unsigned char rill_dynamic_shared[]; \
  TYPE *const NAME = reinterpret_cast<TYPE *>(rill_dynamic_shared)

#ifdef RILL_CUDA_FREESTANDING
#include <rill/device/cuda_clang_atomic.h>
#else
#include <rill/device/cuda_atomic.h>
#endif

/* ---- warps: rill/device/warp.h ----
 *
 * The _sync functions receive the mask of all lanes; exited lanes count as arrived.  __activemask would be wrong,
 * because lanes that diverged at a branch need not have reconverged. */

static __device__ __forceinline__ unsigned rill_lane() {
  unsigned lane;
  asm("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
static __device__ __forceinline__ constexpr unsigned rill_warp_size() { return 32; }
static __device__ __forceinline__ unsigned long long rill_ballot(bool p) { return __ballot_sync(~0u, p); }
static __device__ __forceinline__ bool rill_vote_all(bool p) { return __all_sync(~0u, p) != 0; }
static __device__ __forceinline__ bool rill_vote_any(bool p) { return __any_sync(~0u, p) != 0; }
static __device__ __forceinline__ void rill_warp_sync() { __syncwarp(); }

/* Returns the v of a lane that also makes the call. */
template <class T> static __device__ __forceinline__ T rill_value_of_(T v, unsigned lane) {
  static_assert(__is_trivially_copyable(T) && (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8),
                "a trivially copyable value of 1, 2, 4 or 8 bytes");
  if constexpr (sizeof(T) == 8) {
    unsigned long long bits;
    memcpy(&bits, &v, sizeof bits);
    bits = __shfl_sync(~0u, bits, static_cast<int>(lane));
    memcpy(&v, &bits, sizeof v);
  } else {
    unsigned bits = 0;
    memcpy(&bits, &v, sizeof v);
    bits = __shfl_sync(~0u, bits, static_cast<int>(lane));
    memcpy(&v, &bits, sizeof v);
  }
  return v;
}
template <class T> static __device__ __forceinline__ T rill_shuffle_from_(T v, unsigned lane, unsigned long long) {
  const unsigned live = __ballot_sync(~0u, 1); /* executed by all lanes */
  const bool there = lane < 32 && (live >> lane & 1) != 0;
  return rill_value_of_(v, there ? lane : rill_lane());
}
#include <rill/device/warp.h>

/** Loads a value that the host or another device stores; writes before that store are visible afterwards. */
template <class T> static __device__ __forceinline__ T rill_load_acquire(const T *p) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");
  if constexpr (sizeof(T) == 4) {
    unsigned v;
    asm volatile("ld.acquire.sys.u32 %0, [%1];" : "=r"(v) : "l"(p) : "memory");
    return static_cast<T>(v);
  } else {
    unsigned long long v;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return static_cast<T>(v);
  }
}

/** Stores a value that the host or another device loads, after all earlier writes of the caller. */
template <class T> static __device__ __forceinline__ void rill_store_release(T *p, T v) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");
  if constexpr (sizeof(T) == 4)
    asm volatile("st.release.sys.u32 [%0], %1;" ::"l"(p), "r"(static_cast<unsigned>(v)) : "memory");
  else asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(p), "l"(static_cast<unsigned long long>(v)) : "memory");
}

/** Lets other threads run between two polls. */
static __device__ __forceinline__ void rill_pause() { __nanosleep(100); }

/** Returns nanoseconds since an unspecified point in time. The clock advances in steps of about 32 ns to 1 us. */
static __device__ __forceinline__ unsigned long long rill_clock_ns() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns)::"memory");
  return ns;
}

/* nvcc declares these functions for every source. */
#ifdef RILL_CUDA_FREESTANDING
#include <rill/device/cuda_bits.h>
#include <rill/device/cuda_math.h>
#include <rill/device/cuda_vectors.h>
#include <rill/device/cuda_warp.h>
#endif

#endif
