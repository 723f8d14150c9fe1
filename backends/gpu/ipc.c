/* Events and memory shared between processes. */
#include "backends/gpu/gpu.h"

_Static_assert(sizeof(gpu_ipc_event) == sizeof(struct rill__ipc_native) &&
                   sizeof(gpu_ipc_memory) == sizeof(struct rill__ipc_native),
               "the vendors' handles are what core carries");

/* The codes in which drivers say that there is nothing behind a handle, or that they cannot reach it; a driver has no
 * other ones for a handle that was made up. */
static rill_status fail_open(struct rill__device *device, gpu_result result, const char *symbol) {
  enum { MAP_FAILED_ = 205, ALREADY_MAPPED = 208, FILE_NOT_FOUND = 301, OPERATING_SYSTEM = 304 };
  switch (result) {
    case GPU_INVALID_CONTEXT:
    case GPU_INVALID_HANDLE:
      if (gpu_vendor_context_is_gone(gpu_device_of(device)->native, gpu_device_of(device)->witness)) break;
      /* fallthrough */
    case GPU_INVALID_VALUE:
    case GPU_NOT_FOUND:
    case MAP_FAILED_:
    case ALREADY_MAPPED:
    case FILE_NOT_FOUND:
    case OPERATING_SYSTEM: {
      const char *name = gpu_vendor_error_name(result);
      return rill__fail_native(RILL_ERROR_NOT_FOUND, result, name,
                               "%s: the driver finds nothing behind the handle: its process has ended, or released or "
                               "freed what it exported, or cannot be reached from here" RILL_HINT
                               "keep what is exported until the others have opened and closed it",
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
  return result == GPU_SUCCESS ? RILL_OK : fail_open(device, result, gpu_symbols.ipc_open_event);
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

/* Whether `size` bytes from `pointer` on are mapped.  A driver that does not say is believed to have them. */
static bool is_mapped(struct rill__device *device, gpu_pointer pointer, size_t size) {
  gpu_pointer base = pointer;
  size_t length = 0;
  gpu_result result = GPU_NOT_SUPPORTED;
  if (gpu_api.memory_range != NULL) GPU_RUN_INSIDE(result, device, memory_range, (&base, &length, pointer));
  if (result != GPU_SUCCESS) return true;
  const size_t offset = (size_t)((uintptr_t)pointer - (uintptr_t)base);
  return offset <= length && size <= length - offset;
}

rill_status gpu_ipc_import_memory(struct rill__device *device, const struct rill__ipc_native *from, size_t size,
                                  void **out) {
  gpu_ipc_memory handle;
  gpu_pointer pointer = GPU_POINTER(NULL);
  struct gpu_scope scope;
  memcpy(&handle, from, sizeof handle);
  gpu_result result = gpu_enter(device, &scope);
  if (result == GPU_SUCCESS) {
    result = gpu_vendor_ipc_open_memory(&pointer, handle);
    gpu_leave(&scope);
  }
  if (result != GPU_SUCCESS) return fail_open(device, result, gpu_symbols.ipc_open_memory);
  if (!is_mapped(device, pointer, size)) {
    GPU_RUN_INSIDE(result, device, ipc_close_memory, (pointer));
    return rill__fail(RILL_ERROR_INVALID_ARGUMENT, "the handle is forged: it says %zu bytes, and there are fewer",
                      size);
  }
  *out = (void *)(uintptr_t)pointer;
  return RILL_OK;
}

/* No vendor says that closing waits for work, which may be of other devices that reach the memory. */
rill_status gpu_ipc_close(struct rill__device *device, void *p, size_t size) {
  gpu_result result;
  (void)size;
  if (gpu_forked) return rill__fail_lost(device);
  RILL_TRY(gpu_wait_for_all());
  GPU_RUN_INSIDE(result, device, ipc_close_memory, (GPU_POINTER(p)));
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, ipc_close_memory);
}
