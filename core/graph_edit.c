#include "core/device/life.h"
#include "core/graph/building.h"
#include "core/kernel/launch.h"
#include "core/memory/memory.h"
#include "core/object/options.h"

#include <rill/graph_edit.h>

/* ---- reading ---- */

static uint64_t live_handle(const struct rill__object *object) { return rill__object_is_live(object) ? object->id : 0; }

static void read_launch(const struct rill__operation *operation, rill_launch *out) {
  const struct rill__launch *launch = &operation->launch;
  const struct rill__launch_extras *extras = launch->extras;
  rill_launch read = {
    .grid = { launch->grid[0], launch->grid[1], launch->grid[2] },
    .block = { launch->block[0], launch->block[1], launch->block[2] },
    .shared_mem_bytes = launch->shared_mem_bytes,
    .attribute_count = extras != NULL ? (size_t)__builtin_popcount(extras->set) : 0,
    .constant_count = extras != NULL ? extras->constant_count : 0,
    .label = operation->label,
  };
  if (launch->clustered) read.cluster = (rill_dim3){ launch->cluster[0], launch->cluster[1], launch->cluster[2] };
  rill__options_write(out, &read, sizeof read);
}

static void read_kernel_node(const struct rill__operation *operation, rill_graph_node_params *out) {
  const rill_bundle_kernel *source = operation->launch.kernel->source;
  out->kernel.id = live_handle(&operation->launch.kernel->base);
  if (out->launch != NULL) read_launch(operation, out->launch);
  for (uint32_t i = 0; out->args != NULL && i < source->arg_count && i < out->arg_count; i++) {
    out->args[i] = (rill_arg){ operation->values[i], source->args[i].size };
  }
  out->arg_count = source->arg_count;
}

static void read_copy(const struct rill__copy_3d *copy, rill_copy_3d *out) {
  const bool line = copy->height == 1, rows = copy->depth == 1;
  const size_t dst_pitch = line ? copy->width : copy->dst_pitch, src_pitch = line ? copy->width : copy->src_pitch;
  const rill_copy_3d read = {
    .dst = copy->dst,
    .src = copy->src,
    .dst_pitch = dst_pitch,
    .dst_slice_pitch = rows ? dst_pitch * copy->height : copy->dst_slice_pitch,
    .src_pitch = src_pitch,
    .src_slice_pitch = rows ? src_pitch * copy->height : copy->src_slice_pitch,
    .width = copy->width,
    .height = copy->height,
    .depth = copy->depth,
  };
  rill__options_write(out, &read, sizeof read);
}

static void read_fill(const struct rill__fill_2d *fill, rill_graph_node_params *out) {
  out->dst = fill->dst;
  out->dst_pitch = fill->height == 1 ? 0 : fill->pitch;
  out->pattern = fill->pattern;
  out->pattern_size = fill->pattern_size;
  out->width = fill->width;
  out->height = fill->height;
}

/* Reads the parameters of a node.  `out` contains the caller's pointers and array size.  Call it under the lock. */
static void read_any_node(const struct rill__operation *operation, rill_graph_node_params *out) {
  *out = (rill_graph_node_params){
    .kind = operation->kind,
    .launch = out->launch,
    .args = out->args,
    .arg_count = operation->kind == RILL_NODE_KERNEL ? out->arg_count : 0,
    .copy = out->copy,
  };
  switch (operation->kind) {
    case RILL_NODE_KERNEL: read_kernel_node(operation, out); break;
    case RILL_NODE_COPY:
      if (out->copy != NULL) read_copy(&operation->copy, out->copy);
      break;
    case RILL_NODE_FILL: read_fill(&operation->fill.rows, out); break;
    case RILL_NODE_HOST_CALL:
      out->fn = operation->host_call.fn;
      out->user = operation->host_call.user;
      break;
    case RILL_NODE_EVENT_RECORD:
    case RILL_NODE_EVENT_WAIT: out->event.id = live_handle(&operation->event->base); break;
    case RILL_NODE_ALLOC:
    case RILL_NODE_FREE: out->memory = operation->memory; break;
    default: break;
  }
}

