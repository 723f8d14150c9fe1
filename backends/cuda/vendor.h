/* The CUDA driver API for backends/gpu: names, types and special cases.  backends/gpu/gpu.h explains what each item is
 * for. */
#ifndef RILL_BACKENDS_CUDA_VENDOR_H
#define RILL_BACKENDS_CUDA_VENDOR_H

#include "backends/cuda/cuda_api.h"

#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>

#define GPU_VENDOR_IS_CUDA 1
#define GPU_NAME(name) rill__cuda_##name
#define GPU_BACKEND_NAME "cuda"
#define GPU_BACKEND_ID RILL_BACKEND_CUDA

/* ---- libraries and symbols, by name only ---- */

#define GPU_LIBRARIES "libcuda.so.1"
#define GPU_OWN_LIBRARIES "libcuda.so", "libnvidia-", "libnvrtc"
/* In the table of cudaGetErrorName of every version; in two parts, so that rill does not contain it. */
#define GPU_RUNTIME_TEXT "cudaErrorInvalid", "DeviceFunction"
#define GPU_OTHER_LIBRARIES
#define GPU_FOLDER_VARIABLES
#define GPU_FOLDERS NULL
#define GPU_MASK_VARIABLES "CUDA_VISIBLE_DEVICES"
#define GPU_RTC_BESIDE
#define GPU_RTC_LIBRARIES "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"
#define GPU_RTC_LIBRARIES_TEXT "none of libnvrtc.so.13, .12 and .11.2 can be opened"
#define GPU_RTC_SYMBOL NULL /* never in the driver library */
#define GPU_RTC_FUSE "-fmad=true"
#define GPU_RTC_NO_FUSE "-fmad=false"
#define GPU_RTC_DEBUG "-lineinfo"
#define GPU_RTC_ATOMICS
#define GPU_GRAPHS_TEXT "the driver lacks functions for graphs, which came with CUDA 11.4"
#define GPU_MODULES_KEEP_IMAGES false /* the driver copies what it needs */
#define GPU_TAKES "a cubin, a fatbin or PTX"
#define GPU_KNOWS_KERNEL_ARGS (gpu_api.function_parameter != NULL)
#define GPU_KERNEL_ARGS_TEXT                                                                                      \
  "before CUDA 12.4 the driver does not report the arguments of kernels, so those of images that rillcc did not " \
  "bundle are not checked"
/* kDLCUDA, kDLCUDAHost, kDLCUDAManaged */
#define GPU_DLPACK \
  { 2, 3, 13, 1, 2, "1: the legacy default stream, 2: the per-thread one" }
#define GPU_STREAM_ID_TEXT "the driver has no stream ids: they came with CUDA 12.0"

/* ---- types and constants ---- */

typedef CUresult gpu_native_result;
typedef CUdevice gpu_device_handle;
typedef CUdevice_attribute gpu_attribute;
typedef CUcontext gpu_context;
typedef CUstream gpu_stream_handle;
typedef CUevent gpu_event_handle;
typedef CUmodule gpu_module_handle;
typedef CUfunction gpu_function;
typedef CUgraph gpu_graph;
typedef CUgraphNode gpu_graph_node;
typedef CUgraphExec gpu_graph_handle;
typedef CUDA_HOST_NODE_PARAMS gpu_host_node;
typedef CUgraphExecUpdateResult gpu_update_result;
typedef CUfunction_attribute gpu_function_attribute;
typedef CUdeviceptr gpu_pointer;
typedef CUuuid gpu_uuid;
typedef CUmem_advise gpu_advice;
typedef CUipcEventHandle gpu_ipc_event;
typedef CUipcMemHandle gpu_ipc_memory;
typedef CUstreamCaptureStatus gpu_capture_status;
typedef CUstreamCaptureMode gpu_capture_mode;
typedef unsigned int gpu_word;

