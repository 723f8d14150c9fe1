/* HIP on AMD GPUs for backends/gpu: names, types and special cases.  backends/gpu/gpu.h explains what each item is for.
 * Statements about the runtime's behaviour are based on its source and have not been tested on AMD hardware. */
#ifndef RILL_BACKENDS_HIP_VENDOR_H
#define RILL_BACKENDS_HIP_VENDOR_H

#include "backends/hip/hip_api.h"
#include "backends/hip/why.h"

#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPU_VENDOR_IS_HIP 1
#define GPU_NAME(name) rill__hip_##name
#define GPU_BACKEND_NAME "hip"
#define GPU_BACKEND_ID RILL_BACKEND_HIP

/* ---- libraries and symbols, by name only ---- */

#define GPU_LIBRARIES "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"
#define GPU_OWN_LIBRARIES "libamdhip64.so", "libhiprtc", "libamd_comgr", "libhsa-runtime64"
#define GPU_RUNTIME_TEXT "", ""               /* the runtime is the library itself */
#define GPU_OTHER_LIBRARIES "libamdhip64.so", /* the name in PyTorch's wheels */
/* AMD's packages install into a folder that is in no search path. */
#define GPU_FOLDER_VARIABLES "ROCM_PATH", "HIP_PATH",
#define GPU_FOLDERS "/opt/rocm*"
/* CUDA_VISIBLE_DEVICES is used if the first variable is empty.  The last variable is OpenCL's; AMD documents it for HIP
 * as well (rocdevice.cpp, Device::init). */
#define GPU_MASK_VARIABLES "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL"
/* Opened by name only for runtimes that do not contain it, because hipRTC of another version loads a second compiler
 * library. */
#define GPU_RTC_BESIDE "libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so",
#define GPU_RTC_LIBRARIES "libhiprtc.so.7"
#define GPU_RTC_LIBRARIES_TEXT                                                                                   \
  "libamdhip64 does not contain hipRTC, and libhiprtc.so.7 is neither in its folder nor in one that the loader " \
  "searches"
#define GPU_RTC_SYMBOL "hiprtcCompileProgram" /* inside libamdhip64 in 5 and 6 */
#define GPU_RTC_FUSE "-ffp-contract=fast"
#define GPU_RTC_NO_FUSE "-ffp-contract=off"
#define GPU_RTC_DEBUG "-g"
/* Newer compilers assume that floating-point atomics access the GPU's own memory, and emit instructions that have no
 * effect on pinned memory.  With these options they emit loops again.  hipRTC 7.2.53211 knows the options; 5.2.21153
 * reports them as unknown. */
#define GPU_RTC_ATOMICS "-fatomic-fine-grained-memory", "-fatomic-remote-memory",
#define GPU_GRAPHS_TEXT "the runtime lacks functions for graphs, which came with HIP 5.2"
/* The runtime's program refers to the caller's bytes, and no document says when it stops using them. */
#define GPU_MODULES_KEEP_IMAGES true
#define GPU_TAKES "a code object or a clang offload bundle"
#define GPU_KNOWS_KERNEL_ARGS true /* from the note in every code object */
#define GPU_KERNEL_ARGS_TEXT "the code object has no note of its kernels' arguments"
/* kDLROCM, kDLROCMHost; there is no type for managed memory */
#define GPU_DLPACK \
  { 10, 11, 10, 0, 0, "0: the default stream" }
#define GPU_STREAM_ID_TEXT "the runtime has no stream ids: they came with HIP 7.1"

/* ---- types and constants ---- */

typedef hipError_t gpu_native_result;
typedef hipDevice_t gpu_device_handle;
typedef hipDeviceAttribute_t gpu_attribute;
typedef uintptr_t gpu_context; /* HIP has no contexts: a device represents its context */
typedef hipStream_t gpu_stream_handle;
typedef hipEvent_t gpu_event_handle;
typedef hipModule_t gpu_module_handle;
typedef hipFunction_t gpu_function;
typedef hipGraph_t gpu_graph;
typedef hipGraphNode_t gpu_graph_node;
typedef hipGraphExec_t gpu_graph_handle;
typedef hipHostNodeParams gpu_host_node;
typedef unsigned int gpu_update_result;
typedef hipFunction_attribute gpu_function_attribute;
typedef void *gpu_pointer;
typedef hipUUID gpu_uuid;
typedef hipMemoryAdvise gpu_advice;
typedef hipIpcEventHandle_t gpu_ipc_event;
typedef hipIpcMemHandle_t gpu_ipc_memory;
typedef hipStreamCaptureStatus gpu_capture_status;
typedef hipStreamCaptureMode gpu_capture_mode;
typedef int gpu_word;

