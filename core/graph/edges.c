/* Edges that are added and removed one at a time.
 *
 * If all edges of a graph lead to greater numbers and no node has many, the lists of the nodes suffice.  Any other
 * graph gets an index when an edge is first added or removed by itself: a table of the edges by their ends, the edges
 * that leave each node, and an order of the nodes in which every edge leads forward.
 *
 * An edge that leads forward in that order cannot close a cycle.  For any other edge, the nodes between its ends are
 * searched, alternately forward from `to` and backward from `from`, until one side is exhausted or the two sides meet.
 * If they meet, the edge closes a cycle.  Otherwise the nodes of the exhausted side are moved after `from`, or before
 * `to`.  So an edge costs as much as the smaller side, and nodes that have been ordered stay ordered.
 *
 * Nodes have labels that rise along the order, with gaps.  If a gap is used up, the labels of the next few nodes are
 * spread out (Dietz and Sleator, 1987).
 *
 * Invariants, under the lock of graphs
 * - The index contains the first `nodes` nodes of the graph and the edges to them; the next call adds the others.
 * - Every edge to one of those nodes is in the table and in the list of the node that it leaves.  `place` is its
 *   position in the list of the node that it leads to.
 */
#include "core/graph/graph.h"

#include <stdlib.h>
#include <string.h>

enum { FEW_TO_LOOK_AT = 16, SMALL_TABLE = 256 };

/* A node has these fields for the index: `label`, which is compared after subtracting the label of `head`; `next` and
 * `before` in the order, which are node numbers plus one, or 0 for `head`, which closes the circle; and `leaving`, the
 * number of the first edge that leaves it, plus one. */
struct edge {
  uint32_t from, to, place;
  uint32_t next, before; /* edges that leave `from`: edge numbers plus one, 0 at the ends; next also links free edges */
  uint32_t same;         /* next edge of its list in the table */
};

struct found {
  uint64_t label;
  struct rill__graph_node *node;
};

struct rill__edges {
  struct rill__graph_node head; /* `index` is UINT32_MAX, so index + 1 is 0 */
  uint32_t nodes, room;
  struct found *found; /* room for both sides of a search */
  struct edge *edges;
  uint32_t used, edge_room, free; /* `free`: first free edge, plus one */
  uint32_t *table;                /* lists of edges by their ends; edge_room lists */
};

/* ---- the table ---- */

static uint32_t *edge_list(const struct rill__edges *edges, uint32_t from, uint32_t to) {
  const uint64_t mixed = ((uint64_t)from << 32 | to) * 0x9e3779b97f4a7c15;
  return &edges->table[(mixed ^ mixed >> 32) & (edges->edge_room - 1)];
}

/* Returns the link that contains the number of the edge, plus one; the link contains 0 if there is no such edge. */
static uint32_t *find_link(const struct rill__edges *edges, uint32_t from, uint32_t to) {
  uint32_t *link = edge_list(edges, from, to);
  for (; *link != 0; link = &edges->edges[*link - 1].same) {
    const struct edge *edge = &edges->edges[*link - 1];
    if (edge->from == from && edge->to == to) break;
  }
  return link;
}

static struct edge *find_edge(const struct rill__edges *edges, uint32_t from, uint32_t to) {
  const uint32_t number = edges->edge_room != 0 ? *find_link(edges, from, to) : 0;
  return number != 0 ? &edges->edges[number - 1] : NULL;
}

static void enter_table(const struct rill__edges *edges, uint32_t number) {
  struct edge *const edge = &edges->edges[number - 1];
  uint32_t *const list = edge_list(edges, edge->from, edge->to);
  edge->same = *list;
  *list = number;
}

static bool make_room_for_edge(struct rill__edges *edges) {
  if (edges->free != 0 || edges->used < edges->edge_room) return true;
  const uint32_t room = edges->edge_room == 0 ? 32 : 2 * edges->edge_room;
  uint32_t *table = calloc(room, sizeof *table);
  struct edge *larger = table != NULL ? realloc(edges->edges, room * sizeof *larger) : NULL;
  if (larger == NULL) {
    free(table);
    return false;
  }
  free(edges->table);
  edges->table = table;
  edges->edges = larger;
  edges->edge_room = room;
  for (uint32_t number = 1; number <= edges->used; number++) enter_table(edges, number);
  return true;
}

