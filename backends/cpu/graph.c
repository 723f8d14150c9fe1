/* Graphs.
 *
 * The nodes of a graph are divided into chains, each of which runs in order.  The first chain runs in the queue of the
 * stream that the graph is launched on; the others run concurrently in queues that the execution object owns.  A chain
 * is cut into segments where another chain waits for one of its nodes, or where it waits for a node of another chain.
 * A segment is one operation of a queue, so a launch of many nodes costs little more than a launch of few.
 *
 * The work of a node is the operation that a stream function would submit, obtained from a queue that collects
 * operations instead of running them.  It is run again at each launch, unchanged.  A plan is the set of the nodes'
 * operations at one time.  A launch holds its plan until its last segment has ended.  A change while launches are
 * pending therefore creates another plan, which shares the tree of nodes except for the branch that is changed.
 */
#include "backends/cpu/cpu.h"
#include "backends/cpu/graph_shape.h"
#include "backends/cpu/schedule.h"

#include <stdlib.h>
#include <string.h>

/* Children of a node of the tree.  A change while a launch is pending copies one branch, so its cost hardly grows with
 * the number of nodes. */
enum { CHILDREN_BITS = 5, CHILDREN = 1 << CHILDREN_BITS };

/* The work of one node. */
struct node {
  _Atomic uint32_t references;
  struct rill__operation *operation; /* referenced; owns what the work uses */
  struct cpu_op *op;                 /* NULL if the node has no work */
};

/* A child of a tree, referenced: a node at level 0, and a tree at higher levels.  Plans share what is equal in them; a
 * shared node or tree is never changed. */
union child {
  struct node *node;
  struct tree *tree;
};

struct tree {
  _Atomic uint32_t references;
  uint32_t level;
  union child children[CHILDREN];
};

struct cpu_plan {
  struct rill__object base;      /* lets core free the plan, outside the workers */
  _Atomic uint32_t users;        /* number of users: the execution object, and each segment that has not ended */
  struct cpu_shape *shape;       /* referenced */
  struct rill__object *attached; /* referenced; may be NULL */
  union child root;              /* a tree */
};

static union child *child_of(struct tree *tree, uint32_t node) {
  return &tree->children[node >> CHILDREN_BITS * tree->level & (CHILDREN - 1)];
}

static struct node **place_in(const struct cpu_plan *plan, uint32_t node) {
  struct tree *tree = plan->root.tree;
  while (tree->level > 0) tree = child_of(tree, node)->tree;
  return &child_of(tree, node)->node;
}

static struct node *node_at(const struct cpu_plan *plan, uint32_t node) { return *place_in(plan, node); }

/* ---- nodes and plans ---- */

static void release_node(struct node *node) {
  if (node == NULL || atomic_fetch_sub_explicit(&node->references, 1, memory_order_acq_rel) != 1) return;
  if (node->op != NULL && node->op->end != NULL) node->op->end(node->op);
  free(node->op);
  rill__operation_unref(node->operation);
  free(node);
}

static void release_tree(struct tree *tree) {
  if (tree == NULL || atomic_fetch_sub_explicit(&tree->references, 1, memory_order_acq_rel) != 1) return;
  for (uint32_t i = 0; i < CHILDREN; i++) {
    if (tree->level == 0) release_node(tree->children[i].node);
    if (tree->level > 0) release_tree(tree->children[i].tree);
  }
  free(tree);
}

static void destroy_plan(struct rill__object *object) {
  struct cpu_plan *plan = (struct cpu_plan *)object;
  release_tree(plan->root.tree);
  rill__cpu_shape_release(plan->shape);
  if (plan->attached != NULL) rill__unref(plan->attached);
  free(plan);
}

static void retain_node(struct node *node) { atomic_fetch_add_explicit(&node->references, 1, memory_order_relaxed); }
static void retain_tree(struct tree *tree) { atomic_fetch_add_explicit(&tree->references, 1, memory_order_relaxed); }