#define GPU_POINTER(p) ((void *)(uintptr_t)(p))
#define GPU_CONST_POINTER(p) (p)
#define GPU_CONTEXT_VALUE(context) (context)

#define GPU_MAX_THREADS_PER_DIM UINT64_C(0xffffffff) /* the packet's grid is counted in threads, with 32 bits */

#define GPU_PRIORITY_LEAST 1
#define GPU_PRIORITY_GREATEST (-1)

/* For most work the runtime finds the device from the stream's handle.  But it refuses a launch on a stream of a device
 * other than the thread's current one, and looks up unknown pointers on the current device.  hipStreamDestroy and
 * hipModuleUnload wait for submitted work, which may never end after a fault. */
#define GPU_WORK_NEEDS_CURRENT true
#define GPU_MAY_HANG_AFTER_FAULT true

/* The runtime accesses the stream of an event's last record, which may have been destroyed: hipEventSynchronize since
 * 5.7, hipEventQuery since 6.2 (hip_event.cpp: `s->GetCaptureStatus()`), hipStreamWaitEvent from 5.6 to 6.1
 * (hip_stream.cpp: `eventStream->IsEventCaptured`; later versions check that the stream exists).  hipEventElapsedTime
 * does not access it. */
#define GPU_EVENTS_ACCESS_STREAMS true

/* Since 5.5 the runtime refuses to query streams while any thread captures in global mode; up to 6.0 also in relaxed
 * mode (hip_stream.cpp, StreamCaptureOngoing).  hipEventSynchronize behaves the same since 5.7.  Up to 6.1 the refusal
 * does not invalidate the capture. */
#define GPU_MAY_IGNORE_RELAXED true

/* Since 6.2, hipDeviceSynchronize invalidates every capture of the process (hip_internal.hpp,
 * CHECK_SUPPORTED_DURING_CAPTURE). */
#define GPU_SYNCHRONIZE_BREAKS_ALL true

/* Two launches of one execution object on two streams are not ordered (hip_graph_internal.cpp, hipGraphExec::Run). */
#define GPU_GRAPHS_OVERLAP true

/* A two- or three-dimensional copy from pageable memory pins the pages, returns, and reads them when it runs (6.4.3:
 * hip_memory.cpp, ihipMemcpyParam3D, and rocblit.cpp; 5.7.1 is the same).  A one-dimensional copy stages the bytes, or
 * waits. */
#define GPU_PITCHED_COPIES_READ_LATE true

#include "backends/gpu/api.h"

/* Converts a result, and clears the thread's last error: a failed call sets it, including with "not ready", and the
 * user's next hipGetLastError must not return an error that one of rill's calls caused.  (Up to 6, a successful call
 * clears the user's own error; this cannot be prevented.) */
static inline gpu_result gpu_vendor_result(hipError_t result) {
  if (RILL__UNLIKELY(result != hipSuccess)) (void)gpu_api.get_last_error();
  return (gpu_result)result;
}

static inline const char *gpu_vendor_error_name(gpu_result result) { return gpu_api.error_name((hipError_t)result); }

/* Converts a runtime version: for example, 50221153 is 5.2. */
static inline uint32_t gpu_vendor_plain_version(int version) {
  return (uint32_t)(version / 10000000 * 1000 + version / 100000 % 100 * 10);
}

static inline uint32_t gpu_vendor_driver_version(void) {
  int version = 0;
  return GPU_CALL(driver_version, (&version)) == GPU_SUCCESS ? gpu_vendor_plain_version(version) : 0;
}