#define GPU_POINTER(p) ((CUdeviceptr)(uintptr_t)(p))
#define GPU_CONST_POINTER(p) GPU_POINTER(p)
#define GPU_CONTEXT_VALUE(context) ((uintptr_t)(context))

#define GPU_MAX_THREADS_PER_DIM UINT64_C(0) /* the only limits are the dimensions of grid and block */

/* The range on every GPU since Volta.  It is used until there is a context, which the driver needs for the
 * query. */
#define GPU_PRIORITY_LEAST 0
#define GPU_PRIORITY_GREATEST (-5)

/* Work on a stream's handle needs no current context, and every call after a fault returns immediately. */
#define GPU_WORK_NEEDS_CURRENT false
#define GPU_MAY_HANG_AFTER_FAULT false
#define GPU_EVENTS_ACCESS_STREAMS false
#define GPU_MAY_IGNORE_RELAXED false
#define GPU_SYNCHRONIZE_BREAKS_ALL false
#define GPU_PITCHED_COPIES_READ_LATE false
#define GPU_GRAPHS_OVERLAP false /* the driver orders launches of one object */

#include "backends/gpu/api.h"

/* Converts a result.  The driver API has no "last error" to clear. */
static inline gpu_result gpu_vendor_result(CUresult result) { return (gpu_result)result; }

static inline const char *gpu_vendor_error_name(gpu_result result) {
  const char *name = NULL;
  return gpu_api.error_name((CUresult)result, &name) == CUDA_SUCCESS ? name : NULL;
}

static inline uint32_t gpu_vendor_driver_version(void) {
  int version = 0;
  return GPU_CALL(driver_version, (&version)) == GPU_SUCCESS ? (uint32_t)version : 0;
}

static inline uint32_t gpu_vendor_runtime_version(void) { return 0; }

/* Adds nothing: the driver itself explains why devices are hidden. */
static inline void gpu_vendor_explain(bool has_runtime, uint32_t counted, char *why, size_t size) {
  (void)has_runtime, (void)counted, (void)why, (void)size;
}

/* ---- the current context ---- */

struct gpu_scope {
  bool pushed; /* false if the context was current already */
};

static inline gpu_result gpu_vendor_open(gpu_device_handle device, gpu_context *context) {
  return *context != NULL ? GPU_SUCCESS : GPU_CALL(primary_context_retain, (context, device));
}

/* Names of vendor calls that functions with other names make, for messages. */
#define GPU_ENTER_TEXT "cuCtxPushCurrent"
#define GPU_OPEN_TEXT "cuDevicePrimaryCtxRetain"
#define GPU_OWNER_TEXT "cuStreamGetCtx"
#define GPU_IDENTIFY_TEXT "cuDeviceGetAttribute"
#define GPU_IS_KNOWN_TEXT gpu_symbols.pointer_attribute
#define GPU_ALLOW_SHARED_TEXT "cuFuncSetAttribute"
#define GPU_LOAD_FUNCTION_TEXT "cuFuncLoad"
#define GPU_ARG_SIZE_TEXT "cuFuncGetParamInfo"

static inline gpu_result gpu_vendor_enter(struct gpu_scope *scope, gpu_device_handle device, gpu_context context) {
  (void)device;
  CUcontext current = NULL;
  /* This query takes a third of the time of a push and a pop.  If it fails, the push reports the error. */
  scope->pushed = GPU_CALL(context_current, (&current)) != GPU_SUCCESS || current != context;
  return scope->pushed ? GPU_CALL(context_push, (context)) : GPU_SUCCESS;
}

static inline void gpu_vendor_leave(struct gpu_scope *scope) {
  CUcontext popped;
  if (scope->pushed) (void)GPU_CALL(context_pop, (&popped));
}

/* The codes for a destroyed context are also returned for a handle that other code has destroyed. */
#define GPU_NEEDS_SENTINEL false
static inline bool gpu_vendor_context_is_lost(gpu_device_handle device, gpu_stream_handle sentinel) {
  (void)sentinel;
  unsigned int flags = 0;
  int active = 1;
  return GPU_CALL(primary_context_state, (device, &flags, &active)) == GPU_SUCCESS && active == 0;
}