/* Takes ownership of the nodes, even on failure. */
static struct cpu_plan *new_plan(struct rill__device *device, struct cpu_shape *shape, struct tree *nodes,
                                 struct rill__object *attached) {
  struct cpu_plan *plan = calloc(1, sizeof *plan);
  if (nodes == NULL || plan == NULL) {
    release_tree(nodes);
    free(plan);
    return NULL;
  }
  rill__object_init(&plan->base, device, destroy_plan);
  atomic_init(&plan->users, 1);
  plan->root.tree = nodes;
  plan->attached = attached;
  if (attached != NULL) rill__ref(attached);
  plan->shape = shape;
  atomic_fetch_add_explicit(&shape->references, 1, memory_order_relaxed);
  return plan;
}

/* Creates a tree with room for `count` nodes and no nodes in it. */
static struct tree *new_tree(uint32_t level, uint32_t count) {
  struct tree *tree = calloc(1, sizeof *tree);
  if (tree == NULL) return NULL;
  atomic_init(&tree->references, 1);
  tree->level = level;
  const uint64_t each = UINT64_C(1) << CHILDREN_BITS * level;
  for (uint64_t first = 0; level > 0 && first < count; first += each) {
    struct tree *child = new_tree(level - 1, (uint32_t)(count - first < each ? count - first : each));
    tree->children[first / each].tree = child;
    if (child != NULL) continue;
    release_tree(tree);
    return NULL;
  }
  return tree;
}

static void release_plan(struct cpu_plan *plan) {
  if (atomic_fetch_sub_explicit(&plan->users, 1, memory_order_acq_rel) == 1) rill__object_defer(&plan->base);
}

static struct cpu_plan *new_empty_plan(struct rill__device *device, struct cpu_shape *shape, uint32_t count,
                                       struct rill__object *attached) {
  uint32_t level = 0;
  while ((uint64_t)count > UINT64_C(1) << CHILDREN_BITS * (level + 1)) level++;
  return new_plan(device, shape, new_tree(level, count), attached);
}

/* A private stream whose queue collects operations. */
struct collector {
  struct cpu_queue queue;
  _Alignas(64) char bytes[RILL__PART_OFFSET(struct rill__stream) + sizeof(struct cpu_stream)];
};

static struct rill__stream *collector_init(struct collector *collector, struct rill__device *device) {
  memset(collector, 0, sizeof *collector);
  collector->queue.device = device;
  collector->queue.collects = true;
  struct rill__stream *stream = (struct rill__stream *)(void *)collector->bytes;
  struct cpu_stream *part = rill__part(stream);
  stream->base.device = device;
  part->queue = &collector->queue;
  return stream;
}

