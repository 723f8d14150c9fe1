/* Graphs.
 *
 * The nodes of a graph are put into chains, each of which runs in order.  The first chain runs in the queue of the
 * stream that the graph is launched on, the others in queues of the execution object's own, side by side.  A chain is
 * cut into segments where another chain has to wait for a node of it, or it for one of another chain: a segment is one
 * operation of a queue, so a launch costs little more for many nodes than for few.
 *
 * What a node does is an operation as the streams' slots make it, taken from a queue that collects instead of running.
 * It stays as it is and is run again and again.  A plan is the nodes' operations at one time: a launch keeps its plan
 * until its last segment has ended, so a change makes another plan if there are launches under way. */
#include "backends/cpu/cpu.h"

#include <stdlib.h>
#include <string.h>

enum {
  SEGMENT_NODES = 32 /* so that other queues get their turn */
};

/* One node's work. */
struct node {
  _Atomic uint32_t references;
  struct rill__operation *operation; /* kept: what the work uses is its */
  struct cpu_op *op;                 /* NULL: there is none */
};

/* Nodes of one chain that run one after another without waiting for another chain. */
struct segment {
  uint32_t first, end;      /* of `sequence` */
  uint32_t chain, position; /* position: in its chain, from 1 on */
  uint32_t first_wait, wait_count;
  bool starts; /* waits for the launch itself */
};

/* How the nodes are cut up: the same in all plans of an execution object. */
struct shape {
  _Atomic uint32_t references;
  uint32_t *sequence; /* nodes, segment by segment */
  struct segment *segments;
  uint32_t segment_count, chain_count;
  uint32_t *waits; /* segments */
  uint32_t chain_segments[CPU_CHAINS];
};

struct cpu_plan {
  struct rill__object base; /* so that core frees it, outside the workers */
  _Atomic uint32_t users;   /* the execution object, and segments that have not ended */
  struct shape *shape;      /* retained */
  uint32_t count;
  struct node *nodes[];
};

/* ---- nodes and plans ---- */

static void release_node(struct node *node) {
  if (node == NULL || atomic_fetch_sub_explicit(&node->references, 1, memory_order_acq_rel) != 1) return;
  if (node->op != NULL && node->op->end != NULL) node->op->end(node->op);
  free(node->op);
  rill__unref(&node->operation->base);
  free(node);
}

static void release_shape(struct shape *shape) {
  if (atomic_fetch_sub_explicit(&shape->references, 1, memory_order_acq_rel) != 1) return;
  free(shape->sequence);
  free(shape->segments);
  free(shape->waits);
  free(shape);
}

static void destroy_plan(struct rill__object *object) {
  struct cpu_plan *plan = (struct cpu_plan *)object;
  for (uint32_t i = 0; i < plan->count; i++) release_node(plan->nodes[i]);
  release_shape(plan->shape);
  free(plan);
}

static struct cpu_plan *new_plan(struct rill__device *device, struct shape *shape, uint32_t count) {
  struct cpu_plan *plan = calloc(1, sizeof *plan + count * sizeof(struct node *));
  if (plan == NULL) return NULL;
  rill__object_init(&plan->base, device, destroy_plan);
  atomic_init(&plan->users, 1);
  plan->count = count;
  plan->shape = shape;
  atomic_fetch_add_explicit(&shape->references, 1, memory_order_relaxed);
  return plan;
}

static void release_plan(struct cpu_plan *plan) {
  if (atomic_fetch_sub_explicit(&plan->users, 1, memory_order_acq_rel) == 1) rill__object_defer(&plan->base);
}

/* A stream that no one has, whose queue collects what it is given. */
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
    struct rill__stream *stream = collector_init(&collector, operation->base.device);
    const rill_status status = rill__operation_submit(operation, stream);
    node->op = collector.queue.collected;
    if (status != RILL_OK) {
      free(node->op);
      free(node);
      return status;
    }
  }
  atomic_init(&node->references, 1);
  rill__ref(&operation->base);
  node->operation = operation;
  *out = node;
  return RILL_OK;
}

/* ---- chains and segments ---- */

/* What is known of a node while segments are made. */
struct place {
  uint32_t chain, segment;
  uint32_t depth; /* in its chain */
  bool ends;      /* another chain waits for it, or it records an event */
};

