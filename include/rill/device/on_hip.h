/* rill/device/on_hip.h: the kernel dialect for AMD GPUs.  Included by rill/device/kernel.h.
 *
 * With hipcc the HIP headers provide the dialect. With RILL_HIP_FREESTANDING clang compiles it without HIP headers
 * and AMD's device libraries.
 */
#ifndef RILL_DEVICE_ON_HIP_H
#define RILL_DEVICE_ON_HIP_H

#ifdef RILL_HIP_FREESTANDING
#include <rill/device/hip_freestanding.h>
#elif !defined(__HIPCC_RTC__) /* hipRTC includes its own header before every source */
#include <hip/hip_runtime.h>
#endif

#define RILL_KERNEL(NAME, ...) extern "C" __global__ void NAME(__VA_ARGS__)
#define RILL_KERNEL_BOUNDED(THREADS, NAME, ...) extern "C" __global__ void __launch_bounds__(THREADS) NAME(__VA_ARGS__)
#define RILL_MIN_BLOCKS(THREADS, BLOCKS) THREADS /* HIP's second number counts waves */
/* Taking the address forces the instance to be generated. */
#define RILL_KERNEL_INSTANCE(NAME, ...) static const auto rill_instance_##NAME __attribute__((__used__)) = +__VA_ARGS__

#define RILL_DYNAMIC_SHARED(TYPE, NAME)                                               \
  extern __shared__ __attribute__((aligned(16))) unsigned char rill_dynamic_shared[]; \
  TYPE *const NAME = reinterpret_cast<TYPE *>(rill_dynamic_shared)

#include <rill/device/cache_hints.h>
#include <rill/device/hip_atomic.h>
#include <rill/device/min_max.h> /* HIP converts an int and an unsigned to double */

/* ---- warps: rill/device/warp.h ---- */

static __device__ __forceinline__ unsigned rill_lane() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
}
static __device__ __forceinline__ unsigned rill_warp_size() {
#if !defined(__AMDGCN__)
  return 64; /* the host's half of a HIP compile */
#elif __has_builtin(__builtin_amdgcn_wavefrontsize)
  return __builtin_amdgcn_wavefrontsize();
#else
  return __AMDGCN_WAVEFRONT_SIZE;
#endif
}
static __device__ __forceinline__ unsigned long long rill_ballot(bool p) {
  return __builtin_amdgcn_uicmp(static_cast<unsigned>(p), 0u, 33 /* not equal */);
}
static __device__ __forceinline__ bool rill_vote_all(bool p) { return rill_ballot(!p) == 0; }
static __device__ __forceinline__ bool rill_vote_any(bool p) { return rill_ballot(p) != 0; }
static __device__ __forceinline__ void rill_warp_sync() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

static __device__ __forceinline__ int rill_word_from_(int word, unsigned lane) {
#if defined(__GFX10__) || defined(__GFX11__)
  if (rill_warp_size() == 64) { /* here ds_bpermute reaches only 32 lanes */
    int found = word;
    for (unsigned i = 0; i < 64; i++) {
      const int other = __builtin_amdgcn_readlane(word, static_cast<int>(i));
      if (i == lane) found = other;
    }
    return found;
  }
#endif
  return __builtin_amdgcn_ds_bpermute(static_cast<int>(4 * lane), word);
}

/* Returns the v of a lane that also makes the call. */
template <class T> static __device__ __forceinline__ T rill_value_of_(T v, unsigned lane) {
  static_assert(__is_trivially_copyable(T) && (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8),
                "a trivially copyable value of 1, 2, 4 or 8 bytes");
  int words[sizeof(T) == 8 ? 2 : 1] = {};
  __builtin_memcpy(words, &v, sizeof v);
  for (int &word : words) word = rill_word_from_(word, lane);
  __builtin_memcpy(&v, words, sizeof v);
  return v;
}
template <class T> static __device__ __forceinline__ T rill_shuffle_from_(T v, unsigned lane, unsigned long long) {
  const unsigned long long live = rill_ballot(true); /* executed by all lanes */
  const bool there = lane < rill_warp_size() && (live >> lane & 1) != 0;
  return rill_value_of_(v, there ? lane : rill_lane());
}
#include <rill/device/warp.h>

/* The __atomic builtins have system scope in AMD code. */

/** Loads a value that the host or another device stores; writes before that store are visible afterwards. */
template <class T> static __device__ __forceinline__ T rill_load_acquire(const T *p) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/** Stores a value that the host or another device loads, after all earlier writes of the caller. */
template <class T> static __device__ __forceinline__ void rill_store_release(T *p, T v) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/** Lets other threads run between two polls. */
static __device__ __forceinline__ void rill_pause() { __builtin_amdgcn_s_sleep(2); /* about 128 cycles */ }

/** Returns nanoseconds since an unspecified point in time if the constant clock of the GPU runs at 100 MHz, as on
 *  gfx10 and later. On some gfx9 GPUs it runs at 25 MHz, and the result is a quarter of the real time. A kernel
 *  cannot query the rate; the host can (hipDeviceAttributeWallClockRate, HIP 5.3). Suitable for time limits, not for
 *  measurements. */
static __device__ __forceinline__ unsigned long long rill_clock_ns() {
#if defined(__GFX11__) || defined(__GFX12__)
  return __builtin_amdgcn_s_sendmsg_rtnl(0x83) * 10ull; /* MSG_RTN_GET_REALTIME, because s_memrealtime was removed */
#elif defined(__AMDGCN__)
  return __builtin_amdgcn_s_memrealtime() * 10ull;
#else
  return 0; /* the host's half of a HIP compile */
#endif
}

#endif
