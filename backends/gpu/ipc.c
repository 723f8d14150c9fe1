/* Events and memory shared with other processes. */
#include "backends/gpu/gpu.h"

_Static_assert(sizeof(gpu_ipc_event) == sizeof(struct rill__ipc_native) &&
                   sizeof(gpu_ipc_memory) == sizeof(struct rill__ipc_native),
               "the vendors' handles have the size of core's native handle");

/* Handles the codes with which drivers report that a handle refers to nothing, or to something that they cannot access.
 * Drivers use the same codes for forged handles. */
static rill_status gpu_fail_open(struct rill__device *device, gpu_result result, const char *symbol) {
  enum { MAP_FAILED_ = 205, ALREADY_MAPPED = 208, FILE_NOT_FOUND = 301, OPERATING_SYSTEM = 304 };
  switch (result) {
    case GPU_INVALID_CONTEXT:
    case GPU_INVALID_HANDLE:
      if (gpu_vendor_context_is_lost(gpu_device_of(device)->native, gpu_device_of(device)->sentinel)) break;
      /* fallthrough */
    case GPU_INVALID_VALUE:
    case GPU_NOT_FOUND:
    case MAP_FAILED_:
    case ALREADY_MAPPED:
    case FILE_NOT_FOUND:
    case OPERATING_SYSTEM: {
      const char *name = gpu_vendor_error_name(result);
      return rill__fail_native(RILL_ERROR_NOT_FOUND, result, name,
                               "%s: the driver does not accept the handle: the exporting process has ended, has "
                               "released or freed the object, or cannot be accessed from this process" RILL_HINT
                               "keep the exported object until the other processes have opened and closed it",
                               symbol);
    }
    default: break;
  }
  return gpu_fail(device, result, symbol);
}

/* ---- events ---- */

rill_status gpu_ipc_export_event(struct rill__event *event, struct rill__ipc_native *out) {
  struct rill__device *device = event->base.device;
  gpu_ipc_event handle;
  gpu_result result;
  GPU_RUN_INSIDE(result, device, ipc_export_event, (&handle, gpu_event_of(event)->native));
  if (result != GPU_SUCCESS) return GPU_FAIL(device, result, ipc_export_event);
  memcpy(out, &handle, sizeof *out);
  return RILL_OK;
}

rill_status gpu_ipc_import_event(struct rill__event *event, const struct rill__ipc_native *from) {
  struct rill__device *device = event->base.device;
  gpu_ipc_event handle;
  gpu_result result;
  memcpy(&handle, from, sizeof handle);
  GPU_RUN_INSIDE(result, device, ipc_open_event, (&gpu_event_of(event)->native, handle));
  return result == GPU_SUCCESS ? RILL_OK : gpu_fail_open(device, result, gpu_symbols.ipc_open_event);
}

/* ---- memory ---- */

rill_status gpu_ipc_export_memory(struct rill__device *device, void *p, size_t size, struct rill__ipc_native *out) {
  gpu_ipc_memory handle;
  gpu_result result;
  (void)size;
  GPU_RUN_INSIDE(result, device, ipc_export_memory, (&handle, GPU_POINTER(p)));
  if (result != GPU_SUCCESS) return GPU_FAIL(device, result, ipc_export_memory);
  memcpy(out, &handle, sizeof *out);
  return RILL_OK;
}

/* Returns true if `size` bytes at `pointer` are mapped, or if the driver cannot tell. */
static bool is_mapped(struct rill__device *device, gpu_pointer pointer, size_t size) {
  gpu_pointer base = pointer;
  size_t length = 0;
  gpu_result result = GPU_NOT_SUPPORTED;
  if (gpu_api.memory_range != NULL) GPU_RUN_INSIDE(result, device, memory_range, (&base, &length, pointer));
  if (result != GPU_SUCCESS) return true;
  const size_t offset = (size_t)((uintptr_t)pointer - (uintptr_t)base);
  return offset <= length && size <= length - offset;
}

/* Serializes opening and closing memory of other processes: if threads open the same memory concurrently, a driver may
 * report to one of them that it is already mapped.  None of these calls waits for work. */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static gpu_result open_memory(struct rill__device *device, gpu_ipc_memory handle, gpu_pointer *out) {
  struct gpu_scope scope;
  pthread_mutex_lock(&opening);
  gpu_result result = gpu_enter(device, &scope);
  if (result == GPU_SUCCESS) {
    result = gpu_vendor_ipc_open_memory(out, handle);
    gpu_leave(&scope);
  }
  pthread_mutex_unlock(&opening);
  return result;
}

static gpu_result close_memory(struct rill__device *device, gpu_pointer pointer) {
  gpu_result result;
  pthread_mutex_lock(&opening);
  GPU_RUN_INSIDE(result, device, ipc_close_memory, (pointer));
  pthread_mutex_unlock(&opening);
  return result;
}

rill_status gpu_ipc_import_memory(struct rill__device *device, const struct rill__ipc_native *from, size_t size,
                                  void **out) {
  gpu_ipc_memory handle;
  gpu_pointer pointer = GPU_POINTER(NULL);
  memcpy(&handle, from, sizeof handle);
  const gpu_result result = open_memory(device, handle, &pointer);
  if (result != GPU_SUCCESS) return gpu_fail_open(device, result, gpu_symbols.ipc_open_memory);
  if (!is_mapped(device, pointer, size)) {
    (void)close_memory(device, pointer);
    return rill__fail(RILL_ERROR_INVALID_ARGUMENT,
                      "the handle is forged: it claims %zu bytes, but the allocation has fewer", size);
  }
  *out = (void *)(uintptr_t)pointer;
  return RILL_OK;
}

/* Closes an import after all work, which may also run on other devices that can access the memory: no vendor documents
 * that closing waits for it. */
rill_status gpu_ipc_close(struct rill__device *device, void *p, size_t size) {
  (void)size;
  if (gpu_forked) return rill__fail_lost(device);
  RILL_TRY(gpu_wait_for_all());
  const gpu_result result = close_memory(device, GPU_POINTER(p));
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, ipc_close_memory);
}
