/* Graphs: nodes, each of which is an operation, and the edges between them.
 *
 * One lock, shared by all graphs and captures, guards the nodes and edges of every graph.  It is taken before the lock
 * of held work and the locks of objects, and is never held while a thread waits for work.
 *
 * Nodes are numbered in the order in which they are added.  An edge is stored once, with the node that comes after.
 * While every edge leads to a greater number (`in_order`), an edge in that direction cannot close a cycle.
 *
 * Removing a node leaves a gap in the numbers.  Code that needs numbers without gaps renumbers the nodes first
 * (rill__graph_renumber); a removal also does so when half of the numbers are gaps.  Execution objects and clones refer
 * to nodes by serials, which never change.  The nodes of a page have consecutive serials.
 *
 * Invariants, under the lock
 * - Of the numbers below `count`, `removed` have no node.  A removed node has kind 0, no operation and no edges.
 * - A graph to which a capture adds has gaps only below the capture's nodes, which the capture finds by their serials.
 * - Serials increase with numbers.  Until a node is removed both are equal.
 *
 * Invariants, without the lock
 * - A call that has found a node inside its epoch may read the fields that are constant from the time when the page's
 *   `used` counts the node (the page, its id, graph and serials, the place of the node), and the atomic fields of node
 *   and page.  It reads everything else under the lock, after rill__graph_node_check.
 * - The list of pages changes under the lock, or after the last keeper was dropped, when no call can use the graph. */
#ifndef RILL_CORE_GRAPH_GRAPH_H
#define RILL_CORE_GRAPH_GRAPH_H

#include "core/operation/operation.h"

#include <rill/graph_compose.h>

/* A node is one cache line: the cost of a call that visits one of many nodes is mostly the cache miss. */
enum { RILL__FEW_EDGES = 2 };
struct rill__graph_node {
  _Alignas(64) struct rill__operation *operation; /* referenced; not valid when the page is empty */
  uint32_t *after; /* indexes of the predecessors, in few_after or allocated separately */
  uint32_t after_count, after_room, few_after[RILL__FEW_EDGES];
  uint64_t label; /* this and the next three fields: core/graph/edges.c */
  uint32_t next, before, leaving;
  uint32_t index;
  uint32_t visited;      /* number of the last search that visited the node */
  _Atomic uint16_t kind; /* kind of the operation; 0: the node was removed */
  uint16_t place;        /* position in the page */
};
_Static_assert(sizeof(struct rill__graph_node) == 64, "a node is one cache line");

/* A page of nodes and the object of their handles.  Nodes never move; those of a page are freed together. */
struct rill__node_page {
  struct rill__object base;
  struct rill__graph *graph;
  struct rill__node_page *before, *next; /* pages of the graph */
  uint32_t room;
  uint64_t first;       /* serial of the first node */
  uint32_t live;        /* nodes that have not been removed */
  bool empty;           /* the nodes only have ids, numbers and kinds */
  _Atomic bool retired; /* the nodes no longer belong to a graph; also set without the lock */
  _Atomic uint32_t used;
  struct rill__graph_node nodes[];
};

static inline struct rill__node_page *rill__page_of(const struct rill__graph_node *node) {
  return (struct rill__node_page *)((char *)(uintptr_t)(node - node->place) - offsetof(struct rill__node_page, nodes));
}
static inline struct rill__graph *rill__graph_of(const struct rill__graph_node *node) {
  return rill__page_of(node)->graph;
}
static inline uint64_t rill__node_id(const struct rill__graph_node *node) {
  return rill__page_of(node)->base.id + node->place;
}
/* Returns the number that the node would have if removed nodes were counted as well.  It is never reused, however many
 * nodes the graph has had. */
static inline uint64_t rill__node_serial(const struct rill__graph_node *node) {
  return rill__page_of(node)->first + node->place;
}