/* A chain whose last node the step comes after; else a new one, or the shortest. */
static uint32_t choose_chain(const struct rill__step *step, const struct place *places, const uint32_t *tails,
                             const uint32_t *lengths, uint32_t *count) {
  for (uint32_t i = 0; i < step->after_count; i++) {
    const uint32_t chain = places[step->after[i]].chain;
    if (tails[chain] == step->after[i]) return chain;
  }
  if (*count < CPU_CHAINS) return (*count)++;
  uint32_t shortest = 0;
  for (uint32_t chain = 1; chain < CPU_CHAINS; chain++) {
    if (lengths[chain] < lengths[shortest]) shortest = chain;
  }
  return shortest;
}

static void make_chains(const struct rill__graph_exec *exec, struct shape *shape, struct place *places) {
  uint32_t tails[CPU_CHAINS], lengths[CPU_CHAINS] = { 0 };
  for (uint32_t i = 0; i < CPU_CHAINS; i++) tails[i] = UINT32_MAX;
  for (uint32_t i = 0; i < exec->count; i++) {
    const struct rill__step *step = &exec->steps[i];
    const uint32_t chain = choose_chain(step, places, tails, lengths, &shape->chain_count);
    places[i].chain = chain;
    places[i].depth = ++lengths[chain];
    places[i].ends = step->operation->kind == RILL_NODE_EVENT_RECORD;
    tails[chain] = i;
    for (uint32_t k = 0; k < step->after_count; k++) {
      if (places[step->after[k]].chain != chain) places[step->after[k]].ends = true;
    }
  }
}

/* While segments are made: the open one of each chain, and how far each chain has waited for each other one. */
struct cutting {
  const struct rill__graph_exec *exec;
  struct shape *shape;
  struct place *places;
  uint32_t open[CPU_CHAINS]; /* segment + 1; 0: none */
  uint32_t known[CPU_CHAINS][CPU_CHAINS];
  uint32_t wait_count;
};

static uint32_t open_segment(struct cutting *cutting, uint32_t chain) {
  struct shape *shape = cutting->shape;
  const uint32_t number = shape->segment_count++;
  shape->segments[number] = (struct segment){
    .chain = chain,
    .position = ++shape->chain_segments[chain],
    .first_wait = cutting->wait_count,
  };
  shape->segments[number].starts = shape->segments[number].position == 1;
  cutting->open[chain] = number + 1;
  return number;
}

/* Whether a step waits for another chain: its waits are put into `shape->waits` then. */
static bool collect_waits(struct cutting *cutting, uint32_t i) {
  struct shape *shape = cutting->shape;
  const struct rill__step *step = &cutting->exec->steps[i];
  const uint32_t chain = cutting->places[i].chain, before = cutting->wait_count;
  for (uint32_t k = 0; k < step->after_count; k++) {
    const struct place *other = &cutting->places[step->after[k]];
    if (other->chain == chain || cutting->known[chain][other->chain] >= other->depth) continue;
    cutting->known[chain][other->chain] = other->depth;
    shape->waits[cutting->wait_count++] = other->segment;
  }
  return cutting->wait_count > before || step->operation->kind == RILL_NODE_EVENT_WAIT;
}

/* `end` counts nodes until the segments are laid out. */
static void cut_chains(struct cutting *cutting) {
  struct shape *shape = cutting->shape;
  for (uint32_t i = 0; i < cutting->exec->count; i++) {
    struct place *place = &cutting->places[i];
    const uint32_t before = cutting->wait_count;
    const bool waits = collect_waits(cutting, i);
    uint32_t number = cutting->open[place->chain];
    if (number == 0 || waits || shape->segments[number - 1].end == SEGMENT_NODES) {
      number = open_segment(cutting, place->chain) + 1;
      shape->segments[number - 1].first_wait = before;
      shape->segments[number - 1].wait_count = cutting->wait_count - before;
      if (cutting->wait_count > before) shape->segments[number - 1].starts = false;
    }
    place->segment = number - 1;
    shape->segments[number - 1].end++;
    if (place->ends) cutting->open[place->chain] = 0;
  }
}

