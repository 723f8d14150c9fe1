/* shim.h: HIP over CUDA, so that rill's HIP backend runs on an NVIDIA GPU.
 *
 * A library with HIP's names that forwards each call to libcuda.so.1.  It proves the code of the backend, not the
 * behaviour of AMD's runtime; where AMD's is known to differ from CUDA's and costs little to follow, it does
 * (hipMalloc(0), launches on another device's stream, the last error).  Error numbers are the same in both.
 *
 * The device reports gfx90a as its architecture. An AMD code object that is loaded is looked up among the kernel
 * bundles of the program, and the CUDA image of the same bundle is loaded instead (module.c).
 *
 *   RILL_SHIM_TARGET=gfx1030   says that it is another one
 */
#ifndef HIP_SHIM_SHIM_H
#define HIP_SHIM_SHIM_H

#include "hip_front.h"
#include "tests/support/vendor_api/cuda_for_tests.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Every CUDA function that the shim calls. */
#define SHIM_CUDA_FUNCTIONS(X)         \
  X(cuInit)                            \
  X(cuDriverGetVersion)                \
  X(cuDeviceGet)                       \
  X(cuDeviceGetCount)                  \
  X(cuDeviceGetName)                   \
  X(cuDeviceGetUuid)                   \
  X(cuDeviceGetPCIBusId)               \
  X(cuDeviceTotalMem)                  \
  X(cuDeviceGetAttribute)              \
  X(cuDeviceCanAccessPeer)             \
  X(cuDevicePrimaryCtxRetain)          \
  X(cuDevicePrimaryCtxReset)           \
  X(cuCtxPushCurrent)                  \
  X(cuCtxPopCurrent)                   \
  X(cuCtxGetDevice)                    \
  X(cuCtxSynchronize)                  \
  X(cuCtxEnablePeerAccess)             \
  X(cuCtxDisablePeerAccess)            \
  X(cuStreamCreateWithPriority)        \
  X(cuStreamDestroy)                   \
  X(cuStreamQuery)                     \
  X(cuStreamSynchronize)               \
  X(cuStreamWaitEvent)                 \
  X(cuStreamGetPriority)               \
  X(cuStreamGetFlags)                  \
  X(cuStreamGetCtx)                    \
  X(cuStreamGetId)                     \
  X(cuStreamIsCapturing)               \
  X(cuStreamBeginCapture)              \
  X(cuStreamEndCapture)                \
  X(cuGraphDestroy)                    \
  X(cuStreamGetCaptureInfo)            \
  X(cuGraphCreate)                     \
  X(cuGraphAddKernelNode)              \
  X(cuGraphAddMemcpyNode)              \
  X(cuGraphAddMemsetNode)              \
  X(cuGraphAddEmptyNode)               \
  X(cuGraphAddHostNode)                \
  X(cuGraphAddEventRecordNode)         \
  X(cuGraphAddEventWaitNode)           \
  X(cuGraphAddChildGraphNode)          \
  X(cuGraphInstantiateWithFlags)       \
  X(cuGraphLaunch)                     \
  X(cuGraphUpload)                     \
  X(cuGraphExecKernelNodeSetParams)    \
  X(cuGraphExecDestroy)                \
  X(cuThreadExchangeStreamCaptureMode) \
  X(cuStreamAddCallback)               \
  X(cuLaunchHostFunc)                  \
  X(cuEventCreate)                     \
  X(cuEventDestroy)                    \
  X(cuEventRecord)                     \
  X(cuEventRecordWithFlags)            \
  X(cuEventQuery)                      \
  X(cuEventSynchronize)                \
  X(cuEventElapsedTime)                \
  X(cuIpcGetEventHandle)               \
  X(cuIpcOpenEventHandle)              \
  X(cuIpcGetMemHandle)                 \
  X(cuIpcOpenMemHandle)                \
  X(cuIpcCloseMemHandle)               \
  X(cuMemGetAddressRange)              \
  X(cuMemGetInfo)                      \
  X(cuMemAlloc)                        \
  X(cuMemAllocManaged)                 \
  X(cuMemFree)                         \
  X(cuMemHostAlloc)                    \
  X(cuMemFreeHost)                     \
  X(cuMemcpyAsync)                     \
  X(cuMemHostRegister)                 \
  X(cuMemHostUnregister)               \
  X(cuMemPrefetchAsync)                \
  X(cuMemAdvise)                       \
  X(cuMemcpy2DAsync)                   \
  X(cuMemcpy3DAsync)                   \
  X(cuMemsetD8Async)                   \
  X(cuMemsetD16Async)                  \
  X(cuMemsetD32Async)                  \
  X(cuMemsetD2D8Async)                 \
  X(cuMemsetD2D16Async)                \
  X(cuMemsetD2D32Async)                \
  X(cuPointerGetAttribute)             \
  X(cuModuleLoadData)                  \
  X(cuModuleUnload)                    \
  X(cuModuleGetFunction)               \
  X(cuModuleGetGlobal)                 \
  X(cuFuncGetAttribute)                \
  X(cuFuncSetAttribute)                \
  X(cuLaunchKernel)                    \
  SHIM_CUDA_FUNCTIONS_OF_KERNELS(X)

#define SHIM_CUDA_FUNCTIONS_OF_KERNELS(X)        \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
  X(cuOccupancyMaxPotentialBlockSize)            \
  X(cuLaunchCooperativeKernel)

/* They are fields named as the functions, so a renaming macro renames both alike. */
extern struct shim_cuda {
#define FIELD(name) __typeof__(name) *name;
  SHIM_CUDA_FUNCTIONS(FIELD)
#undef FIELD
} shim_cuda;

/* Opens libcuda and initializes it, once; what that gave. */
hipError_t shim_start(void);

/* The thread's current device, and its primary context. */
int shim_current_device(void);
hipError_t shim_context(int device, CUcontext *out);

/* Keeps an error as the thread's last one; gives it on. */
hipError_t shim_result(int code);

/* One call of CUDA, with the current device's context current for its duration. */
#define SHIM_CALL(function, ...)                           \
  do {                                                     \
    hipError_t code_ = shim_enter();                       \
    if (code_ == hipSuccess) {                             \
      code_ = (hipError_t)shim_cuda.function(__VA_ARGS__); \
      shim_leave();                                        \
    }                                                      \
    return shim_result((int)code_);                        \
  } while (0)
hipError_t shim_enter(void);
void shim_leave(void);

/* The same without a context: for devices. */
#define SHIM_CALL_PLAIN(function, ...)                                                           \
  do {                                                                                           \
    const hipError_t code_ = shim_start();                                                       \
    return shim_result(code_ != hipSuccess ? (int)code_ : (int)shim_cuda.function(__VA_ARGS__)); \
  } while (0)

/* What the devices say they are. */
const char *shim_target(void);

/* Shared memory that every block may have, as on an AMD GPU. */
enum { SHIM_SHARED_BYTES = 64 << 10 };

/* The device of a stream; of the special ones, the current device. */
hipError_t shim_stream_device(hipStream_t stream, int *out);

static inline CUstream shim_stream(hipStream_t stream) { return (CUstream)stream; }
static inline CUevent shim_event(hipEvent_t event) { return (CUevent)event; }
static inline CUdeviceptr shim_pointer(const void *p) { return (CUdeviceptr)(uintptr_t)p; }

#endif