/* Adds an edge; the caller has made room for it. */
static void enter_edge(struct rill__edges *edges, struct rill__graph_node *from, uint32_t to, uint32_t place) {
  const uint32_t number = edges->free != 0 ? edges->free : ++edges->used;
  struct edge *edge = &edges->edges[number - 1];
  if (number == edges->free) edges->free = edge->next;
  *edge = (struct edge){ from->index, to, place, .next = from->leaving };
  if (from->leaving != 0) edges->edges[from->leaving - 1].before = number;
  from->leaving = number;
  enter_table(edges, number);
}

static void remove_edge(struct rill__edges *edges, struct rill__graph_node *from, struct edge *edge) {
  const uint32_t number = (uint32_t)(edge - edges->edges) + 1;
  *find_link(edges, edge->from, edge->to) = edge->same;
  *(edge->before != 0 ? &edges->edges[edge->before - 1].next : &from->leaving) = edge->next;
  if (edge->next != 0) edges->edges[edge->next - 1].before = edge->before;
  edge->next = edges->free;
  edges->free = number;
}

/* ---- the order ---- */

static struct rill__graph_node *node_numbered(const struct rill__graph *graph, uint32_t number) {
  return number == 0 ? &graph->index->head : graph->nodes[number - 1];
}

static uint64_t label_of(const struct rill__graph *graph, const struct rill__graph_node *node) {
  return node->label - graph->index->head.label;
}

static void link_nodes(struct rill__graph_node *node, struct rill__graph_node *next) {
  node->next = next->index + 1;
  next->before = node->index + 1;
}

static uint64_t gap_between(const struct rill__graph_node *node, const struct rill__graph_node *next) {
  return next == node ? UINT64_MAX : next->label - node->label;
}

/* Spreads the labels over the shortest stretch that has more than count * count labels, so that the cost is amortized
 * over later insertions. */
static void make_gap(const struct rill__graph *graph, const struct rill__graph_node *node) {
  uint64_t count = 1;
  const struct rill__graph_node *end = node_numbered(graph, node->next);
  for (; end != node && end->label - node->label <= count * count; end = node_numbered(graph, end->next)) count++;
  const uint64_t step = gap_between(node, end) / count;
  struct rill__graph_node *at = node_numbered(graph, node->next);
  for (uint64_t i = 1; i < count; i++, at = node_numbered(graph, at->next)) at->label = node->label + step * i;
}

/* Inserts a node in the middle of the gap.  At the ends of the order it is placed near its neighbour instead, because
 * more nodes will follow there. */
static void put_after(const struct rill__graph *graph, struct rill__graph_node *node, struct rill__graph_node *new) {
  const uint64_t far = UINT64_C(1) << 32;
  const struct rill__graph_node *const head = &graph->index->head;
  struct rill__graph_node *const next = node_numbered(graph, node->next);
  if (gap_between(node, next) < 2) make_gap(graph, node);
  const uint64_t half = gap_between(node, next) / 2, step = half < far ? half : far;
  new->label = node == next   ? node->label + half
               : node == head ? next->label - step
               : next == head ? node->label + step
                              : node->label + half;
  link_nodes(node, new);
  link_nodes(new, next);
}

/* ---- the search ---- */

struct side {
  struct found *found;
  uint32_t count, visited, mark;
  /* for the node being visited: the next edge that leaves it, or the position of an edge that leads to it */
  uint32_t edge;
};

struct search {
  const struct rill__graph *graph;
  uint64_t low, high; /* labels of `to` and `from` */
  struct side forward, backward;
};

/* Visits a node; returns false if the other side has visited it. */
static bool find_node(const struct search *search, struct side *side, const struct side *other, uint32_t index) {
  struct rill__graph_node *const node = search->graph->nodes[index];
  const uint64_t label = label_of(search->graph, node);
  if (node->visited == other->mark) return false;
  if (node->visited == side->mark || label < search->low || label > search->high) return true;
  node->visited = side->mark;
  side->found[side->count++] = (struct found){ label, node };
  return true;
}

/* Finds the end of the next edge from the nodes found so far; returns false if no edge is left. */
static bool next_forward(const struct search *search, struct side *side, uint32_t *node) {
  const struct edge *edges = search->graph->index->edges;
  while (side->edge == 0 && ++side->visited < side->count) {
    side->edge = side->found[side->visited].node->leaving;
  }
  if (side->edge == 0) return false;
  *node = edges[side->edge - 1].to;
  side->edge = edges[side->edge - 1].next;
  return true;
}