struct rill__graph {
  struct rill__object base;
  struct rill__node_page *page;    /* the last page */
  bool closed;                     /* the next node starts a new page */
  struct rill__graph_node **nodes; /* by number; NULL if the node was removed */
  size_t room;
  uint32_t count;   /* number of nodes, including removed ones */
  uint32_t removed; /* number of removed nodes among these */
  uint64_t serials; /* serial of the next node */
  uint32_t edges;
  uint32_t searches;
  bool in_order;
  struct rill__edges *index;         /* see core/graph/edges.c; may be NULL */
  uint64_t cloned_from;              /* handle of the original, if the graph is a clone */
  struct rill__node_names names;     /* the nodes that the original had at that time */
  uint64_t *copies;                  /* handles of their copies, one for each */
  struct rill__graph_memory *memory; /* created by the first free in the graph */
  struct rill__attachment *attached; /* the caller's objects */
  _Atomic uint32_t keepers;          /* sum of RILL__KEEPS_* */
  struct rill__capture *capture;     /* the capture that adds to the graph, or NULL */
};

/* The keepers of a graph's pages, and thus of its nodes' handles.  The graph itself keeps the pages until no call can
 * use their contents.  Each execution object created from the graph also keeps the pages, but nothing else of the
 * graph. */
enum { RILL__KEEPS_CONTENT = 1, RILL__KEEPS_NAMES = 2 };

/* An object of the caller, in the list of a graph or of an execution object.  Its own object calls the caller's
 * function when it loses its last reference: at the end of a call, outside locks. */
struct rill__attachment {
  struct rill__attachment *next;
  struct rill__object *object; /* referenced */
};

/* A hash table, by address, of the memory that the nodes up to the number `nodes` allocate and free.  Some entries are
 * empty. */
struct rill__graph_memory {
  struct {
    const void *p;
    bool allocated, freed;
  } * places;
  uint32_t count, room, nodes;
};

void rill__graphs_lock(void);
void rill__graphs_unlock(void);
#define RILL_ASSERT_GRAPHS_LOCKED() \
  RILL_ASSERT(rill__has_lock(RILL__LOCK_GRAPHS), "one lock guards the nodes and edges of every graph, and captures")
#if RILL_CHECKS
void rill__graph_assert(const struct rill__graph *graph); /* asserts the invariants of nodes and edges */
#endif

rill_status rill__graph_new(struct rill__device *device, struct rill__graph **out); /* published, with one reference */

/* Keep the handles of the graph's nodes valid, and stop keeping them. */
void rill__graph_keep_names(struct rill__graph *graph);
void rill__graph_drop_names(struct rill__graph *graph);

/* Finds the node of a handle.  Call it inside the epoch.  The handle is valid as long as the graph has a reference or
 * an execution object.  `live`: a graph that is known to have a reference, or NULL. */
rill_status rill__graph_node_find(rill_graph_node node, const char *what, const struct rill__graph *live,
                                  struct rill__graph_node **out);

/* ---- call these under the lock ---- */

/* Fails if a capture adds to the graph, because the capture may remove its nodes again. */
rill_status rill__graph_check_complete(const struct rill__graph *graph);

/* Returns STALE_HANDLE if a node was removed, for example by a failed capture, before the lock was taken. */
rill_status rill__graph_check_live(struct rill__graph_node *const *nodes, size_t count);

/* Adds a node after others of the graph; takes over the operation, even on failure. */
rill_status rill__graph_add(struct rill__graph *graph, struct rill__operation *operation,
                            struct rill__graph_node *const *after, size_t after_count, struct rill__graph_node **out);

/* Adds copies of the nodes of another graph, with their edges; copies of nodes without predecessors come after `after`.
 * On failure no node is added. */
rill_status rill__graph_add_graph(struct rill__graph *graph, const struct rill__graph *other,
                                  struct rill__graph_node *const *after, size_t after_count);