static inline uint32_t gpu_vendor_runtime_version(void) {
  int version = 0;
  if (gpu_api.runtime_version == NULL || GPU_CALL(runtime_version, (&version)) != GPU_SUCCESS) return 0;
  return gpu_vendor_plain_version(version);
}

/* Returns the version of the opened library: 5020 is 5.2, 7020 is 7.2; 0 if unknown. */
static inline uint32_t gpu_vendor_library_version(void) {
  const uint32_t version = gpu_vendor_runtime_version();
  return version != 0 ? version : gpu_vendor_driver_version();
}

/* Appends the variables or settings that hide devices from the runtime, if there are any. */
static inline void gpu_vendor_explain(bool has_runtime, uint32_t counted, char *why, size_t size) {
  rill__hip_explain("", has_runtime, counted, why, size);
}

/* ---- the current device ---- */

struct gpu_scope {
  int previous; /* -1 if the device was current already */
};

static inline gpu_result gpu_vendor_open(gpu_device_handle device, gpu_context *context) {
  (void)device, (void)context;
  return GPU_SUCCESS;
}

/* Names of vendor calls that functions with other names make, for messages; "" if no such call can fail. */
#define GPU_ENTER_TEXT "hipGetDevice or hipSetDevice"
#define GPU_OPEN_TEXT ""
#define GPU_OWNER_TEXT "hipStreamGetDevice"
#define GPU_IDENTIFY_TEXT \
  (gpu_api.device_properties_r0600 != NULL ? gpu_symbols.device_properties_r0600 : gpu_symbols.device_properties_r0000)
#define GPU_IS_KNOWN_TEXT gpu_symbols.pointer_attributes
#define GPU_ALLOW_SHARED_TEXT ""
#define GPU_LOAD_FUNCTION_TEXT ""
#define GPU_ARG_SIZE_TEXT ""

/* Queried each time, because the user may call hipSetDevice at any time. */
static inline gpu_result gpu_vendor_enter(struct gpu_scope *scope, gpu_device_handle device, gpu_context context) {
  (void)context;
  int current = -1;
  const gpu_result result = GPU_CALL(get_device, (&current));
  scope->previous = current == device ? -1 : current;
  if (result != GPU_SUCCESS || current == device) return result;
  return GPU_CALL(set_device, (device));
}

static inline void gpu_vendor_leave(struct gpu_scope *scope) {
  if (scope->previous >= 0) {
    (void)GPU_CALL(set_device, (scope->previous));
  }
}

/* Returns true if a native stream, which may have been destroyed, still exists.  This is the only query that every
 * version answers for arbitrary handles.  The getters of versions after 7.2 use the handle without checking it
 * (hip_stream.cpp, hipStreamGetFlags_common), and hipStreamGetDevice came with 5.6. */
static inline bool gpu_vendor_stream_is_alive(gpu_stream_handle stream) {
  hipDevice_t device = 0;
  unsigned int flags = 0;
  const gpu_result result = gpu_api.stream_device != NULL ? GPU_CALL(stream_device, (stream, &device))
                                                          : GPU_CALL(stream_flags, (stream, &flags));
  return result != GPU_INVALID_HANDLE && result != GPU_CONTEXT_DESTROYED;
}

/* Returns whether queries break captures.  From 6.2 to 6.4, querying an event invalidates a capture in progress on the
 * stream of its last record, although the event is not part of the capture (hip_event.cpp, hipEventQuery and
 * hipEventSynchronize). */
static inline bool gpu_vendor_queries_break_captures(void) {
  static _Atomic int answer; /* 0 if not determined yet */
  int known = atomic_load_explicit(&answer, memory_order_relaxed);
  if (RILL__UNLIKELY(known == 0)) {
    const uint32_t version = gpu_vendor_library_version();
    known = version >= 6020 && version < 7000 ? 1 : -1;
    atomic_store_explicit(&answer, known, memory_order_relaxed);
  }
  return known > 0;
}

/* There is no context to query.  A bad handle may belong to an object that other code destroyed.  No other code
 * destroys the sentinel, so if it does not exist, the device was reset. */
#define GPU_NEEDS_SENTINEL true
static inline bool gpu_vendor_context_is_lost(gpu_device_handle device, gpu_stream_handle sentinel) {
  (void)device;
  return sentinel != NULL && !gpu_vendor_stream_is_alive(sentinel);
}

