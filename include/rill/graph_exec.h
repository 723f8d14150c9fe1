/* rill/graph_exec.h: execution objects, which are graphs prepared for launch.
 *
 * rill_graph_instantiate creates an execution object, a copy of the graph prepared for the device. A launch is one
 * call for any number of nodes. Arguments and whole nodes can be changed between launches, which costs far less than
 * creating another object:
 *
 *     rill_graph_instantiate(graph, &exec);
 *     rill_graph_release(graph);
 *     for (int step = 0; step < steps; step++) {
 *       rill_graph_exec_set_kernel_arg(exec, scaled, 1, &factor[step], sizeof factor[step]);
 *       rill_graph_launch(exec, stream);
 *     }
 *
 * Launches of one object never overlap: a launch runs after all earlier launches of the object, on any stream. Calls
 * on one object from several threads are serialized. A launch may block while the driver's queue is full. This delays
 * only other calls on the same object.
 *
 * Pitfall: a change affects later launches only. Launches that were already submitted are not affected.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_GRAPH_EXEC_H
#define RILL_GRAPH_EXEC_H

#include <rill/base.h>
#include <rill/graph.h>
#include <rill/options.h>
#include <rill/status.h>
#include <rill/stream.h>

RILL_EXTERN_C_BEGIN

/** Creates an execution object. The graph may be changed or released afterwards; its node ids still identify the
 *  nodes of the execution object. May block while the driver prepares the graph.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, CAPTURE_ACTIVE (a capture adds to the graph),
 *           OUT_OF_MEMORY, UNSUPPORTED, DEVICE_LOST, BACKEND.
 *  Like:    cuGraphInstantiate, hipGraphInstantiate. */
RILL_API RILL_NODISCARD rill_status rill_graph_instantiate(rill_graph graph, rill_graph_exec *out);

/** Options of rill_graph_instantiate_with_options. */
typedef struct rill_graph_exec_options {
  size_t struct_size;
  bool auto_free_on_launch; /**< no effect: every launch uses the same memory, so the allocations of the last
                                 launch need not be freed first */
  const char *label;        /**< names the object in errors; copied; may be NULL */
} rill_graph_exec_options;
#define RILL_GRAPH_EXEC_OPTIONS_INIT \
  { sizeof(rill_graph_exec_options), false, NULL }
/** An options expression for C and C++:
 *  rill_graph_instantiate_with_options(g, RILL_GRAPH_EXEC_OPTIONS(.label = "step"), &x). */
#define RILL_GRAPH_EXEC_OPTIONS(...) RILL_OPTIONS_(rill_graph_exec_options, __VA_ARGS__)
RILL_OPTIONS_FIELDS_(rill_graph_exec_options, RILL_OPTIONS_FIELD_(auto_free_on_launch) RILL_OPTIONS_FIELD_(label))

/** Creates an execution object with options. NULL selects the default options.
 *
 *  Errors:  those of rill_graph_instantiate.
 *  Like:    cuGraphInstantiateWithParams, hipGraphInstantiateWithParams. */
RILL_API RILL_NODISCARD rill_status rill_graph_instantiate_with_options(rill_graph graph,
                                                                        const rill_graph_exec_options *options,
                                                                        rill_graph_exec *out);

/** Adds a reference.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    a second owner of a CUgraphExec. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_retain(rill_graph_exec exec);

/** Drops a reference. Never blocks. Submitted launches still complete, and the resources that they use are kept until
 *  then. Has no effect on a null handle.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    cuGraphExecDestroy, hipGraphExecDestroy. */
RILL_API rill_status rill_graph_exec_release(rill_graph_exec exec);

/** Launches the graph on a stream.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, WRONG_DEVICE, NOT_READY (launches are queued on a held stream),
 *           OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuGraphLaunch, hipGraphLaunch. */
RILL_API RILL_NODISCARD rill_status rill_graph_launch(rill_graph_exec exec, rill_stream stream);