/* Returns a mark, the serial of the next node: nodes that are added from now on can be removed by truncating to it. */
uint64_t rill__graph_mark(struct rill__graph *graph);
/* Removes all nodes from a mark on.  No other nodes may come after them, and none of them has been removed. */
void rill__graph_truncate(struct rill__graph *graph, uint64_t mark);
/* Returns the number of the first node from a mark on; no node after the mark has been removed. */
uint32_t rill__graph_first_from(const struct rill__graph *graph, uint64_t mark);
/* Drops the table of memory, which is by node number (rill__graph_find_memory). */
void rill__graph_forget_memory(struct rill__graph *graph);
/* Retires a page whose nodes no longer belong to a graph. */
void rill__graph_retire_page(struct rill__graph *graph, struct rill__node_page *page);

/* Returns STALE_HANDLE if the node was removed. */
rill_status rill__graph_node_check(const struct rill__graph_node *node, const char *what);

/* Makes room for one more element in an array.  `array` points to the pointer to it; it has `count` elements and room
 * for `room`, 0 if it is not allocated.  Returns false if there is no host memory; the array is unchanged then. */
bool rill__graph_make_room(void *array, size_t count, size_t *room, size_t size);

/* Makes room for one more predecessor of the node; returns false if there is no host memory. */
bool rill__graph_node_reserve(struct rill__graph_node *node);

/* Finds out whether nodes of the graph allocate and free the memory at p.  Returns false if there is no host memory for
 * the table. */
bool rill__graph_find_memory(struct rill__graph *graph, const void *p, bool *allocated, bool *freed);

/* Returns a number that no node of the graph is marked with. */
uint32_t rill__graph_new_search(struct rill__graph *graph);

/* Marks the nodes `from` and all their predecessors, direct and indirect, with a new search number, and returns the
 * number.  It leaves out the nodes before `mark`, which come after none of the others. */
uint32_t rill__graph_search(struct rill__graph *graph, uint64_t mark, struct rill__graph_node *const *from,
                            size_t count, bool *no_memory);

/* ---- core/graph/edges.c; call these under the lock ---- */

void rill__edges_free(struct rill__edges *edges); /* accepts NULL */
#if RILL_CHECKS
void rill__edges_assert(const struct rill__graph *graph); /* asserts the invariants of edges.c */
#endif

/* Makes `to` come after `from`; fails with INVALID_ARGUMENT if that would close a cycle. */
rill_status rill__graph_connect(struct rill__graph_node *from, struct rill__graph_node *to);

/* Removes the edge; fails with NOT_FOUND if there is none. */
rill_status rill__graph_disconnect(struct rill__graph_node *from, struct rill__graph_node *to);

/* Removes all edges of a node, and the node from the index.  On failure nothing is changed. */
rill_status rill__graph_disconnect_node(struct rill__graph_node *node);

/* Replaces the old numbers of nodes in the index by the current ones, or frees the index. */
void rill__edges_renumber(struct rill__graph *graph);

/* ---- core/graph/removal.c; call these under the lock ---- */

/* Removes the node and its edges.  The caller must drop the node's `operation` after it has released the lock. */
rill_status rill__graph_remove(struct rill__graph *graph, struct rill__graph_node *node,
                               struct rill__operation **operation);

/* Renumbers the nodes so that there are no gaps. */
void rill__graph_renumber(struct rill__graph *graph);

/* Stores the serials of the graph's nodes; the numbers must have no gaps. */
rill_status rill__node_names_note(struct rill__node_names *names, const struct rill__graph *graph);
/* Finds the number that a node of the graph had when the serials were stored; returns false if it had none.  Needs no
 * lock. */
bool rill__node_names_find(const struct rill__node_names *names, const struct rill__graph_node *node, uint32_t *number);

/* ---- core/graph/attached.c: objects of the caller ---- */

