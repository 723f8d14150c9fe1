/* Nodes of the HIP runtime's graphs; included by vendor.h.  All inside a scope. */
#ifndef RILL_BACKENDS_HIP_NODES_H
#define RILL_BACKENDS_HIP_NODES_H

#include "backends/gpu/api.h"

/* The runtime loses edges of graphs with branches: up to 6.3 those that lead to a list of nodes that has been closed
 * (hip_graph_internal.cpp, GetRunListUtil), in 6.4 those after a node's fourth (RunOneNode); up to 6.4 nothing waits
 * for a child graph beside other nodes; and 5.7 starts all nodes but the first before the stream's earlier work.  It
 * runs a chain in order in every version. */
#define GPU_GRAPHS_ARE_CHAINS true
#define GPU_LINE_NODE graph_add_line
#define GPU_LINE_NODES_HAVE_PITCH false
/* A fill of several rows has its element's size as its value in 5.2, and up to 6.1 is refused if its last pitch ends
 * after the memory (hip_graph_internal.hpp, GraphMemsetNode; hip_memory.cpp, ihipGraphMemsetParams_validate). */
#define GPU_FILL_NODES_HAVE_ROWS false
/* A kernel is changed by itself, and any other change takes another execution object:
 * - hipGraphExecUpdate has changed the first nodes when it refuses a later one, and takes a copy of one row for one of
 *   several, whose objects are of another class (hip_graph.cpp).
 * - A host node reads its parameters when it runs, so a change reaches launches that were made before
 *   (hip_graph_internal.hpp, GraphHostNode::Callback).
 * - The calls for one copy or fill differ between versions in what they take. */
#define GPU_GRAPHS_CHANGE true
#define GPU_NODES_CHANGE (gpu_api.graph_set_kernel != NULL)
#define GPU_CHANGES_ALONE(kind) ((kind) == RILL_NODE_KERNEL)
/* Memory for arguments is freed with the execution object only (hip_graph_internal.cpp, UpdateAQLPacket). */
#define GPU_CHANGES_LEAK true
/* The runtime may take another function for a node; nobody has seen that run here, so another object is made. */
#define GPU_NODES_CHANGE_FUNCTION false
/* There are calls for disabling nodes from 5.5 on, which nobody has seen run here; another execution object works in
 * each. */
#define GPU_NODES_ARE_DISABLED false

/* A function of a module stands where one of the host's is named: the runtime's own captures of module launches call
 * this so, from 5.2 on (hip_graph.cpp, capturehipModuleLaunchKernel).  Of a node's attributes it ignores the
 * cooperative one, and there are no others. */
static inline gpu_result gpu_vendor_add_kernel(struct gpu_spot *spot, gpu_function function,
                                               const struct rill__launch *launch, const bool *kernels,
                                               const char **symbol) {
  (void)kernels;
  const hipKernelNodeParams values = {
    .func = function,
    .gridDim = { launch->grid[0], launch->grid[1], launch->grid[2] },
    .blockDim = { launch->block[0], launch->block[1], launch->block[2] },
    .sharedMemBytes = launch->shared_mem_bytes,
    .kernelParams = (void **)launch->args,
  };
  const bool cooperative = launch->extras != NULL && (launch->extras->set & 1u << RILL_ATTR_COOPERATIVE) != 0;
  *symbol = cooperative ? GPU_LAUNCH_EXTENDED_TEXT " in a graph" : gpu_symbols.graph_add_kernel;
  if (cooperative) return GPU_NOT_SUPPORTED;
  if (spot->exec != NULL) return GPU_CALL(graph_set_kernel, (spot->exec, spot->node, &values));
  return GPU_CALL(graph_add_kernel, (&spot->node, spot->graph, spot->after, spot->count, &values));
}

static inline gpu_result gpu_vendor_add_copy(struct gpu_spot *spot, const struct rill__copy_3d *copy,
                                             gpu_context context, const char **symbol) {
  (void)context;
  if (copy->height == 1 && copy->depth == 1) {
    *symbol = gpu_symbols.graph_add_line;
    return GPU_CALL(graph_add_line, (&spot->node, spot->graph, spot->after, spot->count, copy->dst, copy->src,
                                     copy->width, hipMemcpyDefault));
  }
  const hipMemcpy3DParms values = gpu_vendor_copy_values(copy);
  *symbol = gpu_symbols.graph_add_copy;
  return GPU_CALL(graph_add_copy, (&spot->node, spot->graph, spot->after, spot->count, &values));
}

static inline gpu_result gpu_vendor_add_fill(struct gpu_spot *spot, const struct gpu_fill_node *fill,
                                             gpu_context context, const char **symbol) {
  (void)context;
  const hipMemsetParams values = {
    .dst = fill->dst,
    .elementSize = fill->element,
    .height = fill->height,
    .pitch = fill->pitch,
    .value = fill->value,
    .width = fill->width,
  };
  *symbol = gpu_symbols.graph_add_fill;
  return GPU_CALL(graph_add_fill, (&spot->node, spot->graph, spot->after, spot->count, &values));
}

/* ---- changes ---- */

static inline gpu_result gpu_vendor_set_host(const struct gpu_spot *spot, const gpu_host_node *call) {
  (void)spot, (void)call;
  return GPU_NOT_SUPPORTED;
}

static inline gpu_result gpu_vendor_set_enabled(const struct gpu_spot *spot, bool enabled) {
  (void)spot, (void)enabled;
  return GPU_NOT_SUPPORTED;
}

static inline gpu_result gpu_vendor_update(gpu_graph_handle native, gpu_graph graph, gpu_update_result *why,
                                           const char **symbol) {
  (void)native, (void)graph, (void)why, (void)symbol;
  return GPU_UPDATE_FAILURE;
}

#endif
