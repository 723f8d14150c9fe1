#include "core/graph/graph.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t graphs_lock = PTHREAD_MUTEX_INITIALIZER;

void rill__graphs_lock(void) {
  pthread_mutex_lock(&graphs_lock);
  rill__lock_taken(RILL__LOCK_GRAPHS);
}

void rill__graphs_unlock(void) {
  rill__lock_released(RILL__LOCK_GRAPHS);
  pthread_mutex_unlock(&graphs_lock);
}

#if RILL_CHECKS
void rill__graph_assert(const struct rill__graph *graph) {
  uint64_t edges = 0, serial = 0;
  uint32_t removed = 0;
  RILL_ASSERT_GRAPHS_LOCKED();
  for (uint32_t i = 0; i < graph->count; i++) {
    const struct rill__graph_node *node = graph->nodes[i];
    removed += node == NULL;
    if (node == NULL) continue;
    RILL_ASSERT(node->kind != 0 && node->operation != NULL && node->operation->kind == node->kind,
                "a node has the kind of its operation");
    RILL_ASSERT(rill__node_serial(node) >= serial && rill__node_serial(node) < graph->serials,
                "serials rise with numbers");
    serial = rill__node_serial(node) + 1;
    edges += node->after_count;
    RILL_ASSERT(rill__graph_of(node) == graph && node->index == i, "nodes are numbered as they are added");
    for (uint32_t k = 0; k < node->after_count; k++) {
      RILL_ASSERT(node->after[k] < graph->count && node->after[k] != i && graph->nodes[node->after[k]] != NULL,
                  "an edge leads from another node of the graph");
      RILL_ASSERT(!graph->in_order || node->after[k] < i, "in_order: every edge leads to a greater number");
    }
  }
  RILL_ASSERT(edges == graph->edges, "an edge is kept once, with the node that comes after");
  RILL_ASSERT(removed == graph->removed, "gaps between numbers are counted");
  rill__edges_assert(graph);
}
#endif

/* ---- life ---- */

static void empty_page(struct rill__node_page *page) {
  const uint32_t used = atomic_load_explicit(&page->used, memory_order_relaxed);
  for (uint32_t i = 0; i < used; i++) {
    struct rill__graph_node *node = &page->nodes[i];
    if (node->operation != NULL) rill__operation_unref(node->operation);
    if (node->after != node->few_after) free(node->after);
  }
  page->empty = true;
}

static void destroy_page(struct rill__object *object) {
  struct rill__node_page *page = (struct rill__node_page *)object;
  if (!page->empty) empty_page(page);
  rill__unref(&page->graph->base);
  rill__object_free(object);
}

void rill__graph_forget_memory(struct rill__graph *graph) {
  if (graph->memory != NULL) free(graph->memory->places);
  free(graph->memory);
  graph->memory = NULL;
}

/* An empty page with room for few nodes owns little host memory and nothing else, so it can wait until several such
 * objects are destroyed together (host_only). */
void rill__graph_retire_page(struct rill__graph *graph, struct rill__node_page *page) {
  RILL_ASSERT(rill__has_lock(RILL__LOCK_GRAPHS) || atomic_load(&graph->keepers) == 0,
              "the list of pages changes under the lock, or when no call can use the graph");
  *(page->next != NULL ? &page->next->before : &graph->page) = page->before;
  if (page->before != NULL) page->before->next = page->next;
  page->retired = true;
  page->base.host_only = page->empty && page->room < RILL__PAGE_NODES;
  rill__ref(&graph->base); /* a thread that finds a node also reads its graph */
  rill__object_retire(&page->base);
}

/* Drops a keeper.  After the last one, the handles of the nodes are stale. */
static void drop_keeper(struct rill__graph *graph, uint32_t keeper) {
  if (atomic_fetch_sub(&graph->keepers, keeper) != keeper) return;
  while (graph->page != NULL) rill__graph_retire_page(graph, graph->page);
  rill__unref(&graph->base);
}

