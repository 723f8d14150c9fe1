/* A stub HIP runtime with one device, whose calls return at once; enqueued work is dropped and counts as complete. */
#include "null.h"

#pragma GCC visibility push(default)
#include "tests/support/vendor_api/hip_for_tests.h"
#pragma GCC visibility pop

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Returns a value and succeeds. */
#define GIVE(out, value) return *(out) = (value), hipSuccess

hipError_t hipDriverGetVersion(int *out) { GIVE(out, 70253211); }
hipError_t hipRuntimeGetVersion(int *out) { GIVE(out, 70253211); }
const char *hipGetErrorName(hipError_t error) {
  (void)error;
  return "hipSuccess";
}

hipError_t hipGetDeviceCount(int *out) { GIVE(out, 1); }
hipError_t hipDeviceGet(hipDevice_t *out, int ordinal) { GIVE(out, ordinal); }
hipError_t hipDeviceGetName(char *out, int size, hipDevice_t device) {
  (void)device;
  (void)snprintf(out, (size_t)size, "Null GPU");
  return hipSuccess;
}
hipError_t hipDeviceGetUuid(hipUUID *out, hipDevice_t device) {
  (void)device;
  memset(out, 2, sizeof *out);
  return hipSuccess;
}
hipError_t hipDeviceGetPCIBusId(char *out, int size, int device) {
  (void)device;
  (void)snprintf(out, (size_t)size, "0000:41:00.0");
  return hipSuccess;
}
hipError_t hipDeviceTotalMem(size_t *out, hipDevice_t device) {
  (void)device;
  GIVE(out, (size_t)1 << 40);
}
hipError_t hipDeviceGetAttribute(int *out, hipDeviceAttribute_t attribute, int device) {
  (void)device;
  switch ((int)attribute) {
    case hipDeviceAttributeWarpSize:
    case hipDeviceAttributeMaxBlockDimZ: GIVE(out, 64);
    case hipDeviceAttributeMaxThreadsPerBlock:
    case hipDeviceAttributeMaxBlockDimX:
    case hipDeviceAttributeMaxBlockDimY: GIVE(out, 1024);
    default: GIVE(out, 65535);
  }
}
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *out, int device) {
  (void)device;
  memset(out, 0, sizeof *out);
  (void)strcpy(out->gcnArchName, "gfx90a");
  return hipSuccess;
}

hipError_t hipGetDevice(int *out) { GIVE(out, 0); }
hipError_t hipDeviceGetStreamPriorityRange(int *least, int *greatest) {
  *least = 1;
  GIVE(greatest, -1);
}

hipError_t hipStreamCreateWithPriority(hipStream_t *out, unsigned int flags, int priority) {
  (void)flags, (void)priority;
  GIVE(out, null_handle());
}
hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *out) {
  (void)stream;
  GIVE(out, hipStreamCaptureStatusNone);
}
hipError_t hipStreamGetPriority(hipStream_t stream, int *out) {
  (void)stream;
  GIVE(out, 0);
}
hipError_t hipStreamGetFlags(hipStream_t stream, unsigned int *out) {
  (void)stream;
  GIVE(out, hipStreamNonBlocking);
}
hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *out) {
  (void)stream;
  GIVE(out, 0);
}
hipError_t hipStreamGetId(hipStream_t stream, unsigned long long *out) { GIVE(out, (uintptr_t)stream); }
hipError_t hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t callback, void *user, unsigned int flags) {
  (void)flags;
  callback(stream, hipSuccess, user);
  return hipSuccess;
}
hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void *user) {
  (void)stream;
  function(user);
  return hipSuccess;
}

hipError_t hipEventCreateWithFlags(hipEvent_t *out, unsigned flags) {
  (void)flags;
  GIVE(out, null_handle());
}
hipError_t hipEventElapsedTime(float *ms, hipEvent_t start, hipEvent_t end) {
  (void)start, (void)end;
  GIVE(ms, 0.0f);
}

hipError_t hipMemGetInfo(size_t *free_bytes, size_t *total) {
  *free_bytes = (size_t)1 << 40;
  GIVE(total, (size_t)1 << 40);
}
hipError_t hipMalloc(void **out, size_t size) { GIVE(out, null_address(size)); }
hipError_t hipMallocManaged(void **out, size_t size, unsigned int flags) {
  (void)flags;
  GIVE(out, null_address(size));
}
hipError_t hipHostMalloc(void **out, size_t size, unsigned int flags) {
  (void)flags;
  *out = aligned_alloc(4096, (size + 4095) / 4096 * 4096);
  return *out != NULL ? hipSuccess : hipErrorOutOfMemory;
}
hipError_t hipHostFree(void *p) {
  free(p);
  return hipSuccess;
}

/* Of the runtime's pool, which no backend uses but the benchmark. */
hipError_t hipMallocAsync(void **out, size_t size, hipStream_t stream) {
  (void)stream;
  GIVE(out, null_address(size));
}
hipError_t hipFreeAsync(void *p, hipStream_t stream) {
  (void)p, (void)stream;
  return hipSuccess;
}
hipError_t hipDeviceGetDefaultMemPool(hipMemPool_t *out, int device) {
  (void)device;
  GIVE(out, null_handle());
}
hipError_t hipMemPoolSetAttribute(hipMemPool_t pool, hipMemPoolAttr attribute, void *value) {
  (void)pool, (void)attribute, (void)value;
  return hipSuccess;
}

hipError_t hipModuleLoadData(hipModule_t *out, const void *image) {
  (void)image;
  GIVE(out, null_handle());
}
hipError_t hipModuleGetFunction(hipFunction_t *out, hipModule_t module, const char *name) {
  (void)module, (void)name;
  GIVE(out, null_handle());
}
hipError_t hipFuncGetAttribute(int *out, hipFunction_attribute attribute, hipFunction_t function) {
  (void)function;
  GIVE(out, attribute == HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : 0);
}
