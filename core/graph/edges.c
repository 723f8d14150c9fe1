/* Edges that are added and taken away one by one.
 *
 * A graph whose edges all lead to greater numbers, with few to a node, needs nothing but its nodes' lists.  Any other
 * one gets an index with the first edge that is added or taken away by itself: a table of the edges by their ends, the
 * edges that leave each node, and an order of the nodes in which every edge leads forward.
 *
 * An edge that leads forward in that order closes no cycle.  For another one the nodes that lie between its ends are
 * searched, forward from `to` and backward from `from` by turns, until one side is exhausted or the two meet: then it
 * closes a cycle.  The nodes of the side that is exhausted move after `from`, or before `to`.  So an edge costs as
 * much as the smaller side, and what has been put in order stays so.
 *
 * Nodes have labels that rise along the order, with gaps; where one is used up, those of the next few nodes are spread
 * (Dietz and Sleator, 1987).
 *
 * Invariants, under the lock of graphs
 * - The index has the first `nodes` nodes of the graph, with the edges to them; the next call takes in the others.
 * - Of those nodes' edges each is in the table, and in the list of the node that it leaves; `place` is where it stands
 *   in the list of the node that it leads to. */
#include "core/graph/graph.h"

#include <stdlib.h>

enum { FEW_TO_LOOK_AT = 16, HEAD = 0 };

struct edge {
  uint32_t from, to, place;
  uint32_t next, before; /* that leave `from`: their numbers plus one, 0 at the ends; next: of free ones, too */
};

/* Node i is entry i + 1; HEAD closes the circle. */
struct entry {
  uint64_t label; /* compared with that of HEAD taken away */
  uint32_t next, before;
  uint32_t leaving; /* the first edge */
  uint32_t mark;    /* of the last search that came here, and of its side */
};

struct found {
  uint64_t label;
  uint32_t node;
};

struct rill__edges {
  uint32_t nodes, room;
  struct entry *order;
  struct found *found[2]; /* by the sides of a search */
  uint32_t mark;
  struct edge *edges;
  uint32_t used, edge_room, free; /* `free`: the first free one, plus one */
  uint32_t count, table_room;
  uint32_t *table; /* numbers of edges plus one; half of the places stay empty */
};

/* ---- the table ---- */

static uint32_t home_of(const struct rill__edges *edges, uint32_t from, uint32_t to) {
  const uint64_t hash = ((uint64_t)from << 32 | to) * 0x9e3779b97f4a7c15;
  return (uint32_t)(hash >> 32) & (edges->table_room - 1);
}

/* Where the edge is in the table, or would be. */
static uint32_t place_of(const struct rill__edges *edges, uint32_t from, uint32_t to) {
  uint32_t place = home_of(edges, from, to);
  for (; edges->table[place] != 0; place = (place + 1) & (edges->table_room - 1)) {
    const struct edge *edge = &edges->edges[edges->table[place] - 1];
    if (edge->from == from && edge->to == to) break;
  }
  return place;
}

static struct edge *find_edge(const struct rill__edges *edges, uint32_t from, uint32_t to) {
  const uint32_t number = edges->table_room != 0 ? edges->table[place_of(edges, from, to)] : 0;
  return number != 0 ? &edges->edges[number - 1] : NULL;
}

/* Those after it that would be looked for in vain move up. */
static void empty_place(struct rill__edges *edges, uint32_t place) {
  const uint32_t mask = edges->table_room - 1;
  for (uint32_t at = (place + 1) & mask; edges->table[at] != 0; at = (at + 1) & mask) {
    const struct edge *edge = &edges->edges[edges->table[at] - 1];
    if (((at - home_of(edges, edge->from, edge->to)) & mask) < ((at - place) & mask)) continue;
    edges->table[place] = edges->table[at];
    place = at;
  }
  edges->table[place] = 0;
}

static bool make_room_in_table(struct rill__edges *edges) {
  if (2 * (edges->count + 1) <= edges->table_room) return true;
  struct rill__edges larger = *edges;
  larger.table_room = edges->table_room == 0 ? 64 : 2 * edges->table_room;
  larger.table = calloc(larger.table_room, sizeof *larger.table);
  if (larger.table == NULL) return false;
  for (uint32_t i = 0; i < edges->table_room; i++) {
    if (edges->table[i] == 0) continue;
    const struct edge *edge = &edges->edges[edges->table[i] - 1];
    larger.table[place_of(&larger, edge->from, edge->to)] = edges->table[i];
  }
  free(edges->table);
  *edges = larger;
  return true;
}

