/* Removing nodes, renumbering without gaps, and finding nodes by serials, which survive both. */
#include "core/graph/graph.h"

#include <stdlib.h>

void rill__graph_renumber(struct rill__graph *graph) {
  RILL_ASSERT_GRAPHS_LOCKED();
  if (graph->removed == 0) return;
  uint32_t kept = 0;
  for (uint32_t i = 0; i < graph->count; i++) {
    if (graph->nodes[i] != NULL) graph->nodes[i]->index = kept++;
  }
  RILL_ASSERT(kept == graph->count - graph->removed, "gaps between numbers are counted");
  for (uint32_t i = 0; i < graph->count; i++) { /* `nodes` stays indexed by the old numbers until the end */
    struct rill__graph_node *const node = graph->nodes[i];
    for (uint32_t k = 0; node != NULL && k < node->after_count; k++) {
      node->after[k] = graph->nodes[node->after[k]]->index;
    }
  }
  rill__edges_renumber(graph);
  for (uint32_t i = 0; i < graph->count; i++) {
    if (graph->nodes[i] != NULL) graph->nodes[graph->nodes[i]->index] = graph->nodes[i];
  }
  graph->count = kept;
  graph->removed = 0;
  rill__graph_forget_memory(graph);
#if RILL_CHECKS
  rill__graph_assert(graph);
#endif
}

rill_status rill__graph_remove(struct rill__graph *graph, struct rill__graph_node *node,
                               struct rill__operation **operation) {
  RILL_TRY(rill__graph_check_complete(graph));
  RILL_TRY(rill__graph_node_check(node, "node"));
  RILL_REQUIRE(node->kind != RILL_NODE_ALLOC && node->kind != RILL_NODE_FREE, RILL_ERROR_UNSUPPORTED,
               "node 0x%llx is of kind \"%s\": other nodes depend on the memory" RILL_HINT
               "build a graph without the node, or keep the node and remove those that use the memory",
               (unsigned long long)rill__node_id(node), rill__node_kind_name(node->kind));
  RILL_TRY(rill__graph_disconnect_node(node));
  struct rill__node_page *const page = rill__page_of(node);
  *operation = node->operation;
  node->operation = NULL;
  node->kind = 0;
  if (node->after != node->few_after) free(node->after);
  node->after = node->few_after;
  graph->nodes[node->index] = NULL;
  graph->removed++;
  if (--page->live == 0 && page != graph->page) rill__graph_retire_page(graph, page);
  if (graph->removed > graph->count / 2) rill__graph_renumber(graph);
  return RILL_OK;
}

/* ---- names ---- */

rill_status rill__node_names_note(struct rill__node_names *names, const struct rill__graph *graph) {
  RILL_ASSERT(graph->removed == 0, "serials are stored only for numbers without gaps");
  const uint32_t count = graph->count;
  uint64_t *serials = NULL;
  if (count > 0 && rill__node_serial(graph->nodes[count - 1]) != count - 1) {
    serials = malloc(count * sizeof *serials);
    RILL_REQUIRE(serials != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a graph of %u nodes", count);
    for (uint32_t i = 0; i < count; i++) serials[i] = rill__node_serial(graph->nodes[i]);
  }
  *names = (struct rill__node_names){ count, serials };
  return RILL_OK;
}

static int compare_serials(const void *a, const void *b) {
  const uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;
  return first < second ? -1 : first > second;
}

bool rill__node_names_find(const struct rill__node_names *names, const struct rill__graph_node *node,
                           uint32_t *number) {
  const uint64_t serial = rill__node_serial(node), *found = NULL;
  *number = (uint32_t)serial;
  if (names->serials == NULL) return serial < names->count;
  found = bsearch(&serial, names->serials, names->count, sizeof serial, compare_serials);
  if (found != NULL) *number = (uint32_t)(found - names->serials);
  return found != NULL;
}
