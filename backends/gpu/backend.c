#include "backends/gpu/gpu.h"

/* Disables the backend in the child: the driver's state does not survive a fork, and driver calls may hang there. */
static void gpu_after_fork_in_child(void) {
  gpu_forked = true;
  for (uint32_t i = 0; i < gpu_device_count; i++) {
    if (gpu_devices[i] == NULL) continue;
    rill__device_close(gpu_devices[i], RILL_ERROR_NO_DEVICE,
                       "GPUs cannot be used in a process that was forked after a search for GPUs; search for GPUs only "
                       "in the child, or start the child with exec");
  }
}

const struct rill__backend gpu_backend = {
  .name = GPU_BACKEND_NAME,
  .id = GPU_BACKEND_ID,
  .gpu = true,
  .device_size = sizeof(struct gpu_device),
  .stream_size = sizeof(struct gpu_stream),
  .event_size = sizeof(struct gpu_event),
  .module_size = sizeof(struct gpu_module),
  .kernel_size = sizeof(struct gpu_kernel),
  .exec_size = sizeof(struct gpu_exec),
  .device = &gpu_device_table,
  .stream = &gpu_stream_table,
  .event = &gpu_event_table,
  .memory = &gpu_memory_table,
  .module = &gpu_module_table,
  .kernel = &gpu_kernel_table,
  .graph = &gpu_graph_table,
  .dlpack = GPU_DLPACK,
  .has_later_users = gpu_has_later_users,
  .after_fork_in_child = gpu_after_fork_in_child,
};
