/* The HIP runtime API over the engine: init, errors, devices, memory. */
#include "error_names.h"
#include "hip_calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FAKE_HIP_VERSION: of the library with this soname; the build gives it. */
const struct fake_vendor fake_vendor = {
  .backend = "hip",
  .library = "fake libamdhip64",
  .default_target = "gfx90a",
  .default_version = FAKE_HIP_VERSION,
  .bad_shape = 9, /* invalid configuration */
  .needs_init = false,
  .shared_default = 64 << 10,
  .shared_optin = 64 << 10,
  .shared_per_unit = 64 << 10,
  .priority_least = 1,
  .priority_greatest = -1,
};

int fake_first_version(const char *name) {
  static const struct {
    const char *name;
    int version;
  } since[] = {
    { "hipLaunchHostFunc", 50300000 },        { "hipModuleLaunchCooperativeKernel", 50500000 },
    { "hipStreamGetDevice", 50600000 },       { "hipGetDevicePropertiesR0600", 60000000 },
    { "hipEventRecordWithFlags", 60400000 },  { "hipStreamGetId", 70100000 },
    { "hipMemsetD2D16Async", 70100000 },      { "hipMemsetD2D32Async", 70100000 },
    { "hipUserObjectCreate", 50300000 },      { "hipUserObjectRelease", 50300000 },
    { "hipGraphRetainUserObject", 50300000 },
  };
  for (size_t i = 0; i < sizeof since / sizeof *since; i++)
    if (strcmp(name, since[i].name) == 0) return since[i].version;
  return 0;
}

/* As versions of AMD's runtime have it; 50731921 is 5.7.  Where nothing else is said: hipamd rocm-5.2.3 to 5.6.1, clr
 * rocm-5.7.1 to 6.4.3 and the one after 7.2. */
static int version(void) { return fake_options()->version / 100000; }

const char *fake_device_mask(void) { /* rocdevice.cpp: the one of CUDA if its own is empty */
  const char *mask = getenv("HIP_VISIBLE_DEVICES");
  return mask != NULL && mask[0] != '\0' ? mask : getenv("CUDA_VISIBLE_DEVICES");
}

static struct fake_quirks quirks;

static void read_quirks(void) {
  const int v = version();
  quirks.captures_survive = v < 602;                     /* hip_internal.hpp, CHECK_STREAM_CAPTURE_SUPPORTED */
  quirks.query_looks = v >= 602;                         /* hip_event.cpp, ihipEventQuery */
  quirks.synchronize_looks = v >= 507;                   /* the same, hipEventSynchronize */
  quirks.wait_looks = v >= 506 && v < 602;               /* hip_stream.cpp, hipStreamWaitEvent_common */
  quirks.getters_look = v >= 700;                        /* the same, hipStreamGetFlags_common, after 7.2 */
  quirks.questions_break_captures = v >= 602 && v < 700; /* hip_event.cpp */
  quirks.waits_are_isolated = v >= 506;                  /* hip_stream.cpp, hipStreamWaitEvent_common */
  quirks.shared_records_are_lost = v >= 505 && v < 700;  /* hip_event_ipc.cpp, enqueueRecordCommand */
  quirks.shared_waits_end = v >= 700;                    /* the same, streamWait */
  quirks.late_pitched_sources = true;                    /* hip_memory.cpp, ihipMemcpyParam3D; rocblit.cpp */
  quirks.silent_callbacks = true;                        /* hip_event.hpp, StreamAddCallback */
  quirks.registers_twice = true;                         /* hip_memory.cpp, ihipHostRegister */
  quirks.graphs_overlap = true;                          /* nothing orders them: hipGraphLaunch */
  quirks.graphs_read_early = true;                       /* rocblit.cpp, through hipGraphLaunch */
  quirks.flat_pageable_rows = true;                      /* hip_graph_internal.hpp, hipGraphMemcpyNode */
  quirks.edges_are_lost = true;                          /* hip_graph_internal.cpp, GetRunListUtil, RunOneNode */
  quirks.arguments_leak = true;                          /* the same, UpdateAQLPacket */
  quirks.updates_are_partial = true;                     /* hip_graph.cpp, hipGraphExecUpdate */
  quirks.leaks_events = true;                            /* hip_event_ipc.cpp, hipIpcOpenEventHandle */
}