static bool next_backward(struct side *side, uint32_t *node) {
  while (side->edge == side->found[side->visited].node->after_count) {
    if (side->visited + 1 == side->count) return false;
    side->visited++;
    side->edge = 0;
  }
  *node = side->found[side->visited].node->after[side->edge++];
  return true;
}

static int compare_labels(const void *a, const void *b) {
  const uint64_t first = ((const struct found *)a)->label, second = ((const struct found *)b)->label;
  return first < second ? -1 : first > second;
}

/* Sorts the nodes found.  A chain is found in order or in reverse order, so these cases are handled first. */
static void sort_found(struct found *found, uint32_t count) {
  bool rises = true, falls = true;
  for (uint32_t i = 1; i < count; i++) {
    rises &= found[i - 1].label < found[i].label;
    falls &= found[i - 1].label > found[i].label;
  }
  for (uint32_t i = 0, k = count - 1; i < k && falls; i++, k--) {
    const struct found other = found[i];
    found[i] = found[k];
    found[k] = other;
  }
  if (!rises && !falls) qsort(found, count, sizeof *found, compare_labels);
}

/* Moves the nodes that one side has found after a node, or before it, in their current order. */
static void move_found(const struct rill__graph *graph, const struct side *side, struct rill__graph_node *node,
                       bool before) {
  sort_found(side->found, side->count);
  for (uint32_t i = 0; i < side->count; i++) {
    const struct rill__graph_node *const found = side->found[i].node;
    link_nodes(node_numbered(graph, found->before), node_numbered(graph, found->next));
  }
  if (before) node = node_numbered(graph, node->before);
  for (uint32_t i = 0; i < side->count; i++) {
    put_after(graph, node, side->found[i].node);
    node = side->found[i].node;
  }
}

/* Makes `to` come after `from` in the order; returns false if the edge closes a cycle. */
static bool order_edge(struct rill__graph *graph, struct rill__graph_node *from, struct rill__graph_node *to) {
  struct rill__edges *edges = graph->index;
  struct search search = { graph, label_of(graph, to), label_of(graph, from), { 0 }, { 0 } };
  uint32_t node = 0;
  if (search.low > search.high) return true;
  search.forward = (struct side){ .found = edges->found, .mark = rill__graph_new_search(graph) };
  search.backward = (struct side){ .found = edges->found + edges->room, .mark = rill__graph_new_search(graph) };
  (void)find_node(&search, &search.forward, &search.backward, to->index);
  (void)find_node(&search, &search.backward, &search.forward, from->index);
  search.forward.edge = to->leaving;
  for (;;) {
    if (!next_forward(&search, &search.forward, &node)) {
      move_found(graph, &search.forward, from, false);
      return true;
    }
    if (!find_node(&search, &search.forward, &search.backward, node)) return false;
    if (!next_backward(&search.backward, &node)) {
      move_found(graph, &search.backward, to, true);
      return true;
    }
    if (!find_node(&search, &search.backward, &search.forward, node)) return false;
  }
}

/* ---- the index ---- */

void rill__edges_free(struct rill__edges *edges) {
  if (edges == NULL) return;
  free(edges->found);
  free(edges->edges);
  free(edges->table);
  free(edges);
}

static bool make_room_for_nodes(struct rill__edges *edges, uint32_t count) {
  if (count <= edges->room) return true;
  const uint32_t room = count < 2 * edges->room ? 2 * edges->room : count;
  struct found *found = realloc(edges->found, 2 * (size_t)room * sizeof *found);
  if (found == NULL) return false;
  edges->found = found;
  edges->room = room;
  return true;
}

/* Adds the nodes that were added to the graph since the last call. */
static bool take_in(struct rill__graph *graph) {
  struct rill__edges *edges = graph->index;
  if (!make_room_for_nodes(edges, graph->count)) return false;
  const uint32_t first = edges->nodes;
  for (; edges->nodes < graph->count; edges->nodes++) {
    if (graph->nodes[edges->nodes] == NULL) continue;
    graph->nodes[edges->nodes]->leaving = 0;
    put_after(graph, node_numbered(graph, edges->head.before), graph->nodes[edges->nodes]);
  }
  for (uint32_t i = first; i < graph->count; i++) {
    struct rill__graph_node *node = graph->nodes[i];
    for (uint32_t k = 0; node != NULL && k < node->after_count; k++) {
      if (!make_room_for_edge(edges)) return false;
      enter_edge(edges, graph->nodes[node->after[k]], i, k);
      const bool ordered = order_edge(graph, graph->nodes[node->after[k]], node);
      RILL_ASSERT(ordered, "the edges of a graph close no cycle");
      (void)ordered;
    }
  }
  return true;
}

