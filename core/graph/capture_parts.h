/* What capture.c, the life of captures, and capture_nodes.c, what they are given, share.  All under the lock of graphs.
 */
#ifndef RILL_CORE_GRAPH_CAPTURE_PARTS_H
#define RILL_CORE_GRAPH_CAPTURE_PARTS_H

#include "core/graph/capture.h"

#include <sys/types.h>

struct rill__capture {
  struct rill__capture_member origin; /* of the stream that it was begun on */
  _Atomic uint32_t references;        /* that of the members, and of events */
  bool ended;
  bool broken; /* the driver has ended what others submitted as invalid */
  uint32_t mode;
  uint64_t id;
  uint32_t first; /* node of the graph that is its own */
  struct rill__graph *graph;
  uint64_t thread;                      /* that began it: rill__self->number */
  pid_t thread_id;                      /* for texts */
  struct rill__capture_member *members; /* the last is `origin` */
  struct rill__capture *next, **link;   /* of all that are active, of one backend */
  struct rill__capture *next_refusing,  /* of those that refuse calls: global ones, or the thread's own ones */
      **link_refusing;
};

/* What a captured event stands for. */
struct rill__captured_point {
  struct rill__capture *capture;
  struct rill__place place;
};

void rill__capture_unref(struct rill__capture *capture);
struct rill__name rill__capture_name(const struct rill__capture *capture); /* of one that has not ended */
rill_status rill__capture_no_memory(void);

/* Makes the stream a member at a place, and diverts its submissions, unless it is held. */
rill_status rill__capture_join(struct rill__capture *capture, struct rill__stream *stream, struct rill__place place);

/* Lists the nodes of the place of a member of a capture, each once: `after` and `count`. */
rill_status rill__member_list_place(struct rill__capture_member *member);
/* Takes the operation over in any case. */
rill_status rill__member_add_node(struct rill__capture_member *member, struct rill__operation *operation);
/* What others have given to the native stream becomes a node.  `again`: the capture goes on. */
rill_status rill__member_take_others(struct rill__capture_member *member, bool again);

#endif