/* Returns a default stream.  hipStreamLegacy exists only in later versions, and means the null stream. */
static inline gpu_stream_handle gpu_vendor_special_stream(uintptr_t native) {
  return native == 1 ? NULL : (hipStream_t)native;
}

static inline gpu_result gpu_vendor_stream_device(gpu_stream_handle stream, gpu_device_handle *device) {
  if (gpu_api.stream_device != NULL) return GPU_CALL(stream_device, (stream, device));
  if (gpu_api.stream_device_id == NULL) return GPU_NOT_SUPPORTED;
  *device = gpu_api.stream_device_id(stream); /* the function of 5.2 */
  return *device >= 0 ? GPU_SUCCESS : GPU_INVALID_HANDLE;
}

static inline gpu_result gpu_vendor_stream_owner(gpu_stream_handle stream, gpu_device_handle device, gpu_context own,
                                                 enum gpu_owner *owner) {
  (void)own;
  hipDevice_t other = device;
  const gpu_result result = gpu_vendor_stream_device(stream, &other);
  *owner = other == device ? GPU_OWNER_THIS : GPU_OWNER_OTHER_DEVICE;
  return result == GPU_NOT_SUPPORTED ? GPU_SUCCESS : result; /* if the runtime cannot tell, the caller is trusted */
}

static inline gpu_result gpu_vendor_enable_peer(gpu_device_handle other, gpu_context context) {
  (void)context;
  return GPU_CALL(enable_peer, (other, 0));
}

static inline gpu_result gpu_vendor_disable_peer(gpu_device_handle other, gpu_context context) {
  (void)context;
  return GPU_CALL(disable_peer, (other));
}

/* ---- targets ---- */

struct gpu_target {
  char name[64]; /* including features: "gfx90a:sramecc+:xnack-" */
};

/* Reads the device's name.  No attribute holds it, and the struct that does has two layouts.  The functions that the
 * library exports tell which one it uses. */
static inline gpu_result gpu_vendor_identify(gpu_device_handle device, struct gpu_target *target, char *arch,
                                             size_t size) {
  union {
    hipDeviceProp_tR0000 r0000;
    hipDeviceProp_tR0600 r0600;
    char room[8192]; /* larger than any version of the struct so far */
    max_align_t align;
  } properties;
  memset(&properties, 0, sizeof properties);
  gpu_result result = GPU_NOT_SUPPORTED;
  const char *name = properties.r0000.gcnArchName;
  if (gpu_api.device_properties_r0600 != NULL) {
    result = GPU_CALL(device_properties_r0600, (&properties.r0600, device));
    name = properties.r0600.gcnArchName;
  } else if (gpu_api.device_properties_r0000 != NULL) {
    result = GPU_CALL(device_properties_r0000, (&properties.r0000, device));
  }
  if (result != GPU_SUCCESS) return result;
  (void)snprintf(target->name, sizeof target->name, "%.*s", (int)sizeof target->name - 1, name);
  (void)snprintf(arch, size, "%.*s", (int)strcspn(target->name, ":"), target->name);
  return result;
}

/* Returns the generic target for an architecture and others with the same instructions, as listed in the compiler's
 * documentation; NULL if there is none. */
static inline const char *gpu_vendor_generic_of(const char *arch, size_t length) {
  static const struct {
    const char *generic, *archs;
  } families[] = {
    { "gfx9-generic", " gfx900 gfx902 gfx904 gfx906 gfx909 gfx90c " },
    { "gfx9-4-generic", " gfx940 gfx941 gfx942 gfx950 " },
    { "gfx10-1-generic", " gfx1010 gfx1011 gfx1012 gfx1013 " },
    { "gfx10-3-generic", " gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036 " },
    { "gfx11-generic", " gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153 " },
    { "gfx12-generic", " gfx1200 gfx1201 " },
  };
  for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
    const char *found = memmem(families[i].archs, strlen(families[i].archs), arch, length);
    if (found != NULL && found[-1] == ' ' && found[length] == ' ') return families[i].generic;
  }
  return NULL;
}

