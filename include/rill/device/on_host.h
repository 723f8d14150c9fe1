/* rill/device/on_host.h: the kernel dialect under the host's C++ compiler.  Included by rill/device/kernel.h.
 *
 * A kernel becomes an inlined function with hidden parameters that are called threadIdx, blockIdx, blockDim
 * and gridDim, so that the loop over the threads of a block (rill/device/host_image.h) is a plain loop, which
 * the compiler can vectorize.  The functions that a kernel calls have no such parameters: there the names mean
 * thread-local variables, which exist only if RILL_HELPERS_READ_INDEX says that some function uses them.
 *
 * A block stays on one worker thread, and blocks follow one another there, so shared memory is thread-local.
 */
#ifndef RILL_DEVICE_ON_HOST_H
#define RILL_DEVICE_ON_HOST_H

#include <rill/device/cpu_image.h>

#include <sched.h>
#include <time.h>

/* rillcc passes 0 for a source whose functions do not use the indices: setting them costs a store a thread. */
#ifndef RILL_HELPERS_READ_INDEX
#define RILL_HELPERS_READ_INDEX 1
#endif

#define __host__
#define __device__
#define __constant__
#define __shared__ thread_local
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ /* not the attribute: the C++ library writes __attribute__((__noinline__)) */
#define __launch_bounds__(...)
#define __align__(N) __attribute__((aligned(N)))

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
};

#define RILL_JOIN_(A, B) RILL_JOIN_1_(A, B)
#define RILL_JOIN_1_(A, B) A##B
#define RILL_KERNEL(NAME, ...)                                                       \
  RILL_SPLIT_(NAME)                                                                  \
  static __forceinline__ void RILL_JOIN_(rill_body_, NAME)(                          \
      [[maybe_unused]] const uint3 threadIdx, [[maybe_unused]] const uint3 blockIdx, \
      [[maybe_unused]] const dim3 blockDim, [[maybe_unused]] const dim3 gridDim,     \
      [[maybe_unused]] void *const rill_dynamic_shared, ##__VA_ARGS__)
/* For each kernel, rillcc defines the text of its split form, or nothing. */
#if RILL_SPLITS
#define RILL_SPLIT_(NAME) RILL_JOIN_(RILL_SPLIT_OF_, NAME)
#else
#define RILL_SPLIT_(NAME)
#endif
#define RILL_KERNEL_BOUNDED(THREADS, NAME, ...) RILL_KERNEL(NAME, ##__VA_ARGS__)
#define RILL_DYNAMIC_SHARED(TYPE, NAME) TYPE *const NAME = static_cast<TYPE *>(rill_dynamic_shared)

static thread_local const rill_cpu_services *rill_services;
#if RILL_HELPERS_READ_INDEX
static thread_local uint3 threadIdx, blockIdx;
static thread_local dim3 blockDim, gridDim;
static thread_local void *rill_dynamic_shared;
#endif

/* Around a service in which other threads of the block run: they have other indices. */
struct rill_keep_thread {
#if RILL_HELPERS_READ_INDEX
  const uint3 mine = threadIdx;
  ~rill_keep_thread() { threadIdx = mine; }
#else
  ~rill_keep_thread() {}
#endif
};

static inline void __syncthreads() {
  const rill_keep_thread keep;
  rill_services->barrier();
}
static inline int __syncthreads_count(int p) {
  const rill_keep_thread keep;
  return static_cast<int>(rill_services->barrier_count(p != 0));
}
static inline int __syncthreads_and(int p) { return __syncthreads_count(!p) == 0; }
static inline int __syncthreads_or(int p) { return __syncthreads_count(p) != 0; }

/* ---- warps: rill/device/warp.h ---- */

static inline const rill_cpu_warp *rill_exchange(uint64_t value) {
  const rill_keep_thread keep;
  return rill_services->exchange(value);
}
static inline unsigned rill_lane() { return rill_services->lane(); }
static inline unsigned rill_warp_size() { return rill_services->warp_size; }
static inline unsigned long long rill_ballot(bool p) { return rill_exchange(p)->nonzero; }
static inline bool rill_vote_all(bool p) { return rill_exchange(!p)->nonzero == 0; }
static inline bool rill_vote_any(bool p) { return rill_exchange(p)->nonzero != 0; }
static inline void rill_warp_sync() { rill_exchange(0); }

template <class T> static inline T rill_shuffle_from_(T v, unsigned lane) {
  static_assert(__is_trivially_copyable(T) && (sizeof(T) == 1 || sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8),
                "a plain value of 1, 2, 4 or 8 bytes");
  uint64_t bits = 0;
  __builtin_memcpy(&bits, &v, sizeof v);
  const rill_cpu_warp *const warp = rill_exchange(bits);
  if (lane < 64 && (warp->live >> lane & 1) != 0) __builtin_memcpy(&v, &warp->values[lane], sizeof v);
  return v;
}
#include <rill/device/warp.h>

static inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

/** Reads a value that the host or another device writes; what was written before it is seen after it. */
template <class T> static inline T rill_load_acquire(const T *p) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/** Writes a value that the host or another device reads, after everything written before it. */
template <class T> static inline void rill_store_release(T *p, T v) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/** Lets others run between two looks at a value. */
static inline void rill_pause() { sched_yield(); }

/** Nanoseconds since some moment. */
static inline unsigned long long rill_clock_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<unsigned long long>(t.tv_sec) * 1000000000ull + static_cast<unsigned long long>(t.tv_nsec);
}

#include <rill/device/host_atomic.h>
#include <rill/device/host_split.h>
#include <rill/device/min_max.h>

#endif
