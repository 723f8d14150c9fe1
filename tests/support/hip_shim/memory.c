/* Memory, copies and fills. */
#include "shim.h"

#include <string.h>

hipError_t hipMemGetInfo(size_t *free_bytes, size_t *total) { SHIM_CALL(cuMemGetInfo, free_bytes, total); }

/* Nothing is asked for, nothing is given: no error. */
static bool gives_nothing(void **out, size_t size) {
  *out = NULL;
  return size == 0;
}

hipError_t hipMalloc(void **out, size_t size) {
  if (gives_nothing(out, size)) return hipSuccess;
  CUdeviceptr p = 0;
  hipError_t code = shim_enter();
  if (code == hipSuccess) {
    code = (hipError_t)shim_cuda.cuMemAlloc(&p, size);
    shim_leave();
  }
  *out = (void *)(uintptr_t)p;
  return shim_result((int)code);
}

hipError_t hipMallocManaged(void **out, size_t size, unsigned int flags) {
  if (gives_nothing(out, size)) return hipSuccess;
  CUdeviceptr p = 0;
  hipError_t code = shim_enter();
  if (code == hipSuccess) {
    code = (hipError_t)shim_cuda.cuMemAllocManaged(&p, size, flags);
    shim_leave();
  }
  *out = (void *)(uintptr_t)p;
  return shim_result((int)code);
}

hipError_t hipFree(void *p) { SHIM_CALL(cuMemFree, shim_pointer(p)); }

hipError_t hipHostMalloc(void **out, size_t size, unsigned int flags) {
  const unsigned known = CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if (gives_nothing(out, size)) return hipSuccess;
  SHIM_CALL(cuMemHostAlloc, out, size, flags & known); /* the numbers are the same */
}

hipError_t hipHostFree(void *p) {
  if (p == NULL) return hipSuccess;
  SHIM_CALL(cuMemFreeHost, p);
}

hipError_t hipHostRegister(void *p, size_t size, unsigned int flags) {
  SHIM_CALL(cuMemHostRegister, p, size, flags & (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP));
}

hipError_t hipHostUnregister(void *p) { SHIM_CALL(cuMemHostUnregister, p); }

/* The host is -1 in both, and advice has the same numbers. */
hipError_t hipMemPrefetchAsync(const void *p, size_t size, int device, hipStream_t stream) {
  SHIM_CALL(cuMemPrefetchAsync, shim_pointer(p), size, device, shim_stream(stream));
}

hipError_t hipMemAdvise(const void *p, size_t size, hipMemoryAdvise advice, int device) {
  SHIM_CALL(cuMemAdvise, shim_pointer(p), size, (CUmem_advise)advice, device);
}

hipError_t hipMemcpyAsync(void *dst, const void *src, size_t n, hipMemcpyKind kind, hipStream_t stream) {
  if ((int)kind < 0 || kind > hipMemcpyDefault) return shim_result(hipErrorInvalidValue);
  SHIM_CALL(cuMemcpyAsync, shim_pointer(dst), shim_pointer(src), n, shim_stream(stream));
}

hipError_t hipMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                            hipMemcpyKind kind, hipStream_t stream) {
  if ((int)kind < 0 || kind > hipMemcpyDefault) return shim_result(hipErrorInvalidValue);
  const CUDA_MEMCPY2D values = {
    .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
    .srcDevice = shim_pointer(src),
    .srcPitch = src_pitch,
    .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
    .dstDevice = shim_pointer(dst),
    .dstPitch = dst_pitch,
    .WidthInBytes = width,
    .Height = height,
  };
  SHIM_CALL(cuMemcpy2DAsync, &values, shim_stream(stream));
}

/* Neither arrays nor offsets: the backend uses none. */
hipError_t hipMemcpy3DAsync(const struct hipMemcpy3DParms *asked, hipStream_t stream) {
  if (asked->srcArray != NULL || asked->dstArray != NULL) return shim_result(hipErrorInvalidValue);
  const CUDA_MEMCPY3D values = {
    .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
    .srcDevice = shim_pointer(asked->srcPtr.ptr),
    .srcPitch = asked->srcPtr.pitch,
    .srcHeight = asked->srcPtr.ysize,
    .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
    .dstDevice = shim_pointer(asked->dstPtr.ptr),
    .dstPitch = asked->dstPtr.pitch,
    .dstHeight = asked->dstPtr.ysize,
    .WidthInBytes = asked->extent.width,
    .Height = asked->extent.height,
    .Depth = asked->extent.depth,
  };
  SHIM_CALL(cuMemcpy3DAsync, &values, shim_stream(stream));
}

