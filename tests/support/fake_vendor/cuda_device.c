/* The CUDA driver API over the engine: init, errors, devices, primary contexts, memory. */
#include "cuda_front.h"
#include "error_names.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct fake_vendor fake_vendor = {
  .backend = "cuda",
  .library = "fake libcuda",
  .default_target = "sm_90",
  .default_version = 13000,
  .bad_shape = FAKE_INVALID_VALUE,
  .needs_init = true,
  .shared_default = 48 << 10,
  .shared_optin = 227 << 10,
  .shared_per_unit = 228 << 10,
  .shared_reserved = 1 << 10,
  .priority_least = 0,
  .priority_greatest = -5,
};

int fake_first_version(const char *name) {
  static const struct {
    const char *name;
    int version;
  } since[] = {
    { "cuStreamGetId", 12000 },
    { "cuGraphAddDependencies_v2", 12030 },
    { "cuFuncGetParamInfo", 12040 },
    { "cuFuncLoad", 12040 },
  };
  for (size_t i = 0; i < sizeof since / sizeof *since; i++)
    if (strcmp(name, since[i].name) == 0) return since[i].version;
  return 0;
}

const char *fake_device_mask(void) { return NULL; } /* not modelled */

const struct fake_quirks *fake_quirks(void) {
  static const struct fake_quirks none;
  return &none;
}

/* The driver's documents name no calls.  As far as they describe them, these are not potentially unsafe: plain
 * questions to the library, contexts, captures themselves, and work on a stream. */
enum fake_safety fake_safety_of(const char *function) {
  static const char *const safe[] = {
    "cuInit",
    "cuDriverGetVersion",
    "cuDeviceGet",
    "cuDeviceTotalMem",
    "cuDeviceCanAccessPeer",
    "cuDevicePrimaryCtxGetState",
    "cuDevicePrimaryCtxReset",
    "cuCtxPushCurrent",
    "cuCtxPopCurrent",
    "cuCtxGetCurrent",
    "cuCtxSetCurrent",
    "cuCtxGetDevice",
    "cuStreamWaitEvent",
    "cuStreamIsCapturing",
    "cuStreamBeginCapture",
    "cuStreamEndCapture",
    "cuThreadExchangeStreamCaptureMode",
    "cuStreamGetCaptureInfo",
    "cuGraphCreate",
    "cuGraphAdd",
    "cuGraphKernelNodeSetAttribute",
    "cuGraphLaunch",
    "cuGraphUpload",
    "cuGraphExecKernelNodeSetParams",
    "cuGraphExecMem",
    "cuGraphDestroy",
    "cuGraphRetainUserObject",
    "cuUserObject",
    "cuStreamAddCallback",
    "cuLaunch",
    "cuEventRecord",
    "cuMemPrefetchAsync",
  };
  if (strcmp(function, "cuCtxSynchronize") == 0) return FAKE_WAITS_FOR_CONTEXT;
  if (strncmp(function, "cuMem", 5) == 0 && strstr(function, "Async") != NULL) return FAKE_SAFE; /* copies, fills */
  for (size_t i = 0; i < sizeof safe / sizeof *safe; i++)
    if (strncmp(function, safe[i], strlen(safe[i])) == 0) return FAKE_SAFE;
  return FAKE_UNSAFE;
}

/* ---- init, version, errors ---- */

static int initialize(unsigned flags) {
  if (flags != 0) return FAKE_INVALID_VALUE;
  if (fake_options()->init_code != FAKE_OK) return fake_options()->init_code;
  if (fake_options()->devices == 0) return FAKE_NO_DEVICE;
  fake_set_initialized();
  return FAKE_OK;
}

CUresult CUDAAPI cuInit(unsigned int flags) { CU_CALL_BEFORE_INIT(initialize(flags)); }

static int get_version(int *out) {
  if (out == NULL) return FAKE_INVALID_VALUE;
  *out = fake_options()->version;
  return FAKE_OK;
}

CUresult CUDAAPI cuDriverGetVersion(int *out) { CU_CALL_BEFORE_INIT(get_version(out)); }

