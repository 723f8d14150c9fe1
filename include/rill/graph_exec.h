/* rill/graph_exec.h: graphs made ready, launched, and changed.
 *
 * rill_graph_instantiate makes an execution object: a copy of the graph that the device has prepared.  A launch is one
 * call, however many nodes there are.  Arguments and whole nodes can be changed between launches, which costs far less
 * than making another object:
 *
 *     rill_graph_instantiate(graph, &exec);
 *     rill_graph_release(graph);
 *     for (int step = 0; step < steps; step++) {
 *       rill_graph_exec_set_kernel_arg(exec, scaled, 1, &factor[step], sizeof factor[step]);
 *       rill_graph_launch(exec, stream);
 *     }
 *
 * One object never runs twice at a time: a launch comes after those before it, on whatever stream they were.  Calls
 * about one object are made one after another.  A driver may make a launch wait for the device, when its queue is full:
 * calls about that object then wait for the launch, no others.
 *
 * The thing people get wrong: a change is for later launches.  Those that have been made keep what they had.
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

/** Makes a graph ready to be launched.  The graph may be changed or released afterwards; its nodes are what changes of
 *  the execution object name.  May block while a driver prepares the graph.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, CAPTURE_ACTIVE (a capture adds to the graph),
 *           OUT_OF_MEMORY, UNSUPPORTED, DEVICE_LOST, BACKEND.
 *  Like:    cuGraphInstantiate, hipGraphInstantiate. */
RILL_API RILL_NODISCARD rill_status rill_graph_instantiate(rill_graph graph, rill_graph_exec *out);

/** Options of rill_graph_instantiate_with_options. */
typedef struct rill_graph_exec_options {
  size_t struct_size;
  bool auto_free_on_launch; /**< launches may follow one another without frees of what the graph allocates: they always
                                 may, since its memory has one address for all of them */
  const char *label;        /**< names the object in errors; copied; may be NULL */
} rill_graph_exec_options;
#define RILL_GRAPH_EXEC_OPTIONS_INIT \
  { sizeof(rill_graph_exec_options), false, NULL }
/** Options in place, in C and C++: rill_graph_instantiate_with_options(g, RILL_GRAPH_EXEC_OPTIONS(.label = "step"),
 * &x).
 */
#define RILL_GRAPH_EXEC_OPTIONS(...) RILL_OPTIONS_(rill_graph_exec_options, __VA_ARGS__)
RILL_OPTIONS_FIELDS_(rill_graph_exec_options, RILL_OPTIONS_FIELD_(auto_free_on_launch) RILL_OPTIONS_FIELD_(label))

/** The same with options.  NULL options are all defaults.
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

/** Drops a reference; never blocks.  Launches that were made still run to their end, and what they use is kept until
 *  then.  Zero: nothing happens.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE.
 *  Like:    cuGraphExecDestroy, hipGraphExecDestroy. */
RILL_API rill_status rill_graph_exec_release(rill_graph_exec exec);

/** Launches the graph as work of the stream.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, WRONG_DEVICE, NOT_READY (launches are queued on a held stream),
 *           OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Threads: any; calls about one execution object are made one after another.
 *  Like:    cuGraphLaunch, hipGraphLaunch. */
RILL_API RILL_NODISCARD rill_status rill_graph_launch(rill_graph_exec exec, rill_stream stream);

/** Gives later launches the nodes of another graph of the same shape: as many nodes, in the order in which they were
 *  added, of the same kinds, with the same edges and kernels.  Single changes made before are gone.  From then on the
 *  execution object keeps what the nodes of `graph` use, and its user objects.  What it kept before is freed in this
 *  call, or when launches that were made before have completed; the ids of the first graph's nodes still name the
 *  steps.  On failure the execution object is as it was; the text names the node and what differs.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, WRONG_DEVICE, INVALID_ARGUMENT (another shape), CAPTURE_ACTIVE, UNSUPPORTED,
 *           OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Threads: as rill_graph_launch.
 *  Like:    cuGraphExecUpdate, hipGraphExecUpdate. */
