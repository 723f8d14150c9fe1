/* A vendor's interface over the engine, where both have the same: devices, memory, modules. */
#include "front.h"

#include <stdio.h>
#include <string.h>

/* ---- devices ---- */

/* A device, and somewhere to write to. */
static int look_at(int ordinal, const void *out) {
  struct fake_device *device;
  return out == NULL ? FAKE_INVALID_VALUE : fake_device_get(ordinal, &device);
}

static int get_device(vendor_device *out, int ordinal) {
  const int code = look_at(ordinal, out);
  if (code == FAKE_OK) *out = ordinal;
  return code;
}

vendor_result VENDOR(DeviceGet)(vendor_device *out, int ordinal) { VENDOR_CALL(get_device(out, ordinal)); }

static int device_name(char *out, int size, int device) {
  const int code = look_at(device, out);
  if (code == FAKE_OK) (void)snprintf(out, (size_t)size, "Fake GPU %d", device);
  return code;
}

vendor_result VENDOR(DeviceGetName)(char *out, int size, vendor_device device) {
  VENDOR_CALL(device_name(out, size, device));
}

static int device_uuid(vendor_uuid *out, int device) {
  const int code = look_at(device, out);
  if (code != FAKE_OK) return code;
  char text[sizeof out->bytes + 1];
  (void)snprintf(text, sizeof text, "rill fake %-4s %d", fake_vendor.backend, device);
  memcpy(out->bytes, text, sizeof out->bytes);
  return FAKE_OK;
}

vendor_result VENDOR(DeviceGetUuid)(vendor_uuid *out, vendor_device device) { VENDOR_CALL(device_uuid(out, device)); }

#ifdef cuDeviceGetUuid
#undef cuDeviceGetUuid
__attribute__((visibility("default"))) CUresult cuDeviceGetUuid(CUuuid *out, CUdevice device);
CUresult cuDeviceGetUuid(CUuuid *out, CUdevice device) { CU_CALL(device_uuid(out, device)); }
#endif

static int total_memory(size_t *out, int device) {
  const int code = look_at(device, out);
  if (code == FAKE_OK) *out = fake_options()->memory;
  return code;
}

vendor_result VENDOR(DeviceTotalMem)(size_t *out, vendor_device device) { VENDOR_CALL(total_memory(out, device)); }

static int can_access_peer(int *out, int device, int other) {
  int code = look_at(device, out);
  if (code == FAKE_OK) code = look_at(other, out);
  if (code == FAKE_OK) *out = device != other && fake_options()->peers;
  return code;
}

vendor_result VENDOR(DeviceCanAccessPeer)(int *out, vendor_device device, vendor_device other) {
  VENDOR_CALL(can_access_peer(out, device, other));
}

/* ---- memory ---- */

static int memory_info(size_t *free_bytes, size_t *total) {
  struct fake_context *context;
  int code = fake_current_context(&context);
  if (code == FAKE_OK) code = fake_context_check(context);
  if (code != FAKE_OK) return code;
  *total = fake_options()->memory;
  *free_bytes = *total - context->device->memory_used;
  return FAKE_OK;
}

vendor_result VENDOR(MemGetInfo)(size_t *free_bytes, size_t *total) { VENDOR_CALL(memory_info(free_bytes, total)); }

vendor_result VENDOR(IpcGetMemHandle)(vendor_ipc_memory *out, vendor_pointer p) {
  VENDOR_CALL(fake_ipc_export_memory(ADDRESS(p), out));
}

vendor_result VENDOR(IpcCloseMemHandle)(vendor_pointer p) { VENDOR_CALL(fake_memory_close(ADDRESS(p))); }

static int look_at_place(int device) {
  struct fake_device *found;
  return device == VENDOR_HOST_AS_DEVICE ? FAKE_OK : fake_device_get(device, &found);
}

static int prefetch(const void *p, size_t size, int device, vendor_stream stream) {
  const int code = look_at_place(device);
  return code == FAKE_OK ? fake_prefetch(stream, p, size) : code;
}