const struct fake_quirks *fake_quirks(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  (void)pthread_once(&once, read_quirks);
  return &quirks;
}

enum fake_safety fake_safety_of(const char *function) {
  static const char *const unsafe[] = { "hipMalloc",       "hipHostMalloc",     "hipFree",       "hipHostFree",
                                        "hipHostRegister", "hipHostUnregister", "hipMemcpyDtoH", "hipMemcpyHtoD" };
  for (size_t i = 0; i < sizeof unsafe / sizeof *unsafe; i++)
    if (strcmp(function, unsafe[i]) == 0) return FAKE_UNSAFE;
  /* hip_stream.cpp, StreamCaptureOngoing: asked from 5.5 on, the thread's mode from 6.1 on */
  const enum fake_safety asked = version() >= 601 ? FAKE_UNSAFE : FAKE_UNSAFE_ALWAYS;
  if (strcmp(function, "hipStreamQuery") == 0 || strcmp(function, "hipStreamSynchronize") == 0)
    return version() >= 505 ? asked : FAKE_SAFE;
  if (strcmp(function, "hipEventSynchronize") == 0) return version() >= 507 ? asked : FAKE_SAFE; /* hip_event.cpp */
  if (strcmp(function, "hipEventQuery") == 0) return version() >= 700 ? FAKE_UNSAFE : FAKE_SAFE;
  if (strcmp(function, "hipDeviceSynchronize") == 0) return version() >= 602 ? FAKE_WAITS_FOR_ALL : FAKE_SAFE;
  return FAKE_SAFE;
}

/* ---- init, version, errors ---- */

static _Thread_local int last_error;

hipError_t fake_hip_result(int code) {
  if (code != FAKE_OK) last_error = code;
  return (hipError_t)code;
}

hipError_t hipGetLastError(void) {
  const int code = last_error;
  last_error = FAKE_OK;
  return (hipError_t)code;
}

hipError_t hipPeekAtLastError(void) { return (hipError_t)last_error; }

static int initialize(unsigned flags) {
  if (flags != 0) return FAKE_INVALID_VALUE;
  if (fake_options()->init_code != FAKE_OK) return fake_options()->init_code;
  return fake_options()->devices == 0 ? FAKE_NO_DEVICE : FAKE_OK;
}

hipError_t hipInit(unsigned int flags) { HIP_CALL(initialize(flags)); }

static int get_version(int *out) {
  if (out == NULL) return FAKE_INVALID_VALUE;
  *out = fake_options()->version;
  return FAKE_OK;
}

hipError_t hipDriverGetVersion(int *out) { HIP_CALL(get_version(out)); }

hipError_t hipRuntimeGetVersion(int *out) { HIP_CALL(get_version(out)); }

/* These two change nothing and are not counted. */
const char *hipGetErrorName(hipError_t error) {
  const char *name = fake_error_name((int)error, true);
  return name != NULL ? name : "hipErrorUnknown";
}

const char *hipGetErrorString(hipError_t error) {
  return error == hipSuccess ? "no error" : "an error of the fake runtime";
}

/* ---- devices ---- */

static int device_count(int *out) {
  if (out == NULL) return FAKE_INVALID_VALUE;
  *out = fake_options()->devices;
  return *out == 0 ? FAKE_NO_DEVICE : FAKE_OK;
}

hipError_t hipGetDeviceCount(int *out) { HIP_CALL(device_count(out)); }

/* A device, and somewhere to write to. */
static int look_at(int ordinal, const void *out) {
  struct fake_device *device;
  return out == NULL ? FAKE_INVALID_VALUE : fake_device_get(ordinal, &device);
}

static int device_name(char *out, int size, int device) {
  const int code = look_at(device, out);
  if (code == FAKE_OK) (void)snprintf(out, (size_t)size, "Fake GPU %d", device);
  return code;
}

static int pci_bus_id(char *out, int size, int device) {
  const int code = look_at(device, out);
  if (code == FAKE_OK) (void)snprintf(out, (size_t)size, "0000:%02x:00.0", device + 0x41);
  return code;
}

hipError_t hipDeviceGetPCIBusId(char *out, int size, int device) { HIP_CALL(pci_bus_id(out, size, device)); }

