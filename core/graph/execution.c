/* Execution objects: graphs that are ready to be launched. */
#include "core/graph/graph.h"

#include "core/diagnose/order_notes.h"

#include <rill/graph_exec.h>
#include <stdlib.h>
#include <string.h>

static rill_status fail_shared_memory(void) {
  return rill__fail(RILL_ERROR_UNSUPPORTED,
                    "the graph owns memory that another execution object or its last launches still use; sharing "
                    "it is not supported as of version %d.%d" RILL_HINT
                    "release that object and wait for its launches first, or capture again",
                    RILL_VERSION_MAJOR, RILL_VERSION_MINOR);
}

/* Releases an execution object's claim on memory of its graph.  The claim is a separate operation, which replaces the
 * allocation's operation in the object's steps.  Backends keep operations until the launches that may use them have
 * ended; only then can another object claim the memory. */
static void drop_claim(struct rill__payload *claim) {
  atomic_store(&claim->of->taken, false);
  rill__operation_unref(claim->of);
  free(claim);
}

struct rill__operation *rill__operation_of_graph(struct rill__operation *step) {
  return step->payload != NULL && step->payload->of != NULL ? step->payload->of : step;
}

/* Creates the operation that replaces the allocation of a node in the steps, with a reference. */
static rill_status new_claim(struct rill__operation *operation, struct rill__operation **out) {
  struct rill__payload *claim = malloc(sizeof *claim);
  RILL_REQUIRE(claim != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a step of a graph");
  *claim = (struct rill__payload){ .drop = drop_claim, .of = operation };
  rill_status status = atomic_exchange(&operation->taken, true) ? fail_shared_memory() : RILL_OK;
  if (status == RILL_OK) {
    status = rill__operation_memory(operation->device, RILL_NODE_ALLOC, operation->memory, claim, out);
    if (status == RILL_OK) rill__operation_ref(operation);
    if (status != RILL_OK) atomic_store(&operation->taken, false);
  }
  if (status != RILL_OK) free(claim);
  return status;
}

static void destroy_exec(struct rill__object *object) {
  RILL__NOTE_ORDER(forget_event, object->id);
  struct rill__graph_exec *exec = (struct rill__graph_exec *)object;
  struct rill__exec_core *core = rill__core(exec);
  /* The backend comes first: its launches may still read the operations that are freed below. */
  if (core->made && !RILL_ASK(exec, graph, destroy, exec)) {
    rill__object_postpone(object);
    return;
  }
  for (uint32_t i = 0; i < exec->count; i++) {
    rill__operation_unref(exec->steps[i].operation);
    if (rill__exec_is_disabled(exec, i)) rill__operation_unref(core->disabled[i]);
  }
  free(core->disabled);
  if (exec->attached != NULL) rill__unref(exec->attached);
  free(core->edges);
  free(exec->steps);
  free(core->step_of);
  free(core->names.serials);
  rill__graph_drop_names(core->graph);
  rill__object_free(object);
}

/* Numbers the nodes so that each follows its predecessors.  Sets `step_of` for each node and `node_at` for each step.
 */
static bool put_in_order(const struct rill__graph *graph, uint32_t *step_of, uint32_t *node_at) {
  uint32_t placed = 0;
  if (graph->in_order) {
    for (uint32_t i = 0; i < graph->count; i++) step_of[i] = node_at[i] = i;
    return true;
  }
  /* The reversed edges: for each node, the nodes that come after it. */
  uint32_t *const first = calloc(graph->count + 2, sizeof *first);
  uint32_t *const next = malloc((graph->edges + 1) * sizeof *next);
  uint32_t *const left = calloc(graph->count + 1, sizeof *left);
  const bool memory = first != NULL && next != NULL && left != NULL;
  for (uint32_t i = 0; i < graph->count && memory; i++) {
    left[i] = graph->nodes[i]->after_count;
    for (uint32_t k = 0; k < left[i]; k++) first[graph->nodes[i]->after[k] + 2]++;
  }
  for (uint32_t i = 2; i < graph->count + 2 && memory; i++) first[i] += first[i - 1];
  for (uint32_t i = 0; i < graph->count && memory; i++) {
    const struct rill__graph_node *node = graph->nodes[i];
    for (uint32_t k = 0; k < node->after_count; k++) next[first[node->after[k] + 1]++] = i;
  }
  for (uint32_t i = 0; i < graph->count && memory; i++) {
    if (left[i] == 0) node_at[placed++] = i;
  }
  for (uint32_t step = 0; step < placed; step++) {
    const uint32_t node = node_at[step];
    step_of[node] = step;
    for (uint32_t k = first[node]; k < first[node + 1]; k++) {
      if (--left[next[k]] == 0) node_at[placed++] = next[k];
    }
  }
  free(first);
  free(next);
  free(left);
  return memory;
}

/* Copies the nodes as steps.  Call it under the lock of graphs, so that the graph stays complete from the check to the
 * last step. */
static rill_status copy_steps(struct rill__graph_exec *exec, struct rill__graph *graph) {
  rill__graph_renumber(graph);
#if RILL_CHECKS
  rill__graph_assert(graph);
#endif
  RILL_TRY(rill__graph_check_complete(graph));
  RILL_TRY(rill__node_names_note(&rill__core(exec)->names, graph));
  uint32_t *const step_of = malloc((graph->count + 1) * sizeof *step_of);
  uint32_t *const node_at = malloc((graph->count + 1) * sizeof *node_at);
  uint32_t *edges = malloc((graph->edges + 1) * sizeof *edges);
  rill__core(exec)->edges = edges;
  exec->steps = calloc(graph->count + 1, sizeof *exec->steps);
  const bool memory = step_of != NULL && node_at != NULL && edges != NULL && exec->steps != NULL &&
                      put_in_order(graph, step_of, node_at);
  rill_status status = RILL_OK;
  if (!memory) {
    status = rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for a graph of %u nodes", graph->count);
  }
  for (uint32_t i = 0; i < graph->count && status == RILL_OK; i++) {
    const struct rill__graph_node *node = graph->nodes[node_at[i]];
    struct rill__step *step = &exec->steps[i];
    step->operation = node->operation;
    if (node->operation->kind == RILL_NODE_ALLOC) {
      status = new_claim(node->operation, &step->operation);
      if (status != RILL_OK) break;
    } else {
      rill__operation_ref(node->operation);
    }
    step->after = edges;
    step->after_count = node->after_count;
    for (uint32_t k = 0; k < node->after_count; k++) {
      RILL_ASSERT(step_of[node->after[k]] < i, "each step comes after those that it depends on");
      *edges++ = step_of[node->after[k]];
    }
    exec->count++;
    if (node->operation->kind == RILL_NODE_EVENT_RECORD) rill__core(exec)->records++;
  }
  free(node_at);
  rill__core(exec)->step_of = step_of;
  return status;
}

rill_status rill__exec_new(struct rill__graph *graph, const char *label, struct rill__graph_exec **out) {
  struct rill__device *device = graph->base.device;
  struct rill__graph_exec *exec = NULL;
  const size_t size = RILL__PART_OFFSET(struct rill__graph_exec) + device->backend->exec_size;
  RILL_TRY(rill__object_new(size, device, label, destroy_exec, &exec));
  rill__graph_keep_names(graph);
  rill__core(exec)->graph = graph;
  rill__graphs_lock();
  rill_status status = copy_steps(exec, graph);
  if (status == RILL_OK) status = rill__attached_new(device, graph->attached, &exec->attached);
  rill__graphs_unlock();
  if (status != RILL_OK) {
    rill__unref(&exec->base);
    return status;
  }
  *out = exec;
  return RILL_OK;
}

/* ---- replacing operations ---- */

/* Compares kernels by module and name, because a module returns a new kernel each time it is asked for one. */
static bool same_kernel(const struct rill__kernel *a, const struct rill__kernel *b) {
  return a == b || (a->module == b->module && strcmp(a->source->name, b->source->name) == 0);
}

/* Checks whether `node` of another graph can replace the node with the same number.  `seen`: for each step, one plus
 * the number of the last node that was found to come after it. */
static rill_status check_node(struct rill__graph_exec *exec, const struct rill__graph_node *node, uint32_t *seen,
                              uint32_t *reason) {
  const struct rill__exec_core *core = rill__core(exec);
  const struct rill__step *step = &exec->steps[core->step_of[node->index]];
  const struct rill__operation *old = rill__exec_operation(exec, core->step_of[node->index]), *new = node->operation;
  const char *name = rill__operation_name(old);
  const char *open = name != NULL ? " \"" : "", *close = name != NULL ? "\"" : "";
  if (name == NULL) name = "";
  *reason = RILL_UPDATE_KIND;
  RILL_REQUIRE(old->kind == new->kind, RILL_ERROR_INVALID_ARGUMENT,
               "node %u%s%s%s is of kind \"%s\", but the graph's node is of kind \"%s\"", node->index, open, name,
               close, rill__node_kind_name(old->kind), rill__node_kind_name(new->kind));
  *reason = RILL_UPDATE_KERNEL;
  RILL_REQUIRE(old->kind != RILL_NODE_KERNEL || core->other_kernels ||
                   same_kernel(old->launch.kernel, new->launch.kernel),
               RILL_ERROR_INVALID_ARGUMENT,
               "node %u%s%s%s launches kernel \"%s\", but the graph's node launches \"%s\", which is another kernel or "
               "belongs to another module",
               node->index, open, name, close, old->launch.kernel->name, new->launch.kernel->name);
  *reason = RILL_UPDATE_EDGES;
  RILL_REQUIRE(step->after_count == node->after_count, RILL_ERROR_INVALID_ARGUMENT,
               "node %u%s%s%s depends on %u nodes, but the graph's node on %u", node->index, open, name, close,
               step->after_count, node->after_count);
  for (uint32_t i = 0; i < step->after_count; i++) seen[step->after[i]] = node->index + 1;
  for (uint32_t i = 0; i < node->after_count; i++) {
    RILL_REQUIRE(seen[core->step_of[node->after[i]]] == node->index + 1, RILL_ERROR_INVALID_ARGUMENT,
                 "node %u%s%s%s does not depend on node %u, but the graph's node does", node->index, open, name, close,
                 node->after[i]);
  }
  *reason = RILL_UPDATE_NONE;
  return RILL_OK;
}

/* Returns the operation to use in a step for an operation of another graph; adds a reference. */
static rill_status operation_for_step(const struct rill__step *step, struct rill__operation *operation,
                                      struct rill__operation **out) {
  const bool same_operation = rill__operation_of_graph(step->operation) == operation;
  if (!same_operation && operation->kind == RILL_NODE_ALLOC) return new_claim(operation, out);
  *out = same_operation ? step->operation : operation;
  rill__operation_ref(*out);
  return RILL_OK;
}

rill_status rill__exec_match(struct rill__graph_exec *exec, struct rill__graph *graph,
                             struct rill__replacement *replacement, struct rill__refusal *refusal) {
  rill_status status = RILL_OK;
  struct rill__operation **const operations = replacement->operations;
  uint32_t *seen = calloc((size_t)exec->count + 1, sizeof *seen);
  RILL_REQUIRE(seen != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to update a graph of %u nodes", exec->count);
  rill__graphs_lock();
  rill__graph_renumber(graph);
  status = rill__graph_check_complete(graph);
  if (status == RILL_OK && graph->count != exec->count) {
    status = rill__fail(RILL_ERROR_INVALID_ARGUMENT, "the execution object has %u nodes, but the graph has %u",
                        exec->count, graph->count);
    refusal->reason = RILL_UPDATE_COUNT;
  }
  for (uint32_t i = 0; i < graph->count && status == RILL_OK; i++) {
    status = check_node(exec, graph->nodes[i], seen, &refusal->reason);
    if (status != RILL_OK) refusal->node = rill__node_id(graph->nodes[i]);
  }
  for (uint32_t i = 0; i < graph->count && status == RILL_OK; i++) {
    const uint32_t step = rill__core(exec)->step_of[i];
    status = operation_for_step(&exec->steps[step], graph->nodes[i]->operation, &operations[step]);
    if (status == RILL_ERROR_UNSUPPORTED)
      *refusal = (struct rill__refusal){ RILL_UPDATE_MEMORY, rill__node_id(graph->nodes[i]) };
  }
  if (status == RILL_OK) status = rill__attached_new(graph->base.device, graph->attached, &replacement->attached);
  rill__graphs_unlock();
  free(seen);
  return status;
}

/* Steps change under both the claim and the lock of graphs, so a thread that has either may read them. */
rill_status rill__exec_update(struct rill__graph_exec *exec, struct rill__replacement *replacement) {
  struct rill__operation **const operations = replacement->operations;
  struct rill__object *const attached = exec->attached;
  RILL_TRY(
      RILL_DISPATCH(exec, graph, update, exec, (struct rill__operation *const *)operations, replacement->attached));
  rill__graphs_lock();
  for (uint32_t i = 0; i < exec->count; i++) {
    struct rill__operation *const before = exec->steps[i].operation;
    /* Swapped: the caller drops the old operations, outside the lock, because that may release other objects. */
    exec->steps[i].operation = operations[i];
    operations[i] = before;
  }
  exec->attached = replacement->attached;
  struct rill__operation **const disabled = rill__core(exec)->disabled;
  rill__core(exec)->disabled = NULL; /* every step runs its new operation, so none is disabled */
  rill__graphs_unlock();
  replacement->attached = attached;
  for (uint32_t i = 0; i < exec->count && disabled != NULL; i++) {
    if (disabled[i] != NULL) rill__operation_unref(disabled[i]);
  }
  free(disabled);
  return RILL_OK;
}

/* Puts the operation into a step and returns the previous one. */
static struct rill__operation *put_in_step(struct rill__graph_exec *exec, uint32_t step,
                                           struct rill__operation *operation) {
  rill__graphs_lock(); /* the step is changed before the previous operation is dropped, in case of a fork in between */
  struct rill__operation **const place =
      rill__exec_is_disabled(exec, step) ? &rill__core(exec)->disabled[step] : &exec->steps[step].operation;
  struct rill__operation *const before = *place;
  *place = operation;
  rill__graphs_unlock();
  return before;
}

rill_status rill__exec_set(struct rill__graph_exec *exec, uint32_t step, struct rill__operation *operation) {
  const bool disabled = rill__exec_is_disabled(exec, step);
  /* The backend has an empty operation for a disabled step, and gets the new operation when the step is enabled. */
  const rill_status status = disabled ? RILL_OK : RILL_DISPATCH(exec, graph, set, exec, step, operation);
  rill__operation_unref(status == RILL_OK ? put_in_step(exec, step, operation) : operation);
  return status;
}

/* The backend is asked first: if it refuses, the step stays enabled.  `disabled` and the steps change under the lock of
 * graphs, because threads that have only the lock read them. */
static rill_status disable_step(struct rill__graph_exec *exec, uint32_t step) {
  struct rill__exec_core *core = rill__core(exec);
  struct rill__operation *empty = NULL;
  if (core->disabled == NULL) {
    struct rill__operation **const disabled = calloc((size_t)exec->count + 1, sizeof(struct rill__operation *));
    RILL_REQUIRE(disabled != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to change a graph of %u nodes",
                 exec->count);
    rill__graphs_lock();
    core->disabled = disabled;
    rill__graphs_unlock();
  }
  RILL_TRY(rill__operation_empty(exec->base.device, &empty));
  const rill_status status = RILL_DISPATCH(exec, graph, set, exec, step, empty);
  if (status != RILL_OK) {
    rill__operation_unref(empty);
    return status;
  }
  rill__graphs_lock();
  core->disabled[step] = exec->steps[step].operation;
  exec->steps[step].operation = empty;
  rill__graphs_unlock();
  return RILL_OK;
}

static rill_status enable_step(struct rill__graph_exec *exec, uint32_t step) {
  struct rill__exec_core *core = rill__core(exec);
  RILL_TRY(RILL_DISPATCH(exec, graph, set, exec, step, core->disabled[step]));
  rill__graphs_lock();
  struct rill__operation *const empty = exec->steps[step].operation;
  exec->steps[step].operation = core->disabled[step];
  core->disabled[step] = NULL;
  rill__graphs_unlock();
  rill__operation_unref(empty);
  return RILL_OK;
}

rill_status rill__exec_enable(struct rill__graph_exec *exec, uint32_t step, bool enabled) {
  if (enabled != rill__exec_is_disabled(exec, step)) return RILL_OK;
  return enabled ? enable_step(exec, step) : disable_step(exec, step);
}
