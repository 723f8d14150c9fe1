/* Divides a graph into chains and segments; graph.c explains both. */
#include "backends/cpu/graph_shape.h"

#include <stdlib.h>

/* Limits the length of a segment, so that other queues get their turn. */
enum { SEGMENT_NODES = 32 };

void rill__cpu_shape_release(struct cpu_shape *shape) {
  if (atomic_fetch_sub_explicit(&shape->references, 1, memory_order_acq_rel) != 1) return;
  free(shape->sequence);
  free(shape->segments);
  free(shape->waits);
  free(shape);
}

/* State of a node while segments are built. */
struct place {
  uint32_t chain, segment;
  uint32_t depth; /* position in its chain */
  bool ends;      /* another chain waits for it, or it records an event */
};

/* Returns a chain whose last node precedes the step; if there is none, a new chain or the shortest one. */
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

static void make_chains(const struct rill__graph_exec *exec, struct cpu_shape *shape, struct place *places) {
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

/* State while segments are built: the open segment of each chain, and how far each chain has waited for each other
 * chain. */
struct cutting {
  const struct rill__graph_exec *exec;
  struct cpu_shape *shape;
  struct place *places;
  uint32_t open[CPU_CHAINS]; /* segment + 1; 0 if none */
  uint32_t known[CPU_CHAINS][CPU_CHAINS];
  uint32_t wait_count;
};

static uint32_t open_segment(struct cutting *cutting, uint32_t chain) {
  struct cpu_shape *shape = cutting->shape;
  const uint32_t number = shape->segment_count++;
  shape->segments[number] = (struct cpu_segment){
    .chain = chain,
    .position = ++shape->chain_segments[chain],
    .first_wait = cutting->wait_count,
  };
  shape->segments[number].starts = shape->segments[number].position == 1;
  cutting->open[chain] = number + 1;
  return number;
}

/* Appends the step's waits for other chains to `shape->waits`.  Returns true if the step waits for a chain or an
 * event. */
static bool collect_waits(struct cutting *cutting, uint32_t i) {
  struct cpu_shape *shape = cutting->shape;
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

/* Cuts the chains into segments.  `end` is the number of nodes of a segment until lay_out is called. */
static void cut_chains(struct cutting *cutting) {
  struct cpu_shape *shape = cutting->shape;
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

/* Adds a last segment to the first chain, which waits for the ends of the other chains. */
static void join_chains(struct cutting *cutting) {
  struct cpu_shape *shape = cutting->shape;
  uint32_t tails[CPU_CHAINS] = { 0 };
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

static void lay_out(const struct rill__graph_exec *exec, struct cpu_shape *shape, const struct place *places) {
  uint32_t at = 0;
  for (uint32_t s = 0; s < shape->segment_count; s++) {
    const uint32_t nodes = shape->segments[s].end;
    shape->segments[s].first = shape->segments[s].end = at;
    at += nodes;
  }
  for (uint32_t i = 0; i < exec->count; i++) shape->sequence[shape->segments[places[i].segment].end++] = i;
}

rill_status rill__cpu_shape_new(const struct rill__graph_exec *exec, struct cpu_shape **out) {
  size_t edges = 0;
  for (uint32_t i = 0; i < exec->count; i++) edges += exec->steps[i].after_count;
  struct cutting *cutting = calloc(1, sizeof *cutting);
  struct place *places = calloc(exec->count + 1, sizeof *places);
  struct cpu_shape *shape = *out = calloc(1, sizeof *shape);
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
  if (shape != NULL) rill__cpu_shape_release(shape);
  return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for a graph of %u nodes", exec->count);
}