static inline bool gpu_vendor_stream_is_alive(gpu_stream_handle stream) {
  (void)stream;
  return true;
}

static inline bool gpu_vendor_queries_break_captures(void) { return false; }

static inline gpu_stream_handle gpu_vendor_special_stream(uintptr_t native) { return (CUstream)native; }

static inline gpu_result gpu_vendor_context_device(CUcontext context, gpu_device_handle *device) {
  gpu_result result = GPU_CALL(context_push, (context));
  if (result != GPU_SUCCESS) return result;
  result = GPU_CALL(context_device, (device));
  (void)GPU_CALL(context_pop, (&context));
  return result;
}

static inline gpu_result gpu_vendor_stream_device(gpu_stream_handle stream, gpu_device_handle *device) {
  CUcontext context = NULL;
  const gpu_result result = GPU_CALL(stream_context, (stream, &context));
  return result == GPU_SUCCESS ? gpu_vendor_context_device(context, device) : result;
}

static inline gpu_result gpu_vendor_stream_owner(gpu_stream_handle stream, gpu_device_handle device, gpu_context own,
                                                 enum gpu_owner *owner) {
  CUcontext context = NULL;
  CUdevice other = device;
  gpu_result result = GPU_CALL(stream_context, (stream, &context));
  *owner = GPU_OWNER_THIS;
  if (result != GPU_SUCCESS || context == own) return result;
  result = gpu_vendor_context_device(context, &other);
  *owner = other == device ? GPU_OWNER_OTHER_CONTEXT : GPU_OWNER_OTHER_DEVICE;
  return result;
}

static inline gpu_result gpu_vendor_enable_peer(gpu_device_handle other, gpu_context context) {
  (void)other;
  return GPU_CALL(enable_peer, (context, 0));
}

static inline gpu_result gpu_vendor_disable_peer(gpu_device_handle other, gpu_context context) {
  (void)other;
  return GPU_CALL(disable_peer, (context));
}

/* ---- targets ---- */

struct gpu_target {
  int major, minor;
};