/** Makes later launches run the nodes of another graph of the same shape: the same number of nodes, added in the same
 *  order, of the same kinds, with the same edges and kernels. Earlier changes to single nodes are discarded.
 *
 *  The execution object then holds the objects that the nodes of `graph` use, and its user objects. Objects that it
 *  held before are released in this call, or once earlier launches have completed. The node ids of the first graph
 *  stay valid for the execution object. On failure the execution object is unchanged, and the text names the node and
 *  the difference.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, WRONG_DEVICE, INVALID_ARGUMENT (another shape), CAPTURE_ACTIVE, UNSUPPORTED,
 *           OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuGraphExecUpdate, hipGraphExecUpdate. */
RILL_API RILL_NODISCARD rill_status rill_graph_update(rill_graph_exec exec, rill_graph graph);

/** Reasons for refusing an update. */
enum {
  RILL_UPDATE_NONE = 0, /**< not refused, or not because of a difference between the graphs: see the status */
  RILL_UPDATE_COUNT,    /**< the number of nodes differs */
  RILL_UPDATE_KIND,     /**< the kind of a node differs */
  RILL_UPDATE_KERNEL,   /**< the kernel of a node differs */
  RILL_UPDATE_EDGES,    /**< the edges to a node differ */
  RILL_UPDATE_MEMORY,   /**< memory of the graph is in use by another execution object */
  RILL_UPDATE_DRIVER    /**< the driver cannot make the change */
};

/** Why rill_graph_update_with_result refused a graph, and at which node. */
typedef struct rill_graph_update_result {
  size_t struct_size;
  rill_graph_node node; /**< the first node of the new graph that does not match; null if there is none */
  uint32_t reason;      /**< RILL_UPDATE_* */
} rill_graph_update_result;
#define RILL_GRAPH_UPDATE_RESULT_INIT \
  { sizeof(rill_graph_update_result), { 0 }, 0 }

/** Updates like rill_graph_update, and also returns which node caused a refusal. `result` is also written on failure.
 *
 *  Errors:  those of rill_graph_update.
 *  Like:    cuGraphExecUpdate with its CUgraphExecUpdateResultInfo, hipGraphExecUpdate. */
RILL_API RILL_NODISCARD rill_status rill_graph_update_with_result(rill_graph_exec exec, rill_graph graph,
                                                                  rill_graph_update_result *result);

/** Prepares the first launch on a stream in advance, as work of the stream.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, WRONG_DEVICE, NOT_READY (the stream is held, or launches are queued on a
 *           held stream), CAPTURE_ACTIVE (the stream is capturing), UNSUPPORTED (the driver has no such function),
 *           DEVICE_LOST, BACKEND.
 *  Like:    cuGraphUpload, hipGraphUpload. */
RILL_API RILL_NODISCARD rill_status rill_graph_upload(rill_graph_exec exec, rill_stream stream);