static rill_status new_graph_node(struct rill__operation *operation, struct node **out) {
  struct node *node = calloc(1, sizeof *node);
  RILL_REQUIRE(node != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a node of a graph");
  if (operation->kind <= RILL_NODE_HOST_CALL) {
    struct collector collector;
    struct rill__stream *stream = collector_init(&collector, operation->device);
    const rill_status status = rill__operation_submit(operation, stream);
    node->op = collector.queue.collected;
    if (status != RILL_OK) {
      free(node->op);
      free(node);
      return status;
    }
  }
  atomic_init(&node->references, 1);
  rill__operation_ref(operation);
  node->operation = operation;
  *out = node;
  return RILL_OK;
}

/* ---- instantiating and destroying ---- */

static bool cpu_graph_destroy(struct rill__graph_exec *exec) {
  struct cpu_exec *part = rill__part(exec);
  if (part->plan != NULL) release_plan(part->plan);
  for (uint32_t i = 1; i < CPU_CHAINS; i++) {
    if (part->queues[i] != NULL) rill__cpu_queue_release(part->queues[i]);
  }
  if (part->last != NULL) rill__cpu_queue_release(part->last);
  return true;
}

static rill_status fill_plan(struct rill__graph_exec *exec, struct cpu_shape *shape) {
  struct cpu_exec *part = rill__part(exec);
  struct rill__device *device = exec->base.device;
  part->plan = new_empty_plan(device, shape, exec->count, exec->attached);
  RILL_REQUIRE(part->plan != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a graph of %u nodes", exec->count);
  for (uint32_t i = 0; i < exec->count; i++) {
    RILL_TRY(new_graph_node(exec->steps[i].operation, place_in(part->plan, i)));
  }
  for (uint32_t i = 1; i < shape->chain_count; i++) {
    RILL_TRY(rill__cpu_queue_new(device, (uint32_t)(RILL_PRIORITY_NORMAL + 1), &part->queues[i]));
  }
  return RILL_OK;
}

static rill_status cpu_graph_instantiate(struct rill__graph_exec *exec) {
  struct cpu_shape *shape = NULL;
  RILL_TRY(rill__cpu_shape_new(exec, &shape));
  const rill_status status = fill_plan(exec, shape);
  rill__cpu_shape_release(shape);
  if (status != RILL_OK) (void)cpu_graph_destroy(exec);
  return status;
}

/* ---- changes ---- */

/* Creates nodes for the operations that differ; the other nodes are shared with the previous plan. */
static rill_status cpu_graph_update(struct rill__graph_exec *exec, struct rill__operation *const *operations,
                                    struct rill__object *attached) {
  struct cpu_exec *part = rill__part(exec);
  struct cpu_plan *before = part->plan, *plan = NULL;
  plan = new_empty_plan(exec->base.device, before->shape, exec->count, attached);
  rill_status status = RILL_OK;
  RILL_REQUIRE(plan != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to change a graph of %u nodes", exec->count);
  for (uint32_t i = 0; i < exec->count && status == RILL_OK; i++) {
    if (operations[i] != exec->steps[i].operation) {
      status = new_graph_node(operations[i], place_in(plan, i));
    } else {
      *place_in(plan, i) = node_at(before, i);
      retain_node(node_at(before, i));
    }
  }
  if (status == RILL_OK) part->plan = plan;
  release_plan(status == RILL_OK ? before : plan);
  return status;
}

/* Returns a plan with the same tree, and without pending launches. */
static struct cpu_plan *share_plan(struct rill__device *device, const struct cpu_plan *before) {
  retain_tree(before->root.tree);
  return new_plan(device, before->shape, before->root.tree, before->attached);
}

/* Replaces a shared tree by a copy, so that the parent can change it. */
static bool own_tree(union child *at) {
  struct tree *const before = at->tree;
  if (atomic_load_explicit(&before->references, memory_order_acquire) == 1) return true;
  struct tree *tree = malloc(sizeof *tree);
  if (tree == NULL) return false;
  *tree = (struct tree){ .references = 1, .level = before->level };
  for (uint32_t i = 0; i < CHILDREN; i++) {
    tree->children[i] = before->children[i];
    if (tree->level == 0 && tree->children[i].node != NULL) retain_node(tree->children[i].node);
    if (tree->level > 0 && tree->children[i].tree != NULL) retain_tree(tree->children[i].tree);
  }
  at->tree = tree;
  release_tree(before);
  return true;
}

/* Does the same for every tree on the branch from the plan's root to a node. */
static bool own_branch(struct cpu_plan *plan, uint32_t node) {
  union child *at = &plan->root;
  while (own_tree(at)) {
    if (at->tree->level == 0) return true;
    at = child_of(at->tree, node);
  }
  return false;
}

/* Changes the node in place if no pending launch uses the plan or, through a plan that shares it, the branch. */
static rill_status cpu_graph_set(struct rill__graph_exec *exec, uint32_t step, struct rill__operation *operation) {
  struct cpu_exec *part = rill__part(exec);
  struct node *node = NULL;
  RILL_TRY(new_graph_node(operation, &node));
  const bool used = atomic_load_explicit(&part->plan->users, memory_order_acquire) > 1;
  struct cpu_plan *plan = used ? share_plan(exec->base.device, part->plan) : part->plan;
  if (plan == NULL || !own_branch(plan, step)) {
    if (plan != NULL && used) release_plan(plan);
    release_node(node);
    return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory to change a graph of %u nodes", exec->count);
  }
  release_node(node_at(plan, step));
  *place_in(plan, step) = node;
  if (used) release_plan(part->plan);
  part->plan = plan;
  return RILL_OK;
}

/* ---- running ---- */

struct awaited {
  struct cpu_queue *queue; /* referenced */
  uint64_t number;
};

struct run {
  struct cpu_op op;
  struct cpu_plan *plan;      /* counted in its users */
  const uint32_t *next, *end; /* positions in the sequence of the plan's shape */
  struct rill__event *event;  /* recorded at the end; may be NULL */
  uint64_t record;
  uint32_t waits_done, wait_count;
  struct awaited waits[];
};

/* Runs a segment.  Continues where it stopped if the queue was parked, or if a node handed the queue over. */
static bool run_segment(struct cpu_queue *queue, struct cpu_op *op) {
  struct run *run = (struct run *)op;
  for (; run->waits_done < run->wait_count; run->waits_done++) {
    const struct awaited *wait = &run->waits[run->waits_done];
    if (cpu_queue_reached(wait->queue, wait->number)) continue;
    queue->park.number = wait->number;
    queue->park.parked = queue;
    if (rill__cpu_queue_park(wait->queue, &queue->park)) return false;
  }
  for (const uint32_t *const first = run->next; run->next < run->end;) {
    if (RILL__UNLIKELY(rill__cpu_scheduled) && run->next != first) {
      rill__cpu_schedule_push(queue);
      return false;
    }
    struct cpu_op *node = node_at(run->plan, *run->next++)->op;
    if (node == NULL || (cpu_is_lost(queue->device) && !node->run_if_lost)) continue;
    if (!node->run(queue, node)) return false;
  }
  if (run->event != NULL && run->event->timing) rill__cpu_event_stamp(run->event, run->record);
  return true;
}

static void end_segment(struct cpu_op *op) {
  struct run *run = (struct run *)op;
  for (uint32_t i = 0; i < run->wait_count; i++) rill__cpu_queue_release(run->waits[i].queue);
  release_plan(run->plan);
}

/* ---- launching ---- */

/* A launch in progress. */
struct start {
  struct cpu_exec *part;
  const struct cpu_shape *shape;
  struct cpu_queue *queues[CPU_CHAINS];
  char *places[CPU_CHAINS];   /* where each chain's next segment is written */
  uint64_t bases[CPU_CHAINS]; /* number of the last operation submitted to the chain's queue before */
};

static bool begins_with(const struct cpu_plan *plan, const struct cpu_segment *segment, uint32_t kind) {
  return segment->first < segment->end && node_at(plan, plan->shape->sequence[segment->first])->operation->kind == kind;
}

/* Returns the size of a segment's run, with room for every possible wait: for other segments, the start of the launch,
 * the previous launch, an event. */
static size_t run_size(const struct cpu_segment *segment) {
  enum { MORE = 3 };
  const size_t size = sizeof(struct run) + (segment->wait_count + MORE) * sizeof(struct awaited);
  return (size + 63) / 64 * 64;
}

static void add_wait(struct run *run, struct cpu_queue *queue, uint64_t number) {
  cpu_queue_retain(queue);
  run->waits[run->wait_count++] = (struct awaited){ queue, number };
}

static void add_waits(const struct start *start, const struct cpu_segment *segment, struct run *run) {
  const struct cpu_exec *part = start->part;
  const struct cpu_shape *shape = start->shape;
  for (uint32_t i = 0; i < segment->wait_count; i++) {
    const struct cpu_segment *other = &shape->segments[shape->waits[segment->first_wait + i]];
    add_wait(run, start->queues[other->chain], start->bases[other->chain] + other->position);
  }
  if (segment->starts && segment->chain != 0) add_wait(run, start->queues[0], start->bases[0]);
  if (segment->starts && part->last != NULL && part->last != start->queues[0]) {
    add_wait(run, part->last, part->last_number);
  }
  if (begins_with(part->plan, segment, RILL_NODE_EVENT_WAIT)) {
    uint64_t number = 0;
    const uint32_t node = shape->sequence[segment->first];
    struct cpu_queue *queue = rill__cpu_event_mark(node_at(part->plan, node)->operation->event, &number);
    if (queue != NULL) run->waits[run->wait_count++] = (struct awaited){ queue, number };
  }
}

static void write_segment(struct start *start, const struct cpu_segment *segment) {
  struct cpu_plan *plan = start->part->plan;
  struct run *run = (struct run *)(void *)start->places[segment->chain];
  const size_t size = run_size(segment);
  start->places[segment->chain] += size;
  *run =
      (struct run){ .op = { .run = run_segment, .end = end_segment, .size = size, .run_if_lost = true, .again = true },
                    .plan = plan,
                    .next = start->shape->sequence + segment->first,
                    .end = start->shape->sequence + segment->end };
  atomic_fetch_add_explicit(&plan->users, 1, memory_order_relaxed);
  add_waits(start, segment, run);
  if (segment->first == segment->end) return;
  const struct rill__operation *last = node_at(plan, start->shape->sequence[segment->end - 1])->operation;
  if (last->kind != RILL_NODE_EVENT_RECORD) return;
  run->event = last->event;
  run->record = rill__cpu_event_set_mark(last->event, start->queues[segment->chain],
                                         start->bases[segment->chain] + segment->position);
}

/* Begins a submission to the queues of all chains, which locks them.  If it fails, none is locked. */
static rill_status begin_chains(struct start *start) {
  const struct cpu_shape *shape = start->shape;
  size_t sizes[CPU_CHAINS] = { 0 };
  for (uint32_t i = 0; i < shape->segment_count; i++) sizes[shape->segments[i].chain] += run_size(&shape->segments[i]);
  for (uint32_t i = 0; i < shape->chain_count; i++) {
    const rill_status status = rill__cpu_queue_begin(start->queues[i], sizes[i], &start->places[i]);
    if (status != RILL_OK) {
      while (i > 0) cpu_queue_abort(start->queues[--i]);
      return status;
    }
    start->bases[i] = cpu_queue_submitted(start->queues[i]);
  }
  return RILL_OK;
}

static rill_status cpu_graph_launch(struct rill__graph_exec *exec, struct rill__stream *stream) {
  struct cpu_exec *part = rill__part(exec);
  const struct cpu_shape *shape = part->plan->shape;
  struct start start = { .part = part, .shape = shape };
  start.queues[0] = cpu_queue_of(stream);
  for (uint32_t i = 1; i < shape->chain_count; i++) start.queues[i] = part->queues[i];
  RILL_TRY(begin_chains(&start));
  for (uint32_t i = 0; i < shape->segment_count; i++) write_segment(&start, &shape->segments[i]);
  for (uint32_t i = shape->chain_count; i-- > 1;)
    (void)rill__cpu_queue_commit_many(start.queues[i], shape->chain_segments[i]);
  cpu_queue_unsettle_many(start.queues[0], shape->chain_segments[0]);
  const uint64_t number = rill__cpu_queue_commit_many(start.queues[0], shape->chain_segments[0]);
  if (part->last != start.queues[0]) {
    if (part->last != NULL) rill__cpu_queue_release(part->last);
    cpu_queue_retain(start.queues[0]);
    part->last = start.queues[0];
  }
  part->last_number = number;
  cpu_submitted(start.queues[0]);
  return RILL_OK;
}

const struct rill__graph_table rill__cpu_graph_table = {
  .instantiate = cpu_graph_instantiate,
  .launch = cpu_graph_launch,
  .update = cpu_graph_update,
  .set = cpu_graph_set,
  .destroy = cpu_graph_destroy,
};
