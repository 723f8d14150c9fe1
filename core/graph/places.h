/* Nodes that a stream of a capture has come to, and that a captured event stands for.
 *
 * A place is no node, one node, or all nodes of several places, which is a join.  A join is referenced by who keeps it,
 * and never changes while there are two: so a record copies a place, and a wait adds one part to a join, however many
 * nodes there are.  Who adds a node after a place goes through it, each join once, and makes an edge for each node.
 *
 * All under the lock of graphs.  The nodes of a capture that has ended may have been destroyed: then places are only
 * dropped. */
#ifndef RILL_CORE_GRAPH_PLACES_H
#define RILL_CORE_GRAPH_PLACES_H

#include <stdbool.h>
#include <stdint.h>

struct rill__graph_node;

struct rill__place {
  struct rill__graph_node *node; /* at most one of the two */
  struct rill__join *join;       /* referenced by who keeps the place */
};

void rill__place_keep(struct rill__place place);
void rill__place_drop(struct rill__place *place); /* to no node */

/* Adds the nodes of another place; false without host memory. */
bool rill__place_add(struct rill__place *place, struct rill__place other);

/* Goes through the nodes; one may come several times.  There is one walk at a time. */
struct rill__place_walk {
  struct rill__graph_node *node; /* of a place without a join */
  struct rill__join *at;
  uint64_t number;
};
struct rill__place_walk rill__place_walk(struct rill__place place);
struct rill__graph_node *rill__place_next(struct rill__place_walk *walk); /* NULL at the end */

#endif
