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

hipError_t hipMemcpyAsync(void *dst, const void *src, size_t n, hipMemcpyKind kind, hipStream_t stream) {
  if ((int)kind < 0 || kind > hipMemcpyDefault) return shim_result(hipErrorInvalidValue);
  SHIM_CALL(cuMemcpyAsync, shim_pointer(dst), shim_pointer(src), n, shim_stream(stream));
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
