/* Shared by capture.c (beginning and ending captures) and capture_nodes.c (submissions to them).  Call all functions
 * under the lock of graphs. */
#ifndef RILL_CORE_GRAPH_CAPTURE_PARTS_H
#define RILL_CORE_GRAPH_CAPTURE_PARTS_H

#include "core/graph/capture.h"

#include <sys/types.h>

struct rill__capture {
  struct rill__capture_member origin; /* member of the stream that the capture was begun on */
  _Atomic uint32_t references;        /* one for all members together, and one for each captured event */
  bool ended;
  bool broken; /* the driver has invalidated its capture of other code's work */
  uint32_t mode;
  uint64_t id;
  uint64_t first; /* mark before the nodes that this capture added */
  struct rill__graph *graph;
  uint64_t thread;                      /* thread that began the capture: rill__self->number */
  pid_t thread_id;                      /* for messages */
  struct rill__capture_member *members; /* the last one is `origin` */
  struct rill__capture *next, **link;   /* list of all active captures of the backend */
  /* list of the captures that refuse calls: the global ones, or those of the thread */
  struct rill__capture *next_refusing, **link_refusing;
};

/* The point in a capture that a captured event stands for. */
struct rill__captured_point {
  struct rill__capture *capture;
  struct rill__place place;
};

void rill__capture_unref(struct rill__capture *capture);
struct rill__name rill__capture_name(const struct rill__capture *capture); /* for a capture that has not ended */
rill_status rill__capture_no_memory(void);

/* Makes the stream a member at a place, and diverts its submissions.  Fails if the stream is held. */
rill_status rill__capture_join(struct rill__capture *capture, struct rill__stream *stream, struct rill__place place);

/* Lists the nodes of a member's place, each once, in `after` and `count`. */
rill_status rill__member_list_place(struct rill__capture_member *member);
/* Takes over the operation, even on failure. */
rill_status rill__member_add_node(struct rill__capture_member *member, struct rill__operation *operation);
/* Adds a node for the work that other code has submitted to the native stream.  `again`: the capture continues. */
rill_status rill__member_take_foreign(struct rill__capture_member *member, bool again);

#endif