/* A last segment of the first chain, for the ends of the others. */
static void join_chains(struct cutting *cutting) {
  struct shape *shape = cutting->shape;
  uint32_t tails[CPU_CHAINS];
  for (uint32_t i = 0; i < cutting->exec->count; i++) tails[cutting->places[i].chain] = i;
  const uint32_t before = cutting->wait_count;
  for (uint32_t chain = 1; chain < shape->chain_count; chain++) {
    const struct place *tail = &cutting->places[tails[chain]];
    if (cutting->known[0][chain] < tail->depth) shape->waits[cutting->wait_count++] = tail->segment;
  }
  if (cutting->wait_count == before && shape->chain_count > 0) return;
  const uint32_t number = open_segment(cutting, 0);
  shape->segments[number].first_wait = before;
  shape->segments[number].wait_count = cutting->wait_count - before;
}

static void lay_out(const struct rill__graph_exec *exec, struct shape *shape, const struct place *places) {
  uint32_t at = 0;
  for (uint32_t s = 0; s < shape->segment_count; s++) {
    const uint32_t nodes = shape->segments[s].end;
    shape->segments[s].first = shape->segments[s].end = at;
    at += nodes;
  }
  for (uint32_t i = 0; i < exec->count; i++) shape->sequence[shape->segments[places[i].segment].end++] = i;
}

static rill_status make_shape(const struct rill__graph_exec *exec, struct shape **out) {
  size_t edges = 0;
  for (uint32_t i = 0; i < exec->count; i++) edges += exec->steps[i].after_count;
  struct cutting *cutting = calloc(1, sizeof *cutting);
  struct place *places = calloc(exec->count + 1, sizeof *places);
  struct shape *shape = *out = calloc(1, sizeof *shape);
  bool memory = cutting != NULL && places != NULL && shape != NULL;
  if (memory) {
    atomic_init(&shape->references, 1);
    shape->sequence = calloc(exec->count + 1, sizeof *shape->sequence);
    shape->segments = calloc(exec->count + 1, sizeof *shape->segments);
    shape->waits = calloc(edges + CPU_CHAINS, sizeof *shape->waits);
    memory = shape->sequence != NULL && shape->segments != NULL && shape->waits != NULL;
  }
  if (memory) {
    cutting->exec = exec;
    cutting->shape = shape;
    cutting->places = places;
    make_chains(exec, shape, places);
    cut_chains(cutting);
    join_chains(cutting);
    if (shape->chain_count == 0) shape->chain_count = 1;
    lay_out(exec, shape, places);
  }
  free(cutting);
  free(places);
  if (memory) return RILL_OK;
  if (shape != NULL) release_shape(shape);
  return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for a graph of %u nodes", exec->count);
}

/* ---- making and ending ---- */

static bool cpu_graph_destroy(struct rill__graph_exec *exec) {
  struct cpu_exec *part = rill__part(exec);
  if (part->plan != NULL) release_plan(part->plan);
  for (uint32_t i = 1; i < CPU_CHAINS; i++) {
    if (part->queues[i] != NULL) cpu_queue_release(part->queues[i]);
  }
  if (part->last != NULL) cpu_queue_release(part->last);
  return true;
}