/* Returns how well a target fits the device.  Code runs only on its own architecture, or on those that a generic target
 * represents.  A feature that the target names ("xnack+") has to be set accordingly on the device; a feature that it
 * does not name may have either setting.  A target that names more features is more specific and preferred. */
static inline uint32_t gpu_vendor_fit(const struct gpu_target *device, const char *target) {
  const size_t length = strcspn(target, ":");
  const size_t own_length = strcspn(device->name, ":");
  const bool same = length == own_length && strncmp(target, device->name, length) == 0;
  const char *generic = own_length > 0 && !same ? gpu_vendor_generic_of(device->name, own_length) : NULL;
  const bool is_generic = generic != NULL && strlen(generic) == length && strncmp(target, generic, length) == 0;
  if (own_length == 0 || (!same && !is_generic)) return 0;
  uint32_t named = 0;
  for (const char *feature = target + length; *feature == ':'; named++) {
    const size_t size = 1 + strcspn(feature + 1, ":"); /* including its colon */
    const char *set = device->name + own_length;
    while (*set == ':' && (1 + strcspn(set + 1, ":") != size || strncmp(set, feature, size) != 0)) {
      set += 1 + strcspn(set + 1, ":");
    }
    if (*set != ':') return 0;
    feature += size;
  }
  return (same ? 100 : 1) + named;
}

static inline void gpu_vendor_needs(const struct gpu_target *device, char *text, size_t size) {
  const char *generic = gpu_vendor_generic_of(device->name, strcspn(device->name, ":"));
  const char *changed = getenv("HSA_OVERRIDE_GFX_VERSION");
  text[0] = '\0';
  gpu_append(text, size, "%s", device->name);
  if (generic != NULL) gpu_append(text, size, " or %s", generic);
  if (changed != NULL) gpu_append(text, size, " (HSA_OVERRIDE_GFX_VERSION is \"%s\")", changed);
}

static inline bool gpu_vendor_has_clusters(gpu_device_handle device, const char **why) {
  (void)device;
  *why = "AMD GPUs have no thread block clusters";
  return false;
}

/* Returns true if events synchronize processes.  According to the runtime's source (hip_event.hpp, hip_event_ipc.cpp)
 * they do not in these versions:
 * - rocm-5.5.0 to 6.4.3: an event starts out as recorded (`unrecorded_` is false), so IPCEvent::enqueueRecordCommand
 *   never writes to the shared memory.  Queries and waits of other processes find nothing to wait for.
 * - 7: IPCEvent::streamWait uses signal[read_index] without % 32.  Starting with the 33rd record, a stream waits for
 *   memory after the array, which is 0.  libamdhip64.so.7.2.53211 behaves the same.
 * Up to 5.4 events work, but a stream's wait blocks the host.
 */
static inline bool gpu_vendor_has_event_ipc(gpu_device_handle device, const char **why) {
  (void)device;
  const uint32_t version = gpu_vendor_library_version();
  *why = "HIP events do not synchronize processes: from 5.5 to 6.4 a record does not reach other processes, and since "
         "7.0 (checked up to 7.2) streams do not wait for records after the 32nd";
  return version != 0 && version < 5050;
}

/* ---- calls whose arguments differ ---- */

/* Copies n bytes.  The runtime looks up both pointers, whatever kind is stated.  If either end is pageable, the call
 * returns when the copy is done. */
static inline gpu_result gpu_vendor_copy(void *dst, uint32_t dst_kind, const void *src, uint32_t src_kind, size_t n,
                                         gpu_stream_handle stream, const char **symbol) {
  (void)dst_kind, (void)src_kind;
  *symbol = gpu_symbols.copy;
  return GPU_CALL(copy, (dst, src, n, hipMemcpyDefault, stream));
}

static inline gpu_result gpu_vendor_copy_2d(const struct rill__copy_3d *copy, gpu_stream_handle stream) {
  return GPU_CALL(copy_2d, (copy->dst, copy->dst_pitch, copy->src, copy->src_pitch, copy->width, copy->height,
                            hipMemcpyDefault, stream));
}

