/* What capture.c, the life of captures, and capture_nodes.c, what they are given, share.  All under the lock of graphs.
 */
#ifndef RILL_CORE_GRAPH_CAPTURE_PARTS_H
#define RILL_CORE_GRAPH_CAPTURE_PARTS_H

#include "core/graph/capture.h"

#include <sys/types.h>

struct rill__capture {
  uint32_t references; /* that of the members, and of events */
  bool ended;
  bool broken; /* the driver has ended what others submitted as invalid */
  uint32_t mode;
  uint64_t id;
  uint32_t first; /* node of the graph that is its own */
  struct rill__graph *graph;
  uint64_t thread;                      /* that began it: rill__self->number */
  pid_t thread_id;                      /* for texts */
  struct rill__capture_member *members; /* the last is the first that there was */
  struct rill__capture *next;           /* of all that are active */
  char origin[112];                     /* the name of its stream */
};

/* What a captured event stands for. */
struct rill__captured_point {
  struct rill__capture *capture;
  size_t count;
  struct rill__graph_node *nodes[];
};

void rill__capture_unref(struct rill__capture *capture);
rill_status rill__capture_no_memory(void);

/* Makes the stream a member, after `nodes`, and diverts its submissions, unless it is held. */
rill_status rill__capture_join(struct rill__capture *capture, struct rill__stream *stream,
                               struct rill__graph_node *const *nodes, size_t count);

bool rill__member_add_to_cursor(struct rill__capture_member *member, struct rill__graph_node *const *nodes,
                                size_t count);
/* Takes the operation over in any case. */
rill_status rill__member_add_node(struct rill__capture_member *member, struct rill__operation *operation);
/* What others have given to the native stream becomes a node.  `again`: the capture goes on. */
rill_status rill__member_take_others(struct rill__capture_member *member, bool again);

#endif