rill_status rill_graph_get_node_params(rill_graph graph, rill_graph_node node, rill_graph_node_params *params) {
  RILL_ENTER();
  struct rill__graph *g;
  struct rill__graph_node *n = NULL;
  rill_graph_node_params read = RILL_GRAPH_NODE_PARAMS_INIT;
  RILL_RESOLVE(RILL__GRAPH, graph, "graph", &g);
  RILL_TRY(rill__find_node_of(g, node, "node", &n));
  RILL_TRY(rill__options_check_output(params, "rill_graph_node_params"));
  RILL_TRY(rill__options_read(&read, sizeof read, params, "rill_graph_node_params"));
  if (read.launch != NULL) RILL_TRY(rill__options_check_output(read.launch, "rill_launch"));
  if (read.copy != NULL) RILL_TRY(rill__options_check_output(read.copy, "rill_copy_3d"));
  rill__graphs_lock();
  const rill_status status = rill__graph_node_check(n, "node");
  if (status == RILL_OK) read_any_node(n->operation, &read);
  rill__graphs_unlock();
  if (status == RILL_OK) rill__options_write(params, &read, sizeof read);
  return status;
}

/* ---- changing ---- */

/* A change of a node to another operation.  `before` is referenced until the change has been made. */
struct change {
  struct rill__graph *graph;
  const struct rill__operation *before;
  const rill_graph_node_params *params;
  struct rill__node_stream stream;
  struct rill__operation *operation;
};

/* Creates the launch.  Everything that the caller does not set is taken from the node's launch. */
static rill_status change_kernel(struct rill__thread *self, struct change *change) {
  const rill_graph_node_params *params = change->params;
  const struct rill__launch *before = &change->before->launch;
  struct rill__kernel *kernel = before->kernel;
  const rill_bundle_kernel *source = kernel->source;
  if (params->kernel.id != 0) {
    RILL_RESOLVE(RILL__KERNEL, params->kernel, "kernel", &kernel);
    RILL_TRY(rill__graph_check_device(change->graph, &kernel->base));
  }
  const bool same = kernel == before->kernel;
  rill_launch shape = RILL_LAUNCH_INIT;
  if (params->launch == NULL) {
    RILL_REQUIRE(same, RILL_ERROR_INVALID_ARGUMENT, "launch is NULL, but the kernel changes to \"%s\"", kernel->name);
    RILL_REQUIRE(before->extras == NULL, RILL_ERROR_UNSUPPORTED,
                 "launch is NULL, but the node's launch has attributes or constants, which are not copied to a new "
                 "launch" RILL_HINT "pass the complete launch");
    read_launch(change->before, &shape);
  }
  const bool keeps = same && params->args == NULL;
  rill_arg args[keeps ? source->arg_count + 1 : 1];
  for (uint32_t i = 0; keeps && i < source->arg_count; i++) {
    args[i] = (rill_arg){ change->before->values[i], source->args[i].size };
  }
  return rill__launch(&change->stream.stream, kernel, params->launch != NULL ? params->launch : &shape,
                      keeps ? args : params->args, keeps ? source->arg_count : params->arg_count);
}

static rill_status change_copy(struct rill__thread *self, struct change *change) {
  struct rill__copy_3d requested;
  RILL_TRY(rill__copy_3d_read(&requested, change->params->copy));
  return rill__copy_submit(self, &change->stream.stream, &requested);
}

static rill_status change_fill(struct change *change) {
  const rill_graph_node_params *params = change->params;
  struct rill__stream *const s = &change->stream.stream;
  if (params->height == 1) {
    return rill__fill_line(s, params->dst, params->pattern, params->pattern_size, params->width);
  }
  struct rill__fill_2d fill = {
    .dst = params->dst,
    .pitch = params->dst_pitch,
    .width = params->width,
    .height = params->height,
    .pattern = params->pattern,
    .pattern_size = params->pattern_size,
  };
  return rill__fill_submit(s, &fill);
}

static rill_status change_event(struct rill__thread *self, struct change *change) {
  const bool records = change->before->kind == RILL_NODE_EVENT_RECORD;
  struct rill__event *e;
  RILL_RESOLVE(RILL__EVENT, change->params->event, "event", &e);
  RILL_TRY(rill__graph_check_event(change->graph, e, records));
  return rill__operation_event(change->before->kind, e, &change->operation);
}

static rill_status make_operation(struct rill__thread *self, struct change *change) {
  const rill_graph_node_params *params = change->params;
  switch (change->before->kind) {
    case RILL_NODE_KERNEL: return change_kernel(self, change);
    case RILL_NODE_COPY: return change_copy(self, change);
    case RILL_NODE_FILL: return change_fill(change);
    case RILL_NODE_HOST_CALL:
      RILL_REQUIRE(params->fn != NULL, RILL_ERROR_INVALID_ARGUMENT, "fn is NULL");
      return rill__operation_host_call(change->graph->base.device, params->fn, params->user, &change->operation);
    case RILL_NODE_EVENT_RECORD:
    case RILL_NODE_EVENT_WAIT: return change_event(self, change);
    default:
      return rill__fail(RILL_ERROR_INVALID_ARGUMENT, "a node of kind \"%s\" has no parameters that can be changed",
                        rill__node_kind_name(change->before->kind));
  }
}

