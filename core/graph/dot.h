/* Graphs in the DOT language of Graphviz. */
#ifndef RILL_CORE_GRAPH_DOT_H
#define RILL_CORE_GRAPH_DOT_H

#include "core/graph/graph.h"

/* Writes the first `room` bytes of the text, ending with a 0; `text` may be NULL if `room` is 0.  Returns the size of
 * the complete text, including its 0.  Call it under the lock of graphs. */
size_t rill__graph_dot(const struct rill__graph *graph, char *text, size_t room);

#endif