void rill__graph_keep_names(struct rill__graph *graph) { (void)atomic_fetch_add(&graph->keepers, RILL__KEEPS_NAMES); }
void rill__graph_drop_names(struct rill__graph *graph) { drop_keeper(graph, RILL__KEEPS_NAMES); }

/* Frees the contents of a graph that no call can be using any more; called outside locks and epochs.  From here on the
 * graph exists only as long as its pages. */
static void end_content(struct rill__object *object) {
  struct rill__graph *graph = (struct rill__graph *)object;
  object->destroy = rill__object_free;
  atomic_store(&object->refs, 1);
  for (struct rill__node_page *page = graph->page; page != NULL; page = page->before) empty_page(page);
  rill__graph_forget_memory(graph);
  rill__edges_free(graph->index);
  free(graph->nodes);
  free(graph->names.serials);
  free(graph->copies);
  rill__detach_all(&graph->attached);
  drop_keeper(graph, RILL__KEEPS_CONTENT);
}

/* Defers the destruction: this may run under the lock of graphs, and dropping what the nodes reference may take other
 * locks. */
static void destroy_graph(struct rill__object *object) {
  object->destroy = end_content;
  atomic_store(&object->refs, 1);
  rill__object_defer(object);
}

rill_status rill__graph_new(struct rill__device *device, struct rill__graph **out) {
  struct rill__graph *graph = NULL;
  RILL_TRY(rill__object_new(sizeof *graph, device, NULL, destroy_graph, &graph));
  graph->in_order = true;
  atomic_init(&graph->keepers, RILL__KEEPS_CONTENT);
  const rill_status status = rill__object_publish(&graph->base, RILL__GRAPH);
  if (status != RILL_OK) {
    rill__unref(&graph->base);
    return status;
  }
  *out = graph;
  return RILL_OK;
}

rill_status rill__graph_check_complete(const struct rill__graph *graph) {
  RILL_ASSERT_GRAPHS_LOCKED();
  RILL_REQUIRE(graph->capture == NULL, RILL_ERROR_CAPTURE_ACTIVE,
               "a capture adds to the graph" RILL_HINT "end the capture first");
  return RILL_OK;
}

/* ---- nodes ---- */

static __attribute__((cold)) rill_status fail_removed(uint64_t id, const char *what) {
  return rill__fail(RILL_ERROR_STALE_HANDLE, "%s 0x%llx has been removed from its graph", what, (unsigned long long)id);
}

rill_status rill__graph_node_find(rill_graph_node node, const char *what, const struct rill__graph *live,
                                  struct rill__graph_node **out) {
  const uint32_t place = (uint32_t)node.id % RILL__PAGE_NODES;
  struct rill__node_page *page = rill__find(node.id - place, RILL__GRAPH_NODE);
  const bool found = page != NULL && (page->graph == live || rill__object_is_live(&page->graph->base) ||
                                      atomic_load(&page->graph->keepers) >= RILL__KEEPS_NAMES);
  if (!found) return rill__fail_handle(node.id, RILL__GRAPH_NODE, what);
  RILL_REQUIRE(place < atomic_load_explicit(&page->used, memory_order_acquire), RILL_ERROR_INVALID_HANDLE,
               "%s 0x%llx was never a handle of kind %s", what, (unsigned long long)node.id,
               rill__kind_name(RILL__GRAPH_NODE));
  *out = &page->nodes[place];
  return (*out)->kind != 0 ? RILL_OK : fail_removed(node.id, what);
}

bool rill__graph_make_room(void *array, size_t count, size_t *room, size_t size) {
  void **const at = array;
  if (count < *room) return true;
  const size_t more = *room == 0 ? 4 : 2 * *room;
  void *larger = realloc(*at, more * size);
  if (larger == NULL) return false;
  *at = larger;
  *room = more;
  return true;
}