RILL_API RILL_NODISCARD rill_status rill_graph_update(rill_graph_exec exec, rill_graph graph);

/** Why an update was refused. */
enum {
  RILL_UPDATE_NONE = 0, /**< it was not; or for a cause that is no difference between the graphs: see the status */
  RILL_UPDATE_COUNT,    /**< another number of nodes */
  RILL_UPDATE_KIND,     /**< a node of another kind */
  RILL_UPDATE_KERNEL,   /**< a launch of another kernel */
  RILL_UPDATE_EDGES,    /**< a node that comes after other nodes */
  RILL_UPDATE_MEMORY,   /**< memory of the graph is another execution object's */
  RILL_UPDATE_DRIVER    /**< the driver cannot make the change */
};

/** Why rill_graph_update_with_result refused a graph, and at which node. */
typedef struct rill_graph_update_result {
  size_t struct_size;
  rill_graph_node node; /**< of the graph that was given, the first one that could not take its place; null: none */
  uint32_t reason;      /**< RILL_UPDATE_* */
} rill_graph_update_result;
#define RILL_GRAPH_UPDATE_RESULT_INIT \
  { sizeof(rill_graph_update_result), { 0 }, 0 }

/** The same, and says which node was the cause of a refusal.  `result` is written on failure, too.
 *
 *  Errors:  those of rill_graph_update.
 *  Threads: as rill_graph_launch.
 *  Like:    cuGraphExecUpdate with its CUgraphExecUpdateResultInfo, hipGraphExecUpdate. */
RILL_API RILL_NODISCARD rill_status rill_graph_update_with_result(rill_graph_exec exec, rill_graph graph,
                                                                  rill_graph_update_result *result);

/** Does ahead what the first launch on a stream would do, as work of the stream.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, WRONG_DEVICE, NOT_READY (the stream is held, or launches are queued on one),
 *           CAPTURE_ACTIVE (the stream is capturing), UNSUPPORTED (the driver has no such function), DEVICE_LOST,
 *           BACKEND.
 *  Threads: as rill_graph_launch.
 *  Like:    cuGraphUpload, hipGraphUpload. */
RILL_API RILL_NODISCARD rill_status rill_graph_upload(rill_graph_exec exec, rill_stream stream);