vendor_result VENDOR(MemPrefetchAsync)(vendor_const_pointer p, size_t size, vendor_device device,
                                       vendor_stream stream) {
  VENDOR_CALL(prefetch(ADDRESS(p), size, device, stream));
}

static int advise(const void *p, size_t size, int advice, int device) {
  if (advice < VENDOR_ADVICE_READ_MOSTLY || advice > VENDOR_ADVICE_NOT_ACCESSED_BY) return FAKE_INVALID_VALUE;
  const int code = look_at_place(device);
  return code == FAKE_OK ? fake_memory_check_managed(p, size) : code;
}

vendor_result VENDOR(MemAdvise)(vendor_const_pointer p, size_t size, vendor_advice advice, vendor_device device) {
  VENDOR_CALL(advise(ADDRESS(p), size, (int)advice, device));
}

vendor_result VENDOR(MemsetD8Async)(vendor_pointer dst, unsigned char value, size_t count, vendor_stream stream) {
  VENDOR_CALL(fake_fill(
      stream, &(struct fake_fill){
                  .dst = ADDRESS(dst), .pitch = 0, .value = value, .element = 1, .count = count, .height = 1 }));
}

vendor_result VENDOR(MemsetD16Async)(vendor_pointer dst, unsigned short value, size_t count, vendor_stream stream) {
  VENDOR_CALL(fake_fill(
      stream, &(struct fake_fill){
                  .dst = ADDRESS(dst), .pitch = 0, .value = value, .element = 2, .count = count, .height = 1 }));
}

vendor_result VENDOR(MemsetD32Async)(vendor_pointer dst, vendor_word value, size_t count, vendor_stream stream) {
  VENDOR_CALL(fake_fill(
      stream,
      &(struct fake_fill){
          .dst = ADDRESS(dst), .pitch = 0, .value = (uint32_t)value, .element = 4, .count = count, .height = 1 }));
}

vendor_result VENDOR(MemsetD2D16Async)(vendor_pointer dst, size_t pitch, unsigned short value, size_t width,
                                       size_t height, vendor_stream stream) {
  VENDOR_CALL(fake_fill(
      stream,
      &(struct fake_fill){
          .dst = ADDRESS(dst), .pitch = pitch, .value = value, .element = 2, .count = width, .height = height }));
}

vendor_result VENDOR(MemsetD2D32Async)(vendor_pointer dst, size_t pitch, unsigned int value, size_t width,
                                       size_t height, vendor_stream stream) {
  VENDOR_CALL(fake_fill(
      stream,
      &(struct fake_fill){
          .dst = ADDRESS(dst), .pitch = pitch, .value = value, .element = 4, .count = width, .height = height }));
}

/* ---- modules ---- */

vendor_result VENDOR(ModuleUnload)(vendor_module module) { VENDOR_CALL(fake_module_unload(module)); }

vendor_result VENDOR(ModuleGetFunction)(vendor_function *out, vendor_module module, const char *name) {
  VENDOR_CALL(fake_module_function(module, name, (void **)out));
}

static int function_attribute(int *out, int attribute, vendor_function handle) {
  struct fake_function *function;
  const int code = fake_function_get(handle, &function);
  if (code != FAKE_OK) return code;
  if (out == NULL || attribute < 0 || attribute >= VENDOR_FUNCTION_ATTRIBUTES) return FAKE_INVALID_VALUE;
  *out = attribute == VENDOR_FUNCTION_MAX_THREADS      ? FAKE_MAX_THREADS_PER_BLOCK
         : attribute == VENDOR_FUNCTION_SHARED         ? (int)function->static_shared
         : attribute == VENDOR_FUNCTION_DYNAMIC_SHARED ? (int)function->dynamic_limit
         : attribute == VENDOR_FUNCTION_REGISTERS      ? FAKE_REGISTERS
                                                       : 0;
  return FAKE_OK;
}

vendor_result VENDOR(FuncGetAttribute)(int *out, vendor_function_attribute attribute, vendor_function function) {
  VENDOR_CALL(function_attribute(out, (int)attribute, function));
}
