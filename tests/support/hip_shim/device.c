/* Init, errors, devices, the current device. */
#include "error_names.h"
#include "shim.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shim_cuda shim_cuda;

static _Thread_local int current, last_error;

/* ---- libcuda ---- */

#define TEXT(name) #name
#define SYMBOL(name) TEXT(name)

static hipError_t start_code;

static void start(void) {
  start_code = hipErrorNoDevice;
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return;
#define LOOK_UP(name)                                                          \
  *(void **)&shim_cuda.name = dlsym(library, SYMBOL(name));                    \
  if (shim_cuda.name == NULL) {                                                \
    (void)fprintf(stderr, "hip shim: libcuda.so.1 has no %s\n", SYMBOL(name)); \
    return;                                                                    \
  }
  SHIM_CUDA_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  start_code = (hipError_t)shim_cuda.cuInit(0);
}

hipError_t shim_start(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, start);
  return start_code;
}

hipError_t hipInit(unsigned int flags) { return shim_result(flags != 0 ? hipErrorInvalidValue : (int)shim_start()); }

/* ---- errors and versions ---- */

hipError_t shim_result(int code) {
  if (code != hipSuccess) last_error = code;
  return (hipError_t)code;
}

hipError_t hipGetLastError(void) {
  const int code = last_error;
  last_error = hipSuccess;
  return (hipError_t)code;
}

hipError_t hipPeekAtLastError(void) { return (hipError_t)last_error; }

