/* Graphs: nodes, each an operation, and which come after which.
 *
 * One lock, of all graphs and captures, guards the nodes and edges of every graph.  It comes before the lock of held
 * work and the locks of objects, and is never held while anything waits for work.
 *
 * Nodes are numbered as they are added.  An edge is kept once, with the node that comes after.  As long as every edge
 * leads to a greater number, `in_order`, an edge in that direction closes no cycle. */
#ifndef RILL_CORE_GRAPH_GRAPH_H
#define RILL_CORE_GRAPH_GRAPH_H

#include "core/operation/operation.h"

#include <rill/graph_compose.h>

/* One cache line: what a call costs that comes to one of many nodes is mostly the wait for it. */
enum { RILL__FEW_EDGES = 2 };
struct rill__graph_node {
  _Alignas(64) struct rill__operation *operation; /* kept; not valid when the page is empty */
  uint32_t *after;                                /* indexes; in few_after or in memory of their own */
  uint32_t after_count, after_room, few_after[RILL__FEW_EDGES];
  uint64_t label; /* core/graph/edges.c, as the next three */
  uint32_t next, before, leaving;
  uint32_t index;
  uint32_t visited; /* the last search that came here */
  uint16_t kind;    /* of the operation */
  uint16_t place;   /* in the page */
};
_Static_assert(sizeof(struct rill__graph_node) == 64, "a node is one cache line");