/** Returns the native execution object (CUgraphExec, hipGraphExec_t). It is 0 on the CPU, and also between a change
 *  that failed halfway and the next launch.
 *
 *  rill keeps ownership. Other code that launches the object must order its launches with rill's and must not change
 *  the object. A change may replace the native object (docs/guides/GRAPHS.md), so call this function again after each
 *  change.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuda.core Graph.handle. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_native(rill_graph_exec exec, uintptr_t *out);

/** Returns the native graph (CUgraph, hipGraph_t) from which the native execution object was created, or 0 on the
 *  CPU. rill keeps ownership. The native graph does not reflect changes, except when a change replaces the native
 *  execution object. A rill_graph has no native graph before it is instantiated.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuda.core GraphDefinition.handle. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_native_graph(rill_graph_exec exec, uintptr_t *out);

/** Changes argument `index` of a kernel node, counted from 0, for later launches.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (not a kernel node of this object; the size differs from
 *           the argument's; data is NULL), OUT_OF_RANGE (index), UNSUPPORTED (a launch with constants),
 *           OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuGraphExecKernelNodeSetParams, hipGraphExecKernelNodeSetParams. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_set_kernel_arg(rill_graph_exec exec, rill_graph_node node,
                                                                   uint32_t index, const void *data, size_t size);

/** Changes the shape and the arguments of a kernel node for later launches, but not the kernel.
 *
 *  Errors:  those of rill_graph_add_kernel and rill_graph_exec_set_kernel_arg.
 *  Like:    cuGraphExecKernelNodeSetParams, hipGraphExecKernelNodeSetParams. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_set_kernel(rill_graph_exec exec, rill_graph_node node,
                                                               const rill_launch *launch, const rill_arg *args,
                                                               size_t arg_count);

/** Changes the kernel, the shape and the arguments of a kernel node for later launches. From then on,
 *  rill_graph_update accepts graphs whose kernels differ from the object's.
 *
 *  Errors:  those of rill_graph_exec_set_kernel; WRONG_DEVICE, WRONG_BACKEND (the kernel's device).
 *  Like:    cuGraphExecKernelNodeSetParams, hipGraphExecKernelNodeSetParams. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_replace_kernel(rill_graph_exec exec, rill_graph_node node,
                                                                   rill_kernel kernel, const rill_launch *launch,
                                                                   const rill_arg *args, size_t arg_count);

/** Changes the function of a host call node for later launches.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (not a host call node of this object; fn is NULL),
 *           NOT_READY (launches are queued on a held stream), UNSUPPORTED, OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuGraphExecHostNodeSetParams, hipGraphExecHostNodeSetParams. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_set_host_call(rill_graph_exec exec, rill_graph_node node,
                                                                  rill_host_fn fn, void *user);

/** Changes the event of a record or wait node for later launches.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, WRONG_DEVICE (an event to record), WRONG_BACKEND, INVALID_ARGUMENT (not a
 *           record or wait node of this object; a stream's cached event to record), NOT_READY (launches are queued on
 *           a held stream), UNSUPPORTED, OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuGraphExecEventRecordNodeSetEvent, cuGraphExecEventWaitNodeSetEvent, and the corresponding HIP
 *           functions. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_set_event(rill_graph_exec exec, rill_graph_node node,
                                                              rill_event event);

/** Disables a kernel, copy or fill node for later launches, or enables it again. A disabled node does nothing, but
 *  still orders the nodes before and after it. Changes to a disabled node take effect when it is enabled.
 *  rill_graph_update enables all nodes.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (not a node of this object, or a node of another kind),
 *           NOT_READY (launches are queued on a held stream), UNSUPPORTED, OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuGraphNodeSetEnabled, hipGraphNodeSetEnabled. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_set_enabled(rill_graph_exec exec, rill_graph_node node,
                                                                bool enabled);

/** Returns whether a kernel, copy or fill node is enabled. All nodes are enabled at first.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (not a node of this object, or a node of another kind).
 *  Like:    cuGraphNodeGetEnabled, hipGraphNodeGetEnabled. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_is_enabled(rill_graph_exec exec, rill_graph_node node, bool *out);

/** Changes a copy node for later launches.
 *
 *  Errors:  those of rill_graph_add_copy; INVALID_ARGUMENT (not a copy node of this object; n is 0).
 *  Like:    cuGraphExecMemcpyNodeSetParams, hipGraphExecMemcpyNodeSetParams1D. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_set_copy(rill_graph_exec exec, rill_graph_node node, void *dst,
                                                             const void *src, size_t n);

/** Changes a fill node for later launches.
 *
 *  Errors:  those of rill_graph_add_fill; INVALID_ARGUMENT (not a fill node of this object; count is 0).
 *  Like:    cuGraphExecMemsetNodeSetParams, hipGraphExecMemsetNodeSetParams. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_set_fill(rill_graph_exec exec, rill_graph_node node, void *dst,
                                                             const void *pattern, size_t pattern_size, size_t count);

RILL_EXTERN_C_END

#endif
