#include "core/graph/graph.h"

#include "core/device/life.h"
#include "core/graph/building.h"
#include "core/held/held.h"
#include "core/kernel/launch.h"
#include "core/memory/memory.h"
#include "core/object/options.h"
#include "core/object/origin.h"

#include <stdlib.h>

/* ---- life ---- */

static rill_status make_exec(struct rill__graph *graph, const char *label, rill_graph_exec *out) {
  struct rill__graph_exec *exec = NULL;
  rill_status status = rill__exec_new(graph, label, &exec);
  /* the object that uses the memory may have been released, and only its destruction postponed */
  if (status == RILL_ERROR_UNSUPPORTED) {
    rill__reclaim_all();
    status = rill__exec_new(graph, label, &exec);
  }
  if (status != RILL_OK) return status;
  for (uint32_t i = 0; i < exec->count && status == RILL_OK; i++) {
    status = rill__graph_copy_stage(&exec->steps[i].operation);
  }
  if (status == RILL_OK) status = RILL_DISPATCH(exec, graph, instantiate, exec);
  rill__core(exec)->made = status == RILL_OK;
  if (status == RILL_OK) status = rill__object_publish(&exec->base, RILL__GRAPH_EXEC);
  if (status != RILL_OK) {
    rill__unref(&exec->base);
    return status;
  }
  out->id = exec->base.id;
  rill__origin_note(&exec->base);
  return RILL_OK;
}

/* Instantiates a graph.  Call it inside the epoch of a public function. */
static rill_status instantiate(struct rill__thread *self, rill_graph graph, const rill_graph_exec_options *options,
                               rill_graph_exec *out) {
  rill_graph_exec_options o = RILL_GRAPH_EXEC_OPTIONS_INIT;
  struct rill__graph *g;
  if (out != NULL) *out = RILL_NULL_GRAPH_EXEC;
  RILL_RESOLVE(RILL__GRAPH, graph, "graph", &g);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  RILL_TRY(rill__options_read(&o, sizeof o, options, "rill_graph_exec_options"));
  RILL_TRY(rill__check_usable(g->base.device));
  rill__ref_and_leave(self, &g->base);
  const rill_status status = make_exec(g, o.label, out);
  rill__unref(&g->base);
  return status;
}

rill_status rill_graph_instantiate(rill_graph graph, rill_graph_exec *out) {
  RILL_ENTER();
  return instantiate(self, graph, NULL, out);
}

rill_status rill_graph_instantiate_with_options(rill_graph graph, const rill_graph_exec_options *options,
                                                rill_graph_exec *out) {
  RILL_ENTER();
  return instantiate(self, graph, options, out);
}

rill_status rill_graph_exec_retain(rill_graph_exec exec) {
  RILL_ENTER();
  return rill__object_retain(exec.id, RILL__GRAPH_EXEC);
}

rill_status rill_graph_exec_release(rill_graph_exec exec) {
  RILL_ENTER();
  struct rill__object *last = NULL;
  const rill_status status = rill__object_release(exec.id, RILL__GRAPH_EXEC, &last);
  if (last != NULL) rill__object_retire(last);
  return status;
}

/* ---- launches ---- */

rill_status rill_graph_launch(rill_graph_exec exec, rill_stream stream) {
  RILL_ENTER_TO_SUBMIT();
  struct rill__graph_exec *x;
  struct rill__stream *s;
  RILL_RESOLVE(RILL__GRAPH_EXEC, exec, "exec", &x);
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_TRY(rill__check_same_device(&x->base, &s->base));
  RILL_TRY(rill__check_usable(s->base.device));
  rill__ref(&s->base);
  rill__ref_and_leave(self, &x->base);
  const rill_status status = rill__graph_launch(x, s);
  rill__unref(&x->base);
  rill__unref(&s->base);
  return status;
}

