/* How the CUDA driver launches kernels, and what it tells of them; included by vendor.h. */
#ifndef RILL_BACKENDS_CUDA_LAUNCH_H
#define RILL_BACKENDS_CUDA_LAUNCH_H

#include "backends/gpu/api.h"

#define GPU_LAUNCH_EXTENDED_TEXT "cuLaunchKernelEx"
#define GPU_CLUSTER_LIMIT_TEXT "cuOccupancyMaxPotentialClusterSize"
#define GPU_ACTIVE_CLUSTERS_TEXT "cuOccupancyMaxActiveClusters"

/* ---- launches with attributes ---- */

enum { GPU_LAUNCH_ATTRIBUTES = 1 };

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

static inline void gpu_vendor_configure(struct gpu_launch_config *config, const struct rill__launch *launch,
                                        gpu_stream_handle stream) {
  config->config = (CUlaunchConfig){
    .gridDimX = launch->grid[0],
    .gridDimY = launch->grid[1],
    .gridDimZ = launch->grid[2],
    .blockDimX = launch->block[0],
    .blockDimY = launch->block[1],
    .blockDimZ = launch->block[2],
    .sharedMemBytes = launch->shared_mem_bytes,
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
                                                    gpu_stream_handle stream) {
  struct gpu_launch_config config;
  gpu_vendor_configure(&config, launch, stream);
  return GPU_CALL(launch_extended(&config.config, function, (void **)launch->args, NULL));
}

/* ---- questions ---- */

static inline gpu_result gpu_vendor_suggest_block(int *blocks, int *threads, gpu_function function, size_t shared,
                                                  int limit) {
  return GPU_CALL(suggest_block(blocks, threads, function, NULL, shared, limit));
}

/* A driver older than clusters does not know the attributes. */
static inline bool gpu_vendor_required_cluster(gpu_function function, uint32_t cluster[3]) {
  for (int i = 0; i < 3; i++) {
    int value = 0;
    const CUfunction_attribute which = (CUfunction_attribute)(CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + i);
    if (GPU_CALL(function_attribute(&value, which, function)) != GPU_SUCCESS) value = 0;
    cluster[i] = value > 0 ? (uint32_t)value : 0;
  }
  return cluster[0] > 0;
}

/* More than eight blocks are not portable: the function has to be told that it may have them. */
static inline gpu_result gpu_vendor_cluster_limit(gpu_function function, const struct rill__launch *launch,
                                                  int *blocks) {
  const gpu_result result =
      GPU_CALL(function_set_attribute(function, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1));
  if (result != GPU_SUCCESS) return result;
  struct gpu_launch_config config;
  gpu_vendor_configure(&config, launch, NULL);
  config.config.numAttrs = 0; /* which cluster could be, not whether this one can */
  return GPU_CALL(cluster_limit(blocks, function, &config.config));
}

static inline gpu_result gpu_vendor_active_clusters(gpu_function function, const struct rill__launch *launch,
                                                    int *clusters) {
  struct gpu_launch_config config;
  gpu_vendor_configure(&config, launch, NULL);
  return GPU_CALL(active_clusters(clusters, function, &config.config));
}

#endif
