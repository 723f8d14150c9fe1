#include "core/device/life.h"
#include "core/graph/building.h"
#include "core/graph/dot.h"
#include "core/object/origin.h"
#include "core/pool/blocks.h"
#include "core/pool/pool.h"

#include <rill/graph_compose.h>
#include <stdlib.h>

/* ---- clones ---- */

static rill_status note_copies(struct rill__graph *clone, const struct rill__graph *graph) {
  clone->copies = malloc(((size_t)clone->count + 1) * sizeof *clone->copies);
  RILL_REQUIRE(clone->copies != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a graph of %u nodes", clone->count);
  for (uint32_t i = 0; i < clone->count; i++) clone->copies[i] = rill__node_id(clone->nodes[i]);
  return rill__node_names_note(&clone->names, graph);
}

/* Copies a graph.  Call it under the lock. */
static rill_status clone_graph(struct rill__graph *graph, struct rill__graph **out) {
  struct rill__graph *clone = NULL;
  RILL_TRY(rill__graph_check_complete(graph));
  RILL_TRY(rill__graph_new(graph->base.device, &clone));
  rill__graph_renumber(graph);
  rill_status status = rill__graph_add_graph(clone, graph, NULL, 0);
  if (status == RILL_OK) status = rill__attach_copies(&clone->attached, graph->attached);
  if (status == RILL_OK) status = note_copies(clone, graph);
  if (status != RILL_OK) {
    rill__object_retire(&clone->base);
    return status;
  }
  clone->cloned_from = graph->base.id;
  *out = clone;
  return RILL_OK;
}

rill_status rill_graph_clone(rill_graph graph, rill_graph *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_GRAPH;
  struct rill__graph *g, *clone = NULL;
  RILL_RESOLVE(RILL__GRAPH, graph, "graph", &g);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  rill__graphs_lock();
  const rill_status status = clone_graph(g, &clone);
  rill__graphs_unlock();
  if (status != RILL_OK) return status;
  out->id = clone->base.id;
  rill__origin_note(&clone->base);
  return RILL_OK;
}

rill_status rill_graph_find_in_clone(rill_graph clone, rill_graph_node node, rill_graph_node *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_GRAPH_NODE;
  struct rill__graph *g;
  struct rill__graph_node *n = NULL;
  RILL_RESOLVE(RILL__GRAPH, clone, "clone", &g);
  RILL_TRY(rill__graph_node_find(node, "node", NULL, &n));
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  RILL_REQUIRE(g->cloned_from == rill__graph_of(n)->base.id, RILL_ERROR_NOT_FOUND,
               "graph 0x%llx is not a clone of the graph that node 0x%llx belongs to", (unsigned long long)clone.id,
               (unsigned long long)node.id);
  struct rill__graph_node *copy = NULL;
  uint32_t number = 0;
  RILL_REQUIRE(rill__node_names_find(&g->names, n, &number), RILL_ERROR_NOT_FOUND,
               "node 0x%llx was added after the graph of %u nodes was cloned", (unsigned long long)node.id,
               g->names.count);
  rill__errors_suspend();
  const rill_status status = rill__graph_node_find((rill_graph_node){ g->copies[number] }, "copy", g, &copy);
  rill__errors_resume();
  RILL_REQUIRE(status == RILL_OK, RILL_ERROR_NOT_FOUND, "the copy of node 0x%llx has been removed from the clone",
               (unsigned long long)node.id);
  out->id = g->copies[number];
  return RILL_OK;
}

/* ---- children ---- */

/* Adds a node after all nodes from `first` on that have no successor.  Takes ownership of the operation. */
static rill_status add_join(struct rill__graph *graph, uint32_t first, struct rill__building *building,
                            struct rill__operation *join) {
  const uint32_t count = graph->count - first;
  struct rill__graph_node **after = calloc((size_t)count + 1, sizeof(struct rill__graph_node *));
  if (after == NULL) {
    rill__operation_unref(join);
    return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for a graph of %u nodes", count);
  }
  size_t ends = 0;
  for (uint32_t i = first; i < graph->count; i++) after[i - first] = graph->nodes[i];
  for (uint32_t i = first; i < graph->count; i++) {
    for (uint32_t k = 0; k < graph->nodes[i]->after_count; k++) {
      if (graph->nodes[i]->after[k] >= first) after[graph->nodes[i]->after[k] - first] = NULL;
    }
  }
  for (uint32_t i = 0; i < count; i++) {
    if (after[i] != NULL) after[ends++] = after[i];
  }
  struct rill__capture_member *member = &building->stream.member;
  const rill_status status = rill__graph_add(graph, join, count == 0 ? member->after : after,
                                             count == 0 ? member->count : ends, &member->last);
  free(after);
  return status;
}

/* Adds the nodes of `child`, and a node that joins them.  Call it under the lock.  Takes ownership of the operation. */
static rill_status add_child(struct rill__building *building, struct rill__graph *child, struct rill__operation *join) {
  struct rill__graph *graph = building->graph;
  const struct rill__capture_member *member = &building->stream.member;
  const uint64_t mark = rill__graph_mark(graph);
  const uint32_t first = graph->count;
  rill__graph_renumber(child);
  rill_status status = rill__graph_check_complete(graph);
  if (status == RILL_OK) status = rill__graph_check_complete(child);
  if (status == RILL_OK) status = rill__graph_add_graph(graph, child, member->after, member->count);
  if (status != RILL_OK) {
    rill__operation_unref(join);
    return status;
  }
  status = add_join(graph, first, building, join);
  if (status == RILL_OK) status = rill__attach_copies(&graph->attached, child->attached);
  if (status != RILL_OK) rill__graph_truncate(graph, mark);
  return status;
}

rill_status rill_graph_add_child(rill_graph graph, const rill_graph_node *after, size_t after_count, rill_graph child,
                                 rill_graph_node *out) {
  RILL_ENTER_NODE();
  (void)s;
  struct rill__graph *c;
  struct rill__operation *join = NULL;
  RILL_RESOLVE(RILL__GRAPH, child, "child", &c);
  RILL_TRY(rill__graph_check_device(building.graph, &c->base));
  RILL_TRY(rill__building_check(&building));
  RILL_REQUIRE(c != building.graph, RILL_ERROR_INVALID_ARGUMENT,
               "a graph cannot be a child of itself" RILL_HINT "clone it first");
  RILL_TRY(rill__operation_empty(building.graph->base.device, &join));
  rill__graphs_lock();
  const rill_status status = add_child(&building, c, join);
  rill__graphs_unlock();
  return rill__building_finish(&building, status);
}

/* ---- memory ---- */

rill_status rill_graph_add_alloc(rill_graph graph, const rill_graph_node *after, size_t after_count, size_t size,
                                 void **p, rill_graph_node *out) {
  if (p != NULL) *p = NULL;
  RILL_ENTER_NODE();
  struct rill__pool *pool = NULL;
  RILL_TRY(rill__building_check(&building));
  RILL_REQUIRE(p != NULL, RILL_ERROR_INVALID_ARGUMENT, "p is NULL");
  RILL_TRY(rill__pool_default(s->base.device, &pool));
  struct rill__request request = { .size = size, .alignment = 1 };
  return rill__building_finish(&building, rill__pool_alloc(self, pool, s, &request, p));
}

rill_status rill_graph_add_free(rill_graph graph, const rill_graph_node *after, size_t after_count, void *p,
                                rill_graph_node *out) {
  RILL_ENTER_NODE();
  bool taken = false;
  RILL_TRY(rill__building_check(&building));
  RILL_TRY(p != NULL ? rill__capture_free(s, p, &taken) : RILL_OK);
  RILL_REQUIRE(taken || p == NULL, RILL_ERROR_NOT_FOUND,
               "no node of the graph allocates %p" RILL_HINT
               "use rill_free or rill_free_async for memory that the graph does not allocate",
               p);
  return rill__building_finish(&building, RILL_OK);
}

/* ---- user objects ---- */

/* Adds a user object; also possible while a capture adds nodes to the graph. */
rill_status rill_graph_add_user_object(rill_graph graph, rill_release_fn release, void *user) {
  RILL_ENTER();
  struct rill__graph *g;
  RILL_RESOLVE(RILL__GRAPH, graph, "graph", &g);
  RILL_REQUIRE(release != NULL, RILL_ERROR_INVALID_ARGUMENT, "release is NULL");
  rill__graphs_lock();
  const rill_status status = rill__attach_new(&g->attached, release, user);
  rill__graphs_unlock();
  return status;
}

/* ---- edges and text ---- */

rill_status rill_graph_remove_edge(rill_graph graph, rill_graph_node from, rill_graph_node to) {
  RILL_ENTER();
  struct rill__graph *g;
  struct rill__graph_node *first = NULL, *second = NULL;
  RILL_RESOLVE(RILL__GRAPH, graph, "graph", &g);
  RILL_TRY(rill__find_node_of(g, from, "from", &first));
  RILL_TRY(rill__find_node_of(g, to, "to", &second));
  rill__graphs_lock();
  rill_status status = rill__graph_check_complete(g);
  if (status == RILL_OK) status = rill__graph_disconnect(first, second);
  rill__graphs_unlock();
  return status;
}

rill_status rill_graph_get_dot(rill_graph graph, char *text, size_t *size) {
  RILL_ENTER();
  const size_t room = size != NULL ? *size : 0;
  if (size != NULL) *size = 0;
  struct rill__graph *g;
  RILL_RESOLVE(RILL__GRAPH, graph, "graph", &g);
  RILL_REQUIRE(size != NULL, RILL_ERROR_INVALID_ARGUMENT, "size is NULL");
  RILL_REQUIRE(text != NULL || room == 0, RILL_ERROR_INVALID_ARGUMENT, "text is NULL, but *size is %zu", room);
  rill__graphs_lock();
  rill__graph_renumber(g);
  *size = rill__graph_dot(g, text, room);
  rill__graphs_unlock();
  return RILL_OK;
}
