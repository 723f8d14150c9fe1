/* Captures: work that is submitted to streams becomes nodes of a graph.
 *
 * A capture has members: the stream that it was begun on, and the streams that have joined it by waiting for an event
 * recorded in it.  Submissions to a member are diverted (core/sync/submit.h).  Each member has a place: the nodes that
 * its next node depends on.  An event that is recorded in a capture stands for the place of its stream.
 *
 * The lock of graphs (core/graph/graph.h) guards captures, members, and the places of captured events.  A thread that
 * finds a stream diverted checks again under the lock: if the stream has no member any more, the submission goes to the
 * driver.
 *
 * If other code has a native handle of a stream, the driver captures the work that this code submits (`foreign_begin`
 * of backends).  When rill adds the next node, and when the capture ends, the work captured by the driver becomes one
 * node.
 *
 * Explicit nodes are captured in the same way, on a stream that exists only for that call; the `after` of its member
 * lists the predecessors.  So there is only one way to create a node. */
#ifndef RILL_CORE_GRAPH_CAPTURE_H
#define RILL_CORE_GRAPH_CAPTURE_H

#include "core/graph/places.h"
#include "core/operation/operation.h"

struct rill__attachment;
struct rill__captured_free;
struct rill__graph;
struct rill__graph_node;

/* A stream's membership in a capture. */
struct rill__capture_member {
  struct rill__capture *capture; /* NULL for an explicit node */
  struct rill__graph *graph;
  struct rill__stream *stream; /* referenced if there is a capture */
  struct rill__capture_member *next;
  struct rill__place place;
  struct rill__graph_node **after; /* for an explicit node, its predecessors; in a capture, room to list the place */
  size_t count, room;
  struct rill__graph_node *last;     /* node that was added last */
  struct rill__captured_free *frees; /* frees to perform when the capture ends */
  struct rill__attachment *attached; /* user objects of captured execution objects; moved to the graph at the end */
  bool others;                       /* the native stream is being captured, because other code may submit to it */
  struct rill__operation **collect;  /* if not NULL, receives the operation instead of a graph */
};

/* A stream for one explicit node; no backend knows it. */
struct rill__node_stream {
  struct rill__stream stream;
  struct rill__capture_member member;
};
void rill__node_stream_init(struct rill__node_stream *stream, struct rill__device *device);

/* number of active captures */
extern _Atomic uint32_t rill__captures_active;

/* ---- the life of a capture ---- */

/* `into`: a graph to add nodes to, after the nodes `after` of it; or NULL for a new graph.  The stream is usable and
 * its device active. */
struct rill__capture_start {
  uint32_t mode;
  struct rill__graph *into;
  struct rill__graph_node *const *after;
  size_t after_count;
};
rill_status rill__capture_begin(struct rill__stream *stream, const struct rill__capture_start *start);

/* Ends the capture that was begun on the stream, whether or not the capture is valid.  On success the graph has a
 * reference, which belongs to the caller.  `abort`: returns no graph, and RILL_OK if there is no capture. */
rill_status rill__capture_end(struct rill__stream *stream, bool abort, struct rill__graph **out);

/* Ends the stream's capture without a graph.  Called when the stream's last reference was released. */
void rill__capture_abandon(struct rill__stream *stream);

struct rill__capture_state {
  uint64_t id;    /* 0 if the stream is not capturing */
  uint64_t graph; /* handle of the graph */
};
void rill__capture_query(struct rill__stream *stream, struct rill__capture_state *state);

/* Lists the nodes that the stream's next node depends on: up to `room` nodes at `nodes`.  `count`: how many there are;
 * 0 if the stream is not capturing. */
rill_status rill__capture_get_place(struct rill__stream *stream, rill_graph_node *nodes, size_t room, size_t *count);

/* Makes the next node depend on these nodes of the capture's graph, in addition to the current ones if `add` is true.
 */
rill_status rill__capture_set_place(struct rill__stream *stream, const rill_graph_node *nodes, size_t count, bool add);

/* ---- submissions to a capturing stream ---- */

/* Adds a node and takes over the operation, even on failure.  `taken` is false if the stream is no longer capturing. */
rill_status rill__capture_add(struct rill__stream *stream, struct rill__operation *operation, bool *taken);

/* Adds a node for a free of memory that the capture's own graph allocated.  `taken` is false if the graph did not
 * allocate the memory or the stream is no longer capturing. */
rill_status rill__capture_free(struct rill__stream *stream, void *p, bool *taken);

/* Defers a free of other memory to the end of the capture: `end` is then called without locks, and owns the struct.
 * Returns false if the stream is no longer capturing. */
struct rill__captured_free {
  struct rill__captured_free *next;
  void (*end)(struct rill__stream *stream, struct rill__captured_free *deferred);
};
bool rill__capture_defer(struct rill__stream *stream, struct rill__captured_free *deferred);

/* Adds the nodes of an execution object to the capture.  The caller has claimed the object. */
rill_status rill__capture_exec(struct rill__stream *stream, const struct rill__graph_exec *exec, bool *taken);

/* Handle a record or a wait if the stream or the event is captured, or was until just now; `taken` is false if neither
 * is. */
rill_status rill__capture_record(struct rill__stream *stream, struct rill__event *event, uint32_t flags, bool *taken);
rill_status rill__capture_wait(struct rill__stream *stream, struct rill__event *event, uint32_t flags, bool *taken);

/* Fails because streams are held for the event's first record, which a capture would not complete. */
rill_status rill__capture_fail_awaited(const struct rill__stream *stream, const struct rill__event *event)
    __attribute__((cold));

/* Makes the event no longer stand for a place in a capture. */
void rill__capture_leave_event(struct rill__event *event, enum rill__event_state after);

/* ---- calls that would invalidate captures ---- */

/* Calls `share` for the native stream under the lock, so that a capture that begins later also captures what other code
 * submits.  Fails while the stream is in a capture that began before the handle was shared. */
rill_status rill__capture_share(struct rill__stream *stream, bool (*share)(struct rill__stream *stream), bool *out);

/* Refuses a call for a capturing stream. */
rill_status rill__capture_refuse(struct rill__stream *stream) __attribute__((cold));

/* Refuses a call that waits for work of the device, if a stream of the backend is captured in a mode that forbids such
 * calls to this thread.  `any`: in any mode. */
rill_status rill__capture_check_slow(struct rill__device *device, bool any) __attribute__((cold));
static inline rill_status rill__capture_check(struct rill__device *device, bool any) {
  if (RILL__LIKELY(atomic_load_explicit(&rill__captures_active, memory_order_relaxed) == 0)) return RILL_OK;
  return rill__capture_check_slow(device, any);
}

/* Ends all captures in the child of a fork, in which no stream is capturing. */
void rill__captures_after_fork(void);

#endif