static int attribute_value(hipDeviceAttribute_t attribute, int device) {
  switch ((int)attribute) {
    case hipDeviceAttributeWarpSize: return (int)fake_warp_size();
    case hipDeviceAttributeMaxThreadsPerBlock: return FAKE_MAX_THREADS_PER_BLOCK;
    case hipDeviceAttributeMaxBlockDimX:
    case hipDeviceAttributeMaxBlockDimY: return 1024;
    case hipDeviceAttributeMaxBlockDimZ: return 64;
    case hipDeviceAttributeMaxGridDimX: return INT32_MAX;
    case hipDeviceAttributeMaxGridDimY:
    case hipDeviceAttributeMaxGridDimZ: return 65535;
    case hipDeviceAttributeMaxSharedMemoryPerBlock: return (int)fake_vendor.shared_default;
    case hipDeviceAttributeSharedMemPerBlockOptin: return (int)fake_vendor.shared_optin;
    case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor: return (int)fake_vendor.shared_per_unit;
    case hipDeviceAttributeMaxRegistersPerBlock:
    case hipDeviceAttributeMaxRegistersPerMultiprocessor: return FAKE_REGISTERS_PER_UNIT;
    case hipDeviceAttributeMultiprocessorCount: return FAKE_COMPUTE_UNITS;
    case hipDeviceAttributeMaxThreadsPerMultiProcessor: return FAKE_THREADS_PER_UNIT;
    case hipDeviceAttributeClockRate: return 1000000;
    case hipDeviceAttributeMemoryClockRate: return 2000000;
    case hipDeviceAttributeMemoryBusWidth: return 64;
    case hipDeviceAttributeMaxPitch: return INT32_MAX;
    case hipDeviceAttributePciBusId: return device + 0x41;
    case hipDeviceAttributeAsyncEngineCount: return 2;
    case hipDeviceAttributeComputeCapabilityMajor: return 9;
    case hipDeviceAttributeCooperativeLaunch:
    case hipDeviceAttributeConcurrentKernels:
    case hipDeviceAttributeManagedMemory:
    case hipDeviceAttributeConcurrentManagedAccess: return 1;
    default: return 0;
  }
}

static int get_attribute(int *out, hipDeviceAttribute_t attribute, int device) {
  const int code = look_at(device, out);
  if (code == FAKE_OK) *out = attribute_value(attribute, device);
  return code;
}

hipError_t hipDeviceGetAttribute(int *out, hipDeviceAttribute_t attribute, int device) {
  HIP_CALL(get_attribute(out, attribute, device));
}

/* Name, memory, architecture: at other offsets in each of the two structs. */
static int properties(char *out, int device, size_t size, size_t memory_at, size_t arch_at) {
  const int code = look_at(device, out);
  if (code != FAKE_OK) return code;
  memset(out, 0, size);
  (void)device_name(out, 256, device);
  const size_t memory = fake_options()->memory;
  memcpy(out + memory_at, &memory, sizeof memory);
  (void)snprintf(out + arch_at, 256, "%s", fake_options()->target);
  return FAKE_OK;
}

hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000 *out, int device) {
  HIP_CALL(properties((char *)out, device, sizeof *out, 256, offsetof(hipDeviceProp_tR0000, gcnArchName)));
}

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *out, int device) {
  HIP_CALL(properties((char *)out, device, sizeof *out, 288, offsetof(hipDeviceProp_tR0600, gcnArchName)));
}

static int set_peer(int other, bool on) {
  struct fake_context *from;
  struct fake_device *to;
  int code = fake_current_context(&from);
  if (code == FAKE_OK) code = fake_device_get(other, &to);
  return code == FAKE_OK ? fake_peer_enable(from->device, to, on) : code;
}

hipError_t hipDeviceEnablePeerAccess(int other, unsigned int flags) {
  HIP_CALL(flags != 0 ? FAKE_INVALID_VALUE : set_peer(other, true));
}

hipError_t hipDeviceDisablePeerAccess(int other) { HIP_CALL(set_peer(other, false)); }

/* ---- memory ---- */

/* Nothing is asked for, nothing is given: no error. */
static int allocate(enum fake_memory kind, void **out, size_t size) {
  if (out == NULL || size != 0) return fake_memory_alloc(kind, size, out);
  *out = NULL;
  return FAKE_OK;
}

hipError_t hipMalloc(void **out, size_t size) { HIP_CALL(allocate(FAKE_DEVICE_MEMORY, out, size)); }