/* Allocates an index, aligned because `head` is a node, which is aligned to a cache line. */
static struct rill__edges *new_index(void) {
  struct rill__edges *edges = aligned_alloc(_Alignof(struct rill__edges), sizeof *edges);
  if (edges != NULL) *edges = (struct rill__edges){ .head = { .index = UINT32_MAX } };
  return edges;
}

/* Returns the index with all nodes of the graph.  Returns NULL if there is no host memory, and then the graph has no
 * index. */
static struct rill__edges *use_index(struct rill__graph *graph) {
  if (graph->index == NULL) graph->index = new_index();
  if (graph->index == NULL) return NULL;
  if (graph->index->nodes == graph->count || take_in(graph)) return graph->index;
  rill__edges_free(graph->index);
  graph->index = NULL;
  return NULL;
}

static rill_status fail_edge_memory(const struct rill__graph *graph) {
  return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for the edges of a graph of %u nodes", graph->count);
}

#if RILL_CHECKS
void rill__edges_assert(const struct rill__graph *graph) {
  const struct rill__edges *edges = graph->index;
  uint32_t count = 0, nodes = 0, there = 0;
  if (edges == NULL) return;
  for (uint32_t i = 0; i < edges->nodes; i++) {
    const struct rill__graph_node *node = graph->nodes[i];
    if (node == NULL) continue;
    there++;
    count += node->after_count;
    for (uint32_t k = 0; k < node->after_count; k++) {
      const struct edge *edge = find_edge(edges, node->after[k], i);
      RILL_ASSERT(edge != NULL && edge->place == k, "each edge is in the table, with its place");
      RILL_ASSERT(label_of(graph, graph->nodes[node->after[k]]) < label_of(graph, node),
                  "every edge leads forward in the order");
    }
  }
  for (const struct rill__graph_node *at = &edges->head; nodes == 0 || at != &edges->head; nodes++) {
    const struct rill__graph_node *next = node_numbered(graph, at->next);
    RILL_ASSERT(node_numbered(graph, next->before) == at, "the order is linked both ways");
    for (uint32_t number = at->leaving; number != 0; number = edges->edges[number - 1].next, count--) {
      RILL_ASSERT(edges->edges[number - 1].from == at->index, "each edge is in the list of the node that it leaves");
    }
    at = next;
  }
  RILL_ASSERT(nodes == there + 1 && count == 0, "the index has the first nodes, with the edges to them");
}
#endif

/* ---- adding and removing ---- */

/* Returns the number of a node in the list of the graph's nodes, in which removed nodes leave no gaps.  Used in error
 * texts. */
static __attribute__((cold)) uint32_t listed_number(const struct rill__graph_node *node) {
  const struct rill__graph *const graph = rill__graph_of(node);
  uint32_t number = 0;
  for (uint32_t i = 0; i < node->index && graph->removed > 0; i++) number += graph->nodes[i] != NULL;
  return graph->removed > 0 ? number : node->index;
}

static bool is_listed(const struct rill__graph_node *node, uint32_t before, uint32_t *place) {
  for (*place = 0; *place < node->after_count; ++*place) {
    if (node->after[*place] == before) return true;
  }
  return false;
}

static rill_status append(struct rill__graph_node *from, struct rill__graph_node *to) {
  struct rill__graph *graph = rill__graph_of(from);
  RILL_REQUIRE(rill__graph_node_reserve(to), RILL_ERROR_OUT_OF_MEMORY, "no host memory for an edge of a graph");
  to->after[to->after_count++] = from->index;
  graph->edges++;
  if (from->index > to->index) graph->in_order = false;
  return RILL_OK;
}

rill_status rill__graph_connect(struct rill__graph_node *from, struct rill__graph_node *to) {
  RILL_ASSERT_GRAPHS_LOCKED();
  struct rill__graph *graph = rill__graph_of(from);
  uint32_t place = 0;
  RILL_TRY(rill__graph_node_check(from, "from"));
  RILL_TRY(rill__graph_node_check(to, "to"));
  RILL_REQUIRE(from != to, RILL_ERROR_INVALID_ARGUMENT,
               "node %u cannot come after itself: an edge needs two different nodes", listed_number(from));
  const bool forward = graph->in_order && from->index < to->index;
  if (graph->index == NULL && forward && to->after_count < FEW_TO_LOOK_AT) {
    return is_listed(to, from->index, &place) ? RILL_OK : append(from, to);
  }
  struct rill__edges *edges = use_index(graph);
  if (edges == NULL) return fail_edge_memory(graph);
  if (find_edge(edges, from->index, to->index) != NULL) return RILL_OK;
  if (!make_room_for_edge(edges)) return fail_edge_memory(graph);
  RILL_REQUIRE(order_edge(graph, from, to), RILL_ERROR_INVALID_ARGUMENT,
               "an edge from node %u to node %u would close a cycle: node %u already comes after node %u",
               listed_number(from), listed_number(to), listed_number(from), listed_number(to));
  /* The order has changed already.  That is harmless if append fails: all existing edges still lead forward in it. */
  RILL_TRY(append(from, to));
  enter_edge(edges, from, to->index, to->after_count - 1);
  return RILL_OK;
}

