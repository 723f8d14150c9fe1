/* rill/capture.h: graphs captured from the work submitted to streams.
 *
 * Between begin and end, work submitted to the stream does not run. It becomes nodes of a graph, in stream order.
 *
 *     rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL);
 *     rill_copy_async(stream, x, host, bytes);
 *     rill_stream_launch(stream, kernel, &launch, RILL_ARGS(n, x));
 *     rill_stream_capture_end(stream, &graph);
 *
 * Another stream joins the capture by waiting for an event recorded in it, and must be joined back before the capture
 * ends: record an event on the other stream after its work, and make the first stream wait for this event.
 *
 * Memory that rill_alloc_async returns in a capture belongs to the graph. The address is valid immediately, but only
 * launches of the graph may use the memory. The memory is freed when both the graph and its execution object are
 * destroyed. A graph with such memory has at most one execution object at a time. If rill_free_async frees other
 * memory in a capture, the free takes effect when the capture ends, and the graph must not use the memory. Launching
 * an execution object on a capturing stream adds its nodes to the capture.
 *
 * Pitfall: captured work has not run. The host can neither wait for it nor query it. A call that would invalidate the
 * capture is refused with CAPTURE_ACTIVE, and the capture continues.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_CAPTURE_H
#define RILL_CAPTURE_H

#include <rill/base.h>
#include <rill/graph.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Modes of a capture. The mode selects the threads in which calls that may block, such as rill_free, are refused
 *  during the capture. */
enum {
  RILL_CAPTURE_GLOBAL = 0, /**< all threads; only the thread that began the capture can end it */
  RILL_CAPTURE_THREAD = 1, /**< the thread that began the capture; only this thread can end it */
  RILL_CAPTURE_RELAXED = 2 /**< none; any thread can end the capture */
};

/** Begins a capture on the stream. Work submitted earlier runs as usual; the graph does not depend on it.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (mode), CAPTURE_ACTIVE (the stream is already capturing),
 *           NOT_READY (the stream is held), UNSUPPORTED (the legacy null stream; RILL_FEATURE_GRAPH), OUT_OF_MEMORY,
 *           DEVICE_LOST, BACKEND.
 *  Like:    cuStreamBeginCapture, hipStreamBeginCapture. */
RILL_API RILL_NODISCARD rill_status rill_stream_capture_begin(rill_stream stream, uint32_t mode);

/** Begins a capture that adds to a graph. The first nodes run after the `after_count` nodes at `after`.
 *  rill_stream_capture_end returns the same graph with another reference. If the capture fails, the added nodes are
 *  removed. Keep a reference to the graph until the capture ends; otherwise the capture fails.
 *
 *  Errors:  those of rill_stream_capture_begin; WRONG_DEVICE; INVALID_ARGUMENT (a node of another graph);
 *           CAPTURE_ACTIVE (another capture adds to the graph).
 *  Like:    cuStreamBeginCaptureToGraph. */
RILL_API RILL_NODISCARD rill_status rill_stream_capture_begin_to_graph(rill_stream stream, rill_graph graph,
                                                                       const rill_graph_node *after, size_t after_count,
                                                                       uint32_t mode);

/** Ends the capture that was begun on the stream, and returns its graph. If the capture has failed, no graph is
 *  returned, and all streams work as before; the text names streams that were not joined back.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (no capture was begun on the stream), CAPTURE_ACTIVE
 *           (another thread began it, and not in relaxed mode; the capture continues), CAPTURE_INVALID, OUT_OF_MEMORY,
 *           DEVICE_LOST, BACKEND.
 *  Threads: those that the mode allows.
 *  Like:    cuStreamEndCapture, hipStreamEndCapture. */
RILL_API RILL_NODISCARD rill_status rill_stream_capture_end(rill_stream stream, rill_graph *out);

/** Ends the capture that was begun on the stream, and discards its nodes. Returns OK if there is no capture, for use
 *  on error paths.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (the stream joined a capture of another stream),
 *           CAPTURE_ACTIVE (another thread began it, and not in relaxed mode).
 *  Threads: those that the mode allows.
 *  Like:    cuStreamEndCapture and cuGraphDestroy. */
RILL_API RILL_NODISCARD rill_status rill_stream_capture_abort(rill_stream stream);

/** Returns the id of the capture that the stream is part of, or 0 if there is none. Ids are unique in the process.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuStreamGetCaptureInfo, hipStreamGetCaptureInfo. */
RILL_API RILL_NODISCARD rill_status rill_stream_capture_id(rill_stream stream, uint64_t *out);

/** Returns the graph to which the stream's capture adds nodes, or null if there is none. The graph is borrowed until
 *  the capture ends.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuStreamGetCaptureInfo_v2, hipStreamGetCaptureInfo_v2. */
RILL_API RILL_NODISCARD rill_status rill_stream_capture_graph(rill_stream stream, rill_graph *out);

/** Lists the nodes on which the stream's next node in the capture depends. Pass the capacity of `nodes` in `*count`;
 *  the call sets `*count` to the number of nodes (0 if the stream is not capturing) and writes as many as fit.
 *  `nodes` may be NULL if `*count` is 0.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, CAPTURE_INVALID, OUT_OF_MEMORY, BACKEND.
 *  Like:    cuStreamGetCaptureInfo_v2, hipStreamGetCaptureInfo_v2. */
RILL_API RILL_NODISCARD rill_status rill_stream_capture_get_dependencies(rill_stream stream, rill_graph_node *nodes,
                                                                         size_t *count);

/** Makes the stream's next node in the capture depend on `count` nodes of the capture's graph. They replace the
 *  current dependencies, or are added to them if `add` is true. Work that other code has submitted to the native stream
 *  so far is added to the capture first.
 *
 *  If this leaves nodes of the capture on which nothing depends, ending the capture fails. Nodes that the graph had
 *  before the capture are exempt.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE (including a node), INVALID_ARGUMENT (the stream is not capturing; a node of
 *           another graph), CAPTURE_INVALID, OUT_OF_MEMORY, BACKEND.  After a failure, nothing has changed.
 *  Like:    cuStreamUpdateCaptureDependencies, hipStreamUpdateCaptureDependencies. */
RILL_API RILL_NODISCARD rill_status rill_stream_capture_set_dependencies(rill_stream stream,
                                                                         const rill_graph_node *nodes, size_t count,
                                                                         bool add);

RILL_EXTERN_C_END

#endif