hipError_t hipMallocManaged(void **out, size_t size, unsigned int flags) {
  HIP_CALL(flags != hipMemAttachGlobal ? FAKE_INVALID_VALUE : allocate(FAKE_MANAGED_MEMORY, out, size));
}

hipError_t hipFree(void *p) { HIP_CALL(fake_memory_free(FAKE_DEVICE_MEMORY, p)); }

hipError_t hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t p) {
  HIP_CALL(fake_memory_range(p, base, size));
}

/* The flag was 0 in 5 and is 1 from 6 on. */
hipError_t hipIpcOpenMemHandle(void **out, hipIpcMemHandle_t handle, unsigned int flags) {
  HIP_CALL(flags != (version() >= 600) ? FAKE_INVALID_VALUE : fake_ipc_open_memory(&handle, out));
}

hipError_t hipHostMalloc(void **out, size_t size, unsigned int flags) {
  (void)flags;
  HIP_CALL(allocate(FAKE_HOST_MEMORY, out, size));
}

hipError_t hipHostFree(void *p) { HIP_CALL(fake_memory_free(FAKE_HOST_MEMORY, p)); }

hipError_t hipHostRegister(void *p, size_t size, unsigned int flags) {
  (void)flags;
  HIP_CALL(fake_memory_register(p, size));
}

hipError_t hipHostUnregister(void *p) { HIP_CALL(fake_memory_unregister(p)); }

static int copy(void *dst, const void *src, size_t n, hipMemcpyKind kind, hipStream_t stream, bool blocking) {
  if ((int)kind < 0 || kind > hipMemcpyDefault) return FAKE_INVALID_VALUE;
  return fake_copy(stream, &(struct fake_copy){ .dst = dst, .src = src, .width = n, .height = 1 }, blocking);
}

hipError_t hipMemcpy(void *dst, const void *src, size_t n, hipMemcpyKind kind) {
  HIP_CALL(copy(dst, src, n, kind, NULL, true));
}

hipError_t hipMemcpyAsync(void *dst, const void *src, size_t n, hipMemcpyKind kind, hipStream_t stream) {
  HIP_CALL(copy(dst, src, n, kind, stream, false));
}

static int copy_2d(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                   hipMemcpyKind kind, hipStream_t stream) {
  if ((int)kind < 0 || kind > hipMemcpyDefault) return FAKE_INVALID_VALUE;
  return fake_copy(
      stream,
      &(struct fake_copy){
          .dst = dst, .src = src, .dst_pitch = dst_pitch, .src_pitch = src_pitch, .width = width, .height = height },
      false);
}

hipError_t hipMemcpy2DAsync(void *dst, size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                            hipMemcpyKind kind, hipStream_t stream) {
  HIP_CALL(copy_2d(dst, dst_pitch, src, src_pitch, width, height, kind, stream));
}

static int copy_3d(const struct hipMemcpy3DParms *values, hipStream_t stream) {
  struct fake_copy copy;
  if (!fake_hip_copy_3d(values, &copy)) return FAKE_INVALID_VALUE;
  return copy.depth == 0 ? FAKE_OK : fake_copy(stream, &copy, false);
}

hipError_t hipMemcpy3DAsync(const struct hipMemcpy3DParms *values, hipStream_t stream) {
  HIP_CALL(copy_3d(values, stream));
}

hipError_t hipMemset2DAsync(void *dst, size_t pitch, int value, size_t width, size_t height, hipStream_t stream) {
  HIP_CALL(fake_fill(
      stream,
      &(struct fake_fill){
          .dst = dst, .pitch = pitch, .value = (unsigned char)value, .element = 1, .count = width, .height = height }));
}

/* A pointer that is not known is an error up to 5, and later one without addresses. */
static int pointer_attributes(hipPointerAttribute_t *out, const void *p) {
  enum fake_memory kind;
  if (out == NULL || p == NULL) return FAKE_INVALID_VALUE;
  const bool known = fake_memory_kind(p, &kind);
  memset(out, 0, sizeof *out);
  if (!known) return fake_options()->version < 60000000 ? FAKE_INVALID_VALUE : FAKE_OK;
  out->devicePointer = (void *)(uintptr_t)p;
  if (kind != FAKE_DEVICE_MEMORY && kind != FAKE_IMPORTED_MEMORY) out->hostPointer = out->devicePointer;
  return FAKE_OK;
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t *out, const void *p) { HIP_CALL(pointer_attributes(out, p)); }