rill_status rill_graph_upload(rill_graph_exec exec, rill_stream stream) {
  RILL_ENTER_TO_SUBMIT();
  struct rill__graph_exec *x;
  struct rill__stream *s;
  RILL_RESOLVE(RILL__GRAPH_EXEC, exec, "exec", &x);
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_TRY(rill__check_same_device(&x->base, &s->base));
  RILL_TRY(rill__check_usable(s->base.device));
  rill__ref(&s->base);
  rill__ref_and_leave(self, &x->base);
  const rill_status status = rill__graph_upload(x, s);
  rill__unref(&x->base);
  rill__unref(&s->base);
  return status;
}

/* ---- native handles ---- */

static rill_status get_native(struct rill__thread *self, rill_graph_exec exec, bool graph, uintptr_t *out) {
  struct rill__graph_exec *x;
  if (out != NULL) *out = 0;
  RILL_RESOLVE(RILL__GRAPH_EXEC, exec, "exec", &x);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  if (x->base.device->backend->graph->native != NULL) *out = RILL_ASK(x, graph, native, x, graph);
  return RILL_OK;
}

rill_status rill_graph_exec_native(rill_graph_exec exec, uintptr_t *out) {
  RILL_ENTER();
  return get_native(self, exec, false, out);
}

rill_status rill_graph_exec_native_graph(rill_graph_exec exec, uintptr_t *out) {
  RILL_ENTER();
  return get_native(self, exec, true, out);
}

/* ---- changes ---- */

/* Replaces the operations.  Call it outside epochs. */
static rill_status update_graph(struct rill__graph_exec *exec, struct rill__graph *graph,
                                struct rill__refusal *refusal) {
  struct rill__replacement replacement = { calloc(exec->count + 1, sizeof(struct rill__operation *)), NULL };
  RILL_REQUIRE(replacement.operations != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to update a graph of %u nodes",
               exec->count);
  rill_status status = rill__exec_claim_to_change(exec);
  if (status == RILL_OK) {
    status = rill__exec_match(exec, graph, &replacement, refusal);
    for (uint32_t i = 0; i < exec->count && status == RILL_OK; i++) {
      status = rill__graph_copy_stage(&replacement.operations[i]);
    }
    if (status == RILL_OK) {
      status = rill__exec_update(exec, &replacement);
      if (status == RILL_ERROR_UNSUPPORTED) refusal->reason = RILL_UPDATE_DRIVER;
    }
    rill__exec_unclaim(exec);
  }
  for (uint32_t i = 0; i < exec->count; i++) {
    if (replacement.operations[i] != NULL) rill__operation_unref(replacement.operations[i]);
  }
  free(replacement.operations);
  if (replacement.attached != NULL) rill__unref(replacement.attached);
  return status;
}

/* Updates the execution object.  Call it inside the epoch of a public function. */
static rill_status update(struct rill__thread *self, rill_graph_exec exec, rill_graph graph,
                          struct rill__refusal *refusal) {
  struct rill__graph_exec *x;
  struct rill__graph *g;
  RILL_RESOLVE(RILL__GRAPH_EXEC, exec, "exec", &x);
  RILL_RESOLVE(RILL__GRAPH, graph, "graph", &g);
  RILL_TRY(rill__graph_check_device(rill__core(x)->graph, &g->base));
  RILL_TRY(rill__check_usable(x->base.device));
  rill__ref(&g->base);
  rill__ref_and_leave(self, &x->base);
  const rill_status status = update_graph(x, g, refusal);
  rill__unref(&x->base);
  rill__unref(&g->base);
  return status;
}

rill_status rill_graph_update(rill_graph_exec exec, rill_graph graph) {
  RILL_ENTER();
  struct rill__refusal refusal = { 0, 0 };
  return update(self, exec, graph, &refusal);
}

rill_status rill_graph_update_with_result(rill_graph_exec exec, rill_graph graph, rill_graph_update_result *result) {
  RILL_ENTER();
  struct rill__refusal refusal = { 0, 0 };
  RILL_TRY(rill__options_check_output(result, "rill_graph_update_result"));
  const rill_status status = update(self, exec, graph, &refusal);
  const rill_graph_update_result written = { sizeof written, { refusal.node }, refusal.reason };
  rill__options_write(result, &written, sizeof written);
  return status;
}

