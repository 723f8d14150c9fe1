/* rill/graph_compose.h: child graphs, clones, memory owned by graphs, and graph output.
 *
 *     rill_graph_create(device, &step);
 *     rill_graph_add_alloc(step, NULL, 0, bytes, &scratch, &allocated);
 *     ... add nodes that use scratch ...
 *     rill_graph_add_child(all, &before, 1, step, &after);
 *     rill_graph_get_dot(all, text, &size);                    to render: dot -Tsvg
 *
 * The nodes of a child are copied into the graph to which it is added. They are listed, found by label and changed
 * like all other nodes. The child can be changed or released afterwards.
 *
 * Pitfall: memory allocated by a graph exists until both the graph and its execution object are destroyed. Two
 * execution objects that share this memory cannot exist at the same time, even if one of them belongs to a clone.
 *
 * Any thread may call these functions at any time, unless a comment says more.  Since version 0.1.
 */
#ifndef RILL_GRAPH_COMPOSE_H
#define RILL_GRAPH_COMPOSE_H

#include <rill/base.h>
#include <rill/graph.h>
#include <rill/status.h>

RILL_EXTERN_C_BEGIN

/** Creates a copy of a graph. Node i in the list of the clone is the copy of node i of the graph. Everything that
 *  nodes refer to is shared, including memory allocated by the graph and user objects.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, CAPTURE_ACTIVE (a capture adds to the graph),
 *           OUT_OF_MEMORY.
 *  Like:    cuGraphClone, hipGraphClone. */
RILL_API RILL_NODISCARD rill_status rill_graph_clone(rill_graph graph, rill_graph *out);

/** Returns the copy of a node in a clone of its graph.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT, NOT_FOUND (`clone` is not a clone of the node's graph, or
 *           the node was added later).
 *  Like:    cuGraphNodeFindInClone, hipGraphNodeFindInClone. */
RILL_API RILL_NODISCARD rill_status rill_graph_find_in_clone(rill_graph clone, rill_graph_node node,
                                                             rill_graph_node *out);

/** Adds the nodes of another graph, after the `after_count` nodes at `after`. `out` is an empty node that runs after
 *  all of them.
 *
 *  Errors:  those of rill_graph_add_empty; WRONG_DEVICE; INVALID_ARGUMENT (the graph itself); CAPTURE_ACTIVE (a
 *           capture adds to one of the graphs).
 *  Like:    cuGraphAddChildGraphNode, hipGraphAddChildGraphNode. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_child(rill_graph graph, const rill_graph_node *after,
                                                         size_t after_count, rill_graph child, rill_graph_node *out);

/** Adds an allocation from the device's default pool. `p` is set immediately and is the same at every launch; nodes
 *  that run after the allocation may use it. The memory is freed when both the graph and its execution object are
 *  destroyed. If `size` is 0, `p` is NULL and the node does nothing.
 *
 *  Errors:  those of rill_graph_add_empty; UNSUPPORTED (RILL_FEATURE_POOL); OUT_OF_MEMORY, DEVICE_LOST, BACKEND.
 *  Like:    cuGraphAddMemAllocNode, hipGraphAddMemAllocNode. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_alloc(rill_graph graph, const rill_graph_node *after,
                                                         size_t after_count, size_t size, void **p,
                                                         rill_graph_node *out);

/** Adds a free of memory that a node of the graph allocates. No later node may use the memory. Memory without a free
 *  node is not leaked.
 *
 *  Errors:  those of rill_graph_add_empty; NOT_FOUND (memory that the graph does not allocate, or that it already
 *           frees).
 *  Like:    cuGraphAddMemFreeNode, hipGraphAddMemFreeNode. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_free(rill_graph graph, const rill_graph_node *after,
                                                        size_t after_count, void *p, rill_graph_node *out);

/** Attaches a user object to the graph. A user object is not a node: it is not listed, and updates do not compare it.
 *  It can be added while a capture adds to the graph.
 *
 *  The object is kept by the graph, and by clones, parent graphs and execution objects created afterwards. An
 *  execution object keeps it until the execution object is released or updated with another graph, and all earlier
 *  launches have completed.
 *
 *  `release(user)` is called once, by the rill call that drops the last reference to the object, before that call
 *  returns. If launches still run at that point, or another thread is inside a rill call, `release` is called at the
 *  end of a later call that is not a submission. `release` runs on the thread of that call and may call rill_free and
 *  every rill_*_release, but no other rill function. `release` is not called if this function fails or the process
 *  exits first.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (release is NULL), OUT_OF_MEMORY.
 *  Like:    cuUserObjectCreate with cuGraphRetainUserObject, hipGraphRetainUserObject. */
RILL_API RILL_NODISCARD rill_status rill_graph_add_user_object(rill_graph graph, rill_release_fn release, void *user);

/** Removes an edge.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT (a node of another graph), NOT_FOUND (no such edge),
 *           CAPTURE_ACTIVE.
 *  Like:    cuGraphRemoveDependencies, hipGraphRemoveDependencies. */
RILL_API RILL_NODISCARD rill_status rill_graph_remove_edge(rill_graph graph, rill_graph_node from, rill_graph_node to);

/** Writes the graph in Graphviz DOT, with the kernel, shape, size and label of each node. Pass the capacity of `text`
 *  in `*size`, in bytes; the call sets `*size` to the full length with the final 0 and writes as much as fits, always
 *  ending with a 0. `text` may be NULL if `*size` is 0.
 *
 *  Errors:  INVALID_HANDLE, STALE_HANDLE, INVALID_ARGUMENT.
 *  Like:    cuGraphDebugDotPrint, hipGraphDebugDotPrint. */
RILL_API RILL_NODISCARD rill_status rill_graph_get_dot(rill_graph graph, char *text, size_t *size);

RILL_EXTERN_C_END

#endif
