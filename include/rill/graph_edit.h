/* rill/graph_edit.h: reading and changing graphs, node by node.
 *
 * A pass over a graph that other code built can read, change and remove nodes:
 *
 *     rill_launch launch = RILL_LAUNCH_INIT;
 *     rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
 *     params.launch = &launch;
 *     rill_graph_get_node_params(graph, node, &params);
 *     if (params.kind == RILL_NODE_KERNEL) {
 *       launch.grid.x *= 2;
 *       rill_graph_set_node_params(graph, node, &params);           keeps the arguments
 *     }
 *     rill_graph_remove_node(graph, unused);
 *
 * rill_graph_get_nodes and rill_graph_get_edges list nodes and edges; rill_graph_add_edge and rill_graph_remove_edge
 * change edges.
 *
 * Pitfall: a change affects only execution objects created afterwards. To change an existing execution object, use
 * rill/graph_exec.h.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_GRAPH_EDIT_H
#define RILL_GRAPH_EDIT_H

#include <rill/base.h>
#include <rill/graph.h>
#include <rill/kernel.h>
#include <rill/memory.h>
#include <rill/options.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Parameters of a node. Each kind of node uses some of the fields. A read sets the others to 0; a set ignores them.
 *
 *  The caller provides the memory at `launch`, `args` and `copy`. The label, the argument values and the pattern that
 *  a read returns belong to the node. They are valid until the node is changed or removed, or the graph is released. */
typedef struct rill_graph_node_params {
  size_t struct_size;
  uint32_t kind; /**< RILL_NODE_*.  Set: the kind of the node, or 0 */
  uint32_t reserved;

  rill_kernel kernel;  /**< kernel nodes.  Read: null if its last reference was dropped, although the node keeps the
                            kernel.  Set: null keeps the kernel */
  rill_launch *launch; /**< kernel nodes: shape and label.  Read: filled in unless NULL; for attributes and constants,
                            only their counts.  Set: NULL keeps them */
  rill_arg *args;      /**< kernel nodes.  Read: as many as fit are filled in.  Set: NULL keeps the arguments if the
                            kernel stays the same */
  size_t arg_count;    /**< kernel nodes.  Read: before, the capacity of `args`; after, the number of arguments */

  rill_copy_3d *copy; /**< copy nodes.  Read: filled in unless NULL, with the fewest dimensions that describe the same
                           bytes */

  void *dst;                          /**< fill nodes, like the next five fields */
  size_t dst_pitch;                   /**< bytes from row to row; ignored if there is one row */
  const void *pattern;                /**< `pattern_size` bytes */
  size_t pattern_size, width, height; /**< bytes, patterns per row, rows.  Read: one row if the rows are contiguous */

  rill_host_fn fn; /**< host call nodes, with `user` */
  void *user;

  rill_event event; /**< event nodes.  Read: null if its last reference was dropped */

  void *memory; /**< allocation and free nodes; cannot be set */
} rill_graph_node_params;
#define RILL_GRAPH_NODE_PARAMS_INIT \
  { sizeof(rill_graph_node_params), 0, 0, { 0 }, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, 0, 0, NULL, NULL, { 0 }, NULL }

/** Reads the parameters of a node. Before the call, set `launch`, `args`, `arg_count` and `copy` in `params` to the
 *  memory to fill in.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (a node of another graph; params is NULL).
 *  Like:    cuGraphKernelNodeGetParams, cuGraphMemcpyNodeGetParams, cuGraphMemsetNodeGetParams,
 *           cuGraphHostNodeGetParams, cuGraphEventRecordNodeGetEvent, cuGraphEventWaitNodeGetEvent, and the
 *           corresponding HIP functions. */
RILL_API RILL_NODISCARD rill_status rill_graph_get_node_params(rill_graph graph, rill_graph_node node,
                                                               rill_graph_node_params *params);

/** Changes the parameters of a node, for execution objects created afterwards. The kind and the edges do not change.
 *  Objects that the node held before are released once no execution object or clone holds them.
 *
 *  Errors:  those of the function that adds such a node; STALE_HANDLE; INVALID_ARGUMENT (a node of another graph;
 *           params is NULL; another kind; a node without parameters to change; another kernel without a launch; a
 *           size of 0); UNSUPPORTED (launch is NULL, and the node's launch has attributes or constants);
 *           CAPTURE_ACTIVE (a capture adds to the graph).
 *  Like:    cuGraphKernelNodeSetParams, cuGraphMemcpyNodeSetParams, cuGraphMemsetNodeSetParams,
 *           cuGraphHostNodeSetParams, cuGraphEventRecordNodeSetEvent, cuGraphEventWaitNodeSetEvent, and the
 *           corresponding HIP functions. */
RILL_API RILL_NODISCARD rill_status rill_graph_set_node_params(rill_graph graph, rill_graph_node node,
                                                               const rill_graph_node_params *params);

/** Removes a node and its edges. No edges are added between the nodes before and after it. The node id becomes stale,
 *  for existing execution objects as well, although these still run the node. Objects that the node held are released
 *  once no execution object or clone holds them.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (a node of another graph), UNSUPPORTED (an allocation or
 *           free), CAPTURE_ACTIVE (a capture adds to the graph), OUT_OF_MEMORY.
 *  Like:    cuGraphDestroyNode, hipGraphDestroyNode. */
RILL_API RILL_NODISCARD rill_status rill_graph_remove_node(rill_graph graph, rill_graph_node node);

RILL_EXTERN_C_END

#endif