/* A node that existed when the execution object was created: its number at that time, its kind and its step. */
struct exec_node {
  uint32_t number, kind, step;
};

static rill_status find_exec_node(struct rill__graph_exec *exec, rill_graph_node node, struct exec_node *out) {
  struct rill__graph_node *n = NULL;
  RILL_TRY(rill__graph_node_find(node, "node", NULL, &n));
  const bool of_graph = rill__graph_of(n) == rill__core(exec)->graph;
  RILL_REQUIRE(
      of_graph && rill__node_names_find(&rill__core(exec)->names, n, &out->number), RILL_ERROR_INVALID_ARGUMENT,
      "node 0x%llx is not a node of the graph that was instantiated, or was added later", (unsigned long long)node.id);
  out->kind = n->kind;
  RILL_REQUIRE(out->kind != 0, RILL_ERROR_STALE_HANDLE, "node 0x%llx has been removed from its graph",
               (unsigned long long)node.id);
  out->step = rill__core(exec)->step_of[out->number];
  return RILL_OK;
}

/* Finds the step of a node, which must be of this kind. */
static rill_status find_step(struct rill__graph_exec *exec, rill_graph_node node, uint32_t kind, uint32_t *out) {
  struct exec_node n;
  RILL_TRY(find_exec_node(exec, node, &n));
  RILL_REQUIRE(n.kind == kind, RILL_ERROR_INVALID_ARGUMENT, "node %u is of kind \"%s\", not \"%s\"", n.number,
               rill__node_kind_name(n.kind), rill__node_kind_name(kind));
  *out = n.step;
  return RILL_OK;
}

/* Returns the kernel of a step, with a reference: another thread may replace the step's launch meanwhile. */
static struct rill__kernel *kernel_of(struct rill__graph_exec *exec, uint32_t step) {
  rill__graphs_lock();
  struct rill__kernel *kernel = rill__exec_operation(exec, step)->launch.kernel;
  rill__ref(&kernel->base);
  rill__graphs_unlock();
  return kernel;
}

/* Replaces an argument of a step.  Call it outside epochs, with references to the execution object and to everything
 * that the change needs. */
static rill_status set_arg(struct rill__graph_exec *exec, uint32_t step, uint32_t index, const void *data) {
  struct rill__operation *operation = NULL;
  RILL_TRY(rill__exec_claim_to_change(exec));
  rill_status status = rill__operation_with_arg(rill__exec_operation(exec, step), index, data, &operation);
  if (status == RILL_OK) status = rill__exec_set(exec, step, operation);
  rill__exec_unclaim(exec);
  return status;
}

static rill_status check_arg(const struct rill__kernel *kernel, uint32_t index, const void *data, size_t size) {
  const rill_bundle_kernel *source = kernel->source;
  RILL_REQUIRE(index < source->arg_count, RILL_ERROR_OUT_OF_RANGE,
               "kernel \"%s\" has %u arguments; there is no index %u", kernel->name, source->arg_count, index);
  RILL_REQUIRE(data != NULL, RILL_ERROR_INVALID_ARGUMENT, "kernel \"%s\": argument %u: data is NULL", kernel->name,
               index + 1);
  RILL_REQUIRE(size == source->args[index].size, RILL_ERROR_INVALID_ARGUMENT,
               "kernel \"%s\": argument %u: %zu bytes passed, %u expected", kernel->name, index + 1, size,
               source->args[index].size);
  return RILL_OK;
}