static inline gpu_result gpu_vendor_identify(gpu_device_handle device, struct gpu_target *target, char *arch,
                                             size_t size) {
  gpu_result result =
      GPU_CALL(device_attribute, (&target->major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  if (result == GPU_SUCCESS) {
    result = GPU_CALL(device_attribute, (&target->minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device));
  }
  (void)snprintf(arch, size, "sm_%d%d", target->major, target->minor);
  return result;
}

/* Returns how well a target fits the device.  Machine code runs on its own capability and on later minor versions of
 * the same major version; PTX runs on everything later.  Code for an architecture-specific target ("sm_90a") runs on
 * exactly that target, code for a family ("sm_100f") on the same major version starting with that target.  Any machine
 * code is better than any PTX; of two images of the same kind, the one with the later target is better. */
static inline uint32_t gpu_vendor_fit(const struct gpu_target *device, const char *target) {
  const bool ptx = strncmp(target, "ptx_", 4) == 0;
  if (!ptx && strncmp(target, "sm_", 3) != 0) return 0;
  char *end = NULL;
  const long number = strtol(target + (ptx ? 4 : 3), &end, 10);
  if (number < 10 || number > 9999) return 0;
  const long major = number / 10, minor = number % 10;
  const bool same_major = major == device->major;
  const bool exact = same_major && minor == device->minor;
  bool fits = false;
  if (strcmp(end, "a") == 0) {
    fits = exact;
  } else if (strcmp(end, "f") == 0) {
    fits = same_major && minor <= device->minor;
  } else if (end[0] == '\0') {
    fits = ptx ? number <= device->major * 10 + device->minor : same_major && minor <= device->minor;
  }
  if (!fits) return 0;
  return (ptx ? 0u : 100000u) + (uint32_t)number * 4 + (end[0] == 'a' ? 2u : end[0] == 'f' ? 1u : 0u);
}

static inline void gpu_vendor_needs(const struct gpu_target *device, char *text, size_t size) {
  if (device->minor == 0) {
    (void)snprintf(text, size, "sm_%d0, or PTX of at most ptx_%d0", device->major, device->major);
  } else {
    (void)snprintf(text, size, "sm_%d%d or an older sm_%dx, or PTX of at most ptx_%d%d", device->major, device->minor,
                   device->major, device->major, device->minor);
  }
}

static inline bool gpu_vendor_has_clusters(gpu_device_handle device, const char **why) {
  int value = 0;
  *why = "thread block clusters need compute capability 9.0 and a driver of CUDA 11.8 or later";
  if (gpu_api.launch_extended == NULL || gpu_api.cluster_limit == NULL || gpu_api.active_clusters == NULL) return false;
  return GPU_CALL(device_attribute, (&value, CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, device)) == GPU_SUCCESS && value != 0;
}

/* Returns whether events can be shared.  The attribute came with CUDA 12.  Older drivers refuse it, and share events on
 * every Linux machine. */
static inline bool gpu_vendor_has_event_ipc(gpu_device_handle device, const char **why) {
  int value = 0;
  *why = "the driver says that this device does not share events between processes";
  const gpu_result result = GPU_CALL(device_attribute, (&value, CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED, device));
  return result == GPU_SUCCESS ? value != 0 : true;
}

/* ---- calls whose arguments differ ---- */

/* Copies n bytes.  If both ends are known, stating the direction spares the driver from looking up the pointers.  All
 * these calls return after a pageable source has been read, because the driver stages it first. */
static inline gpu_result gpu_vendor_copy(void *dst, uint32_t dst_kind, const void *src, uint32_t src_kind, size_t n,
                                         gpu_stream_handle stream, const char **symbol) {
  if (dst_kind == RILL_MEMORY_DEVICE && src_kind == RILL_MEMORY_PINNED) {
    *symbol = gpu_symbols.copy_to_device;
    return GPU_CALL(copy_to_device, (GPU_POINTER(dst), src, n, stream));
  }
  if (dst_kind == RILL_MEMORY_PINNED && src_kind == RILL_MEMORY_DEVICE) {
    *symbol = gpu_symbols.copy_from_device;
    return GPU_CALL(copy_from_device, (dst, GPU_POINTER(src), n, stream));
  }
  *symbol = gpu_symbols.copy;
  return GPU_CALL(copy, (GPU_POINTER(dst), GPU_POINTER(src), n, stream));
}

/* Converts a kind of memory.  The driver looks up memory that is not known to be host memory, and so finds its device
 * also. */
static inline CUmemorytype gpu_vendor_memory_type(uint32_t kind) {
  return kind == RILL_MEMORY_PINNED ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED;
}

static inline gpu_result gpu_vendor_copy_2d(const struct rill__copy_3d *copy, gpu_stream_handle stream) {
  const CUDA_MEMCPY2D values = {
    .srcMemoryType = gpu_vendor_memory_type(copy->src_kind),
    .srcHost = copy->src,
    .srcDevice = GPU_POINTER(copy->src),
    .srcPitch = copy->src_pitch,
    .dstMemoryType = gpu_vendor_memory_type(copy->dst_kind),
    .dstHost = copy->dst,
    .dstDevice = GPU_POINTER(copy->dst),
    .dstPitch = copy->dst_pitch,
    .WidthInBytes = copy->width,
    .Height = copy->height,
  };
  return GPU_CALL(copy_2d, (&values, stream));
}

/* Converts a copy.  Slice pitches have to be multiples of pitches. */
static inline CUDA_MEMCPY3D gpu_vendor_copy_values(const struct rill__copy_3d *copy) {
  return (CUDA_MEMCPY3D){
    .srcMemoryType = gpu_vendor_memory_type(copy->src_kind),
    .srcHost = copy->src,
    .srcDevice = GPU_POINTER(copy->src),
    .srcPitch = copy->src_pitch,
    .srcHeight = copy->src_slice_pitch / copy->src_pitch,
    .dstMemoryType = gpu_vendor_memory_type(copy->dst_kind),
    .dstHost = copy->dst,
    .dstDevice = GPU_POINTER(copy->dst),
    .dstPitch = copy->dst_pitch,
    .dstHeight = copy->dst_slice_pitch / copy->dst_pitch,
    .WidthInBytes = copy->width,
    .Height = copy->height,
    .Depth = copy->depth,
  };
}

static inline gpu_result gpu_vendor_copy_3d(const struct rill__copy_3d *copy, gpu_stream_handle stream) {
  const CUDA_MEMCPY3D values = gpu_vendor_copy_values(copy);
  return GPU_CALL(copy_3d, (&values, stream));
}

/* Determines whether the driver knows the memory at `p`; the query is invalid for other host memory. */
static inline gpu_result gpu_vendor_is_known(const void *p, bool *known) {
  CUmemorytype type = (CUmemorytype)0;
  const gpu_result result = GPU_CALL(pointer_attribute, (&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, GPU_POINTER(p)));
  *known = result == GPU_SUCCESS;
  return result == GPU_INVALID_VALUE ? GPU_SUCCESS : result;
}

/* Determines whether the memory is device memory; the query is invalid for unknown host memory. */
static inline gpu_result gpu_vendor_is_on_device(const void *p, bool *on_device) {
  CUmemorytype type = (CUmemorytype)0;
  const gpu_result result = GPU_CALL(pointer_attribute, (&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, GPU_POINTER(p)));
  *on_device = result == GPU_SUCCESS && type == CU_MEMORYTYPE_DEVICE;
  return result;
}

/* Returns true if the memory belongs to this device. */
static inline bool gpu_vendor_is_memory_of(gpu_device_handle device, const void *p) {
  int ordinal = -1;
  return GPU_CALL(pointer_attribute, (&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, GPU_POINTER(p))) == GPU_SUCCESS &&
         ordinal == (int)device;
}

static inline gpu_result gpu_vendor_ipc_open_memory(gpu_pointer *out, gpu_ipc_memory handle) {
  return GPU_CALL(ipc_open_memory, (out, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
}

static inline gpu_result gpu_vendor_module_load(gpu_module_handle *module, const void *data, char *log, size_t size) {
  CUjit_option options[] = { CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES };
  void *values[] = { log, (void *)(uintptr_t)size };
  return GPU_CALL(module_load, (module, data, 2, options, values));
}

/* Returns offset and size of an argument by number; GPU_INVALID_VALUE after the last one, GPU_NOT_SUPPORTED if
 * unknown. */
static inline gpu_result gpu_vendor_arg_place(gpu_function function, size_t i, size_t *offset, size_t *size) {
  if (gpu_api.function_parameter == NULL) return GPU_NOT_SUPPORTED;
  return GPU_CALL(function_parameter, (function, i, offset, size));
}

/* Loads a function now: without this call, a driver may postpone that until the first launch. */
static inline gpu_result gpu_vendor_load_function(gpu_function function) {
  return gpu_api.function_load == NULL ? GPU_SUCCESS : GPU_CALL(function_load, (function));
}

/* Requests dynamic shared memory above the default. */
static inline gpu_result gpu_vendor_allow_shared(gpu_function function, uint64_t bytes) {
  return GPU_CALL(function_set_attribute, (function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)bytes));
}

#include "backends/cuda/fill_kernel.h"
#include "backends/cuda/launch.h"
#include "backends/cuda/nodes.h"
#include "backends/cuda/rtc.h"

#endif
