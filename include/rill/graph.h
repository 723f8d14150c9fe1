/* rill/graph.h: graphs, for work that is described once and launched many times.
 *
 * A graph consists of nodes (kernels, copies, fills, host calls) and edges that order them. It is built node by node
 * or captured from streams (rill/capture.h). It is instantiated once, and each launch is one call
 * (rill/graph_exec.h):
 *
 *     rill_graph graph;
 *     rill_graph_node filled, scaled;
 *     rill_graph_exec exec;
 *     rill_graph_create(device, &graph);
 *     rill_graph_add_fill(graph, NULL, 0, x, &zero, sizeof zero, n, &filled);
 *     rill_graph_add_kernel(graph, &filled, 1, kernel, &launch, RILL_ARGS(n, x), &scaled);
 *     rill_graph_instantiate(graph, &exec);
 *     rill_graph_launch(exec, stream);
 *
 * Nodes that are not connected by a path of edges can run at the same time.
 *
 * Pitfall: a graph refers to memory by its address. Arguments and patterns are copied when a node is added, but the
 * memory that pointers refer to is read and written at each launch, including pageable sources of copies.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_GRAPH_H
#define RILL_GRAPH_H

#include <rill/base.h>
#include <rill/kernel.h>
#include <rill/memory.h>
#include <rill/status.h>
#include <rill/stream.h>

RILL_EXTERN_C_BEGIN

/** Kinds of node. */
enum {
  RILL_NODE_KERNEL = 1,
  RILL_NODE_COPY,
  RILL_NODE_FILL,
  RILL_NODE_HOST_CALL,
  RILL_NODE_EMPTY,
  RILL_NODE_EVENT_RECORD,
  RILL_NODE_EVENT_WAIT,
  RILL_NODE_OTHER, /**< work that another library submitted to the native stream of a capture */
  RILL_NODE_ALLOC, /**< an allocation owned by the graph (rill_alloc_async in a capture) */
  RILL_NODE_FREE
};

/** Creates an empty graph for work on one device.
 *
 *  Errors:  INVALID_HANDLE, INVALID_ARGUMENT, UNSUPPORTED (RILL_FEATURE_GRAPH), OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuGraphCreate, hipGraphCreate. */
RILL_API RILL_NODISCARD rill_status rill_graph_create(rill_device device, rill_graph *out);

/** Adds a reference.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    a second owner of a CUgraph. */
RILL_API RILL_NODISCARD rill_status rill_graph_retain(rill_graph graph);

/** Drops a reference. The last release destroys the graph. Before the call returns, it releases the objects that the
 *  nodes hold, except those that execution objects, clones and parent graphs use. Execution objects are not affected,
 *  and they still accept the node ids. Has no effect on a null handle.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    cuGraphDestroy, hipGraphDestroy. */
RILL_API rill_status rill_graph_release(rill_graph graph);

