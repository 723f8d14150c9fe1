/* Launches with the CUDA driver, and queries about them; included by vendor.h. */
#ifndef RILL_BACKENDS_CUDA_LAUNCH_H
#define RILL_BACKENDS_CUDA_LAUNCH_H

#include "backends/gpu/api.h"

#define GPU_LAUNCH_EXTENDED_TEXT "cuLaunchKernelEx"
#define GPU_ACTIVE_CLUSTERS_TEXT "cuOccupancyMaxActiveClusters"

/* ---- launches with attributes ---- */

enum { GPU_LAUNCH_ATTRIBUTES = RILL_ATTR_END_ }; /* one of each kind, numbered from 1, and the cluster */

struct gpu_launch_config {
  CUlaunchConfig config;
  CUlaunchAttribute attributes[GPU_LAUNCH_ATTRIBUTES];
};

static inline CUlaunchAttributeValue *gpu_vendor_add_attribute(struct gpu_launch_config *config, int id) {
  CUlaunchAttribute *attribute = &config->attributes[config->config.numAttrs++];
  memset(attribute, 0, sizeof *attribute);
  attribute->id = (CUlaunchAttributeID)id;
  return &attribute->value;
}

static inline void gpu_vendor_add_number(struct gpu_launch_config *config, int id, int number) {
  memcpy(gpu_vendor_add_attribute(config, id), &number, sizeof number);
}

_Static_assert((int)CU_ACCESS_PROPERTY_NORMAL == RILL_ACCESS_NORMAL &&
                   (int)CU_ACCESS_PROPERTY_STREAMING == RILL_ACCESS_STREAMING &&
                   (int)CU_ACCESS_PROPERTY_PERSISTING == RILL_ACCESS_PERSISTING,
               "the numbers of access properties");

static inline void gpu_vendor_add_extras(struct gpu_launch_config *config, const struct rill__launch_extras *extras,
                                         gpu_event_handle event) {
  const uint32_t set = extras->set;
  if ((set & 1u << RILL_ATTR_COOPERATIVE) != 0) gpu_vendor_add_number(config, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, 1);
  if ((set & 1u << RILL_ATTR_PRIORITY) != 0) {
    gpu_vendor_add_number(config, CU_LAUNCH_ATTRIBUTE_PRIORITY, extras->priority);
  }
  if (extras->serialize) gpu_vendor_add_number(config, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, 1);
  if ((set & 1u << RILL_ATTR_PROGRAMMATIC_EVENT) != 0) {
    CUlaunchAttributeValue *value = gpu_vendor_add_attribute(config, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT);
    value->programmaticEvent.event = event;
    value->programmaticEvent.triggerAtBlockStart = extras->trigger_at_start;
  }
  if ((set & 1u << RILL_ATTR_ACCESS_POLICY) != 0) {
    CUaccessPolicyWindow *window =
        &gpu_vendor_add_attribute(config, CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW)->accessPolicyWindow;
    window->base_ptr = extras->access.base;
    window->num_bytes = extras->access.size;
    window->hitRatio = extras->access.hit_ratio;
    window->hitProp = (CUaccessProperty)extras->access.hit;
    window->missProp = (CUaccessProperty)extras->access.miss;
  }
  if ((set & 1u << RILL_ATTR_MEMORY_SYNC_DOMAIN) != 0) {
    gpu_vendor_add_number(config, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN, extras->sync_domain);
  }
  /* -1 selects the driver's default, like a launch without the attribute; the driver refuses -1 as a value. */
  if ((set & 1u << RILL_ATTR_CARVEOUT) != 0 && extras->carveout >= 0) {
    gpu_vendor_add_number(config, CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, extras->carveout);
  }
}

/* Members that the parameters of launches and of nodes have in common. */
#define GPU_LAUNCH_SHAPE(launch)                                                                     \
  .gridDimX = (launch)->grid[0], .gridDimY = (launch)->grid[1], .gridDimZ = (launch)->grid[2],       \
  .blockDimX = (launch)->block[0], .blockDimY = (launch)->block[1], .blockDimZ = (launch)->block[2], \
  .sharedMemBytes = (launch)->shared_mem_bytes