/* These two change nothing, may be called anywhere, and are not counted. */
CUresult CUDAAPI cuGetErrorName(CUresult error, const char **out) {
  *out = fake_error_name((int)error, false);
  return *out != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult CUDAAPI cuGetErrorString(CUresult error, const char **out) {
  const CUresult code = cuGetErrorName(error, out);
  if (code == CUDA_SUCCESS) *out = "an error of the fake driver";
  return code;
}

/* ---- devices ---- */

static int device_count(int *out) {
  if (out == NULL) return FAKE_INVALID_VALUE;
  *out = fake_options()->devices;
  return FAKE_OK;
}

CUresult CUDAAPI cuDeviceGetCount(int *out) { CU_CALL(device_count(out)); }

/* A device, and somewhere to write to. */
static int look_at(int ordinal, const void *out) {
  struct fake_device *device;
  return out == NULL ? FAKE_INVALID_VALUE : fake_device_get(ordinal, &device);
}

static int pci_bus_id(char *out, int size, CUdevice device) {
  const int code = look_at(device, out);
  if (code == FAKE_OK) (void)snprintf(out, (size_t)size, "0000:%02X:00.0", device + 1);
  return code;
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char *out, int size, CUdevice device) { CU_CALL(pci_bus_id(out, size, device)); }

/* "sm_90" is 9.0. */
static int capability(void) { return atoi(strpbrk(fake_options()->target, "0123456789")); }

static int attribute_value(CUdevice_attribute attribute, CUdevice device) {
  switch ((int)attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return capability() / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return capability() % 10;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK: return FAKE_MAX_THREADS_PER_BLOCK;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return INT32_MAX;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return (int)fake_vendor.shared_default;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return (int)fake_vendor.shared_optin;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: return (int)fake_vendor.shared_per_unit;
    case CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY: return 64 << 10;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return (int)fake_warp_size();
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR: return FAKE_REGISTERS_PER_UNIT;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return 1000000;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return 2000000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return 64;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return FAKE_COMPUTE_UNITS;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return FAKE_THREADS_PER_UNIT;
    case CU_DEVICE_ATTRIBUTE_MAX_PITCH: return INT32_MAX;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return device + 1;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return 2;
    case CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH: return capability() >= 90;
    case CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE: return capability() >= 80 ? FAKE_ACCESS_WINDOW : 0;
    case CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT:
      return capability() >= 90 && fake_options()->version >= 12000 ? 4 : 0;
    case CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS: return 1;
    default: return 0;
  }
}

static int get_attribute(int *out, CUdevice_attribute attribute, CUdevice device) {
  const int code = look_at(device, out);
  if (code != FAKE_OK) return code;
  if ((int)attribute < 1 || attribute >= FAKE_DEVICE_ATTRIBUTE_MAX) return FAKE_INVALID_VALUE;
  *out = attribute_value(attribute, device);
  return FAKE_OK;
}

CUresult CUDAAPI cuDeviceGetAttribute(int *out, CUdevice_attribute attribute, CUdevice device) {
  CU_CALL(get_attribute(out, attribute, device));
}

static int set_peer(CUcontext other, bool on) {
  struct fake_context *from, *to;
  int code = fake_current_context(&from);
  if (code == FAKE_OK) code = other == NULL ? FAKE_INVALID_CONTEXT : fake_context_get(other, &to);
  return code == FAKE_OK ? fake_peer_enable(from->device, to->device, on) : code;
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext other, unsigned int flags) {
  CU_CALL(flags != 0 ? FAKE_INVALID_VALUE : set_peer(other, true));
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext other) { CU_CALL(set_peer(other, false)); }

/* ---- primary contexts ---- */

static int retain_primary(CUcontext *out, CUdevice device) {
  struct fake_context *context;
  const int code = out == NULL ? FAKE_INVALID_VALUE : fake_primary_retain(device, &context);
  if (code == FAKE_OK) *out = context->handle;
  return code;
}

CUresult CUDAAPI cuDevicePrimaryCtxRetain(CUcontext *out, CUdevice device) { CU_CALL(retain_primary(out, device)); }

CUresult CUDAAPI cuDevicePrimaryCtxRelease(CUdevice device) { CU_CALL(fake_primary_release(device)); }

CUresult CUDAAPI cuDevicePrimaryCtxReset(CUdevice device) { CU_CALL(fake_primary_reset(device)); }

static int primary_state(CUdevice ordinal, unsigned *flags, int *active) {
  struct fake_device *device;
  const int code = fake_device_get(ordinal, &device);
  if (code != FAKE_OK) return code;
  if (flags != NULL) *flags = device->primary == NULL ? 0 : device->primary->flags;
  if (active != NULL) *active = device->primary != NULL && device->primary->alive;
  return FAKE_OK;
}

CUresult CUDAAPI cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active) {
  CU_CALL(primary_state(device, flags, active));
}