rill_status rill_graph_exec_set_kernel_arg(rill_graph_exec exec, rill_graph_node node, uint32_t index, const void *data,
                                           size_t size) {
  RILL_ENTER();
  struct rill__graph_exec *x;
  uint32_t step = 0;
  RILL_RESOLVE(RILL__GRAPH_EXEC, exec, "exec", &x);
  RILL_TRY(find_step(x, node, RILL_NODE_KERNEL, &step));
  struct rill__kernel *const kernel = kernel_of(x, step);
  rill_status status = check_arg(kernel, index, data, size);
  if (status == RILL_OK) status = rill__check_usable(x->base.device);
  rill__ref_and_leave(self, &x->base);
  rill__unref(&kernel->base);
  if (status == RILL_OK) status = set_arg(x, step, index, data);
  rill__unref(&x->base);
  return status;
}

/* The operation that a node with the new parameters would have. */
struct making {
  struct rill__node_stream stream;
  struct rill__operation *operation;
  bool other_kernel; /* the new launch may use a kernel other than the node's */
};

static struct rill__stream *begin_making(struct making *making, const struct rill__graph_exec *exec) {
  rill__node_stream_init(&making->stream, exec->base.device);
  making->operation = NULL;
  making->other_kernel = false;
  making->stream.member.collect = &making->operation;
  return &making->stream.stream;
}

/* Puts the operation into the step.  Leaves the epoch. */
static rill_status end_making(struct rill__thread *self, struct rill__graph_exec *exec, uint32_t step,
                              struct making *making, rill_status status) {
  RILL_TRY(status);
  RILL_REQUIRE(making->operation != NULL, RILL_ERROR_INVALID_ARGUMENT,
               "the operation would be empty (0 bytes or 0 blocks)" RILL_HINT
               "launch another execution object without the node");
  rill__ref_and_leave(self, &exec->base);
  status = rill__graph_copy_stage(&making->operation);
  if (status == RILL_OK) status = rill__exec_claim_to_change(exec);
  if (status == RILL_OK) {
    status = rill__exec_set(exec, step, making->operation);
    if (status == RILL_OK && making->other_kernel) rill__core(exec)->other_kernels = true;
    rill__exec_unclaim(exec);
  } else {
    rill__operation_unref(making->operation);
  }
  rill__unref(&exec->base);
  return status;
}

/* Begins a function that replaces the operation of a node of a kind. */
#define RILL_ENTER_CHANGE(kind)                     \
  RILL_ENTER();                                     \
  struct rill__graph_exec *x;                       \
  uint32_t step = 0;                                \
  struct making making;                             \
  RILL_RESOLVE(RILL__GRAPH_EXEC, exec, "exec", &x); \
  RILL_TRY(find_step(x, node, (kind), &step));      \
  struct rill__stream *const s = begin_making(&making, x)

rill_status rill_graph_exec_set_kernel(rill_graph_exec exec, rill_graph_node node, const rill_launch *launch,
                                       const rill_arg *args, size_t arg_count) {
  RILL_ENTER_CHANGE(RILL_NODE_KERNEL);
  struct rill__kernel *const kernel = kernel_of(x, step);
  rill_status status = rill__launch(s, kernel, launch, args, arg_count);
  status = end_making(self, x, step, &making, status);
  rill__leave(&self);
  rill__unref(&kernel->base);
  return status;
}

rill_status rill_graph_exec_replace_kernel(rill_graph_exec exec, rill_graph_node node, rill_kernel kernel,
                                           const rill_launch *launch, const rill_arg *args, size_t arg_count) {
  RILL_ENTER_CHANGE(RILL_NODE_KERNEL);
  struct rill__kernel *k;
  RILL_RESOLVE(RILL__KERNEL, kernel, "kernel", &k);
  RILL_TRY(rill__graph_check_device(rill__core(x)->graph, &k->base));
  making.other_kernel = true;
  return end_making(self, x, step, &making, rill__launch(s, k, launch, args, arg_count));
}

rill_status rill_graph_exec_set_copy(rill_graph_exec exec, rill_graph_node node, void *dst, const void *src, size_t n) {
  RILL_ENTER_CHANGE(RILL_NODE_COPY);
  return end_making(self, x, step, &making, rill__copy_line(self, s, dst, src, n));
}

