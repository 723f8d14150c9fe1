/* Graphs in the language of Graphviz. */
#ifndef RILL_CORE_GRAPH_DOT_H
#define RILL_CORE_GRAPH_DOT_H

#include "core/graph/graph.h"

/* Writes the first `room` bytes, the last of them 0; `text` may be NULL if that is 0.  How many there are in all, the 0
 * among them.  Under the lock of graphs. */
size_t rill__graph_dot(const struct rill__graph *graph, char *text, size_t room);

#endif