static rill_status fill_plan(struct rill__graph_exec *exec, struct shape *shape) {
  struct cpu_exec *part = rill__part(exec);
  struct rill__device *device = exec->base.device;
  part->plan = new_plan(device, shape, exec->count);
  RILL_REQUIRE(part->plan != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a graph of %u nodes", exec->count);
  for (uint32_t i = 0; i < exec->count; i++) {
    RILL_TRY(new_graph_node(exec->steps[i].operation, &part->plan->nodes[i]));
  }
  for (uint32_t i = 1; i < shape->chain_count; i++) {
    RILL_TRY(cpu_queue_new(device, (uint32_t)(RILL_PRIORITY_NORMAL + 1), &part->queues[i]));
  }
  return RILL_OK;
}

static rill_status cpu_graph_instantiate(struct rill__graph_exec *exec) {
  struct shape *shape = NULL;
  RILL_TRY(make_shape(exec, &shape));
  const rill_status status = fill_plan(exec, shape);
  release_shape(shape);
  if (status != RILL_OK) (void)cpu_graph_destroy(exec);
  return status;
}

/* ---- changes ---- */

/* The nodes that differ; the others are shared with the plan before. */
static rill_status cpu_graph_update(struct rill__graph_exec *exec, struct rill__operation *const *operations) {
  struct cpu_exec *part = rill__part(exec);
  struct cpu_plan *before = part->plan, *plan = new_plan(exec->base.device, before->shape, exec->count);
  rill_status status = RILL_OK;
  RILL_REQUIRE(plan != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to change a graph of %u nodes", exec->count);
  for (uint32_t i = 0; i < exec->count && status == RILL_OK; i++) {
    if (operations[i] != exec->steps[i].operation) {
      status = new_graph_node(operations[i], &plan->nodes[i]);
    } else {
      plan->nodes[i] = before->nodes[i];
      atomic_fetch_add_explicit(&before->nodes[i]->references, 1, memory_order_relaxed);
    }
  }
  if (status == RILL_OK) part->plan = plan;
  release_plan(status == RILL_OK ? before : plan);
  return status;
}

/* In place, if no launch uses the plan. */
static rill_status cpu_graph_set(struct rill__graph_exec *exec, uint32_t step, struct rill__operation *operation) {
  struct cpu_exec *part = rill__part(exec);
  struct cpu_plan *plan = part->plan;
  struct node *node = NULL;
  RILL_TRY(new_graph_node(operation, &node));
  if (atomic_load_explicit(&plan->users, memory_order_acquire) > 1) {
    plan = new_plan(exec->base.device, part->plan->shape, exec->count);
    if (plan == NULL) {
      release_node(node);
      return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory to change a graph of %u nodes", exec->count);
    }
    memcpy(plan->nodes, part->plan->nodes, exec->count * sizeof(struct node *));
    for (uint32_t i = 0; i < exec->count; i++) {
      atomic_fetch_add_explicit(&plan->nodes[i]->references, 1, memory_order_relaxed);
    }
    release_plan(part->plan);
    part->plan = plan;
  }
  release_node(plan->nodes[step]);
  plan->nodes[step] = node;
  return RILL_OK;
}

/* ---- running ---- */

struct awaited {
  struct cpu_queue *queue; /* retained */
  uint64_t number;
};

struct run {
  struct cpu_op op;
  struct cpu_plan *plan;      /* used */
  const uint32_t *next, *end; /* nodes, in the plan's shape */
  struct rill__event *event;  /* recorded at the end; or NULL */
  uint64_t record;
  uint32_t waits_done, wait_count;
  struct awaited waits[];
};

/* Goes on where it was when the queue was parked, or handed on in the middle of a node. */
static bool run_segment(struct cpu_queue *queue, struct cpu_op *op) {
  struct run *run = (struct run *)op;
  for (; run->waits_done < run->wait_count; run->waits_done++) {
    const struct awaited *wait = &run->waits[run->waits_done];
    if (cpu_queue_reached(wait->queue, wait->number)) continue;
    queue->park.number = wait->number;
    queue->park.parked = queue;
    if (cpu_queue_park(wait->queue, &queue->park)) return false;
  }
  while (run->next < run->end) {
    struct cpu_op *node = run->plan->nodes[*run->next++]->op;
    if (node == NULL || (cpu_is_lost(queue->device) && !node->when_lost)) continue;
    if (!node->run(queue, node)) return false;
  }
  if (run->event != NULL && run->event->timing) cpu_event_stamp(run->event, run->record);
  return true;
}

static void end_segment(struct cpu_op *op) {
  struct run *run = (struct run *)op;
  for (uint32_t i = 0; i < run->wait_count; i++) cpu_queue_release(run->waits[i].queue);
  release_plan(run->plan);
}

/* ---- launching ---- */

/* One launch, under way. */
struct start {
  struct cpu_exec *part;
  const struct shape *shape;
  struct cpu_queue *queues[CPU_CHAINS];
  char *places[CPU_CHAINS];   /* where each chain's next segment is written */
  uint64_t bases[CPU_CHAINS]; /* what was submitted to its queue before */
};

static bool begins_with(const struct cpu_plan *plan, const struct segment *segment, uint32_t kind) {
  return segment->first < segment->end && plan->nodes[plan->shape->sequence[segment->first]]->operation->kind == kind;
}

/* A place for each wait that it may have: for other segments, the launch's start, the launch before, an event. */
static size_t run_size(const struct segment *segment) {
  enum { MORE = 3 };
  const size_t size = sizeof(struct run) + (segment->wait_count + MORE) * sizeof(struct awaited);
  return (size + 63) / 64 * 64;
}

static void add_wait(struct run *run, struct cpu_queue *queue, uint64_t number) {
  cpu_queue_retain(queue);
  run->waits[run->wait_count++] = (struct awaited){ queue, number };
}

static void add_waits(const struct start *start, const struct segment *segment, struct run *run) {
  const struct cpu_exec *part = start->part;
  const struct shape *shape = start->shape;
  for (uint32_t i = 0; i < segment->wait_count; i++) {
    const struct segment *other = &shape->segments[shape->waits[segment->first_wait + i]];
    add_wait(run, start->queues[other->chain], start->bases[other->chain] + other->position);
  }
  if (segment->starts && segment->chain != 0) add_wait(run, start->queues[0], start->bases[0]);
  if (segment->starts && part->last != NULL && part->last != start->queues[0]) {
    add_wait(run, part->last, part->last_number);
  }
  if (begins_with(part->plan, segment, RILL_NODE_EVENT_WAIT)) {
    uint64_t number = 0;
    const uint32_t node = shape->sequence[segment->first];
    struct cpu_queue *queue = cpu_event_mark(part->plan->nodes[node]->operation->event, &number);
    if (queue != NULL) run->waits[run->wait_count++] = (struct awaited){ queue, number };
  }
}

static void write_segment(struct start *start, const struct segment *segment) {
  struct cpu_plan *plan = start->part->plan;
  struct run *run = (struct run *)(void *)start->places[segment->chain];
  const size_t size = run_size(segment);
  start->places[segment->chain] += size;
  *run = (struct run){ .op = { .run = run_segment, .end = end_segment, .size = size, .when_lost = true, .again = true },
                       .plan = plan,
                       .next = start->shape->sequence + segment->first,
                       .end = start->shape->sequence + segment->end };
  atomic_fetch_add_explicit(&plan->users, 1, memory_order_relaxed);
  add_waits(start, segment, run);
  if (segment->first == segment->end) return;
  const struct rill__operation *last = plan->nodes[start->shape->sequence[segment->end - 1]]->operation;
  if (last->kind != RILL_NODE_EVENT_RECORD) return;
  run->event = last->event;
  run->record =
      cpu_event_set_mark(last->event, start->queues[segment->chain], start->bases[segment->chain] + segment->position);
}

/* Locks all queues, or none. */
static rill_status begin_chains(struct start *start) {
  const struct shape *shape = start->shape;
  size_t sizes[CPU_CHAINS] = { 0 };
  for (uint32_t i = 0; i < shape->segment_count; i++) sizes[shape->segments[i].chain] += run_size(&shape->segments[i]);
  for (uint32_t i = 0; i < shape->chain_count; i++) {
    const rill_status status = cpu_queue_begin(start->queues[i], sizes[i], &start->places[i]);
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
  const struct shape *shape = part->plan->shape;
  struct start start = { .part = part, .shape = shape };
  start.queues[0] = cpu_queue_of(stream);
  for (uint32_t i = 1; i < shape->chain_count; i++) start.queues[i] = part->queues[i];
  RILL_TRY(begin_chains(&start));
  for (uint32_t i = 0; i < shape->segment_count; i++) write_segment(&start, &shape->segments[i]);
  for (uint32_t i = shape->chain_count; i-- > 1;)
    (void)cpu_queue_commit_many(start.queues[i], shape->chain_segments[i]);
  cpu_queue_unsettle_many(start.queues[0], shape->chain_segments[0]);
  const uint64_t number = cpu_queue_commit_many(start.queues[0], shape->chain_segments[0]);
  if (part->last != start.queues[0]) {
    if (part->last != NULL) cpu_queue_release(part->last);
    cpu_queue_retain(start.queues[0]);
    part->last = start.queues[0];
  }
  part->last_number = number;
  return RILL_OK;
}

const struct rill__graph_table cpu_graph_table = {
  .instantiate = cpu_graph_instantiate,
  .launch = cpu_graph_launch,
  .update = cpu_graph_update,
  .set = cpu_graph_set,
  .destroy = cpu_graph_destroy,
};
