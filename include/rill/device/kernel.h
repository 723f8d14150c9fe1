/* rill/device/kernel.h: the header of kernel sources.
 *
 * A kernel source is C++17 in the common dialect of CUDA and HIP.  rillcc compiles it with nvcc and hipcc, or with
 * clang alone if neither CUDA nor HIP is installed, and with the host's C++ compiler:
 *
 *     #include <rill/device/kernel.h>
 *
 *     RILL_KERNEL(saxpy, int n, float a, const float *x, float *y) {
 *       const int i = blockIdx.x * blockDim.x + threadIdx.x;
 *       if (i < n)
 *         y[i] = a * x[i] + y[i];
 *     }
 *
 * Available on CUDA, HIP and the CPU (docs/reference/KERNELS.md is the full description):
 *
 *   RILL_KERNEL(name, params...) { body }             a kernel; outside namespaces and classes
 *   RILL_KERNEL_BOUNDED(threads, name, params...)     a kernel whose blocks have at most that many threads
 *   RILL_KERNEL_BOUNDED(RILL_MIN_BLOCKS(threads, blocks), name, params...)    also asks for that many blocks per
 *                                                     multiprocessor; a hint for nvcc only
 *   RILL_KERNEL_INSTANCE(name, kernel<float, 4>);     names an instance of a template, or any kernel
 *   __global__ void kernel(params...) { body }        a kernel in CUDA and HIP syntax, found by its own name
 *   RILL_ON_CPU RILL_ON_CUDA RILL_ON_HIP              1 for the target being compiled, otherwise 0
 *   RILL_DYNAMIC_SHARED(float, tile);                 declares `float *tile`, the shared_mem_bytes of the launch
 *   __shared__ __constant__ __device__ __host__ __forceinline__ __noinline__ __restrict__ __launch_bounds__ __align__
 *   threadIdx blockIdx blockDim gridDim               in kernels and in the functions that they call
 *   __syncthreads __syncthreads_count _and _or __threadfence_block __threadfence __threadfence_system
 *   atomicAdd Sub Exch CAS Min Max And Or Xor         on int, unsigned, integers of 8 bytes; Add and Exch on float and
 *   atomicInc Dec                                     double; Inc and Dec on unsigned.  Relaxed order, device scope;
 *                                                     the suffixes _block and _system select another scope
 *   rill_atomic_min rill_atomic_max                   on float and double
 *   rill_shuffle rill_ballot rill_vote_all ...        between the threads of a warp: rill/device/warp.h
 *   rill_warp_sum rill_block_sum and _min and _max    over all threads of a warp or block: rill/device/reduce.h
 *   __ldg __ldca __ldcg __ldcs __ldlu __ldcv __stwb __stcg __stcs __stwt    loads and stores with cache hints
 *   rill_half rill_bfloat16                           16-bit floating-point types: rill/device/half.h
 *   min max, and sqrtf fabsf fminf fmaxf floorf ceilf truncf rintf fmaf, their double forms, and other
 *   functions of <cmath> that all three compilers have; assert and printf
 *   rill_load_acquire(p) rill_store_release(p, v)     4-byte or 8-byte integers shared with the host or other devices
 *   rill_pause()                                      pauses between polls
 *   rill_clock_ns()                                   a clock in nanoseconds, for time limits
 *
 * Parameters have C types, so that C programs can pass them.  The name of a kernel is the name of a C function, so it
 * must not be the name of another function that the compiler knows (clock, index).
 *
 * Pitfall: a launch is rounded up to whole blocks, so a kernel must compare its index with n. On the CPU the threads
 * of a block without barriers run one after another, so a thread that polls for another thread of its block never
 * returns.
 *
 * Rounding: products and sums are never fused on the CPU.  GPU compilers fuse them unless rillcc is called with
 * `--fp-contract off`.  Use fmaf where fusing matters.
 */
#ifndef RILL_DEVICE_KERNEL_H
#define RILL_DEVICE_KERNEL_H

#if !defined(__cplusplus) || __cplusplus < 201703L
#error "a kernel source is C++17: compile it with rillcc"
#endif

#if defined(__CUDACC_RTC__) || defined(__HIPCC_RTC__)
#include <rill/device/on_rtc.h>
#else
#ifdef RILL_CLC_MATH
#include <rill/device/clc_math.h>
#endif
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#endif

#if defined(__CUDACC__)
#define RILL_ON_CUDA 1
#elif defined(__HIP__)
#define RILL_ON_HIP 1
#else
#define RILL_ON_CPU 1
#endif
#ifndef RILL_ON_CUDA
#define RILL_ON_CUDA 0
#endif
#ifndef RILL_ON_HIP
#define RILL_ON_HIP 0
#endif
#ifndef RILL_ON_CPU
#define RILL_ON_CPU 0
#endif
#if RILL_ON_CUDA
#include <rill/device/on_cuda.h>
#elif RILL_ON_HIP
#include <rill/device/on_hip.h>
#else
#include <rill/device/on_host.h>
#endif

#include <rill/device/half.h>
#if !RILL_ON_CPU || RILL_REGIONS || RILL_HELPERS_READ_INDEX
#include <rill/device/reduce.h>
#endif

#endif