const char *hipGetErrorName(hipError_t error) {
  const char *name = fake_error_name((int)error, true);
  return name != NULL ? name : "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t error) { return hipGetErrorName(error); }

/* Of the HIP that has this soname. */
hipError_t hipRuntimeGetVersion(int *out) {
  *out = SHIM_HIP_VERSION;
  return hipSuccess;
}

hipError_t hipDriverGetVersion(int *out) { return hipRuntimeGetVersion(out); }

/* ---- the current device ---- */

int shim_current_device(void) { return current; }

hipError_t hipGetDeviceCount(int *out) { SHIM_CALL_PLAIN(cuDeviceGetCount, out); }

hipError_t hipGetDevice(int *out) {
  *out = current;
  return shim_result((int)shim_start());
}

hipError_t hipSetDevice(int ordinal) {
  CUdevice device;
  hipError_t code = shim_start();
  if (code == hipSuccess) code = (hipError_t)shim_cuda.cuDeviceGet(&device, ordinal);
  if (code == hipSuccess) current = ordinal;
  return shim_result((int)code);
}

/* Each primary context is retained once, at its first use, and never given back. */
enum { MOST_DEVICES = 64 };
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext contexts[MOST_DEVICES];

hipError_t shim_context(int device, CUcontext *out) {
  if (device < 0 || device >= MOST_DEVICES) return hipErrorInvalidDevice;
  CUresult code = CUDA_SUCCESS;
  (void)pthread_mutex_lock(&contexts_lock);
  if (contexts[device] == NULL) code = shim_cuda.cuDevicePrimaryCtxRetain(&contexts[device], device);
  *out = contexts[device];
  (void)pthread_mutex_unlock(&contexts_lock);
  return (hipError_t)code;
}

hipError_t shim_enter(void) {
  CUcontext context;
  hipError_t code = shim_start();
  if (code == hipSuccess) code = shim_context(current, &context);
  return code == hipSuccess ? (hipError_t)shim_cuda.cuCtxPushCurrent(context) : code;
}

void shim_leave(void) {
  CUcontext context;
  (void)shim_cuda.cuCtxPopCurrent(&context);
}

hipError_t hipDeviceSynchronize(void) {
  hipError_t code = shim_enter();
  if (code == hipSuccess) {
    code = (hipError_t)shim_cuda.cuCtxSynchronize();
    shim_leave();
  }
  return shim_result((int)code);
}

hipError_t hipDeviceReset(void) {
  const hipError_t code = shim_start();
  if (code != hipSuccess) return shim_result((int)code);
  (void)pthread_mutex_lock(&contexts_lock);
  contexts[current] = NULL;
  (void)pthread_mutex_unlock(&contexts_lock);
  return shim_result((int)shim_cuda.cuDevicePrimaryCtxReset(current));
}

/* ---- what a device is ---- */

const char *shim_target(void) {
  const char *name = getenv("RILL_SHIM_TARGET");
  return name != NULL ? name : "gfx90a";
}

hipError_t hipDeviceGet(hipDevice_t *out, int ordinal) { SHIM_CALL_PLAIN(cuDeviceGet, out, ordinal); }

hipError_t hipDeviceGetName(char *out, int size, hipDevice_t device) {
  SHIM_CALL_PLAIN(cuDeviceGetName, out, size, device);
}

hipError_t hipDeviceGetUuid(hipUUID *out, hipDevice_t device) {
  SHIM_CALL_PLAIN(cuDeviceGetUuid, (CUuuid *)(void *)out, device);
}

hipError_t hipDeviceGetPCIBusId(char *out, int size, int device) {
  SHIM_CALL_PLAIN(cuDeviceGetPCIBusId, out, size, device);
}

hipError_t hipDeviceTotalMem(size_t *out, hipDevice_t device) { SHIM_CALL_PLAIN(cuDeviceTotalMem, out, device); }

hipError_t hipDeviceCanAccessPeer(int *out, int device, int other) {
  SHIM_CALL_PLAIN(cuDeviceCanAccessPeer, out, device, other);
}

static hipError_t set_peer(int other, CUresult (*call)(CUcontext other)) {
  CUcontext context;
  hipError_t code = shim_enter();
  if (code != hipSuccess) return code;
  code = shim_context(other, &context);
  if (code == hipSuccess) code = (hipError_t)call(context);
  shim_leave();
  return code;
}

static CUresult enable_peer(CUcontext other) { return shim_cuda.cuCtxEnablePeerAccess(other, 0); }
static CUresult disable_peer(CUcontext other) { return shim_cuda.cuCtxDisablePeerAccess(other); }

hipError_t hipDeviceEnablePeerAccess(int other, unsigned int flags) {
  return shim_result(flags != 0 ? hipErrorInvalidValue : (int)set_peer(other, enable_peer));
}

hipError_t hipDeviceDisablePeerAccess(int other) { return shim_result((int)set_peer(other, disable_peer)); }

/* An AMD GPU has 64 KiB of shared memory for every block, and asks nobody for it: module.c sees to that. */
static bool constant_attribute(hipDeviceAttribute_t attribute, int *out) {
  switch ((int)attribute) {
    case hipDeviceAttributeMaxSharedMemoryPerBlock:
    case hipDeviceAttributeSharedMemPerBlockOptin: *out = SHIM_SHARED_BYTES; return true;
    case hipDeviceAttributeMemoryPoolsSupported: *out = 0; return true; /* not forwarded */
    default: return false;
  }
}

/* 0: CUDA has no such attribute. */
static CUdevice_attribute cuda_attribute(hipDeviceAttribute_t attribute) {
  switch ((int)attribute) {
    case hipDeviceAttributeWarpSize: return CU_DEVICE_ATTRIBUTE_WARP_SIZE;
    case hipDeviceAttributeMaxThreadsPerBlock: return CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
    case hipDeviceAttributeMaxBlockDimX: return CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X;
    case hipDeviceAttributeMaxBlockDimY: return CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y;
    case hipDeviceAttributeMaxBlockDimZ: return CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z;
    case hipDeviceAttributeMaxGridDimX: return CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X;
    case hipDeviceAttributeMaxGridDimY: return CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y;
    case hipDeviceAttributeMaxGridDimZ: return CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z;
    case hipDeviceAttributeMaxRegistersPerBlock: return CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK;
    case hipDeviceAttributeMultiprocessorCount: return CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
    case hipDeviceAttributeMaxThreadsPerMultiProcessor: return CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR;
    case hipDeviceAttributeMaxRegistersPerMultiprocessor: return CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR;
    case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor:
      return CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR;
    case hipDeviceAttributeClockRate: return CU_DEVICE_ATTRIBUTE_CLOCK_RATE;
    case hipDeviceAttributeMemoryClockRate: return CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE;
    case hipDeviceAttributeMemoryBusWidth: return CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH;
    case hipDeviceAttributeComputeCapabilityMajor: return CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
    case hipDeviceAttributeComputeCapabilityMinor: return CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
    case hipDeviceAttributeAsyncEngineCount: return CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT;
    case hipDeviceAttributeConcurrentKernels: return CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS;
    case hipDeviceAttributeMaxPitch: return CU_DEVICE_ATTRIBUTE_MAX_PITCH;
    case hipDeviceAttributeManagedMemory: return CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY;
    case hipDeviceAttributeConcurrentManagedAccess: return CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS;
    case hipDeviceAttributeCooperativeLaunch: return CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH;
    default: return (CUdevice_attribute)0;
  }
}

hipError_t hipDeviceGetAttribute(int *out, hipDeviceAttribute_t attribute, int device) {
  if (constant_attribute(attribute, out)) return hipSuccess;
  const CUdevice_attribute wanted = cuda_attribute(attribute);
  if (wanted == 0) return shim_result(hipErrorInvalidValue);
  SHIM_CALL_PLAIN(cuDeviceGetAttribute, out, wanted, device);
}

/* Both structs by their offsets, which no header has side by side: name, memory, architecture. */
static hipError_t properties(char *out, int device, size_t size, size_t memory_at, size_t arch_at) {
  size_t memory;
  memset(out, 0, size);
  hipError_t code = hipDeviceGetName(out, 256, device);
  if (code == hipSuccess) code = hipDeviceTotalMem(&memory, device);
  if (code != hipSuccess) return code;
  memcpy(out + memory_at, &memory, sizeof memory);
  (void)snprintf(out + arch_at, 256, "%s", shim_target());
  return hipSuccess;
}

hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000 *out, int device) {
  return properties((char *)out, device, 792, 256, 396);
}

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *out, int device) {
  return properties((char *)out, device, 1472, 288, 1160);
}