/* Moves the predecessors of a node to a larger array. */
static bool make_after(struct rill__graph_node *node, uint32_t room) {
  uint32_t *larger = malloc(room * sizeof *larger);
  if (larger == NULL) return false;
  memcpy(larger, node->after, node->after_count * sizeof *larger);
  if (node->after != node->few_after) free(node->after);
  node->after = larger;
  node->after_room = room;
  return true;
}

bool rill__graph_node_reserve(struct rill__graph_node *node) {
  return node->after_count < node->after_room || make_after(node, 2 * node->after_room);
}

/* Adds each edge only once: the predecessors of the new node are marked by a separate search. */
static bool add_after(struct rill__graph_node *node, struct rill__graph_node *const *after, size_t count) {
  const uint32_t search = rill__graph_new_search(rill__graph_of(node));
  for (size_t i = 0; i < count; i++) {
    if (after[i]->visited == search) continue;
    after[i]->visited = search;
    if (!rill__graph_node_reserve(node)) return false;
    node->after[node->after_count++] = after[i]->index;
  }
  return true;
}

/* Adds a page.  Pages double in size up to a limit, starting again after each mark, because graphs and the parts of
 * graphs after marks may have few or many nodes. */
static rill_status add_page(struct rill__graph *graph) {
  enum { FIRST = 4 };
  struct rill__node_page *page = NULL;
  const uint32_t last = graph->page == NULL || graph->closed ? FIRST / 2 : graph->page->room;
  const uint32_t room = last < RILL__PAGE_NODES ? 2 * last : RILL__PAGE_NODES;
  RILL_TRY(
      rill__object_new(sizeof *page + room * sizeof page->nodes[0], graph->base.device, NULL, destroy_page, &page));
  page->graph = graph;
  page->room = room;
  page->base.borrowed = true;
  const rill_status status = rill__object_publish(&page->base, RILL__GRAPH_NODE);
  if (status != RILL_OK) {
    rill__object_free(&page->base);
    return status;
  }
  page->first = graph->serials;
  page->before = graph->page;
  if (graph->page != NULL) graph->page->next = page;
  graph->page = page;
  graph->closed = false;
  if (page->before != NULL && page->before->live == 0) rill__graph_retire_page(graph, page->before);
  return RILL_OK;
}

static uint32_t used_of(const struct rill__node_page *page) {
  return atomic_load_explicit(&page->used, memory_order_relaxed);
}

rill_status rill__graph_node_check(const struct rill__graph_node *node, const char *what) {
  if (rill__page_of(node)->retired) return rill__fail_handle(rill__node_id(node), RILL__GRAPH_NODE, what);
  return node->kind != 0 ? RILL_OK : fail_removed(rill__node_id(node), what);
}

rill_status rill__graph_check_live(struct rill__graph_node *const *nodes, size_t count) {
  for (size_t i = 0; i < count; i++) RILL_TRY(rill__graph_node_check(nodes[i], "after"));
  return RILL_OK;
}

