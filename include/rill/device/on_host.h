/* rill/device/on_host.h: the kernel dialect under the host's C++ compiler.  Included by rill/device/kernel.h.
 *
 * With clang, rillcc defines RILL_REGIONS. The kernel is then compiled as the program of one thread, which rillcc
 * turns into loops over the threads of a block (rill/device/host_regions.h).
 *
 * With other compilers a kernel is an inlined function with the hidden parameters threadIdx, blockIdx, blockDim and
 * gridDim. The loop over the threads of a block (rill/device/host_fibers.h) is then a plain loop, which the compiler
 * can vectorize. A kernel with barriers runs on fibers. Functions that a kernel calls have no hidden parameters;
 * there the names are thread-local variables, which exist only if RILL_HELPERS_READ_INDEX says that a function may
 * use them.
 *
 * A block stays on one worker thread, which runs its blocks one after another, so shared memory is thread-local.
 */
#ifndef RILL_DEVICE_ON_HOST_H
#define RILL_DEVICE_ON_HOST_H

#include <rill/device/cpu_image.h>

#include <sched.h>
#include <time.h>

#include <utility>

#ifndef RILL_REGIONS
#define RILL_REGIONS 0
#endif
#ifndef RILL_NOTES
#define RILL_NOTES 0
#endif
#ifndef RILL_CHECK
#define RILL_CHECK 0
#endif
#ifndef RILL_MATHEMATICS
#define RILL_MATHEMATICS 0
#endif
#ifndef RILL_STACKS_LATER
#define RILL_STACKS_LATER 0
#endif
#if RILL_REGIONS
#define RILL_HIDDEN_ /* hidden parameters before the kernel's own parameters */
#else
#define RILL_HIDDEN_ uint3, uint3, dim3, dim3, void *,
#endif

#define __host__
#define __device__
#define __constant__
/* Kernels in CUDA and HIP syntax, which rillcc finds by their section and registers. */
#if RILL_NOTES
#define __global__ __attribute__((__section__("rill_global"), __used__))
#elif RILL_REGIONS
#define __global__ __attribute__((__section__("rill_global")))
#else
#define __global__
#endif
#define __shared__ thread_local
#if RILL_CHECK
#define __forceinline__ inline /* remains a call, from which the checker finds the line */
#else
#define __forceinline__ inline __attribute__((always_inline))
#endif
#define __noinline__ /* empty, because the C++ library writes __attribute__((__noinline__)) */
#define __launch_bounds__(...)
#define __align__(N) __attribute__((aligned(N)))

struct uint3 {
  unsigned x, y, z;
};
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_ = 1, unsigned y_ = 1, unsigned z_ = 1) : x(x_), y(y_), z(z_) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return { x, y, z }; }
};

#define RILL_JOIN_(A, B) RILL_JOIN_1_(A, B)
#define RILL_JOIN_1_(A, B) A##B
#define RILL_TEXT_(...) RILL_TEXT_1_(__VA_ARGS__)
#define RILL_TEXT_1_(...) #__VA_ARGS__
#define RILL_KERNEL(NAME, ...)                             \
  RILL_BODY_(RILL_JOIN_(rill_body_, NAME), ##__VA_ARGS__); \
  RILL_REGISTER_(NAME, RILL_TEXT_(__VA_ARGS__))            \
  RILL_BODY_(RILL_JOIN_(rill_body_, NAME), ##__VA_ARGS__)
#define RILL_KERNEL_BOUNDED(THREADS, NAME, ...) RILL_KERNEL(NAME, ##__VA_ARGS__)
#define RILL_MIN_BLOCKS(THREADS, BLOCKS) THREADS

static thread_local const rill_cpu_services *rill_services;
#if !RILL_CHECK
static inline void rill_check_enter() {}
static inline void rill_check_arrive(bool, bool) {}
static inline void rill_check_leave(bool, uint64_t) {}
#endif
#include <rill/device/host_kernels.h>

#if RILL_REGIONS
#include <rill/device/host_regions.h>
#else
#include <rill/device/host_fibers.h>
#endif

static inline int __syncthreads_and(int p) { return __syncthreads_count(p == 0) == 0; }
static inline int __syncthreads_or(int p) { return __syncthreads_count(p) != 0; }
static inline bool rill_vote_all(bool p) { return rill_ballot(!p) == 0; }
static inline bool rill_vote_any(bool p) { return rill_ballot(p) != 0; }
#include <rill/device/warp.h>

static inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
static inline void __threadfence_system() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

/** Loads a value that the host or another device stores; writes before that store are visible afterwards. */
template <class T> static inline T rill_load_acquire(const T *p) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");
  return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/** Stores a value that the host or another device loads, after all earlier writes of the caller. */
template <class T> static inline void rill_store_release(T *p, T v) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8, "4 or 8 bytes");
  __atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/** Lets other threads run between two polls. */
static inline void rill_pause() { sched_yield(); }

/** Returns nanoseconds since an unspecified point in time. */
static inline unsigned long long rill_clock_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<unsigned long long>(t.tv_sec) * 1000000000ull + static_cast<unsigned long long>(t.tv_nsec);
}

#include <rill/device/cache_hints.h>
#include <rill/device/host_atomic.h>
#if RILL_MATHEMATICS
#include <rill/device/host_math.h>
#endif
#include <rill/device/min_max.h>

#endif
