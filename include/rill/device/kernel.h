/* rill/device/kernel.h: what a kernel source includes.
 *
 * A kernel source is C++17 in the dialect that CUDA and HIP share.  rillcc compiles it with nvcc and hipcc (or clang
 * alone, without any CUDA or HIP installed) and with the host's C++ compiler:
 *
 *     #include <rill/device/kernel.h>
 *
 *     RILL_KERNEL(saxpy, int n, float a, const float *x, float *y) {
 *       const int i = blockIdx.x * blockDim.x + threadIdx.x;
 *       if (i < n)
 *         y[i] = a * x[i] + y[i];
 *     }
 *
 * The same on all three (docs/reference/KERNELS.md says it in full):
 *
 *   RILL_KERNEL(name, params...) { body }             a kernel; outside namespaces and classes
 *   RILL_KERNEL_BOUNDED(threads, name, params...)     one whose blocks have at most that many threads
 *   RILL_KERNEL_BOUNDED(RILL_MIN_BLOCKS(threads, blocks), name, params...)    and that many blocks run on each
 *                                                     multiprocessor at a time: a hint to nvcc alone
 *   RILL_KERNEL_INSTANCE(name, kernel<float, 4>);     a name for an instance of a template, or for any kernel
 *   __global__ void kernel(params...) { body }        one as CUDA and HIP have it, known by its own name
 *   RILL_ON_CPU RILL_ON_CUDA RILL_ON_HIP              1 for the compiler that reads the source, else 0
 *   RILL_DYNAMIC_SHARED(float, tile);                 `float *tile`: the launch's shared_mem_bytes, aligned to 16
 *   __shared__ __constant__ __device__ __host__ __forceinline__ __noinline__ __restrict__ __launch_bounds__ __align__
 *   threadIdx blockIdx blockDim gridDim               in kernels and in the functions that they call
 *   __syncthreads __syncthreads_count _and _or __threadfence_block __threadfence __threadfence_system
 *   atomicAdd Sub Exch CAS Min Max And Or Xor         on int, unsigned, integers of 8 bytes; Add and Exch on float and
 *   atomicInc Dec                                     double; Inc and Dec on unsigned.  They order nothing else, and
 *                                                     hold for the device; with _block and _system for those
 *   rill_atomic_min rill_atomic_max                   on float and double
 *   rill_shuffle rill_ballot rill_vote_all ...        among the 32 or 64 threads of a warp: rill/device/warp.h
 *   rill_warp_sum rill_block_sum and _min and _max    of all threads of a warp or block: rill/device/reduce.h
 *   __ldg __ldca __ldcg __ldcs __ldlu __ldcv __stwb __stcg __stcs __stwt    loads and stores with hints for caches
 *   rill_half rill_bfloat16                           numbers of 16 bits: rill/device/half.h
 *   min max, and sqrtf fabsf fminf fmaxf floorf ceilf truncf rintf fmaf, their double forms, and what else the
 *   three compilers have of <cmath>; assert and printf of the C headers
 *   rill_load_acquire(p) rill_store_release(p, v)     an integer of 4 or 8 bytes that host or others share
 *   rill_pause()                                      what a loop that polls does between looks
 *   rill_clock_ns()                                   a clock for time limits
 *
 * Parameters are C types: a plain C program passes them.  A kernel's name is a C function's, so no other
 * function that the compiler knows may have it (clock, index).  The thing people get wrong: a launch rounds up to
 * whole blocks, so a kernel checks its index against n.  And on the cpu the threads of a block without
 * barriers run one after the other: a thread that waits for another one of its block waits for ever.
 *
 * Rounding: on the cpu a product and a sum are never fused, whatever the processor; the GPU compilers fuse
 * them unless rillcc gets `--fp-contract off`.  Use fmaf where fusing matters.
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
