/* Launches with the HIP runtime, and queries about them; included by vendor.h. */
#ifndef RILL_BACKENDS_HIP_LAUNCH_H
#define RILL_BACKENDS_HIP_LAUNCH_H

#include "backends/gpu/api.h"

#define GPU_LAUNCH_EXTENDED_TEXT "hipModuleLaunchCooperativeKernel"
#define GPU_ACTIVE_CLUSTERS_TEXT ""

/* Launches with a cluster or attributes.  No device has clusters, and the only attribute is the cooperative one. */
static inline gpu_result gpu_vendor_launch_extended(gpu_function function, const struct rill__launch *launch,
                                                    gpu_stream_handle stream, gpu_event_handle event) {
  (void)event;
  return GPU_CALL(launch_cooperative,
                  (function, launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0], launch->block[1],
                   launch->block[2], launch->shared_mem_bytes, stream, (void **)launch->args));
}

static inline uint64_t gpu_vendor_access_window(gpu_device_handle device) {
  (void)device;
  return 0;
}

static inline bool gpu_vendor_has_cooperative(const char **why) {
  *why = "the runtime has no hipModuleLaunchCooperativeKernel: HIP 5.2 lacks it, 5.7 has it";
  return gpu_api.launch_cooperative != NULL;
}

/* Returns whether a launch may have the attribute.  hipDrvLaunchKernelEx of HIP 7 accepts attributes, but honours none
 * of these. */
static inline bool gpu_vendor_has_attribute(gpu_device_handle device, uint32_t kind, const char **why) {
  (void)device, (void)kind;
  *why = kind == RILL_ATTR_CARVEOUT ? "the shared memory of AMD GPUs is not part of a cache"
                                    : "the runtime has no such attribute of a launch up to HIP 7";
  return false;
}

static inline gpu_result gpu_vendor_suggest_block(int *blocks, int *threads, gpu_function function, size_t shared,
                                                  int limit) {
  return GPU_CALL(suggest_block, (blocks, threads, function, shared, limit));
}

static inline bool gpu_vendor_required_cluster(gpu_function function, uint32_t cluster[3]) {
  (void)function, (void)cluster;
  return false;
}

static inline gpu_result gpu_vendor_cluster_limit(gpu_function function, const struct rill__launch *launch, int *blocks,
                                                  const char **symbol) {
  (void)function, (void)launch, (void)blocks, (void)symbol;
  return GPU_NOT_SUPPORTED;
}

static inline gpu_result gpu_vendor_active_clusters(gpu_function function, const struct rill__launch *launch,
                                                    int *clusters) {
  (void)function, (void)launch, (void)clusters;
  return GPU_NOT_SUPPORTED;
}

#endif
