/* rill/capture.h: graphs made of the work that streams are given.
 *
 * Between begin and end, what the stream is given does not run: it becomes nodes of a graph, in its order.
 *
 *     rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL);
 *     rill_copy_async(stream, x, host, bytes);
 *     rill_stream_launch(stream, kernel, &launch, RILL_ARGS(n, x));
 *     rill_stream_capture_end(stream, &graph);
 *
 * Another stream comes to the capture by waiting for an event that was recorded in it, and has to come back the same
 * way: the first stream waits for an event that was recorded on the other one after its work.
 *
 * Memory that rill_alloc_async gives in a capture is the graph's: it has its address at once, is used by the graph's
 * launches alone, and goes back when the graph and its execution object have ended.  Such a graph has one execution
 * object at a time.  rill_free_async of other memory takes effect when the capture ends: the graph must not use it.
 * Launching an execution object on a capturing stream adds its nodes.
 *
 * The thing people get wrong: nothing has happened yet.  The host cannot wait for work that is captured, nor ask for
 * it: a call that would break the capture is refused with CAPTURE_ACTIVE, and the capture goes on.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_CAPTURE_H
#define RILL_CAPTURE_H

#include <rill/base.h>
#include <rill/graph.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Which threads a capture keeps from calls that may wait for work, such as rill_free. */
enum {
  RILL_CAPTURE_GLOBAL = 0, /**< all threads; the thread that began it ends it */
  RILL_CAPTURE_THREAD = 1, /**< the thread that began it, which ends it */
  RILL_CAPTURE_RELAXED = 2 /**< none; any thread ends it */
};

/** Begins a capture on the stream.  Work that it was given before runs as ever, and no part of the graph comes after
 * it.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (mode), CAPTURE_ACTIVE (the stream captures already),
 *           NOT_READY (the stream is held), UNSUPPORTED (the legacy null stream; RILL_FEATURE_GRAPH), OUT_OF_MEMORY,
 *           DEVICE_LOST, BACKEND.
 *  Like:    cuStreamBeginCapture, hipStreamBeginCapture. */
RILL_API RILL_NODISCARD rill_status rill_stream_capture_begin(rill_stream stream, uint32_t mode);

/** The same, adding to a graph: the first nodes come after the `after_count` nodes at `after`.  Its end gives the graph
 *  again, with another reference; if the capture fails, what it added has gone.  The graph is to be kept until
 *  then: else the capture fails.
 *
 *  Errors:  those of rill_stream_capture_begin; WRONG_DEVICE; INVALID_ARGUMENT (a node of another graph);
 *           CAPTURE_ACTIVE (another capture adds to the graph).
 *  Like:    cuStreamBeginCaptureToGraph. */
RILL_API RILL_NODISCARD rill_status rill_stream_capture_begin_to_graph(rill_stream stream, rill_graph graph,
                                                                       const rill_graph_node *after, size_t after_count,
                                                                       uint32_t mode);

/** Ends the capture that was begun on the stream, and returns its graph.  If the capture has failed there is no graph,
 *  and all streams are as before; the text names streams that did not come back.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (no capture was begun on the stream), CAPTURE_ACTIVE
 *           (another thread began it, and not in relaxed mode; it goes on), CAPTURE_INVALID, OUT_OF_MEMORY,
 *           DEVICE_LOST, BACKEND.
 *  Threads: as the mode says.
 *  Like:    cuStreamEndCapture, hipStreamEndCapture. */
RILL_API RILL_NODISCARD rill_status rill_stream_capture_end(rill_stream stream, rill_graph *out);

/** Ends the capture that was begun on the stream, without a graph.  OK if there is none, for the paths of errors.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (the stream has come to a capture of another one),
 *           CAPTURE_ACTIVE (another thread began it, and not in relaxed mode).
 *  Threads: as the mode says.
 *  Like:    cuStreamEndCapture and cuGraphDestroy. */
RILL_API RILL_NODISCARD rill_status rill_stream_capture_abort(rill_stream stream);

/** Returns the number of the capture that the stream is part of, unique in the process; 0 if there is none.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuStreamGetCaptureInfo, hipStreamGetCaptureInfo. */
RILL_API RILL_NODISCARD rill_status rill_stream_capture_id(rill_stream stream, uint64_t *out);

/** Returns the graph that the stream's capture adds to, borrowed until the capture ends; null if there is none.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuStreamGetCaptureInfo_v2, hipStreamGetCaptureInfo_v2. */
RILL_API RILL_NODISCARD rill_status rill_stream_capture_graph(rill_stream stream, rill_graph *out);

/** Lists the nodes that the stream's next node in the capture comes after.  `*count` is how many `nodes` has room for,
 *  and becomes how many there are, 0 if the stream is not capturing; as many as there is room for are written.  `nodes`
 *  may be NULL if `*count` is 0.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, CAPTURE_INVALID, OUT_OF_MEMORY, BACKEND.
 *  Like:    cuStreamGetCaptureInfo_v2, hipStreamGetCaptureInfo_v2. */
RILL_API RILL_NODISCARD rill_status rill_stream_capture_get_dependencies(rill_stream stream, rill_graph_node *nodes,
                                                                         size_t *count);

/** Makes the stream's next node in the capture come after `count` nodes of the capture's graph: instead of those that
 *  it would come after, or, with `add`, after those as well.  Where others submit to the native stream, what they
 *  have submitted so far comes before.
 *
 *  Nodes that nothing comes after any more make the end of the capture fail, unless it adds to a graph that had them.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE (of a node, too), INVALID_ARGUMENT (the stream is not capturing; a node of
 *           another graph), CAPTURE_INVALID, OUT_OF_MEMORY, BACKEND.  After a failure all is as it was.
 *  Like:    cuStreamUpdateCaptureDependencies, hipStreamUpdateCaptureDependencies. */
RILL_API RILL_NODISCARD rill_status rill_stream_capture_set_dependencies(rill_stream stream,
                                                                         const rill_graph_node *nodes, size_t count,
                                                                         bool add);

RILL_EXTERN_C_END

#endif
