/* How the HIP runtime launches kernels, and what it tells of them; included by vendor.h. */
#ifndef RILL_BACKENDS_HIP_LAUNCH_H
#define RILL_BACKENDS_HIP_LAUNCH_H

#include "backends/gpu/api.h"

#define GPU_LAUNCH_EXTENDED_TEXT ""
#define GPU_CLUSTER_LIMIT_TEXT ""
#define GPU_ACTIVE_CLUSTERS_TEXT ""

/* No device has clusters, so no such launch gets here. */
static inline gpu_result gpu_vendor_launch_extended(gpu_function function, const struct rill__launch *launch,
                                                    gpu_stream_handle stream) {
  (void)function, (void)launch, (void)stream;
  return GPU_NOT_SUPPORTED;
}

static inline gpu_result gpu_vendor_suggest_block(int *blocks, int *threads, gpu_function function, size_t shared,
                                                  int limit) {
  return GPU_CALL(suggest_block(blocks, threads, function, shared, limit));
}

static inline bool gpu_vendor_required_cluster(gpu_function function, uint32_t cluster[3]) {
  (void)function, (void)cluster;
  return false;
}

static inline gpu_result gpu_vendor_cluster_limit(gpu_function function, const struct rill__launch *launch,
                                                  int *blocks) {
  (void)function, (void)launch, (void)blocks;
  return GPU_NOT_SUPPORTED;
}

static inline gpu_result gpu_vendor_active_clusters(gpu_function function, const struct rill__launch *launch,
                                                    int *clusters) {
  (void)function, (void)launch, (void)clusters;
  return GPU_NOT_SUPPORTED;
}

#endif
