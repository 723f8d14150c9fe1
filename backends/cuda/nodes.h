/* Nodes of the CUDA driver's graphs; included by vendor.h.  Call all functions inside a scope. */
#ifndef RILL_BACKENDS_CUDA_NODES_H
#define RILL_BACKENDS_CUDA_NODES_H

#include "backends/gpu/api.h"

#define GPU_GRAPHS_ARE_CHAINS false
#define GPU_LINE_NODE graph_add_copy
#define GPU_LINE_NODES_HAVE_PITCH true /* the driver's only copy node is three-dimensional */
#define GPU_FILL_NODES_HAVE_ROWS true
#define GPU_GRAPHS_CHANGE (gpu_api.graph_update != NULL)
#define GPU_NODES_CHANGE                                                                                   \
  (gpu_api.graph_set_kernel != NULL && gpu_api.graph_set_copy != NULL && gpu_api.graph_set_fill != NULL && \
   gpu_api.graph_set_host != NULL)
#define GPU_CHANGES_ALONE(kind) true
#define GPU_CHANGES_LEAK false
#define GPU_NODES_CHANGE_FUNCTION true
/* Whether the driver may disable nodes of kernels.  It does not disable other nodes: driver 580 loses the order between
 * the predecessors and the successors of a disabled fill, but not around a kernel or a copy. */
#define GPU_KERNELS_ARE_DISABLED (gpu_api.graph_set_enabled != NULL)

/* ---- kernels ---- */

/* Lets kernels before the node start it early.  In a graph, edges express this serialization.  Preceding nodes that are
 * not kernels complete first; if the driver's edges have no data, all nodes do. */
static inline gpu_result gpu_vendor_add_early_edges(const struct gpu_insertion *insertion, const bool *kernels,
                                                    const char **symbol) {
  gpu_result result = GPU_SUCCESS;
  *symbol = gpu_symbols.graph_add_edges;
  for (size_t i = 0; i < insertion->count && result == GPU_SUCCESS; i++) {
    CUgraphEdgeData edge = { .from_port = 0 };
    if (kernels[i]) {
      edge.from_port = CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC;
      edge.type = CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC;
    }
    result = GPU_CALL(graph_add_edges, (insertion->graph, &insertion->after[i], &insertion->node, &edge, 1));
  }
  return result;
}

static inline gpu_result gpu_vendor_set_attributes(gpu_graph_node node, const struct rill__launch *launch,
                                                   const char **symbol) {
  struct gpu_launch_config config;
  gpu_vendor_configure(&config, launch, NULL);
  if (launch->extras != NULL) gpu_vendor_add_extras(&config, launch->extras, NULL);
  *symbol = gpu_symbols.graph_kernel_attribute;
  for (unsigned i = 0; i < config.config.numAttrs; i++) {
    const CUlaunchAttribute *attribute = &config.attributes[i];
    const int id = (int)attribute->id;
    if (id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION || id == CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT) {
      continue;
    }
    if (gpu_api.graph_kernel_attribute == NULL) return GPU_NOT_SUPPORTED;
    const gpu_result result = GPU_CALL(graph_kernel_attribute, (node, attribute->id, &attribute->value));
    /* A carveout is a hint; some drivers accept it for launches but not for nodes. */
    if (result != GPU_SUCCESS && id != CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) return result;
  }
  return GPU_SUCCESS;
}