/** Adds a kernel launch that runs after the `after_count` nodes at `after`. The label of `launch` names the node.
 *
 *  The same checks apply as in rill_stream_launch. Arguments and constants are copied. The node holds a reference to
 *  the kernel.
 *
 *  Errors:  those of rill_stream_launch; INVALID_ARGUMENT (a node of another graph), CAPTURE_ACTIVE (a capture adds to
 *           the graph), UNSUPPORTED (the arguments of the kernel are not known).
 *  Like:    cuGraphAddKernelNode, hipGraphAddKernelNode. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_kernel(rill_graph graph, const rill_graph_node *after,
                                                          size_t after_count, rill_kernel kernel,
                                                          const rill_launch *launch, const rill_arg *args,
                                                          size_t arg_count, rill_graph_node *out);

/** Adds a copy of `n` bytes, in any direction. If `n` is 0, the node does nothing. A pageable source is read when the
 *  node runs (docs/guides/GRAPHS.md describes the cost of pageable memory).
 *
 *  Errors:  those of rill_copy_async and rill_graph_add_kernel.
 *  Like:    cuGraphAddMemcpyNode, hipGraphAddMemcpyNode1D. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_copy(rill_graph graph, const rill_graph_node *after,
                                                        size_t after_count, void *dst, const void *src, size_t n,
                                                        rill_graph_node *out);

/** Adds a copy of `height` rows of `width` bytes. If either is 0, the node does nothing.
 *
 *  Errors:  those of rill_copy_2d_async and rill_graph_add_kernel.
 *  Like:    cuGraphAddMemcpyNode, hipGraphAddMemcpyNode. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_copy_2d(rill_graph graph, const rill_graph_node *after,
                                                           size_t after_count, void *dst, size_t dst_pitch,
                                                           const void *src, size_t src_pitch, size_t width,
                                                           size_t height, rill_graph_node *out);

/** Adds a copy of slices of rows, with pitches. If a size is 0, the node does nothing.
 *
 *  Errors:  those of rill_copy_3d_async and rill_graph_add_kernel.
 *  Like:    cuGraphAddMemcpyNode, hipGraphAddMemcpyNode. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_copy_3d(rill_graph graph, const rill_graph_node *after,
                                                           size_t after_count, const rill_copy_3d *copy,
                                                           rill_graph_node *out);

/** Adds a fill of `count` patterns. If `count` is 0, the node does nothing.
 *
 *  Errors:  those of rill_fill_async and rill_graph_add_kernel.
 *  Like:    cuGraphAddMemsetNode, hipGraphAddMemsetNode. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_fill(rill_graph graph, const rill_graph_node *after,
                                                        size_t after_count, void *dst, const void *pattern,
                                                        size_t pattern_size, size_t count, rill_graph_node *out);

/** Adds a fill of `height` rows of `width` patterns. If either is 0, the node does nothing.
 *
 *  Errors:  those of rill_fill_2d_async and rill_graph_add_kernel.
 *  Like:    cuGraphAddMemsetNode, hipGraphAddMemsetNode. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_fill_2d(rill_graph graph, const rill_graph_node *after,
                                                           size_t after_count, void *dst, size_t dst_pitch,
                                                           const void *pattern, size_t pattern_size, size_t width,
                                                           size_t height, rill_graph_node *out);

/** Adds a host call: `fn(user, status)` runs once for each launch of the graph, on another thread.  `fn` must not
 *  call rill and must not wait for other work (rill_stream_host_call).
 *
 *  Errors:  INVALID_ARGUMENT (fn is NULL); those of rill_graph_add_kernel.
 *  Like:    cuGraphAddHostNode, hipGraphAddHostNode. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_host_call(rill_graph graph, const rill_graph_node *after,
                                                             size_t after_count, rill_host_fn fn, void *user,
                                                             rill_graph_node *out);

/** Adds a node that does nothing, to join paths.
 *
 *  Errors:  those of rill_graph_add_kernel.
 *  Like:    cuGraphAddEmptyNode, hipGraphAddEmptyNode. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_empty(rill_graph graph, const rill_graph_node *after,
                                                         size_t after_count, rill_graph_node *out);

/** Adds a record of an event. The event then marks this point of the latest launch. If several nodes of the graph
 *  record the event, it marks one of these points; which one is unspecified. The node holds a reference to the event.
 *
 *  Errors:  WRONG_DEVICE, INVALID_ARGUMENT (a stream's cached event), UNSUPPORTED; those of rill_graph_add_kernel.
 *  Like:    cuGraphAddEventRecordNode, hipGraphAddEventRecordNode. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_event_record(rill_graph graph, const rill_graph_node *after,
                                                                size_t after_count, rill_event event,
                                                                rill_graph_node *out);

/** Adds a wait for the point that the event marks when the graph is launched. An event that was never recorded is
 *  ignored.
 *
 *  Errors:  WRONG_BACKEND, UNSUPPORTED; those of rill_graph_add_kernel.
 *  Like:    cuGraphAddEventWaitNode, hipGraphAddEventWaitNode. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_event_wait(rill_graph graph, const rill_graph_node *after,
                                                              size_t after_count, rill_event event,
                                                              rill_graph_node *out);

/** Makes node `to` run after node `from`. Adding an existing edge again has no effect.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (a node of another graph; an edge that closes a cycle),
 *           CAPTURE_ACTIVE, OUT_OF_MEMORY.
 *  Like:    cuGraphAddDependencies, hipGraphAddDependencies. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_edge(rill_graph graph, rill_graph_node from, rill_graph_node to);

/** Returns a node by its label. A kernel node without a label is found by the kernel's name in the source or by its
 *  symbol. `nth` selects among nodes of the same name, counted from 0 in the order in which they were added.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, NOT_FOUND.
 *  Like:    nothing. */
RILL_API RILL_NODISCARD rill_status rill_graph_find_node(rill_graph graph, const char *label, uint32_t nth,
                                                         rill_graph_node *out);

/** Lists the nodes in the order in which they were added. Pass the capacity of `nodes` in `*count`; the call sets
 *  `*count` to the number of nodes and writes as many as fit. `nodes` may be NULL if `*count` is 0.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuGraphGetNodes, hipGraphGetNodes. */
RILL_API RILL_NODISCARD rill_status rill_graph_get_nodes(rill_graph graph, rill_graph_node *nodes, size_t *count);

/** Lists the edges, from from[i] to to[i]. `*count` works as in rill_graph_get_nodes.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuGraphGetEdges, hipGraphGetEdges. */
RILL_API RILL_NODISCARD rill_status rill_graph_get_edges(rill_graph graph, rill_graph_node *from, rill_graph_node *to,
                                                         size_t *count);

/** Returns the kind of a node, RILL_NODE_*.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuGraphNodeGetType, hipGraphNodeGetType. */
RILL_API RILL_NODISCARD rill_status rill_graph_node_kind(rill_graph_node node, uint32_t *out);

RILL_EXTERN_C_END

#endif
