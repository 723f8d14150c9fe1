#include "backends/gpu/gpu.h"

bool gpu_can_access_peer(struct rill__device *device, struct rill__device *memory_of, const char **why) {
  int can = 0;
  *why = "GPUs cannot be used in the child of a fork";
  if (gpu_forked) return false;
  *why = "the driver has no functions for peer access";
  if (gpu_api.device_can_access_peer == NULL || gpu_api.enable_peer == NULL || gpu_api.disable_peer == NULL) {
    return false;
  }
  *why = "the driver cannot say whether the two devices are connected";
  const gpu_device_handle from = gpu_device_of(device)->native, to = gpu_device_of(memory_of)->native;
  if (GPU_CALL(device_can_access_peer, (&can, from, to)) != GPU_SUCCESS) return false;
  *why = "the driver says that the two devices are not connected";
  if (can == 0) return false;
  *why = "";
  return true;
}

/* Ignores a report that access is already in this state, because other code in the process may have changed it. */
rill_status gpu_set_peer(struct rill__device *device, struct rill__device *memory_of, bool on) {
  const struct gpu_device *other = gpu_device_of(memory_of);
  struct gpu_scope scope;
  gpu_result result = gpu_enter(device, &scope);
  if (result == GPU_SUCCESS) {
    result = on ? gpu_vendor_enable_peer(other->native, other->context)
                : gpu_vendor_disable_peer(other->native, other->context);
    gpu_leave(&scope);
  }
  if (result == GPU_SUCCESS || result == (on ? GPU_PEER_ALREADY_ENABLED : GPU_PEER_NOT_ENABLED)) return RILL_OK;
  return gpu_fail(device, result, on ? gpu_symbols.enable_peer : gpu_symbols.disable_peer);
}
