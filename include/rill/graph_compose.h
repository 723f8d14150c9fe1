/* rill/graph_compose.h: graphs made of other graphs, memory of their own, and what they look like.
 *
 *     rill_graph_create(device, &step);
 *     rill_graph_add_alloc(step, NULL, 0, bytes, &scratch, &allocated);
 *     ...                                                        nodes that use scratch
 *     rill_graph_add_child(all, &before, 1, step, &after);
 *     rill_graph_get_dot(all, text, &size);                    for a picture: dot -Tsvg
 *
 * The nodes of a child become nodes of the graph that it is added to.  They are listed, found by their labels and
 * changed like all others; the child can be changed or released afterwards.
 *
 * The thing people get wrong: memory is the graph's own for as long as the graph or an execution object exists.  Two
 * execution objects that would share it, of a graph and of its clone as well, cannot exist at a time.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_GRAPH_COMPOSE_H
#define RILL_GRAPH_COMPOSE_H

#include <rill/base.h>
#include <rill/graph.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Creates a graph with the same nodes and edges.  The node that is listed as number i is the copy of number i.  What
 *  nodes refer to is shared, memory that the graph allocates and user objects included.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, CAPTURE_ACTIVE (a capture adds to the graph),
 *           OUT_OF_MEMORY.
 *  Like:    cuGraphClone, hipGraphClone. */
RILL_API RILL_NODISCARD rill_status rill_graph_clone(rill_graph graph, rill_graph *out);

/** Returns the copy of a node in a clone of its graph.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, NOT_FOUND (`clone` is no clone of the node's graph; the
 *           node was added later).
 *  Like:    cuGraphNodeFindInClone, hipGraphNodeFindInClone. */
RILL_API RILL_NODISCARD rill_status rill_graph_find_in_clone(rill_graph clone, rill_graph_node node,
                                                             rill_graph_node *out);

/** Adds the nodes of another graph, after the `after_count` nodes at `after`.  `out` is a node that does nothing and
 *  comes after all of them.
 *
 *  Errors:  those of rill_graph_add_empty; WRONG_DEVICE; INVALID_ARGUMENT (the graph itself); CAPTURE_ACTIVE (a capture
 *           adds to one of the two).
 *  Like:    cuGraphAddChildGraphNode, hipGraphAddChildGraphNode. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_child(rill_graph graph, const rill_graph_node *after,
                                                         size_t after_count, rill_graph child, rill_graph_node *out);

/** Adds an allocation from the device's default pool.  `p` is good at once, for nodes that come after; it is the same
 *  at every launch, and goes back with the graph and its execution object.  Of 0 bytes: NULL, and a node that does
 *  nothing.
 *
 *  Errors:  those of rill_graph_add_empty; UNSUPPORTED (RILL_FEATURE_POOL); OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuGraphAddMemAllocNode, hipGraphAddMemAllocNode. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_alloc(rill_graph graph, const rill_graph_node *after,
                                                         size_t after_count, size_t size, void **p,
                                                         rill_graph_node *out);

/** Adds the free of memory that a node of the graph allocates: nothing uses it after that.  Memory without such a node
 *  is no leak.
 *
 *  Errors:  those of rill_graph_add_empty; NOT_FOUND (no memory of the graph, or freed in it already).
 *  Like:    cuGraphAddMemFreeNode, hipGraphAddMemFreeNode. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_free(rill_graph graph, const rill_graph_node *after,
                                                        size_t after_count, void *p, rill_graph_node *out);

/** Attaches an object of the caller's to the graph.  It is not a node: it is not listed, and updates do not compare it.
 *  It can be added while a capture adds to the graph.
 *
 *  The graph keeps the object, and so do clones, graphs that get this one as a child, and execution objects, if they
 *  are made afterwards.  An execution object keeps it until it is released, or updated with another graph, and its
 *  launches from before that have completed.  Then `release(user)` is called once, before the call of rill returns
 *  that released the last keeper; if launches still run then, or another thread is inside a call, at the end of a
 *  later call that is no submission.  It runs on the thread of that call and may call rill_free and every
 *  rill_*_release, but nothing else of rill.  It is not called if this function fails or the process ends before.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (release is NULL), OUT_OF_MEMORY.
 *  Like:    cuUserObjectCreate with cuGraphRetainUserObject, hipGraphRetainUserObject. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_user_object(rill_graph graph, rill_release_fn release, void *user);

/** Takes an edge away.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (a node of another graph), NOT_FOUND (no such edge),
 *           CAPTURE_ACTIVE.
 *  Like:    cuGraphRemoveDependencies, hipGraphRemoveDependencies. */
RILL_API RILL_NODISCARD rill_status rill_graph_remove_edge(rill_graph graph, rill_graph_node from, rill_graph_node to);

/** Describes the graph in the language of Graphviz, with what each node does: kernels and shapes, sizes, labels.
 *  `*size` is how many bytes `text` has room for, and becomes how many there are, the final 0 among them; as many as
 *  there is room for are written, the last a 0.  `text` may be NULL if `*size` is 0.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuGraphDebugDotPrint, hipGraphDebugDotPrint. */
RILL_API RILL_NODISCARD rill_status rill_graph_get_dot(rill_graph graph, char *text, size_t *size);

RILL_EXTERN_C_END

#endif
