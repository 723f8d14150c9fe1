/* rill/device/cuda_version.h: macros with which a source tests for CUDA and its version, and CUDA's host types.
 * Included by rill/device/cuda_names.h, except with nvcc, which defines its own.
 *
 * All targets therefore compile the code that a source has for CUDA and its GPUs. __NVCC__ is not defined, because
 * the compiler is not nvcc.
 */
#ifndef RILL_DEVICE_CUDA_VERSION_H
#define RILL_DEVICE_CUDA_VERSION_H

#ifndef __CUDACC__ /* rillcc defines it for clang for NVIDIA GPUs */
#define __CUDACC__ 1
#endif
#define __CUDACC_VER_MAJOR__ 12
#define __CUDACC_VER_MINOR__ 0
#define __CUDACC_VER_BUILD__ 0
#define __CUDA_API_VER_MAJOR__ __CUDACC_VER_MAJOR__
#define __CUDA_API_VER_MINOR__ __CUDACC_VER_MINOR__
#define CUDA_VERSION 12000
#define CUDART_VERSION CUDA_VERSION
#ifndef __CUDA_ARCH__
#define __CUDA_ARCH__ 700
#endif
#ifndef __CUDA_ARCH_LIST__
#define __CUDA_ARCH_LIST__ __CUDA_ARCH__
#endif

/* Headers that kernels share with the host declare functions with these types. Kernels do not use them. */
typedef struct CUstream_st *CUstream, *cudaStream_t;
typedef struct CUevent_st *CUevent, *cudaEvent_t;
typedef struct CUgraph_st *CUgraph, *cudaGraph_t;
typedef struct CUgraphExec_st *CUgraphExec, *cudaGraphExec_t;
typedef unsigned long long CUdeviceptr;
enum cudaError { cudaSuccess = 0 };
typedef enum cudaError cudaError_t;
enum cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault
};

#endif