/* Converts a copy.  Slice pitches have to be multiples of pitches. */
static inline hipMemcpy3DParms gpu_vendor_copy_values(const struct rill__copy_3d *copy) {
  return (hipMemcpy3DParms){
    .srcPtr = { .ptr = (void *)(uintptr_t)copy->src,
                .pitch = copy->src_pitch,
                .xsize = copy->src_pitch,
                .ysize = copy->src_slice_pitch / copy->src_pitch },
    .dstPtr = { .ptr = copy->dst,
                .pitch = copy->dst_pitch,
                .xsize = copy->dst_pitch,
                .ysize = copy->dst_slice_pitch / copy->dst_pitch },
    .extent = { .width = copy->width, .height = copy->height, .depth = copy->depth },
    .kind = hipMemcpyDefault,
  };
}

static inline gpu_result gpu_vendor_copy_3d(const struct rill__copy_3d *copy, gpu_stream_handle stream) {
  const hipMemcpy3DParms values = gpu_vendor_copy_values(copy);
  return GPU_CALL(copy_3d, (&values, stream));
}

union gpu_pointer_room {
  hipPointerAttribute_t values;
  char bytes[256]; /* larger than any version of the struct */
};

/* Determines whether the runtime knows the memory at `p`.  For an unknown pointer, versions up to 5 return an error,
 * and later ones return no device address.  The type's numbers cannot be used, because they changed in between. */
static inline gpu_result gpu_vendor_is_known(const void *p, bool *known) {
  union gpu_pointer_room room;
  memset(&room, 0, sizeof room);
  const gpu_result result = GPU_CALL(pointer_attributes, (&room.values, p));
  *known = result == GPU_SUCCESS && room.values.devicePointer != NULL;
  return result == GPU_INVALID_VALUE ? GPU_SUCCESS : result;
}

/* Determines whether the memory is device memory.  Memory that the host can use also has a device address. */
static inline gpu_result gpu_vendor_is_on_device(const void *p, bool *on_device) {
  union gpu_pointer_room room;
  memset(&room, 0, sizeof room);
  const gpu_result result = GPU_CALL(pointer_attributes, (&room.values, p));
  *on_device = result == GPU_SUCCESS && room.values.devicePointer != NULL && room.values.hostPointer == NULL;
  return result;
}

/* No code format runs on all GPUs, so fills of 8 and 16 bytes are composed of other fills and copies. */
#define GPU_FILL_CODE NULL
#define GPU_FILL_NAME ""
#define GPU_FILL_WORDS 1
static inline bool gpu_vendor_is_memory_of(gpu_device_handle device, const void *p) {
  (void)device, (void)p;
  return false;
}

/* Opens memory of another process.  The only flag was 0 in the first headers and is 1 in later ones; each runtime
 * refuses the other value. */
static inline gpu_result gpu_vendor_ipc_open_memory(gpu_pointer *out, gpu_ipc_memory handle) {
  const gpu_result result = GPU_CALL(ipc_open_memory, (out, handle, 1));
  return result == GPU_INVALID_VALUE ? GPU_CALL(ipc_open_memory, (out, handle, 0)) : result;
}

static inline gpu_result gpu_vendor_module_load(gpu_module_handle *module, const void *data, char *log, size_t size) {
  (void)log, (void)size; /* only machine code is loaded, so there is no log */
  return GPU_CALL(module_load, (module, data));
}

/* Returns NOT_SUPPORTED: only the note of a code object describes the arguments. */
static inline gpu_result gpu_vendor_arg_place(gpu_function function, size_t i, size_t *offset, size_t *size) {
  (void)function, (void)i, (void)offset, (void)size;
  return GPU_NOT_SUPPORTED;
}

/* Functions are loaded with their module. */
static inline gpu_result gpu_vendor_load_function(gpu_function function) {
  (void)function;
  return GPU_SUCCESS;
}

/* Does nothing: every launch may use the maximum of a block. */
static inline gpu_result gpu_vendor_allow_shared(gpu_function function, uint64_t bytes) {
  (void)function, (void)bytes;
  return GPU_SUCCESS;
}

#include "backends/hip/launch.h"
#include "backends/hip/nodes.h"
#include "backends/hip/rtc.h"

#endif