static bool make_room_for_edge(struct rill__edges *edges) {
  if (!make_room_in_table(edges)) return false;
  if (edges->free != 0 || edges->used < edges->edge_room) return true;
  const uint32_t room = edges->edge_room == 0 ? 32 : 2 * edges->edge_room;
  struct edge *larger = realloc(edges->edges, room * sizeof *larger);
  if (larger == NULL) return false;
  edges->edges = larger;
  edges->edge_room = room;
  return true;
}

/* There is room for it. */
static void enter_edge(struct rill__edges *edges, uint32_t from, uint32_t to, uint32_t place) {
  uint32_t *const leaving = &edges->order[from + 1].leaving;
  const uint32_t number = edges->free != 0 ? edges->free : ++edges->used;
  struct edge *edge = &edges->edges[number - 1];
  if (number == edges->free) edges->free = edge->next;
  *edge = (struct edge){ from, to, place, .next = *leaving };
  if (*leaving != 0) edges->edges[*leaving - 1].before = number;
  *leaving = number;
  edges->table[place_of(edges, from, to)] = number;
  edges->count++;
}

static void remove_edge(struct rill__edges *edges, struct edge *edge) {
  const uint32_t number = (uint32_t)(edge - edges->edges) + 1;
  empty_place(edges, place_of(edges, edge->from, edge->to));
  *(edge->before != 0 ? &edges->edges[edge->before - 1].next : &edges->order[edge->from + 1].leaving) = edge->next;
  if (edge->next != 0) edges->edges[edge->next - 1].before = edge->before;
  edge->next = edges->free;
  edges->free = number;
  edges->count--;
}

/* ---- the order ---- */

static uint64_t label_of(const struct rill__edges *edges, uint32_t node) {
  return edges->order[node + 1].label - edges->order[HEAD].label;
}

static uint64_t gap_after(const struct entry *order, uint32_t entry) {
  const uint32_t next = order[entry].next;
  return next == entry ? UINT64_MAX : order[next].label - order[entry].label;
}

static void make_gap(struct entry *order, uint32_t entry) {
  uint64_t count = 1;
  uint32_t end = order[entry].next;
  for (; end != entry && order[end].label - order[entry].label <= count * count; end = order[end].next) count++;
  const uint64_t width = end == entry ? UINT64_MAX : order[end].label - order[entry].label;
  uint32_t at = order[entry].next;
  for (uint64_t i = 1; i < count; i++, at = order[at].next) order[at].label = order[entry].label + width / count * i;
}

/* In the middle of the gap; at the ends of the order not far from the next node, for others will come there. */
static void put_after(struct entry *order, uint32_t entry, uint32_t new) {
  const uint64_t far = UINT64_C(1) << 32;
  if (gap_after(order, entry) < 2) make_gap(order, entry);
  const uint64_t gap = gap_after(order, entry), step = gap / 2 < far ? gap / 2 : far;
  const uint32_t next = order[entry].next;
  order[new].label = next == entry   ? order[entry].label + gap / 2
                     : entry == HEAD ? order[next].label - step
                     : next == HEAD  ? order[entry].label + step
                                     : order[entry].label + gap / 2;
  order[new].next = next;
  order[new].before = entry;
  order[next].before = order[entry].next = new;
}

/* ---- the search ---- */

struct side {
  struct found *found;
  uint32_t count, looked_at, mark;
  uint32_t edge; /* of the node that is looked at: the next one that leaves it, or the place of one that leads to it */
};

struct search {
  const struct rill__graph *graph;
  struct rill__edges *edges;
  uint64_t low, high; /* labels of `to` and `from` */
  struct side forward, backward;
};

/* False if the other side has been there. */
static bool find_node(const struct search *search, struct side *side, const struct side *other, uint32_t node) {
  struct entry *entry = &search->edges->order[node + 1];
  const uint64_t label = label_of(search->edges, node);
  if (entry->mark == other->mark) return false;
  if (entry->mark == side->mark || label < search->low || label > search->high) return true;
  entry->mark = side->mark;
  side->found[side->count++] = (struct found){ label, node };
  return true;
}

/* The end of the next edge from what has been found; false if there is none left. */
static bool next_forward(const struct search *search, struct side *side, uint32_t *node) {
  const struct rill__edges *edges = search->edges;
  while (side->edge == 0 && ++side->looked_at < side->count) {
    side->edge = edges->order[side->found[side->looked_at].node + 1].leaving;
  }
  if (side->edge == 0) return false;
  *node = edges->edges[side->edge - 1].to;
  side->edge = edges->edges[side->edge - 1].next;
  return true;
}

static bool next_backward(const struct search *search, struct side *side, uint32_t *node) {
  const struct rill__graph *graph = search->graph;
  while (side->edge == graph->nodes[side->found[side->looked_at].node]->after_count) {
    if (side->looked_at + 1 == side->count) return false;
    side->looked_at++;
    side->edge = 0;
  }
  *node = graph->nodes[side->found[side->looked_at].node]->after[side->edge++];
  return true;
}

