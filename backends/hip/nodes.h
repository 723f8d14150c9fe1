/* Nodes of the HIP runtime's graphs; included by vendor.h.  Call all functions inside a scope. */
#ifndef RILL_BACKENDS_HIP_NODES_H
#define RILL_BACKENDS_HIP_NODES_H

#include "backends/gpu/api.h"

/* The runtime loses edges of graphs with branches.  Up to 6.3 it loses edges to a list of nodes that has been closed
 * (hip_graph_internal.cpp, GetRunListUtil), in 6.4 the edges after a node's fourth one (RunOneNode).  Up to 6.4, no
 * node waits for a child graph that has parallel nodes, and 5.7 starts all nodes except the first before the stream's
 * earlier work.  Every version runs a chain in order. */
#define GPU_GRAPHS_ARE_CHAINS true
#define GPU_LINE_NODE graph_add_line
#define GPU_LINE_NODES_HAVE_PITCH false
/* In 5.2, a fill of several rows uses the size of its element as the value.  Up to 6.1, it is refused if its last pitch
 * extends past the memory (hip_graph_internal.hpp, GraphMemsetNode; hip_memory.cpp, ihipGraphMemsetParams_validate). */
#define GPU_FILL_NODES_HAVE_ROWS false
/* Kernel nodes are changed individually; every other change replaces the execution object:
 * - If hipGraphExecUpdate refuses a node, it has already changed the nodes before it.  It also mistakes a copy of one
 *   row for a copy of several rows, whose nodes are of another class (hip_graph.cpp).
 * - A host node reads its parameters when it runs, so a change affects launches made before it (hip_graph_internal.hpp,
 *   GraphHostNode::Callback).
 * - The calls that change a copy or fill accept different arguments in different versions.
 */
#define GPU_GRAPHS_CHANGE true
#define GPU_NODES_CHANGE (gpu_api.graph_set_kernel != NULL)
#define GPU_CHANGES_ALONE(kind) ((kind) == RILL_NODE_KERNEL)
/* Memory for arguments is freed only with the execution object (hip_graph_internal.cpp, UpdateAQLPacket). */
#define GPU_CHANGES_LEAK true
/* The runtime may accept another function for a node, but this has not been tested, so another object is created. */
#define GPU_NODES_CHANGE_FUNCTION false
/* Calls for disabling nodes exist since 5.5, but have not been tested; replacing the execution object works in every
 * version. */
#define GPU_KERNELS_ARE_DISABLED false

/* Adds a kernel node.  A module's function is passed where the API names a host function.  The runtime's own captures
 * of module launches do the same since 5.2 (hip_graph.cpp, capturehipModuleLaunchKernel).  The runtime ignores the
 * cooperative attribute of a node, and nodes have no other attributes. */
static inline gpu_result gpu_vendor_add_kernel(struct gpu_insertion *insertion, gpu_function function,
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
  if (insertion->exec != NULL) return GPU_CALL(graph_set_kernel, (insertion->exec, insertion->node, &values));
  return GPU_CALL(graph_add_kernel, (&insertion->node, insertion->graph, insertion->after, insertion->count, &values));
}

static inline gpu_result gpu_vendor_add_copy(struct gpu_insertion *insertion, const struct rill__copy_3d *copy,
                                             gpu_context context, const char **symbol) {
  (void)context;
  if (copy->height == 1 && copy->depth == 1) {
    *symbol = gpu_symbols.graph_add_line;
    return GPU_CALL(graph_add_line, (&insertion->node, insertion->graph, insertion->after, insertion->count, copy->dst,
                                     copy->src, copy->width, hipMemcpyDefault));
  }
  const hipMemcpy3DParms values = gpu_vendor_copy_values(copy);
  *symbol = gpu_symbols.graph_add_copy;
  return GPU_CALL(graph_add_copy, (&insertion->node, insertion->graph, insertion->after, insertion->count, &values));
}

static inline gpu_result gpu_vendor_add_fill(struct gpu_insertion *insertion, const struct gpu_fill_node *fill,
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
  return GPU_CALL(graph_add_fill, (&insertion->node, insertion->graph, insertion->after, insertion->count, &values));
}

/* ---- changes ---- */

static inline gpu_result gpu_vendor_set_host(const struct gpu_insertion *insertion, const gpu_host_node *call) {
  (void)insertion, (void)call;
  return GPU_NOT_SUPPORTED;
}

static inline gpu_result gpu_vendor_set_enabled(const struct gpu_insertion *insertion, bool enabled) {
  (void)insertion, (void)enabled;
  return GPU_NOT_SUPPORTED;
}

static inline gpu_result gpu_vendor_update(gpu_graph_handle native, gpu_graph graph, gpu_update_result *why,
                                           const char **symbol) {
  (void)native, (void)graph, (void)why, (void)symbol;
  return GPU_UPDATE_FAILURE;
}

#endif