/* Nodes, the object of their handles.  They stay where they are, and all go at once. */
struct rill__node_page {
  struct rill__object base;
  struct rill__graph *graph;
  struct rill__node_page *before;
  uint32_t room;
  bool empty; /* the nodes have ids, numbers and kinds alone */
  bool gone;  /* its nodes are no graph's any more */
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

struct rill__graph {
  struct rill__object base;
  struct rill__node_page *page; /* the last one */
  bool closed;                  /* the next node is the first of a page */
  struct rill__graph_node **nodes;
  size_t room;
  uint32_t count;
  uint32_t edges;
  uint32_t searches;
  bool in_order;
  struct rill__edges *index; /* core/graph/edges.c; or NULL */
  uint64_t cloned_from;      /* the handle of the graph whose first `cloned` nodes are copied in the first ones */
  uint32_t cloned;
  struct rill__graph_memory *memory; /* made by the first free in the graph */
  struct rill__attachment *attached; /* the caller's objects */
  _Atomic uint32_t keepers;          /* RILL__KEEPS_* */
  struct rill__capture *capture;     /* that adds to it; or NULL */
};

/* Who keeps a graph's pages, the names of its nodes: the graph until nobody can use what is in them any more, and each
 * execution object that was made from it, which keeps nothing else of it. */
enum { RILL__KEEPS_CONTENT = 1, RILL__KEEPS_NAMES = 2 };

/* An object of the caller's, in the list of a graph or of what an execution object was made with.  Its own object calls
 * the caller's function when nobody keeps it any more: at the end of a call, outside locks. */
struct rill__attachment {
  struct rill__attachment *next;
  struct rill__object *object; /* kept */
};

/* What the nodes up to the number `nodes` allocate and free, by address: a table with places that are empty. */
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
void rill__graph_assert(const struct rill__graph *graph); /* that its nodes and edges are what is said above */
#endif

rill_status rill__graph_new(struct rill__device *device, struct rill__graph **out); /* published, with one reference */

/* Keep the names of its nodes, and let them go. */
void rill__graph_keep_names(struct rill__graph *graph);
void rill__graph_drop_names(struct rill__graph *graph);

/* The node of a handle, inside the epoch: as long as its graph has a reference, or an execution object.  `live`: a
 * graph that is known to have one; or NULL. */
rill_status rill__graph_node_find(rill_graph_node node, const char *what, const struct rill__graph *live,
                                  struct rill__graph_node **out);

/* ---- under the lock ---- */

/* Refuses a graph that a capture adds to, and may take nodes away from again. */
rill_status rill__graph_check_complete(const struct rill__graph *graph);

/* STALE_HANDLE if one of the nodes has gone: who found them before the lock may come after a capture that has taken its
 * own away again. */
rill_status rill__graph_check_there(struct rill__graph_node *const *nodes, size_t count);

/* Adds a node after others of the graph; takes the operation over, also when it fails. */
rill_status rill__graph_add(struct rill__graph *graph, struct rill__operation *operation,
                            struct rill__graph_node *const *after, size_t after_count, struct rill__graph_node **out);

/* Adds copies of the nodes of another graph, with their edges; those that come after none come after `after`.  On
 * failure there are none. */
rill_status rill__graph_add_graph(struct rill__graph *graph, const struct rill__graph *other,
                                  struct rill__graph_node *const *after, size_t after_count);

/* Nodes that are added from now on can be taken away again: from the number that is returned. */
uint32_t rill__graph_mark(struct rill__graph *graph);
/* Takes all nodes from a mark on away, which are the last of every way. */
void rill__graph_truncate(struct rill__graph *graph, uint32_t mark);

/* STALE_HANDLE if the node has gone. */
rill_status rill__graph_node_check(const struct rill__graph_node *node, const char *what);

/* Room for one more in an array, a pointer to which is given: of `count` elements, with room for `room`, 0 if there is
 * no array.  False without host memory; then it is as it was. */
bool rill__graph_make_room(void *array, size_t count, size_t *room, size_t size);

/* Room for one more edge to the node; false without host memory. */
bool rill__graph_node_reserve(struct rill__graph_node *node);

/* Whether a node of the graph allocates, or frees, the memory at p.  False: no host memory to find out. */
bool rill__graph_find_memory(struct rill__graph *graph, const void *p, bool *allocated, bool *freed);

/* A number that no node of the graph is marked with. */
uint32_t rill__graph_new_search(struct rill__graph *graph);

/* Marks the node and all that it comes after with a new number of a search, which is returned. */
uint32_t rill__graph_search(struct rill__graph *graph, struct rill__graph_node *const *from, size_t count,
                            bool *no_memory);

/* ---- core/graph/edges.c; under the lock ---- */

void rill__edges_free(struct rill__edges *edges); /* may be NULL */
#if RILL_CHECKS
void rill__edges_assert(const struct rill__graph *graph); /* that its index is what edges.c says */
#endif

/* Makes `to` come after `from`; INVALID_ARGUMENT if that closes a cycle. */
rill_status rill__graph_connect(struct rill__graph_node *from, struct rill__graph_node *to);

/* Takes the edge away; NOT_FOUND if there is none. */
rill_status rill__graph_disconnect(struct rill__graph_node *from, struct rill__graph_node *to);

/* ---- core/graph/attached.c: objects of the caller's ---- */

rill_status rill__attach_new(struct rill__attachment **list, rill_release_fn release, void *user);
/* Adds all of another list; on failure none. */
rill_status rill__attach_copies(struct rill__attachment **list, const struct rill__attachment *others);
/* Moves all of another list, which is empty then. */
void rill__attach_moved(struct rill__attachment **list, struct rill__attachment **others);
void rill__detach_all(struct rill__attachment **list);

/* Copies of a list as an object (rill__graph_exec.attached); NULL for an empty list.  And the list of one. */
rill_status rill__attached_new(struct rill__device *device, const struct rill__attachment *list,
                               struct rill__object **out);
const struct rill__attachment *rill__attached_list(const struct rill__object *attached);

/* ---- core/graph/claims.c ----
 *
 * Who launches or changes an execution object has claimed it, so calls about one are made one after another.  A claim
 * is no lock: the driver's calls that it is kept across may wait for the device, as a launch does when the driver's
 * queue is full.  The lock that guards all claims is held for a look at one alone.
 *
 * A fork waits for the claims of devices that work in its child, where calls never wait for work, and finds those
 * objects as they are between two calls.  Objects of other devices are only released there. */

/* Blocks: outside epochs, and without a lock.  While launches of the object are held, all claims are short, so the
 * thread that hands one over may claim it inside an epoch. */
void rill__exec_claim(struct rill__graph_exec *exec);
void rill__exec_unclaim(struct rill__graph_exec *exec);

/* For fork: waits, and keeps claims from beginning. */
void rill__claims_lock(void);
void rill__claims_unlock(void);
void rill__claims_after_fork(void);

/* ---- core/graph/execution.c ---- */

/* The operation of the node that a step was made of: another one for memory and for a staged copy, which the object has
 * for itself. */
struct rill__operation *rill__operation_of_graph(struct rill__operation *step);

/* Copies the graph as steps, which keep their operations; the backend has not seen it. */
rill_status rill__exec_new(struct rill__graph *graph, const char *label, struct rill__graph_exec **out);

/* Why an update was refused: RILL_UPDATE_*, and the node of the other graph. */
struct rill__refusal {
  uint32_t reason;
  uint64_t node; /* its handle; 0: none */
};

/* What an update puts in the place of what an object has: an operation for each step, and the caller's objects. */
struct rill__replacement {
  struct rill__operation **operations; /* kept, or NULL */
  struct rill__object *attached;       /* kept, or NULL */
};

/* Whether the graph has the shape of what the object was made from: the same nodes, by number, with the same edges.
 * Fills the replacement. */
rill_status rill__exec_match(struct rill__graph_exec *exec, struct rill__graph *graph,
                             struct rill__replacement *replacement, struct rill__refusal *refusal);

/* Hands the replacement to the backend; in success it has what was there before.  Under the object's claim. */
rill_status rill__exec_update(struct rill__graph_exec *exec, struct rill__replacement *replacement);
/* The same for one step; takes the operation, of the same kind, over.  A disabled step stays so. */
rill_status rill__exec_set(struct rill__graph_exec *exec, uint32_t step, struct rill__operation *operation);

/* Disables a step, or enables it again; what it is already is no change.  Under the object's claim. */
rill_status rill__exec_enable(struct rill__graph_exec *exec, uint32_t step, bool enabled);

static inline bool rill__exec_is_disabled(struct rill__graph_exec *exec, uint32_t step) {
  return rill__core(exec)->disabled != NULL && rill__core(exec)->disabled[step] != NULL;
}

/* What the step does when it is enabled.  Under the claim or the lock of graphs. */
static inline struct rill__operation *rill__exec_operation(struct rill__graph_exec *exec, uint32_t step) {
  return rill__exec_is_disabled(exec, step) ? rill__core(exec)->disabled[step] : exec->steps[step].operation;
}

#endif
