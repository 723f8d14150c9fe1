/* A stub CUDA driver with one device, whose calls return at once; enqueued work is dropped and counts as complete. */
#include "null.h"

#pragma GCC visibility push(default)
#include "tests/support/vendor_api/cuda_for_tests.h"
#pragma GCC visibility pop

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns a value and succeeds. */
#define GIVE(out, value) return *(out) = (value), CUDA_SUCCESS

CUresult CUDAAPI cuDriverGetVersion(int *out) { GIVE(out, 13000); }
CUresult CUDAAPI cuGetErrorName(CUresult error, const char **out) {
  (void)error;
  GIVE(out, "CUDA_SUCCESS");
}

CUresult CUDAAPI cuDeviceGetCount(int *out) { GIVE(out, 1); }
CUresult CUDAAPI cuDeviceGet(CUdevice *out, int ordinal) { GIVE(out, ordinal); }
CUresult CUDAAPI cuDeviceGetName(char *out, int size, CUdevice device) {
  (void)device;
  (void)snprintf(out, (size_t)size, "Null GPU");
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetUuid(CUuuid *out, CUdevice device) {
  (void)device;
  memset(out, 1, sizeof *out);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetPCIBusId(char *out, int size, CUdevice device) {
  (void)device;
  (void)snprintf(out, (size_t)size, "0000:01:00.0");
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceTotalMem(size_t *out, CUdevice device) {
  (void)device;
  GIVE(out, (size_t)1 << 40);
}
CUresult CUDAAPI cuDeviceGetAttribute(int *out, CUdevice_attribute attribute, CUdevice device) {
  (void)device;
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: GIVE(out, 9);
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: GIVE(out, 0);
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: GIVE(out, 32);
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: GIVE(out, 64);
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: GIVE(out, 1024);
    default: GIVE(out, 65535);
  }
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) {
  (void)device;
  GIVE(out, (CUcontext)(uintptr_t)64);
}
CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
  (void)device;
  *flags = 0;
  GIVE(active, 1);
}
CUresult CUDAAPI cuCtxPopCurrent(CUcontext *out) { GIVE(out, (CUcontext)(uintptr_t)64); }
CUresult CUDAAPI cuCtxGetCurrent(CUcontext *out) { GIVE(out, (CUcontext)(uintptr_t)64); }
CUresult CUDAAPI cuCtxGetDevice(CUdevice *out) { GIVE(out, 0); }
CUresult CUDAAPI cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  *least = 0;
  GIVE(greatest, -5);
}

CUresult CUDAAPI cuStreamCreateWithPriority(CUstream *out, unsigned int flags, int priority) {
  (void)flags, (void)priority;
  GIVE(out, null_handle());
}
CUresult CUDAAPI cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus *out) {
  (void)stream;
  GIVE(out, CU_STREAM_CAPTURE_STATUS_NONE);
}
CUresult CUDAAPI cuStreamGetPriority(CUstream stream, int *out) {
  (void)stream;
  GIVE(out, 0);
}
CUresult CUDAAPI cuStreamGetFlags(CUstream stream, unsigned int *out) {
  (void)stream;
  GIVE(out, CU_STREAM_NON_BLOCKING);
}
CUresult CUDAAPI cuStreamGetCtx(CUstream stream, CUcontext *out) {
  (void)stream;
  GIVE(out, (CUcontext)(uintptr_t)64);
}
CUresult CUDAAPI cuStreamGetId(CUstream stream, unsigned long long *out) { GIVE(out, (uintptr_t)stream); }
CUresult CUDAAPI cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void *user, unsigned int flags) {
  (void)flags;
  callback(stream, CUDA_SUCCESS, user);
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuLaunchHostFunc(CUstream stream, CUhostFn function, void *user) {
  (void)stream;
  function(user);
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuEventCreate(CUevent *out, unsigned int flags) {
  (void)flags;
  GIVE(out, null_handle());
}
CUresult CUDAAPI cuEventElapsedTime(float *ms, CUevent start, CUevent end) {
  (void)start, (void)end;
  GIVE(ms, 0.0f);
}

CUresult CUDAAPI cuMemGetInfo(size_t *free_bytes, size_t *total) {
  *free_bytes = (size_t)1 << 40;
  GIVE(total, (size_t)1 << 40);
}
CUresult CUDAAPI cuMemAlloc(CUdeviceptr *out, size_t size) { GIVE(out, (uintptr_t)null_address(size)); }
CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned int flags) {
  (void)flags;
  GIVE(out, (uintptr_t)null_address(size));
}
CUresult CUDAAPI cuMemHostAlloc(void **out, size_t size, unsigned int flags) {
  (void)flags;
  *out = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
CUresult CUDAAPI cuMemFreeHost(void *p) {
  free(p);
  return CUDA_SUCCESS;
}

/* Of the driver's pool, which no backend uses but the benchmark. */
CUresult CUDAAPI cuMemAllocAsync(CUdeviceptr *out, size_t size, CUstream stream) {
  (void)stream;
  GIVE(out, (uintptr_t)null_address(size));
}
CUresult CUDAAPI cuMemFreeAsync(CUdeviceptr p, CUstream stream) {
  (void)p, (void)stream;
  return CUDA_SUCCESS;
}
CUresult CUDAAPI cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device) {
  (void)device;
  GIVE(out, null_handle());
}
CUresult CUDAAPI cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value) {
  (void)pool, (void)attribute, (void)value;
  return CUDA_SUCCESS;
}

CUresult CUDAAPI cuModuleLoadDataEx(CUmodule *out, const void *image, unsigned int count, CUjit_option *options,
                                    void **values) {
  (void)image, (void)count, (void)options, (void)values;
  GIVE(out, null_handle());
}
CUresult CUDAAPI cuModuleGetFunction(CUfunction *out, CUmodule module, const char *name) {
  (void)module, (void)name;
  GIVE(out, null_handle());
}
CUresult CUDAAPI cuFuncGetAttribute(int *out, CUfunction_attribute attribute, CUfunction function) {
  (void)function;
  GIVE(out, attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0);
}
