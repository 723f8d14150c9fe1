/* Places: the nodes that the next node of a captured stream depends on, and that a captured event stands for.
 *
 * A place is no node, one node, or a join, which is all nodes of several places.  A join has a reference from each
 * place that contains it, and does not change while there is more than one.  So a record copies a place and a wait adds
 * one part to a join, however many nodes there are.  When a node is added after a place, a walk visits each join of the
 * place once, and an edge is created for each node found.
 *
 * Call everything under the lock of graphs.  The nodes of a capture that has ended may have been destroyed; places that
 * contain such nodes may only be dropped. */
#ifndef RILL_CORE_GRAPH_PLACES_H
#define RILL_CORE_GRAPH_PLACES_H

#include <stdbool.h>
#include <stdint.h>

struct rill__graph_node;

struct rill__place {
  struct rill__graph_node *node; /* at most one of the two is not NULL */
  struct rill__join *join;       /* referenced by the place */
};

void rill__place_keep(struct rill__place place);
void rill__place_drop(struct rill__place *place); /* makes the place empty */

/* Adds the nodes of another place; returns false if there is no host memory. */
bool rill__place_add(struct rill__place *place, struct rill__place other);

/* Iterates over the nodes; a node may be returned several times.  Only one walk may be active at a time. */
struct rill__place_walk {
  struct rill__graph_node *node; /* node of a place without a join */
  struct rill__join *at;
  uint64_t number;
};
struct rill__place_walk rill__place_walk(struct rill__place place);
struct rill__graph_node *rill__place_next(struct rill__place_walk *walk); /* NULL at the end */

#endif