static int compare_labels(const void *a, const void *b) {
  const uint64_t first = ((const struct found *)a)->label, second = ((const struct found *)b)->label;
  return first < second ? -1 : first > second;
}

/* Moves what one side has found after an entry, or before it, in the order that it has. */
static void move_found(struct rill__edges *edges, struct side *side, uint32_t entry, bool before) {
  qsort(side->found, side->count, sizeof *side->found, compare_labels);
  for (uint32_t i = 0; i < side->count; i++) {
    const struct entry *const found = &edges->order[side->found[i].node + 1];
    edges->order[found->before].next = found->next;
    edges->order[found->next].before = found->before;
  }
  if (before) entry = edges->order[entry].before;
  for (uint32_t i = 0; i < side->count; i++) {
    put_after(edges->order, entry, side->found[i].node + 1);
    entry = side->found[i].node + 1;
  }
}

/* Makes `to` come after `from` in the order; false if the edge closes a cycle. */
static bool order_edge(const struct rill__graph *graph, struct rill__edges *edges, uint32_t from, uint32_t to) {
  struct search search = { graph, edges, label_of(edges, to), label_of(edges, from), { 0 }, { 0 } };
  if (search.low > search.high) return true;
  if (edges->mark > UINT32_MAX - 2) {
    edges->mark = 0;
    for (uint32_t i = 0; i <= edges->nodes; i++) edges->order[i].mark = 0;
  }
  search.forward = (struct side){ .found = edges->found[0], .mark = ++edges->mark };
  search.backward = (struct side){ .found = edges->found[1], .mark = ++edges->mark };
  (void)find_node(&search, &search.forward, &search.backward, to);
  (void)find_node(&search, &search.backward, &search.forward, from);
  search.forward.edge = edges->order[to + 1].leaving;
  for (uint32_t node;;) {
    if (!next_forward(&search, &search.forward, &node)) {
      move_found(edges, &search.forward, from + 1, false);
      return true;
    }
    if (!find_node(&search, &search.forward, &search.backward, node)) return false;
    if (!next_backward(&search, &search.backward, &node)) {
      move_found(edges, &search.backward, to + 1, true);
      return true;
    }
    if (!find_node(&search, &search.backward, &search.forward, node)) return false;
  }
}

/* ---- the index ---- */

void rill__edges_free(struct rill__edges *edges) {
  if (edges == NULL) return;
  free(edges->order);
  for (int i = 0; i < 2; i++) free(edges->found[i]);
  free(edges->edges);
  free(edges->table);
  free(edges);
}

static bool make_room_for_nodes(struct rill__edges *edges, uint32_t count) {
  if (count <= edges->room) return true;
  const uint32_t room = count < 2 * edges->room ? 2 * edges->room : count;
  struct entry *order = realloc(edges->order, ((size_t)room + 1) * sizeof *order);
  if (order == NULL) return false;
  if (edges->order == NULL) order[HEAD] = (struct entry){ .next = HEAD, .before = HEAD };
  edges->order = order;
  for (int i = 0; i < 2; i++) {
    struct found *found = realloc(edges->found[i], room * sizeof *found);
    if (found == NULL) return false;
    edges->found[i] = found;
  }
  edges->room = room;
  return true;
}

/* Takes in the nodes that have been added to the graph since the last call. */
static bool take_in(const struct rill__graph *graph, struct rill__edges *edges) {
  if (!make_room_for_nodes(edges, graph->count)) return false;
  const uint32_t first = edges->nodes;
  for (; edges->nodes < graph->count; edges->nodes++) {
    edges->order[edges->nodes + 1] = (struct entry){ .leaving = 0 };
    put_after(edges->order, edges->order[HEAD].before, edges->nodes + 1);
  }
  for (uint32_t i = first; i < graph->count; i++) {
    const struct rill__graph_node *node = graph->nodes[i];
    for (uint32_t k = 0; k < node->after_count; k++) {
      if (!make_room_for_edge(edges)) return false;
      enter_edge(edges, node->after[k], i, k);
      const bool ordered = order_edge(graph, edges, node->after[k], i);
      RILL_ASSERT(ordered, "the edges of a graph close no cycle");
      (void)ordered;
    }
  }
  return true;
}