rill_status rill__attach_new(struct rill__attachment **list, rill_release_fn release, void *user);
/* Adds all objects of another list; adds none on failure. */
rill_status rill__attach_copies(struct rill__attachment **list, const struct rill__attachment *others);
/* Moves all objects of another list, which is empty afterwards. */
void rill__attach_moved(struct rill__attachment **list, struct rill__attachment **others);
void rill__detach_all(struct rill__attachment **list);

/* Creates an object that contains a copy of a list (rill__graph_exec.attached); NULL for an empty list. */
rill_status rill__attached_new(struct rill__device *device, const struct rill__attachment *list,
                               struct rill__object **out);
/* Returns the list of such an object. */
const struct rill__attachment *rill__attached_list(const struct rill__object *attached);

/* ---- core/graph/claims.c ----
 *
 * A thread that launches or changes an execution object claims it first, so calls for one object run one after another.
 * A claim is not a lock: driver calls inside a claim may wait for the device, as a launch does when the driver's queue
 * is full.  The lock that guards all claims is held only to read or change a claim.
 *
 * A fork waits until no object of a device that keeps working in the child is claimed, so no call on such an object is
 * in progress.  Calls on these devices never wait for work.  Objects of other devices are only released in the
 * child. */

/* Claims the object.  It blocks, so call it outside epochs and without a lock.  While launches of the object are held,
 * all claims are short, so the thread that submits a held launch may claim the object inside an epoch. */
void rill__exec_claim(struct rill__graph_exec *exec);
void rill__exec_unclaim(struct rill__graph_exec *exec);

/* Called around a fork: waits for the claims that must end before a fork (see above), and prevents new ones. */
void rill__claims_lock(void);
void rill__claims_unlock(void);
void rill__claims_after_fork(void);

/* ---- core/graph/execution.c ---- */

/* Returns the operation of the node that a step was created from.  For memory and for a staged copy, the step has a
 * different operation, which belongs to the execution object. */
struct rill__operation *rill__operation_of_graph(struct rill__operation *step);

/* Copies the graph as steps, which reference their operations.  The backend does not know the object yet. */
rill_status rill__exec_new(struct rill__graph *graph, const char *label, struct rill__graph_exec **out);

/* The reason why an update was refused (RILL_UPDATE_*), and the node of the other graph. */
struct rill__refusal {
  uint32_t reason;
  uint64_t node; /* handle of the node; 0 if none */
};

/* The contents of an update of an execution object: an operation for each step, and the caller's objects. */
struct rill__replacement {
  struct rill__operation **operations; /* referenced, or NULL */
  struct rill__object *attached;       /* referenced, or NULL */
};

/* Checks whether the graph has the shape of the graph that the object was created from, which means the same nodes by
 * number, with the same edges.  Fills in the replacement. */
rill_status rill__exec_match(struct rill__graph_exec *exec, struct rill__graph *graph,
                             struct rill__replacement *replacement, struct rill__refusal *refusal);

/* Passes the replacement to the backend.  On success the replacement contains what the object had before.  Call it
 * under the object's claim. */
rill_status rill__exec_update(struct rill__graph_exec *exec, struct rill__replacement *replacement);
/* Does the same for one step.  Takes over the operation, which has the same kind.  A disabled step stays disabled. */
rill_status rill__exec_set(struct rill__graph_exec *exec, uint32_t step, struct rill__operation *operation);

/* Disables or enables a step; does nothing if the step is already in that state.  Call it under the object's claim. */
rill_status rill__exec_enable(struct rill__graph_exec *exec, uint32_t step, bool enabled);

static inline bool rill__exec_is_disabled(struct rill__graph_exec *exec, uint32_t step) {
  return rill__core(exec)->disabled != NULL && rill__core(exec)->disabled[step] != NULL;
}

/* Returns the operation that the step has when it is enabled.  Call it under the claim or the lock of graphs. */
static inline struct rill__operation *rill__exec_operation(struct rill__graph_exec *exec, uint32_t step) {
  return rill__exec_is_disabled(exec, step) ? rill__core(exec)->disabled[step] : exec->steps[step].operation;
}

#endif
