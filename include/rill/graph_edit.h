/* rill/graph_edit.h: graphs that are read and changed, node by node.
 *
 * A pass over a graph that somebody else has built reads what its nodes do, changes some, and removes others:
 *
 *     rill_launch launch = RILL_LAUNCH_INIT;
 *     rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
 *     params.launch = &launch;
 *     rill_graph_get_node_params(graph, node, &params);
 *     if (params.kind == RILL_NODE_KERNEL) {
 *       launch.grid.x *= 2;
 *       rill_graph_set_node_params(graph, node, &params);           the arguments stay
 *     }
 *     rill_graph_remove_node(graph, unused);
 *
 * Nodes and edges are listed by rill_graph_get_nodes and rill_graph_get_edges, and edges changed by rill_graph_add_edge
 * and rill_graph_remove_edge.
 *
 * The thing people get wrong: a change is for execution objects that are made afterwards.  Those that exist stay as
 * they are: rill/graph_exec.h changes them.
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

/** What a node does.  Each kind has fields of its own, and the others are 0 where it is read, and ignored where it is
 *  set.  What pointers lead to that were read is the node's: good until the node is changed or removed, or the graph is
 *  released. */
typedef struct rill_graph_node_params {
  size_t struct_size;
  uint32_t kind; /**< RILL_NODE_*.  Set: that of the node, or 0 */
  uint32_t reserved;

  rill_kernel kernel;  /**< of a kernel.  Read: null if its last reference was dropped; the node keeps it even so.  Set:
                            null leaves it */
  rill_launch *launch; /**< shape and label, the caller's.  Read: filled in unless NULL; of attributes and constants
                          only the counts are.  Set: NULL leaves them */
  rill_arg *args;      /**< the caller's room.  Read: filled in, as many as there is room for.  Set: NULL leaves the
                            arguments of the same kernel */
  size_t arg_count;    /**< elements of `args`, set before each read.  Read: becomes how many arguments there are */

  rill_copy_3d *copy; /**< of a copy, the caller's.  Read: filled in unless NULL, with a box of as few dimensions as the
                           same bytes can have */

  void *dst;                          /**< of a fill, as the next five */
  size_t dst_pitch;                   /**< bytes from row to row; means nothing if there is one row */
  const void *pattern;                /**< of `pattern_size` bytes */
  size_t pattern_size, width, height; /**< bytes; patterns, rows.  Read: one row if nothing lies between rows */

  rill_host_fn fn; /**< of a host call, with `user` */
  void *user;

  rill_event event; /**< of a record or a wait.  Read: null if its last reference was dropped */

  void *memory; /**< of an allocation or a free; it cannot be set */
} rill_graph_node_params;
#define RILL_GRAPH_NODE_PARAMS_INIT \
  { sizeof(rill_graph_node_params), 0, 0, { 0 }, NULL, NULL, 0, NULL, NULL, 0, NULL, 0, 0, 0, NULL, NULL, { 0 }, NULL }

/** Reads what a node does.  `params` says where launch, arguments and copy are written, and how many arguments there is
 *  room for.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (a node of another graph; params is NULL).
 *  Like:    cuGraphKernelNodeGetParams, cuGraphMemcpyNodeGetParams, cuGraphMemsetNodeGetParams,
 *           cuGraphHostNodeGetParams, cuGraphEventRecordNodeGetEvent, cuGraphEventWaitNodeGetEvent, and HIP's of these
 *           names. */
RILL_API RILL_NODISCARD rill_status rill_graph_get_node_params(rill_graph graph, rill_graph_node node,
                                                               rill_graph_node_params *params);

/** Changes what a node does, for execution objects made afterwards.  Its kind, and its edges, stay.  What it kept is
 *  released, when no execution object or clone keeps it.
 *
 *  Errors:  those of the function that adds such a node; STALE_HANDLE; INVALID_ARGUMENT (a node of another graph;
 * params is NULL; another kind; a node without anything to change; another kernel without a launch; nothing would be
 *           left to do); UNSUPPORTED (launch is NULL, and the node's has attributes or constants); CAPTURE_ACTIVE (a
 *           capture adds to the graph).
 *  Like:    cuGraphKernelNodeSetParams, cuGraphMemcpyNodeSetParams, cuGraphMemsetNodeSetParams,
 *           cuGraphHostNodeSetParams, cuGraphEventRecordNodeSetEvent, cuGraphEventWaitNodeSetEvent, and HIP's of these
 *           names. */
RILL_API RILL_NODISCARD rill_status rill_graph_set_node_params(rill_graph graph, rill_graph_node node,
                                                               const rill_graph_node_params *params);

/** Removes a node and the edges from and to it; what came before it and what comes after it are not connected.  Its
 *  handle is stale from then on, for execution objects as well, which go on to do what the node did.  What it kept is
 *  released, when no execution object or clone keeps it.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (a node of another graph), UNSUPPORTED (an allocation or
 *           free), CAPTURE_ACTIVE (a capture adds to the graph), OUT_OF_MEMORY.
 *  Like:    cuGraphDestroyNode, hipGraphDestroyNode. */
RILL_API RILL_NODISCARD rill_status rill_graph_remove_node(rill_graph graph, rill_graph_node node);

RILL_EXTERN_C_END

#endif