/** Returns the native execution object (CUgraphExec, hipGraphExec_t); 0 on the CPU, and after a change that failed half
 *  way, until the next launch.  It stays rill's.  Who launches it beside rill orders that, and does not change it.  A
 *  change may replace it (docs/guides/GRAPHS.md), so it is asked for again after a change.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuda.core Graph.handle. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_native(rill_graph_exec exec, uintptr_t *out);

/** Returns the native graph (CUgraph, hipGraph_t) that the object was made from; 0 on the CPU.  It stays rill's, and as
 *  it was at instantiation, or was replaced with the object.  A rill_graph has none before.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuda.core GraphDefinition.handle. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_native_graph(rill_graph_exec exec, uintptr_t *out);

/** Changes one argument of a kernel node, counted from 0, for later launches.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (no kernel node of this object; the size differs from the
 *           argument's; data is NULL), OUT_OF_RANGE (index), UNSUPPORTED (a launch with constants), OUT_OF_MEMORY,
 *           DEVICE_LOST, BACKEND.
 *  Threads: as rill_graph_launch.
 *  Like:    cuGraphExecKernelNodeSetParams, hipGraphExecKernelNodeSetParams. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_set_kernel_arg(rill_graph_exec exec, rill_graph_node node,
                                                                   uint32_t index, const void *data, size_t size);

/** Changes shape and arguments of a kernel node for later launches; the kernel stays.
 *
 *  Errors:  those of rill_graph_add_kernel and rill_graph_exec_set_kernel_arg.
 *  Threads: as rill_graph_launch.
 *  Like:    cuGraphExecKernelNodeSetParams, hipGraphExecKernelNodeSetParams. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_set_kernel(rill_graph_exec exec, rill_graph_node node,
                                                               const rill_launch *launch, const rill_arg *args,
                                                               size_t arg_count);

/** Gives a kernel node another kernel, with shape and arguments, for later launches.  From then on rill_graph_update
 *  takes graphs whose nodes launch other kernels than those of the object.
 *
 *  Errors:  those of rill_graph_exec_set_kernel; WRONG_DEVICE, WRONG_BACKEND (the kernel's device).
 *  Threads: as rill_graph_launch.
 *  Like:    cuGraphExecKernelNodeSetParams, hipGraphExecKernelNodeSetParams. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_replace_kernel(rill_graph_exec exec, rill_graph_node node,
                                                                   rill_kernel kernel, const rill_launch *launch,
                                                                   const rill_arg *args, size_t arg_count);

/** Gives a host call node another function for later launches.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (no host call node of this object; fn is NULL), NOT_READY
 *           (launches are queued on a held stream), UNSUPPORTED, OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Threads: as rill_graph_launch.
 *  Like:    cuGraphExecHostNodeSetParams, hipGraphExecHostNodeSetParams. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_set_host_call(rill_graph_exec exec, rill_graph_node node,
                                                                  rill_host_fn fn, void *user);

/** Gives a node that records or waits for an event another event for later launches.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, WRONG_DEVICE (an event to record), WRONG_BACKEND, INVALID_ARGUMENT (no such
 *           node of this object; a stream's cached event to record), NOT_READY (launches are queued on a held stream),
 *           UNSUPPORTED, OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Threads: as rill_graph_launch.
 *  Like:    cuGraphExecEventRecordNodeSetEvent, cuGraphExecEventWaitNodeSetEvent, and HIP's of these names. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_set_event(rill_graph_exec exec, rill_graph_node node,
                                                              rill_event event);

/** Disables a kernel, copy or fill node for later launches, or enables it again.  A disabled node does nothing, and
 *  what comes after it still comes after what comes before it.  It can be changed meanwhile, which counts when it is
 *  enabled; rill_graph_update enables all nodes.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (no node of this object, or of another kind), NOT_READY
 *           (launches are queued on a held stream), UNSUPPORTED, OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Threads: as rill_graph_launch.
 *  Like:    cuGraphNodeSetEnabled, hipGraphNodeSetEnabled. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_set_enabled(rill_graph_exec exec, rill_graph_node node,
                                                                bool enabled);

/** Returns whether a kernel, copy or fill node is enabled; all are at first.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (no node of this object, or of another kind).
 *  Like:    cuGraphNodeGetEnabled, hipGraphNodeGetEnabled. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_is_enabled(rill_graph_exec exec, rill_graph_node node, bool *out);

/** Changes a copy node for later launches.
 *
 *  Errors:  those of rill_graph_add_copy; INVALID_ARGUMENT (no copy node of this object, n is 0).
 *  Threads: as rill_graph_launch.
 *  Like:    cuGraphExecMemcpyNodeSetParams, hipGraphExecMemcpyNodeSetParams1D. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_set_copy(rill_graph_exec exec, rill_graph_node node, void *dst,
                                                             const void *src, size_t n);

/** Changes a fill node for later launches.
 *
 *  Errors:  those of rill_graph_add_fill; INVALID_ARGUMENT (no fill node of this object, count is 0).
 *  Threads: as rill_graph_launch.
 *  Like:    cuGraphExecMemsetNodeSetParams, hipGraphExecMemsetNodeSetParams. */
RILL_API RILL_NODISCARD rill_status rill_graph_exec_set_fill(rill_graph_exec exec, rill_graph_node node, void *dst,
                                                             const void *pattern, size_t pattern_size, size_t count);

RILL_EXTERN_C_END

#endif