/* Returns the node's operation with a reference. */
static rill_status keep_operation(struct rill__graph *graph, const struct rill__graph_node *node,
                                  struct rill__operation **out) {
  rill__graphs_lock();
  rill_status status = rill__graph_check_complete(graph);
  if (status == RILL_OK) status = rill__graph_node_check(node, "node");
  if (status == RILL_OK) {
    *out = node->operation;
    rill__operation_ref(*out);
  }
  rill__graphs_unlock();
  return status;
}

/* Exchanges the node's operation for `*operation`.  Takes over the new one and returns the old one, which the caller
 * drops outside the lock. */
static rill_status put_in_node(struct rill__graph *graph, struct rill__graph_node *node,
                               struct rill__operation **operation) {
  rill__graphs_lock();
  rill_status status = rill__graph_check_complete(graph);
  if (status == RILL_OK) status = rill__graph_node_check(node, "node");
  if (status == RILL_OK) {
    struct rill__operation *const before = node->operation;
    RILL_ASSERT(before->kind == (*operation)->kind, "a node keeps its kind");
    node->operation = *operation;
    *operation = before;
  }
  rill__graphs_unlock();
  return status;
}

static rill_status change_node(struct rill__thread *self, struct change *change, struct rill__graph_node *node) {
  const uint32_t kind = change->before->kind, requested = change->params->kind;
  RILL_REQUIRE(requested == 0 || requested == kind, RILL_ERROR_INVALID_ARGUMENT,
               "rill_graph_node_params.kind is %u, but the node is of kind %u, \"%s\"", requested, kind,
               rill__node_kind_name(kind));
  RILL_REQUIRE(change->params->reserved == 0, RILL_ERROR_INVALID_ARGUMENT,
               "rill_graph_node_params.reserved is %u, not 0", change->params->reserved);
  rill__node_stream_init(&change->stream, change->graph->base.device);
  change->stream.member.collect = &change->operation;
  RILL_TRY(make_operation(self, change));
  RILL_REQUIRE(change->operation != NULL, RILL_ERROR_INVALID_ARGUMENT,
               "the operation would be empty (0 bytes or 0 blocks)" RILL_HINT
               "remove the node (rill_graph_remove_node)");
  return put_in_node(change->graph, node, &change->operation);
}

rill_status rill_graph_set_node_params(rill_graph graph, rill_graph_node node, const rill_graph_node_params *params) {
  RILL_ENTER();
  struct rill__graph *g;
  struct rill__graph_node *n = NULL;
  struct rill__operation *before = NULL;
  rill_graph_node_params read = RILL_GRAPH_NODE_PARAMS_INIT;
  RILL_RESOLVE(RILL__GRAPH, graph, "graph", &g);
  RILL_TRY(rill__find_node_of(g, node, "node", &n));
  RILL_REQUIRE(params != NULL, RILL_ERROR_INVALID_ARGUMENT, "params is NULL");
  RILL_TRY(rill__options_read(&read, sizeof read, params, "rill_graph_node_params"));
  RILL_TRY(rill__check_usable(g->base.device));
  RILL_TRY(keep_operation(g, n, &before));
  struct change change = { .graph = g, .before = before, .params = &read };
  const rill_status status = change_node(self, &change, n);
  rill__leave(&self);
  if (change.operation != NULL) rill__operation_unref(change.operation);
  rill__operation_unref(before);
  return status;
}

/* ---- removing ---- */

rill_status rill_graph_remove_node(rill_graph graph, rill_graph_node node) {
  RILL_ENTER();
  struct rill__graph *g;
  struct rill__graph_node *n = NULL;
  struct rill__operation *operation = NULL;
  RILL_RESOLVE(RILL__GRAPH, graph, "graph", &g);
  RILL_TRY(rill__find_node_of(g, node, "node", &n));
  rill__graphs_lock();
  const rill_status status = rill__graph_remove(g, n, &operation);
  rill__graphs_unlock();
  rill__leave(&self);
  if (operation != NULL) rill__operation_unref(operation);
  return status;
}