/* ---- memory ---- */

static int allocate(enum fake_memory kind, CUdeviceptr *out, size_t size) {
  void *p = NULL;
  const int code = fake_memory_alloc(kind, size, out == NULL ? NULL : &p);
  if (code == FAKE_OK) *out = (CUdeviceptr)(uintptr_t)p;
  return code;
}

CUresult CUDAAPI cuMemAlloc(CUdeviceptr *out, size_t size) { CU_CALL(allocate(FAKE_DEVICE_MEMORY, out, size)); }

CUresult CUDAAPI cuMemAllocManaged(CUdeviceptr *out, size_t size, unsigned int flags) {
  CU_CALL(flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST ? FAKE_INVALID_VALUE
                                                                       : allocate(FAKE_MANAGED_MEMORY, out, size));
}

static void *address(CUdeviceptr p) { return (void *)(uintptr_t)p; }

CUresult CUDAAPI cuMemFree(CUdeviceptr p) { CU_CALL(fake_memory_free(FAKE_DEVICE_MEMORY, address(p))); }

static int memory_range(CUdeviceptr *base, size_t *size, CUdeviceptr p) {
  void *begin = NULL;
  const int code = fake_memory_range(address(p), &begin, size);
  if (code == FAKE_OK && base != NULL) *base = (CUdeviceptr)(uintptr_t)begin;
  return code;
}

CUresult CUDAAPI cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr p) {
  CU_CALL(memory_range(base, size, p));
}

/* Of the attributes, two. */
static int pointer_attribute(void *out, CUpointer_attribute attribute, CUdeviceptr p) {
  enum fake_memory kind;
  if (out != NULL && attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
    return fake_memory_device(address(p), out) ? FAKE_OK : FAKE_INVALID_VALUE;
  if (out == NULL || attribute != CU_POINTER_ATTRIBUTE_MEMORY_TYPE || !fake_memory_kind(address(p), &kind))
    return FAKE_INVALID_VALUE;
  const bool host = kind == FAKE_HOST_MEMORY || kind == FAKE_REGISTERED;
  *(CUmemorytype *)out = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
  return FAKE_OK;
}

CUresult CUDAAPI cuPointerGetAttribute(void *out, CUpointer_attribute attribute, CUdeviceptr p) {
  CU_CALL(pointer_attribute(out, attribute, p));
}

static int ipc_open(CUdeviceptr *out, const CUipcMemHandle *handle, unsigned flags) {
  void *p = NULL;
  const int code = flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS ? FAKE_INVALID_VALUE
                                                               : fake_ipc_open_memory(handle, out == NULL ? NULL : &p);
  if (code == FAKE_OK) *out = (CUdeviceptr)(uintptr_t)p;
  return code;
}

CUresult CUDAAPI cuIpcOpenMemHandle(CUdeviceptr *out, CUipcMemHandle handle, unsigned int flags) {
  CU_CALL(ipc_open(out, &handle, flags));
}

CUresult CUDAAPI cuMemHostAlloc(void **out, size_t size, unsigned int flags) {
  CU_CALL(flags > 7 ? FAKE_INVALID_VALUE : fake_memory_alloc(FAKE_HOST_MEMORY, size, out));
}

CUresult CUDAAPI cuMemAllocHost(void **out, size_t size) { CU_CALL(fake_memory_alloc(FAKE_HOST_MEMORY, size, out)); }

CUresult CUDAAPI cuMemFreeHost(void *p) { CU_CALL(fake_memory_free(FAKE_HOST_MEMORY, p)); }

CUresult CUDAAPI cuMemHostRegister(void *p, size_t size, unsigned int flags) {
  CU_CALL(flags > 15 ? FAKE_INVALID_VALUE : fake_memory_register(p, size));
}

CUresult CUDAAPI cuMemHostUnregister(void *p) { CU_CALL(fake_memory_unregister(p)); }

static int copy(void *dst, const void *src, size_t n, CUstream stream, bool blocking) {
  return fake_copy(stream, &(struct fake_copy){ .dst = dst, .src = src, .width = n, .height = 1 }, blocking);
}

CUresult CUDAAPI cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream) {
  CU_CALL(copy(address(dst), address(src), n, stream, false));
}

CUresult CUDAAPI cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t n, CUstream stream) {
  CU_CALL(copy(address(dst), src, n, stream, false));
}