/* Adds a kernel node.  `kernels`: tells which of the preceding nodes are kernels. */
static inline gpu_result gpu_vendor_add_kernel(struct gpu_insertion *insertion, gpu_function function,
                                               const struct rill__launch *launch, const bool *kernels,
                                               const char **symbol) {
  const CUDA_KERNEL_NODE_PARAMS_v1 values = {
    .func = function,
    GPU_LAUNCH_SHAPE(launch),
    .kernelParams = (void **)launch->args,
  };
  if (insertion->exec != NULL) return GPU_CALL(graph_set_kernel, (insertion->exec, insertion->node, &values));
  const bool early = launch->extras != NULL && launch->extras->serialize && gpu_api.graph_add_edges != NULL;
  *symbol = gpu_symbols.graph_add_kernel;
  gpu_result result = GPU_CALL(
      graph_add_kernel, (&insertion->node, insertion->graph, insertion->after, early ? 0 : insertion->count, &values));
  if (result == GPU_SUCCESS && early) result = gpu_vendor_add_early_edges(insertion, kernels, symbol);
  return result == GPU_SUCCESS ? gpu_vendor_set_attributes(insertion->node, launch, symbol) : result;
}

/* ---- copies ---- */

/* Returns the memory type for a node.  Unlike a stream's copy, a node is created before its memory is used, so host
 * memory of any origin has to be declared as host memory. */
static inline CUmemorytype gpu_vendor_node_memory(const void *p, uint32_t kind) {
  CUmemorytype type = (CUmemorytype)0;
  if (kind != RILL_MEMORY_UNKNOWN) return gpu_vendor_memory_type(kind);
  const gpu_result result = GPU_CALL(pointer_attribute, (&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, GPU_POINTER(p)));
  return result == GPU_SUCCESS && type != CU_MEMORYTYPE_HOST ? CU_MEMORYTYPE_UNIFIED : CU_MEMORYTYPE_HOST;
}

static inline gpu_result gpu_vendor_add_copy(struct gpu_insertion *insertion, const struct rill__copy_3d *copy,
                                             gpu_context context, const char **symbol) {
  CUDA_MEMCPY3D values = gpu_vendor_copy_values(copy);
  values.srcMemoryType = gpu_vendor_node_memory(copy->src, copy->src_kind);
  values.dstMemoryType = gpu_vendor_node_memory(copy->dst, copy->dst_kind);
  if (insertion->exec != NULL) return GPU_CALL(graph_set_copy, (insertion->exec, insertion->node, &values, context));
  *symbol = gpu_symbols.graph_add_copy;
  return GPU_CALL(graph_add_copy,
                  (&insertion->node, insertion->graph, insertion->after, insertion->count, &values, context));
}

/* ---- fills ---- */

static inline gpu_result gpu_vendor_add_fill(struct gpu_insertion *insertion, const struct gpu_fill_node *fill,
                                             gpu_context context, const char **symbol) {
  const CUDA_MEMSET_NODE_PARAMS_v1 values = {
    .dst = GPU_POINTER(fill->dst),
    .pitch = fill->pitch,
    .value = fill->value,
    .elementSize = fill->element,
    .width = fill->width,
    .height = fill->height,
  };
  if (insertion->exec != NULL) return GPU_CALL(graph_set_fill, (insertion->exec, insertion->node, &values, context));
  *symbol = gpu_symbols.graph_add_fill;
  return GPU_CALL(graph_add_fill,
                  (&insertion->node, insertion->graph, insertion->after, insertion->count, &values, context));
}

/* ---- changes ---- */

static inline gpu_result gpu_vendor_set_host(const struct gpu_insertion *insertion, const gpu_host_node *call) {
  return GPU_CALL(graph_set_host, (insertion->exec, insertion->node, call));
}

static inline gpu_result gpu_vendor_set_enabled(const struct gpu_insertion *insertion, bool enabled) {
  return GPU_CALL(graph_set_enabled, (insertion->exec, insertion->node, enabled));
}

static inline gpu_result gpu_vendor_update(gpu_graph_handle native, gpu_graph graph, gpu_update_result *why,
                                           const char **symbol) {
  gpu_graph_node failing = NULL;
  *symbol = gpu_symbols.graph_update;
  return gpu_api.graph_update == NULL ? GPU_UPDATE_FAILURE : GPU_CALL(graph_update, (native, graph, &failing, why));
}

#endif