static rill_status fail_no_edge(const struct rill__graph_node *from, const struct rill__graph_node *to) {
  return rill__fail(RILL_ERROR_NOT_FOUND, "node %u does not come after node %u", listed_number(to),
                    listed_number(from));
}

/* Removes an edge from an index that has all nodes. */
static void take_away(struct rill__graph *graph, struct edge *edge) {
  struct rill__graph_node *const from = graph->nodes[edge->from], *const to = graph->nodes[edge->to];
  const uint32_t place = edge->place;
  find_edge(graph->index, to->after[to->after_count - 1], edge->to)->place = place;
  remove_edge(graph->index, from, edge);
  to->after[place] = to->after[--to->after_count];
  graph->edges--;
}

rill_status rill__graph_disconnect(struct rill__graph_node *from, struct rill__graph_node *to) {
  RILL_ASSERT_GRAPHS_LOCKED();
  struct rill__graph *graph = rill__graph_of(from);
  uint32_t place = 0;
  RILL_TRY(rill__graph_node_check(from, "from"));
  RILL_TRY(rill__graph_node_check(to, "to"));
  if (graph->index == NULL && to->after_count <= FEW_TO_LOOK_AT) {
    if (!is_listed(to, from->index, &place)) return fail_no_edge(from, to);
    to->after[place] = to->after[--to->after_count];
    graph->edges--;
    return RILL_OK;
  }
  const struct rill__edges *const edges = use_index(graph);
  if (edges == NULL) return fail_edge_memory(graph);
  struct edge *const edge = find_edge(edges, from->index, to->index);
  if (edge == NULL) return fail_no_edge(from, to);
  take_away(graph, edge);
  return RILL_OK;
}

rill_status rill__graph_disconnect_node(struct rill__graph_node *node) {
  RILL_ASSERT_GRAPHS_LOCKED();
  struct rill__graph *const graph = rill__graph_of(node);
  const struct rill__edges *const edges = use_index(graph);
  if (edges == NULL) return fail_edge_memory(graph);
  while (node->after_count > 0) take_away(graph, find_edge(edges, node->after[node->after_count - 1], node->index));
  while (node->leaving != 0) take_away(graph, &edges->edges[node->leaving - 1]);
  link_nodes(node_numbered(graph, node->before), node_numbered(graph, node->next));
  return RILL_OK;
}

static void renumber_links(const struct rill__graph *graph, struct rill__graph_node *node) {
  node->next = node_numbered(graph, node->next)->index + 1;
  node->before = node_numbered(graph, node->before)->index + 1;
}

/* The index of a graph that has lost most of its edges is freed, and built again when it is needed: clearing its table
 * takes time proportional to the edges that the graph once had. */
void rill__edges_renumber(struct rill__graph *graph) {
  struct rill__edges *const edges = graph->index;
  if (edges == NULL) return;
  if (edges->edge_room > SMALL_TABLE && graph->edges < edges->edge_room / 8) {
    rill__edges_free(edges);
    graph->index = NULL;
    return;
  }
  uint32_t kept = 0;
  if (edges->table != NULL) memset(edges->table, 0, edges->edge_room * sizeof *edges->table);
  for (uint32_t i = 0; i < edges->nodes; i++) {
    struct rill__graph_node *const node = graph->nodes[i];
    if (node == NULL) continue;
    kept++;
    renumber_links(graph, node);
    for (uint32_t number = node->leaving; number != 0; number = edges->edges[number - 1].next) {
      edges->edges[number - 1].from = node->index;
      edges->edges[number - 1].to = graph->nodes[edges->edges[number - 1].to]->index;
      enter_table(edges, number);
    }
  }
  renumber_links(graph, &edges->head);
  edges->nodes = kept;
}
