/* Adding one explicit node by a public function. */
#ifndef RILL_CORE_GRAPH_BUILDING_H
#define RILL_CORE_GRAPH_BUILDING_H

#include "core/graph/capture.h"
#include "core/graph/graph.h"

struct rill__building {
  rill_graph_node *out, node;
  struct rill__graph *graph;
  struct rill__node_stream stream;
  struct rill__graph_node *few[4]; /* room for a few predecessors */
};

/* Finds the node of a handle, which has to be a node of the graph. */
rill_status rill__find_node_of(const struct rill__graph *graph, rill_graph_node node, const char *what,
                               struct rill__graph_node **out);

/* Fails because all nodes of a graph must belong to its device. */
rill_status rill__graph_fail_device(const struct rill__graph *graph, const struct rill__object *other)
    __attribute__((cold));
static inline rill_status rill__graph_check_device(const struct rill__graph *graph, const struct rill__object *other) {
  return graph->base.device == other->device ? RILL_OK : rill__graph_fail_device(graph, other);
}

/* Checks an event that a node will record or wait for. */
rill_status rill__graph_check_event(const struct rill__graph *graph, const struct rill__event *event, bool records);

rill_status rill__building_find_after(struct rill__building *building, const rill_graph_node *after, size_t count);
rill_status rill__building_check(const struct rill__building *building);

/* Sets the handle of the new node.  `status`: the result of the submission.  If nothing was submitted, because there
 * was nothing to do, adds an empty node. */
rill_status rill__building_finish(struct rill__building *building, rill_status status);

/* Writes `out`.  It does so last, because `out` may point into `after`. */
void rill__building_end(struct rill__building *building);

/* Opens a public function that adds a node. */
#define RILL_ENTER_NODE()                                                      \
  struct rill__building building __attribute__((cleanup(rill__building_end))); \
  building.out = out;                                                          \
  building.node = RILL_NULL_GRAPH_NODE;                                        \
  building.stream.member.after = building.few;                                 \
  RILL_ENTER();                                                                \
  RILL_RESOLVE(RILL__GRAPH, graph, "graph", &building.graph);                  \
  rill__node_stream_init(&building.stream, building.graph->base.device);       \
  building.stream.member.graph = building.graph;                               \
  struct rill__stream *const s = &building.stream.stream;                      \
  RILL_TRY(rill__building_find_after(&building, after, after_count))

#endif