rill_status rill_graph_exec_set_fill(rill_graph_exec exec, rill_graph_node node, void *dst, const void *pattern,
                                     size_t pattern_size, size_t count) {
  RILL_ENTER_CHANGE(RILL_NODE_FILL);
  return end_making(self, x, step, &making, rill__fill_line(s, dst, pattern, pattern_size, count));
}

rill_status rill_graph_exec_set_host_call(rill_graph_exec exec, rill_graph_node node, rill_host_fn fn, void *user) {
  RILL_ENTER_CHANGE(RILL_NODE_HOST_CALL);
  (void)s;
  RILL_REQUIRE(fn != NULL, RILL_ERROR_INVALID_ARGUMENT, "fn is NULL");
  RILL_TRY(rill__check_usable(x->base.device));
  return end_making(self, x, step, &making, rill__operation_host_call(x->base.device, fn, user, &making.operation));
}

rill_status rill_graph_exec_set_event(rill_graph_exec exec, rill_graph_node node, rill_event event) {
  RILL_ENTER();
  struct rill__graph_exec *x;
  struct exec_node n;
  struct rill__event *e;
  struct making making;
  RILL_RESOLVE(RILL__GRAPH_EXEC, exec, "exec", &x);
  RILL_TRY(find_exec_node(x, node, &n));
  RILL_RESOLVE(RILL__EVENT, event, "event", &e);
  const bool records = n.kind == RILL_NODE_EVENT_RECORD;
  RILL_REQUIRE(records || n.kind == RILL_NODE_EVENT_WAIT, RILL_ERROR_INVALID_ARGUMENT,
               "node %u is of kind \"%s\", and neither records an event nor waits for one", n.number,
               rill__node_kind_name(n.kind));
  RILL_TRY(rill__graph_check_event(rill__core(x)->graph, e, records));
  RILL_TRY(rill__check_usable(x->base.device));
  (void)begin_making(&making, x);
  return end_making(self, x, n.step, &making, rill__operation_event(n.kind, e, &making.operation));
}

/* ---- enabling ---- */

/* Finds the step of a node that can be disabled. */
static rill_status find_switch(struct rill__graph_exec *exec, rill_graph_node node, uint32_t *out) {
  struct exec_node n;
  RILL_TRY(find_exec_node(exec, node, &n));
  RILL_REQUIRE(n.kind == RILL_NODE_KERNEL || n.kind == RILL_NODE_COPY || n.kind == RILL_NODE_FILL,
               RILL_ERROR_INVALID_ARGUMENT, "node %u is of kind \"%s\": only kernels, copies and fills can be disabled",
               n.number, rill__node_kind_name(n.kind));
  *out = n.step;
  return RILL_OK;
}

rill_status rill_graph_exec_set_enabled(rill_graph_exec exec, rill_graph_node node, bool enabled) {
  RILL_ENTER();
  struct rill__graph_exec *x;
  uint32_t step = 0;
  RILL_RESOLVE(RILL__GRAPH_EXEC, exec, "exec", &x);
  RILL_TRY(find_switch(x, node, &step));
  RILL_TRY(rill__check_usable(x->base.device));
  rill__ref_and_leave(self, &x->base);
  rill_status status = rill__exec_claim_to_change(x);
  if (status == RILL_OK) {
    status = rill__exec_enable(x, step, enabled);
    rill__exec_unclaim(x);
  }
  rill__unref(&x->base);
  return status;
}

rill_status rill_graph_exec_is_enabled(rill_graph_exec exec, rill_graph_node node, bool *out) {
  RILL_ENTER();
  if (out != NULL) *out = false;
  struct rill__graph_exec *x;
  uint32_t step = 0;
  RILL_RESOLVE(RILL__GRAPH_EXEC, exec, "exec", &x);
  RILL_TRY(find_switch(x, node, &step));
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  rill__graphs_lock();
  *out = !rill__exec_is_disabled(x, step);
  rill__graphs_unlock();
  return RILL_OK;
}