/* Initializes a node.  It belongs to the graph only once its page counts it. */
static rill_status new_node(struct rill__graph *graph, struct rill__graph_node *const *after, size_t after_count,
                            struct rill__graph_node **out) {
  RILL_TRY(rill__graph_check_live(after, after_count));
  if (graph->page == NULL || graph->closed || used_of(graph->page) == graph->page->room) RILL_TRY(add_page(graph));
  const uint32_t place = used_of(graph->page);
  struct rill__graph_node *node = &graph->page->nodes[place];
  *node = (struct rill__graph_node){
    .place = (uint16_t)place, .index = graph->count, .after = node->few_after, .after_room = RILL__FEW_EDGES
  };
  const bool room =
      rill__graph_make_room(&graph->nodes, graph->count, &graph->room, sizeof(struct rill__graph_node *)) &&
      add_after(node, after, after_count);
  if (!room && node->after != node->few_after) free(node->after);
  RILL_REQUIRE(room, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a node of a graph");
  *out = node;
  return RILL_OK;
}

rill_status rill__graph_add(struct rill__graph *graph, struct rill__operation *operation,
                            struct rill__graph_node *const *after, size_t after_count, struct rill__graph_node **out) {
  RILL_ASSERT_GRAPHS_LOCKED();
  struct rill__graph_node *node = NULL;
  const rill_status status = new_node(graph, after, after_count, &node);
  if (status != RILL_OK) {
    rill__operation_unref(operation);
    return status;
  }
  node->operation = operation;
  atomic_store_explicit(&node->kind, (uint16_t)operation->kind, memory_order_relaxed);
  graph->nodes[graph->count++] = node;
  graph->serials++;
  graph->page->live++;
  graph->edges += node->after_count;
  /* Published last: rill__graph_node_find reads `used` without the lock. */
  atomic_store_explicit(&graph->page->used, used_of(graph->page) + 1, memory_order_release);
  *out = node;
  return RILL_OK;
}

/* Copies the predecessors of a node, with indexes increased by `base`. */
static bool copy_edges(struct rill__graph_node *copy, const struct rill__graph_node *node, uint32_t base) {
  if (node->after_count == 0) return true;
  if (node->after_count > copy->after_room && !make_after(copy, node->after_count)) return false;
  for (uint32_t i = 0; i < node->after_count; i++) copy->after[i] = base + node->after[i];
  copy->after_count = node->after_count;
  return true;
}

rill_status rill__graph_add_graph(struct rill__graph *graph, const struct rill__graph *other,
                                  struct rill__graph_node *const *after, size_t after_count) {
  const uint64_t mark = rill__graph_mark(graph);
  const uint32_t base = graph->count, edges = graph->edges;
  rill_status status = RILL_OK;
  for (uint32_t i = 0; i < other->count && status == RILL_OK; i++) {
    const struct rill__graph_node *node = other->nodes[i];
    struct rill__graph_node *copy = NULL;
    rill__operation_ref(node->operation);
    status = rill__graph_add(graph, node->operation, after, node->after_count == 0 ? after_count : 0, &copy);
    if (status == RILL_OK && !copy_edges(copy, node, base)) {
      status = rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for an edge of a graph");
    }
    if (status == RILL_OK) graph->edges += node->after_count;
  }
  if (status != RILL_OK) {
    rill__graph_truncate(graph, mark);
    /* Truncation subtracts the edges of every node; the last copy's edges may not have been added. */
    graph->edges = edges;
    return status;
  }
  if (!other->in_order) graph->in_order = false;
  return RILL_OK;
}

/* The nodes after the mark have pages of their own. */
uint64_t rill__graph_mark(struct rill__graph *graph) {
  graph->closed = true;
  return graph->serials;
}

uint32_t rill__graph_first_from(const struct rill__graph *graph, uint64_t mark) {
  const uint32_t first = graph->count - (uint32_t)(graph->serials - mark);
  RILL_ASSERT(first <= graph->count && (first == graph->count || rill__node_serial(graph->nodes[first]) == mark),
              "no node after a mark was removed");
  return first;
}

void rill__graph_truncate(struct rill__graph *graph, uint64_t mark) {
  RILL_ASSERT_GRAPHS_LOCKED();
  const uint32_t first = rill__graph_first_from(graph, mark);
  while (graph->count > first) graph->edges -= graph->nodes[--graph->count]->after_count;
  graph->serials = mark;
  while (graph->page != NULL && graph->page->first >= graph->serials) rill__graph_retire_page(graph, graph->page);
  graph->closed = true;
  rill__graph_forget_memory(graph);
#if RILL_CHECKS
  rill__graph_assert(graph);
#endif
}

/* ---- memory ---- */

/* Returns the position of p in the table, or the position where it would be. */
static uint32_t memory_place(const struct rill__graph_memory *memory, const void *p) {
  const uint64_t hash = (uint64_t)(uintptr_t)p * 0x9e3779b97f4a7c15;
  uint32_t place = (uint32_t)(hash >> 32) & (memory->room - 1);
  while (memory->places[place].p != NULL && memory->places[place].p != p) place = (place + 1) & (memory->room - 1);
  return place;
}

/* Makes sure that half of the table stays empty. */
static bool make_room_for_memory(struct rill__graph_memory *memory) {
  struct rill__graph_memory larger = { .count = memory->count, .room = memory->room == 0 ? 16 : 2 * memory->room };
  if (2 * memory->count < memory->room) return true;
  larger.places = calloc(larger.room, sizeof *larger.places);
  if (larger.places == NULL) return false;
  for (uint32_t i = 0; i < memory->room; i++) {
    if (memory->places[i].p != NULL) larger.places[memory_place(&larger, memory->places[i].p)] = memory->places[i];
  }
  free(memory->places);
  larger.nodes = memory->nodes;
  *memory = larger;
  return true;
}

/* Builds the table when it is first needed, because most graphs free no memory, and then extends it by the nodes added
 * since the last call. */
bool rill__graph_find_memory(struct rill__graph *graph, const void *p, bool *allocated, bool *freed) {
  if (graph->memory == NULL) graph->memory = calloc(1, sizeof *graph->memory);
  struct rill__graph_memory *memory = graph->memory;
  if (memory == NULL || !make_room_for_memory(memory)) return false;
  for (; memory->nodes < graph->count; memory->nodes++) {
    if (graph->nodes[memory->nodes] == NULL) continue;
    const struct rill__operation *operation = graph->nodes[memory->nodes]->operation;
    if (operation->kind != RILL_NODE_ALLOC && operation->kind != RILL_NODE_FREE) continue;
    if (!make_room_for_memory(memory)) return false;
    const uint32_t place = memory_place(memory, operation->memory);
    if (memory->places[place].p == NULL) memory->count++;
    memory->places[place].p = operation->memory;
    memory->places[place].allocated |= operation->kind == RILL_NODE_ALLOC;
    memory->places[place].freed |= operation->kind == RILL_NODE_FREE;
  }
  const uint32_t place = memory_place(memory, p);
  *allocated = memory->places[place].allocated;
  *freed = memory->places[place].freed;
  return true;
}

/* ---- searches ---- */

uint32_t rill__graph_new_search(struct rill__graph *graph) {
  if (RILL__LIKELY(graph->searches < UINT32_MAX)) return ++graph->searches;
  for (uint32_t i = 0; i < graph->count; i++) {
    if (graph->nodes[i] != NULL) graph->nodes[i]->visited = 0;
  }
  return graph->searches = 1;
}

/* Not recursive, because a chain may be as long as the graph.  Each node is pushed at most once, so the stack has room
 * for the nodes from `mark` on. */
uint32_t rill__graph_search(struct rill__graph *graph, uint64_t mark, struct rill__graph_node *const *from,
                            size_t count, bool *no_memory) {
  RILL_ASSERT_GRAPHS_LOCKED();
  struct rill__graph_node **stack =
      malloc((graph->count - rill__graph_first_from(graph, mark) + 1) * sizeof(struct rill__graph_node *));
  const uint32_t search = rill__graph_new_search(graph);
  size_t depth = 0;
  *no_memory = stack == NULL;
  for (size_t i = 0; i < count && stack != NULL; i++) {
    if (from[i]->visited == search || rill__node_serial(from[i]) < mark) continue;
    from[i]->visited = search;
    stack[depth++] = from[i];
  }
  while (depth > 0) {
    const struct rill__graph_node *node = stack[--depth];
    for (uint32_t i = 0; i < node->after_count; i++) {
      struct rill__graph_node *before = graph->nodes[node->after[i]];
      if (before->visited == search || rill__node_serial(before) < mark) continue;
      before->visited = search;
      stack[depth++] = before;
    }
  }
  free(stack);
  return search;
}