/* The index with all nodes of the graph; NULL without host memory, and then there is none. */
static struct rill__edges *use_index(struct rill__graph *graph) {
  if (graph->index == NULL) graph->index = calloc(1, sizeof *graph->index);
  if (graph->index == NULL) return NULL;
  if (graph->index->nodes == graph->count || take_in(graph, graph->index)) return graph->index;
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
  uint32_t count = 0, nodes = 0;
  if (edges == NULL) return;
  for (uint32_t i = 0; i < edges->nodes; i++) {
    const struct rill__graph_node *node = graph->nodes[i];
    count += node->after_count;
    for (uint32_t k = 0; k < node->after_count; k++) {
      const struct edge *edge = find_edge(edges, node->after[k], i);
      RILL_ASSERT(edge != NULL && edge->place == k, "each edge is in the table, with its place");
      RILL_ASSERT(label_of(edges, node->after[k]) < label_of(edges, i), "every edge leads forward in the order");
    }
  }
  for (uint32_t at = edges->order[HEAD].next; at != HEAD; at = edges->order[at].next, nodes++) {
    RILL_ASSERT(edges->order[edges->order[at].before].next == at, "the order is linked both ways");
    for (uint32_t number = edges->order[at].leaving; number != 0; number = edges->edges[number - 1].next, count--) {
      RILL_ASSERT(edges->edges[number - 1].from + 1 == at, "each edge is in the list of the node that it leaves");
    }
  }
  RILL_ASSERT(nodes == edges->nodes && count == 0, "the index has the first nodes, with the edges to them");
}
#endif

/* ---- adding and taking away ---- */

static bool is_listed(const struct rill__graph_node *node, uint32_t before, uint32_t *place) {
  for (*place = 0; *place < node->after_count; ++*place) {
    if (node->after[*place] == before) return true;
  }
  return false;
}

static rill_status append(struct rill__graph_node *from, struct rill__graph_node *to) {
  struct rill__graph *graph = from->graph;
  RILL_REQUIRE(rill__graph_node_reserve(to), RILL_ERROR_OUT_OF_MEMORY, "no host memory for an edge of a graph");
  to->after[to->after_count++] = from->index;
  graph->edges++;
  if (from->index > to->index) graph->in_order = false;
  return RILL_OK;
}

rill_status rill__graph_connect(struct rill__graph_node *from, struct rill__graph_node *to) {
  RILL_ASSERT_GRAPHS_LOCKED();
  struct rill__graph *graph = from->graph;
  uint32_t place = 0;
  RILL_TRY(rill__graph_node_check(from, "from"));
  RILL_TRY(rill__graph_node_check(to, "to"));
  RILL_REQUIRE(from != to, RILL_ERROR_INVALID_ARGUMENT, "node %u cannot come after itself", from->index);
  const bool forward = graph->in_order && from->index < to->index;
  if (graph->index == NULL && forward && to->after_count < FEW_TO_LOOK_AT) {
    return is_listed(to, from->index, &place) ? RILL_OK : append(from, to);
  }
  struct rill__edges *edges = use_index(graph);
  if (edges == NULL) return fail_edge_memory(graph);
  if (find_edge(edges, from->index, to->index) != NULL) return RILL_OK;
  if (!make_room_for_edge(edges)) return fail_edge_memory(graph);
  RILL_REQUIRE(order_edge(graph, edges, from->index, to->index), RILL_ERROR_INVALID_ARGUMENT,
               "an edge from node %u to node %u closes a cycle: %u comes after %u already", from->index, to->index,
               from->index, to->index);
  RILL_TRY(append(from, to));
  enter_edge(edges, from->index, to->index, to->after_count - 1);
  return RILL_OK;
}

static rill_status fail_no_edge(const struct rill__graph_node *from, const struct rill__graph_node *to) {
  return rill__fail(RILL_ERROR_NOT_FOUND, "node %u does not come after node %u", to->index, from->index);
}

rill_status rill__graph_disconnect(struct rill__graph_node *from, struct rill__graph_node *to) {
  RILL_ASSERT_GRAPHS_LOCKED();
  struct rill__graph *graph = from->graph;
  uint32_t place = 0;
  RILL_TRY(rill__graph_node_check(from, "from"));
  RILL_TRY(rill__graph_node_check(to, "to"));
  if (graph->index == NULL && to->after_count <= FEW_TO_LOOK_AT) {
    if (!is_listed(to, from->index, &place)) return fail_no_edge(from, to);
  } else {
    struct rill__edges *edges = use_index(graph);
    if (edges == NULL) return fail_edge_memory(graph);
    struct edge *edge = find_edge(edges, from->index, to->index), *last;
    if (edge == NULL) return fail_no_edge(from, to);
    place = edge->place;
    last = find_edge(edges, to->after[to->after_count - 1], to->index);
    last->place = place;
    remove_edge(edges, edge);
  }
  to->after[place] = to->after[--to->after_count];
  graph->edges--;
  return RILL_OK;
}
