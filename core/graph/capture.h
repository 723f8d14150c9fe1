/* Captures: work that is given to streams becomes nodes of a graph.
 *
 * A capture has members: the stream that it was begun on, and those that have come to it by waiting for an event that
 * was recorded in it.  Submissions to a member are diverted (core/sync/submit.h).  Each member has a place: the nodes
 * that its next node comes after.  An event that is recorded in a capture stands for the place of its stream.
 *
 * The lock of graphs (core/graph/graph.h) guards captures, members, and what captured events stand for.  Who finds a
 * stream diverted looks again under the lock: if it has no member any more, the submission goes on to the driver.
 *
 * Of a stream that others have a native handle of, the driver captures what they submit (`others_begin` of backends).
 * When the next node of rill's own comes, and at the end, that piece becomes one node.
 *
 * An explicit node is captured, too: on a stream that exists for that call alone and has the nodes that it is to come
 * after in its list.  So every node is made in one way. */
#ifndef RILL_CORE_GRAPH_CAPTURE_H
#define RILL_CORE_GRAPH_CAPTURE_H

#include "core/graph/places.h"
#include "core/operation/operation.h"

struct rill__attachment;
struct rill__captured_free;
struct rill__graph;
struct rill__graph_node;

/* What a capturing stream is part of. */
struct rill__capture_member {
  struct rill__capture *capture; /* NULL: of an explicit node */
  struct rill__graph *graph;
  struct rill__stream *stream; /* kept, if it has a capture */
  struct rill__capture_member *next;
  struct rill__place place;
  struct rill__graph_node **after; /* what an explicit node comes after; of a capture: room to list its place */
  size_t count, room;
  struct rill__graph_node *last;     /* the node that was added last */
  struct rill__captured_free *frees; /* to be made at the end of the capture */
  struct rill__attachment *attached; /* of the execution objects that it was given; the graph's at the end */
  bool others;                       /* its native stream is captured, since others may submit to it */
  struct rill__operation **collect;  /* not NULL: operations go here instead of a graph */
};

/* A stream for one explicit node, that no backend knows. */
struct rill__node_stream {
  struct rill__stream stream;
  struct rill__capture_member member;
};
void rill__node_stream_init(struct rill__node_stream *stream, struct rill__device *device);

/* How many captures are active. */
extern _Atomic uint32_t rill__captures_active;

/* ---- the life of a capture ---- */

/* `into`: a graph to add to, after nodes of it; or NULL.  The stream is usable and its device active. */
struct rill__capture_start {
  uint32_t mode;
  struct rill__graph *into;
  struct rill__graph_node *const *after;
  size_t after_count;
};
rill_status rill__capture_begin(struct rill__stream *stream, const struct rill__capture_start *start);

/* Ends the capture that was begun on the stream, whether its graph is right or not: it has a reference then, which is
 * the caller's.  `abort`: without a graph, and OK if there is no capture. */
rill_status rill__capture_end(struct rill__stream *stream, bool abort, struct rill__graph **out);

/* The stream's last reference has gone. */
void rill__capture_abandon(struct rill__stream *stream);

struct rill__capture_state {
  uint64_t id;    /* 0: the stream is not capturing */
  uint64_t graph; /* its handle */
};
void rill__capture_look(struct rill__stream *stream, struct rill__capture_state *state);

/* Lists what the stream's next node comes after: up to `room` nodes at `nodes`; `count`: how many there are, 0 if the
 * stream is not capturing. */
rill_status rill__capture_get_place(struct rill__stream *stream, rill_graph_node *nodes, size_t room, size_t *count);

/* The next node comes after these nodes of the capture's graph, alone or as well (`add`). */
rill_status rill__capture_set_place(struct rill__stream *stream, const rill_graph_node *nodes, size_t count, bool add);

/* ---- what a capturing stream is given ---- */

/* Adds a node; takes the operation over in any case.  `taken` false: the stream is not capturing any more. */
rill_status rill__capture_add(struct rill__stream *stream, struct rill__operation *operation, bool *taken);

/* A free of memory of the capture's own graph becomes a node; `taken` false: it is no memory of the graph, or the
 * stream is not capturing any more. */
rill_status rill__capture_free(struct rill__stream *stream, void *p, bool *taken);

/* A free of other memory, which is made when the capture ends: `end` is called without locks, and owns the struct.
 * False if the stream is not capturing any more. */
struct rill__captured_free {
  struct rill__captured_free *next;
  void (*end)(struct rill__stream *stream, struct rill__captured_free *deferred);
};
bool rill__capture_defer(struct rill__stream *stream, struct rill__captured_free *deferred);

/* The nodes of an execution object, which nobody else changes meanwhile, become nodes of the capture. */
rill_status rill__capture_exec(struct rill__stream *stream, const struct rill__graph_exec *exec, bool *taken);

/* A record or wait where the stream or the event is captured, or was; `taken` false: neither is. */
rill_status rill__capture_record(struct rill__stream *stream, struct rill__event *event, uint32_t flags, bool *taken);
rill_status rill__capture_wait(struct rill__stream *stream, struct rill__event *event, uint32_t flags, bool *taken);

/* Fails since streams are held for the event's first record. */
rill_status rill__capture_fail_awaited(const struct rill__stream *stream, const struct rill__event *event)
    __attribute__((cold));

/* The event stands for a place in a capture no more. */
void rill__capture_leave_event(struct rill__event *event, enum rill__event_state after);

/* ---- what would break captures ---- */

/* Shares the native stream by `share` under the lock, so that no capture begins without what others submit; refused
 * while a capture is under way that began so. */
rill_status rill__capture_share(struct rill__stream *stream, bool (*share)(struct rill__stream *stream), bool *out);

/* Refuses a call about a capturing stream. */
rill_status rill__capture_refuse(struct rill__stream *stream) __attribute__((cold));

/* Refuses a call that waits for work of the device: while a stream of it captures so that this thread must not.
 * `any`: in any mode. */
rill_status rill__capture_check_slowly(struct rill__device *device, bool any) __attribute__((cold));
static inline rill_status rill__capture_check(struct rill__device *device, bool any) {
  if (RILL__LIKELY(atomic_load_explicit(&rill__captures_active, memory_order_relaxed) == 0)) return RILL_OK;
  return rill__capture_check_slowly(device, any);
}

/* For fork: in the child nothing is captured. */
void rill__captures_after_fork(void);

#endif