CUresult CUDAAPI cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t n, CUstream stream) {
  CU_CALL(copy(dst, address(src), n, stream, false));
}

CUresult CUDAAPI cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t n, CUstream stream) {
  CU_CALL(copy(address(dst), address(src), n, stream, false));
}

static bool is_linear(CUmemorytype type) { return type >= CU_MEMORYTYPE_HOST && type <= CU_MEMORYTYPE_UNIFIED; }

static char *linear(CUmemorytype type, const void *host, CUdeviceptr device) {
  if (type == CU_MEMORYTYPE_HOST) return (char *)(uintptr_t)host;
  return type == CU_MEMORYTYPE_ARRAY ? NULL : address(device);
}

/* Arrays are not known here. */
static int copy_2d(const CUDA_MEMCPY2D *values, CUstream stream) {
  if (values == NULL || !is_linear(values->srcMemoryType) || !is_linear(values->dstMemoryType))
    return FAKE_INVALID_VALUE;
  const char *src = linear(values->srcMemoryType, values->srcHost, values->srcDevice);
  char *dst = linear(values->dstMemoryType, values->dstHost, values->dstDevice);
  if (src == NULL || dst == NULL) return FAKE_INVALID_VALUE;
  return fake_copy(stream,
                   &(struct fake_copy){ .dst = dst + values->dstY * values->dstPitch + values->dstXInBytes,
                                        .src = src + values->srcY * values->srcPitch + values->srcXInBytes,
                                        .dst_pitch = values->dstPitch,
                                        .src_pitch = values->srcPitch,
                                        .width = values->WidthInBytes,
                                        .height = values->Height },
                   false);
}

CUresult CUDAAPI cuMemcpy2DAsync(const CUDA_MEMCPY2D *values, CUstream stream) { CU_CALL(copy_2d(values, stream)); }

static int copy_3d(const CUDA_MEMCPY3D *values, CUstream stream) {
  if (values == NULL || !is_linear(values->srcMemoryType) || !is_linear(values->dstMemoryType))
    return FAKE_INVALID_VALUE;
  const char *src = linear(values->srcMemoryType, values->srcHost, values->srcDevice);
  char *dst = linear(values->dstMemoryType, values->dstHost, values->dstDevice);
  const size_t src_slice = values->srcPitch * values->srcHeight, dst_slice = values->dstPitch * values->dstHeight;
  if (src == NULL || dst == NULL) return FAKE_INVALID_VALUE;
  dst += values->dstZ * dst_slice + values->dstY * values->dstPitch + values->dstXInBytes;
  src += values->srcZ * src_slice + values->srcY * values->srcPitch + values->srcXInBytes;
  if (values->Depth == 0) return FAKE_OK;
  return fake_copy(stream,
                   &(struct fake_copy){ .dst = dst,
                                        .src = src,
                                        .dst_pitch = values->dstPitch,
                                        .src_pitch = values->srcPitch,
                                        .width = values->WidthInBytes,
                                        .height = values->Height,
                                        .dst_slice = dst_slice,
                                        .src_slice = src_slice,
                                        .depth = values->Depth },
                   false);
}

CUresult CUDAAPI cuMemcpy3DAsync(const CUDA_MEMCPY3D *values, CUstream stream) { CU_CALL(copy_3d(values, stream)); }

CUresult CUDAAPI cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t n) {
  CU_CALL(copy(address(dst), address(src), n, NULL, true));
}

CUresult CUDAAPI cuMemcpyHtoD(CUdeviceptr dst, const void *src, size_t n) {
  CU_CALL(copy(address(dst), src, n, NULL, true));
}

CUresult CUDAAPI cuMemcpyDtoH(void *dst, CUdeviceptr src, size_t n) { CU_CALL(copy(dst, address(src), n, NULL, true)); }

CUresult CUDAAPI cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width, size_t height,
                                   CUstream stream) {
  CU_CALL(fake_fill(
      stream,
      &(struct fake_fill){
          .dst = address(dst), .pitch = pitch, .value = value, .element = 1, .count = width, .height = height }));
}

/* The vendor's run-time compiler asks for it, and calls it without looking whether it is there. */
CUresult CUDAAPI cuGetExportTable(const void **table, const CUuuid *id) {
  (void)id;
  if (table != NULL) *table = NULL;
  return CUDA_ERROR_NOT_FOUND;
}
