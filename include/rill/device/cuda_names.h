/* rill/device/cuda_names.h: CUDA names that HIP or the CPU lack or spell differently, with CUDA's meaning on all
 * targets, for existing CUDA kernels. Include it after rill/device/kernel.h.
 *
 *   float2 int4 uchar4 ... make_float2(x, y) ...      vectors of 1 to 4 elements, with CUDA's alignment
 *   __shfl_sync __shfl_up_sync __shfl_down_sync __shfl_xor_sync __ballot_sync __all_sync __any_sync __syncwarp
 *   __activemask __match_any_sync _all_ __reduce_add_sync _min_ _max_ _and_ _or_ _xor_
 *   __popc __popcll __clz __clzll __ffs __ffsll __brev __brevll __mul24 __umul24 __mulhi __umulhi __mul64hi __umul64hi
 *   __byte_perm __funnelshift_l __funnelshift_r __sad __usad __dp4a umin umax __trap __nanosleep clock64
 *   __vadd2 __vadd4 __vmaxs4 __vcmpeq4 ... on the halves and bytes of a word     rill/device/cuda_simd.h
 *   __float_as_int and related functions, __float2int_rn, __int2float_rz and their other forms
 *   __fmaf_rn __fadd_rn __fmul_rn ... __saturatef __fdividef __expf __logf __sinf ... rsqrtf rsqrt sincosf exp10f
 *   half half2 __nv_bfloat16 and their functions       rill/device/cuda_half.h; hipcc lacks __nv_bfloat16
 *   cooperative_groups::this_thread_block, tiles, coalesced_threads, thread_group     rill/device/cuda_groups.h
 *   cub::BlockReduce ...                               by #include <cub/cub.cuh>: rill/device/cuda_cub.h
 *   __grid_constant__                                  accepted and ignored
 *   __CUDACC__ __CUDACC_VER_MAJOR__ _MINOR__ _BUILD__ __CUDA_API_VER_MAJOR__ _MINOR__ CUDA_VERSION CUDART_VERSION
 *                                                     the values of CUDA 12.0, for #if; nvcc has its own
 *   __CUDA_ARCH__ __CUDA_ARCH_LIST__                  700; the target's with nvcc and with clang for NVIDIA GPUs
 *   cudaStream_t cudaEvent_t cudaError_t CUstream ... declared for signatures of host functions
 *   CUDART_INF_F CUDART_PI ...                         the constants of math_constants.h
 *
 * A warp has 32 lanes here.  On AMD GPUs with waves of 64, each half of a wave is a warp, and lane numbers, masks and
 * ballots refer to the half.  As in CUDA, the lanes of a mask that have not exited must make the same call, and other
 * lanes may be elsewhere.  A mask can be any set of lanes that contains the caller.
 *
 * With nvcc these are NVIDIA's own functions, except __reduce_add_sync and related functions before sm_80.
 */
#ifndef RILL_DEVICE_CUDA_NAMES_H
#define RILL_DEVICE_CUDA_NAMES_H

#include <rill/device/kernel.h>

#if defined(__CUDACC_RTC__) || defined(__HIPCC_RTC__)
#error "rill/device/cuda_names.h is for rillcc, not for kernels that are compiled at run time"
#elif defined(__CUDACC__) && !defined(RILL_CUDA_FREESTANDING)
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda.h> /* CUDA_VERSION */
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800 /* NVIDIA has these functions from sm_80 on */
#define RILL_NAME_ static __device__ __forceinline__
#include <rill/device/cuda_reduce.h>
#endif
#else
#include <cstdint> /* CUDA's headers also include these */
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>
/* Names that hipcc's headers define. */
#if defined(__HIP__) && !defined(RILL_HIP_FREESTANDING)
#define RILL_HIP_HAS_ 1
#include <hip/hip_fp16.h>
#else
#define RILL_HIP_HAS_ 0
#include <rill/device/cuda_vectors.h>
#endif
#include <rill/device/cuda_bits.h>
#include <rill/device/cuda_math.h>
#include <rill/device/cuda_simd.h>
#include <rill/device/cuda_warp.h>
#if RILL_HIP_HAS_
#include <rill/device/hip_half.h>
#else
#include <rill/device/cuda_half.h>
#endif
#include <rill/device/cuda_groups.h>
#define __grid_constant__
#include <rill/device/cuda_version.h>
#endif

#endif