hipError_t hipMemsetD8Async(hipDeviceptr_t dst, unsigned char value, size_t count, hipStream_t stream) {
  SHIM_CALL(cuMemsetD8Async, shim_pointer(dst), value, count, shim_stream(stream));
}

hipError_t hipMemsetD16Async(hipDeviceptr_t dst, unsigned short value, size_t count, hipStream_t stream) {
  SHIM_CALL(cuMemsetD16Async, shim_pointer(dst), value, count, shim_stream(stream));
}

hipError_t hipMemsetD32Async(hipDeviceptr_t dst, int value, size_t count, hipStream_t stream) {
  SHIM_CALL(cuMemsetD32Async, shim_pointer(dst), (unsigned)value, count, shim_stream(stream));
}

hipError_t hipMemset2DAsync(void *dst, size_t pitch, int value, size_t width, size_t height, hipStream_t stream) {
  SHIM_CALL(cuMemsetD2D8Async, shim_pointer(dst), pitch, (unsigned char)value, width, height, shim_stream(stream));
}

hipError_t hipMemsetD2D16Async(hipDeviceptr_t dst, size_t pitch, unsigned short value, size_t width, size_t height,
                               hipStream_t stream) {
  SHIM_CALL(cuMemsetD2D16Async, shim_pointer(dst), pitch, value, width, height, shim_stream(stream));
}

/* The two addresses are what the backend looks at.  A pointer that is not known is an error up to 5, and later one
 * without addresses. */
hipError_t hipPointerGetAttributes(hipPointerAttribute_t *out, const void *p) {
  CUmemorytype type = (CUmemorytype)0;
  hipError_t code = shim_enter();
  if (code != hipSuccess) return shim_result((int)code);
  code = (hipError_t)shim_cuda.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, shim_pointer(p));
  shim_leave();
  memset(out, 0, sizeof *out);
  if (code == hipErrorInvalidValue && SHIM_HIP_VERSION >= 60000000) return hipSuccess;
  if (code == hipSuccess) out->devicePointer = (void *)(uintptr_t)p;
  if (code == hipSuccess && type == CU_MEMORYTYPE_HOST) out->hostPointer = out->devicePointer;
  return shim_result((int)code);
}

hipError_t hipMemsetD2D32Async(hipDeviceptr_t dst, size_t pitch, unsigned int value, size_t width, size_t height,
                               hipStream_t stream) {
  SHIM_CALL(cuMemsetD2D32Async, shim_pointer(dst), pitch, value, width, height, shim_stream(stream));
}

static CUresult get_range(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t p) {
  CUdeviceptr begin = 0;
  const CUresult code = shim_cuda.cuMemGetAddressRange(&begin, size, shim_pointer(p));
  if (base != NULL) *base = (void *)(uintptr_t)begin;
  return code;
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t p) {
  hipError_t code = shim_enter();
  if (code == hipSuccess) {
    code = (hipError_t)get_range(base, size, p);
    shim_leave();
  }
  return shim_result((int)code);
}

/* ---- sharing between processes ---- */

hipError_t hipIpcGetMemHandle(hipIpcMemHandle_t *out, void *p) {
  SHIM_CALL(cuIpcGetMemHandle, (CUipcMemHandle *)(void *)out, shim_pointer(p));
}

/* The flag was 0 in 5 and is 1 from 6 on. */
hipError_t hipIpcOpenMemHandle(void **out, hipIpcMemHandle_t handle, unsigned int flags) {
  CUdeviceptr p = 0;
  CUipcMemHandle bytes;
  if (flags != (SHIM_HIP_VERSION >= 60000000)) return shim_result(hipErrorInvalidValue);
  memcpy(&bytes, &handle, sizeof bytes);
  hipError_t code = shim_enter();
  if (code == hipSuccess) {
    code = (hipError_t)shim_cuda.cuIpcOpenMemHandle(&p, bytes, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    shim_leave();
  }
  *out = (void *)(uintptr_t)p;
  return shim_result((int)code);
}

hipError_t hipIpcCloseMemHandle(void *p) { SHIM_CALL(cuIpcCloseMemHandle, shim_pointer(p)); }