static inline void gpu_vendor_configure(struct gpu_launch_config *config, const struct rill__launch *launch,
                                        gpu_stream_handle stream) {
  config->config = (CUlaunchConfig){
    GPU_LAUNCH_SHAPE(launch),
    .hStream = stream,
    .attrs = config->attributes,
  };
  if (launch->clustered) {
    CUlaunchAttributeValue *value = gpu_vendor_add_attribute(config, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    value->clusterDim.x = launch->cluster[0];
    value->clusterDim.y = launch->cluster[1];
    value->clusterDim.z = launch->cluster[2];
  }
}

static inline gpu_result gpu_vendor_launch_extended(gpu_function function, const struct rill__launch *launch,
                                                    gpu_stream_handle stream, gpu_event_handle event) {
  struct gpu_launch_config config;
  gpu_vendor_configure(&config, launch, stream);
  if (launch->extras != NULL) gpu_vendor_add_extras(&config, launch->extras, event);
  return GPU_CALL(launch_extended, (&config.config, function, (void **)launch->args, NULL));
}

/* ---- queries ---- */

static inline int gpu_vendor_attribute_of(gpu_device_handle device, int which) {
  int value = 0;
  return GPU_CALL(device_attribute, (&value, (CUdevice_attribute)which, device)) == GPU_SUCCESS ? value : 0;
}

static inline uint64_t gpu_vendor_access_window(gpu_device_handle device) {
  const int size = gpu_vendor_attribute_of(device, CU_DEVICE_ATTRIBUTE_MAX_ACCESS_POLICY_WINDOW_SIZE);
  return size > 0 ? (uint64_t)size : 0;
}

static inline bool gpu_vendor_has_cooperative(const char **why) {
  *why = "cooperative launches need a driver of CUDA 11.8 or later";
  return gpu_api.launch_extended != NULL;
}

static inline bool gpu_vendor_has_attribute(gpu_device_handle device, uint32_t kind, const char **why) {
  *why = "attributes of launches need a driver of CUDA 11.8 or later";
  if (gpu_api.launch_extended == NULL) return false;
  switch (kind) {
    case RILL_ATTR_PRIORITY: return true;
    case RILL_ATTR_PROGRAMMATIC_SERIALIZATION:
    case RILL_ATTR_PROGRAMMATIC_EVENT:
      *why = "programmatic dependent launches need compute capability 9.0 or later";
      return gpu_vendor_attribute_of(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) >= 9;
    case RILL_ATTR_ACCESS_POLICY:
      *why = "access policy windows need compute capability 8.0 or later";
      return gpu_vendor_access_window(device) > 0;
    case RILL_ATTR_MEMORY_SYNC_DOMAIN:
      *why = "memory synchronization domains need compute capability 9.0 and a driver of CUDA 12.0 or later";
      return gpu_vendor_attribute_of(device, CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT) > 1;
    case RILL_ATTR_CARVEOUT:
      *why = "the carveout of one launch needs a driver of CUDA 12.5 or later";
      return gpu_vendor_driver_version() >= 12050;
    default: *why = "there is no such attribute"; return false;
  }
}

static inline gpu_result gpu_vendor_suggest_block(int *blocks, int *threads, gpu_function function, size_t shared,
                                                  int limit) {
  return GPU_CALL(suggest_block, (blocks, threads, function, NULL, shared, limit));
}

/* Drivers older than clusters do not know these attributes. */
static inline bool gpu_vendor_required_cluster(gpu_function function, uint32_t cluster[3]) {
  for (int i = 0; i < 3; i++) {
    int value = 0;
    const CUfunction_attribute which = (CUfunction_attribute)(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + i);
    if (GPU_CALL(function_attribute, (&value, which, function)) != GPU_SUCCESS) value = 0;
    cluster[i] = value > 0 ? (uint32_t)value : 0;
  }
  return cluster[0] > 0;
}

/* Clusters of more than eight blocks are not portable; an attribute of the function has to allow them. */
static inline gpu_result gpu_vendor_cluster_limit(gpu_function function, const struct rill__launch *launch, int *blocks,
                                                  const char **symbol) {
  *symbol = gpu_symbols.function_set_attribute;
  const gpu_result result =
      GPU_CALL(function_set_attribute, (function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  if (result != GPU_SUCCESS) return result;
  struct gpu_launch_config config;
  gpu_vendor_configure(&config, launch, NULL);
  config.config.numAttrs = 0; /* query the largest possible cluster, not this one */
  *symbol = gpu_symbols.cluster_limit;
  return GPU_CALL(cluster_limit, (blocks, function, &config.config));
}

static inline gpu_result gpu_vendor_active_clusters(gpu_function function, const struct rill__launch *launch,
                                                    int *clusters) {
  struct gpu_launch_config config;
  gpu_vendor_configure(&config, launch, NULL);
  return GPU_CALL(active_clusters, (clusters, function, &config.config));
}

#endif
