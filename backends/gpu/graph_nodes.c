/* Creates native graphs node by node.  No stream captures, so calls of other threads or libraries neither invalidate a
 * capture nor are refused because of one.  A step may become a sequence of nodes; later steps follow the last of
 * them. */
#include "backends/gpu/gpu.h"

#include <stdlib.h>

/* State while a native graph is created, inside a scope. */
struct making {
  struct rill__device *device;
  struct gpu_insertion insertion; /* where the next node is added, which then precedes the following one */
  uint32_t made;                  /* number of nodes created for the step */
  bool *kernels;                  /* tells which nodes preceding the step are kernels */
};

/* Makes the new node the predecessor of the step's next one. */
static rill_status end_node(struct making *making, gpu_result result, const char *symbol) {
  if (result != GPU_SUCCESS) return gpu_fail(making->device, result, symbol);
  making->insertion.after = &making->insertion.node;
  making->insertion.count = 1;
  making->made++;
  return RILL_OK;
}

/* ---- copies ---- */

static size_t max_pitch(const struct making *making) {
  const size_t most = gpu_device_of(making->device)->max_pitch;
  return most != 0 ? most : SIZE_MAX;
}

/* Sets the pitches that a node must have, including pitches that have no meaning for the copy. */
static struct rill__copy_3d with_pitches(const struct rill__copy_3d *request) {
  struct rill__copy_3d copy = *request;
  if (copy.height == 1 && copy.depth == 1) copy.dst_pitch = copy.src_pitch = copy.width;
  if (copy.depth == 1) {
    copy.dst_slice_pitch = copy.dst_pitch * copy.height;
    copy.src_slice_pitch = copy.src_pitch * copy.height;
  }
  return copy;
}

static rill_status add_copy_node(struct making *making, const struct rill__copy_3d *request) {
  const char *symbol = "";
  const struct rill__copy_3d copy = with_pitches(request);
  struct gpu_insertion insertion = making->insertion;
  const gpu_result result = gpu_vendor_add_copy(&insertion, &copy, gpu_device_of(making->device)->context, &symbol);
  making->insertion.node = insertion.node;
  return end_node(making, result, symbol);
}

/* Adds a copy of contiguous bytes.  If there are more bytes than a pitch may have, adds contiguous rows and the
 * rest. */
static rill_status add_line(struct making *making, const struct rill__copy_3d *request) {
  const size_t row = (size_t)1 << 30;
  struct rill__copy_3d copy = *request;
  copy.height = copy.depth = 1;
  if (GPU_LINE_NODES_HAVE_PITCH && copy.width > max_pitch(making)) {
    copy.width = row;
    copy.height = request->width / row;
    copy.dst_pitch = copy.src_pitch = row;
    RILL_TRY(add_copy_node(making, &copy));
    copy.dst = (char *)request->dst + row * copy.height;
    copy.src = (const char *)request->src + row * copy.height;
    copy.width = request->width % row;
    copy.height = 1;
    if (copy.width == 0) return RILL_OK;
  }
  return add_copy_node(making, &copy);
}

static rill_status add_slice(struct making *making, const struct rill__copy_3d *slice) {
  const size_t most = max_pitch(making);
  struct rill__copy_3d row = *slice;
  if (slice->dst_pitch <= most && slice->src_pitch <= most) return add_copy_node(making, slice);
  for (size_t i = 0; i < slice->height; i++) {
    row.dst = (char *)slice->dst + i * slice->dst_pitch;
    row.src = (const char *)slice->src + i * slice->src_pitch;
    RILL_TRY(add_line(making, &row));
  }
  return RILL_OK;
}

/* Returns true if one node is enough: slice pitches are multiples of pitches, and pitches do not exceed the limit. */
static bool is_one_copy(struct rill__device *device, const struct rill__copy_3d *copy) {
  const size_t most = gpu_device_of(device)->max_pitch;
  if (copy->height == 1 && copy->depth == 1) return !GPU_LINE_NODES_HAVE_PITCH || most == 0 || copy->width <= most;
  if (most != 0 && (copy->dst_pitch > most || copy->src_pitch > most)) return false;
  return copy->depth == 1 ||
         (copy->dst_slice_pitch % copy->dst_pitch == 0 && copy->src_slice_pitch % copy->src_pitch == 0);
}

static rill_status add_copy(struct making *making, const struct rill__copy_3d *copy) {
  if (copy->height == 1 && copy->depth == 1) return add_line(making, copy);
  if (copy->depth > 1 && is_one_copy(making->device, copy)) return add_copy_node(making, copy);
  struct rill__copy_3d slice = *copy;
  slice.depth = 1;
  for (size_t i = 0; i < copy->depth; i++) {
    slice.dst = (char *)copy->dst + i * copy->dst_slice_pitch;
    slice.src = (const char *)copy->src + i * copy->src_slice_pitch;
    RILL_TRY(add_slice(making, &slice));
  }
  return RILL_OK;
}

/* ---- host calls ---- */

static rill_status add_host_node(struct making *making, void (*fn)(void *data), void *data) {
  gpu_graph_node node = NULL;
  const struct gpu_insertion *insertion = &making->insertion;
  const gpu_host_node call = { .fn = fn, .userData = data };
  const gpu_result result =
      GPU_CALL(graph_add_host, (&node, insertion->graph, insertion->after, insertion->count, &call));
  making->insertion.node = node;
  return end_node(making, result, gpu_symbols.graph_add_host);
}

static void call_operation(void *data) {
  const struct rill__operation *operation = data;
  rill__call_host(0, operation->host_call.fn, operation->host_call.user, RILL_OK);
}

static void copy_staged_rows(void *data) {
  const struct rill__copy_3d *copy = data;
  rill__copy_rows(copy, 0, copy->height * copy->depth);
}

static rill_status add_staged_copy(struct making *making, const struct rill__staged_copy *staged) {
  for (size_t i = 0; i < staged->count; i++) {
    struct rill__copy_piece *piece = &staged->pieces[i];
    if (staged->order == RILL__HOST_COPIES_LAST) RILL_TRY(add_copy(making, &piece->by_driver));
    RILL_TRY(add_host_node(making, copy_staged_rows, &piece->by_host));
    if (staged->order == RILL__HOST_COPIES_FIRST) RILL_TRY(add_copy(making, &piece->by_driver));
  }
  return RILL_OK;
}

/* ---- fills ---- */

static rill_status add_fill_node(struct making *making, const struct gpu_fill_node *fill) {
  const char *symbol = "";
  struct gpu_insertion insertion = making->insertion;
  const gpu_result result = gpu_vendor_add_fill(&insertion, fill, gpu_device_of(making->device)->context, &symbol);
  making->insertion.node = insertion.node;
  return end_node(making, result, symbol);
}

static uint32_t element_at(const struct rill__fill_2d *fill, size_t offset) {
  uint32_t value = 0;
  memcpy(&value, (const unsigned char *)fill->pattern + offset, fill->pattern_size < 4 ? fill->pattern_size : 4);
  return value;
}

static struct gpu_fill_node row_of(const struct rill__fill_2d *fill) {
  return (struct gpu_fill_node){
    .dst = fill->dst,
    .pitch = fill->width * fill->pattern_size,
    .value = element_at(fill, 0),
    .element = (uint32_t)fill->pattern_size,
    .width = fill->width,
    .height = 1,
  };
}

/* Copies the first `done` bytes repeatedly, doubling their number with each node. */
static rill_status add_doubled_bytes(struct making *making, const struct rill__fill_2d *fill, size_t done,
                                     size_t size) {
  struct rill__copy_3d copy = { .src = fill->dst, .dst_kind = fill->dst_kind, .src_kind = fill->dst_kind };
  while (done < size) {
    copy.dst = (char *)fill->dst + done;
    copy.width = size - done < done ? size - done : done;
    RILL_TRY(add_line(making, &copy));
    done += copy.width;
  }
  return RILL_OK;
}

/* Adds a row.  A pattern of several words is written word by word, as columns if nodes have rows, and then doubled.
 * The part filled as columns is the same as on streams (fill.c). */
static rill_status add_row(struct making *making, const struct rill__fill_2d *fill) {
  enum { FIRST = 16 << 10 };
  const size_t size = fill->pattern_size;
  if (size <= 4) {
    const struct gpu_fill_node row = row_of(fill);
    return add_fill_node(making, &row);
  }
  const size_t most = GPU_FILL_NODES_HAVE_ROWS ? FIRST / size : 1;
  struct gpu_fill_node column = { .element = 4, .width = 1, .pitch = size };
  column.height = fill->width < most ? fill->width : most;
  for (size_t offset = 0; offset < size; offset += 4) {
    column.dst = (char *)fill->dst + offset;
    column.value = element_at(fill, offset);
    RILL_TRY(add_fill_node(making, &column));
  }
  return add_doubled_bytes(making, fill, column.height * size, fill->width * size);
}

static rill_status add_row_by_row(struct making *making, const struct rill__fill_2d *fill) {
  struct rill__fill_2d row = *fill;
  for (size_t i = 0; i < fill->height; i++) {
    row.dst = (char *)fill->dst + i * fill->pitch;
    RILL_TRY(add_row(making, &row));
  }
  return RILL_OK;
}

/* Adds the first row, and copies that double the number of rows. */
static rill_status add_doubled_rows(struct making *making, const struct rill__fill_2d *fill) {
  RILL_TRY(add_row(making, fill));
  struct rill__copy_3d copy = {
    .src = fill->dst,
    .dst_kind = fill->dst_kind,
    .src_kind = fill->dst_kind,
    .width = fill->width * fill->pattern_size,
    .depth = 1,
    .dst_pitch = fill->pitch,
    .src_pitch = fill->pitch,
  };
  for (size_t done = 1; done < fill->height; done += copy.height) {
    copy.dst = (char *)fill->dst + done * fill->pitch;
    copy.height = fill->height - done < done ? fill->height - done : done;
    RILL_TRY(add_copy(making, &copy));
  }
  return RILL_OK;
}

/* Works in pieces, because the vendors do not state their limit of rows. */
static rill_status add_rows(struct making *making, const struct rill__fill_2d *fill) {
  const size_t most = (size_t)1 << 24;
  struct gpu_fill_node rows = row_of(fill);
  rows.pitch = fill->pitch;
  for (size_t done = 0; done < fill->height; done += rows.height) {
    rows.dst = (char *)fill->dst + done * fill->pitch;
    rows.height = fill->height - done < most ? fill->height - done : most;
    RILL_TRY(add_fill_node(making, &rows));
  }
  return RILL_OK;
}

/* Returns an equal fill with the shortest pattern, which is stored in `bytes`. */
static struct rill__fill_2d shortest_fill(const struct rill__fill_2d *request, unsigned char bytes[16]) {
  struct rill__fill_2d fill = *request;
  memcpy(bytes, request->pattern, request->pattern_size);
  fill.pattern = bytes;
  while (fill.pattern_size > 4 && memcmp(bytes, bytes + fill.pattern_size / 2, fill.pattern_size / 2) == 0) {
    fill.pattern_size /= 2;
    fill.width *= 2;
  }
  return fill;
}

static rill_status add_fill(struct making *making, const struct rill__fill_2d *request) {
  unsigned char bytes[16];
  const struct rill__fill_2d fill = shortest_fill(request, bytes);
  if (fill.height == 1) return add_row(making, &fill);
  if (fill.pitch > max_pitch(making)) return add_row_by_row(making, &fill);
  return GPU_FILL_NODES_HAVE_ROWS && fill.pattern_size <= 4 ? add_rows(making, &fill) : add_doubled_rows(making, &fill);
}

/* ---- kernels and the rest ---- */

static rill_status add_kernel(struct making *making, const struct rill__launch *launch) {
  const struct rill__launch_extras *extras = launch->extras;
  for (size_t i = 0; extras != NULL && i < extras->constant_count; i++) {
    const struct rill__constant *constant = &extras->constants[i];
    const struct rill__copy_3d copy = { .dst = constant->to,
                                        .src = constant->from,
                                        .dst_kind = RILL_MEMORY_DEVICE,
                                        .src_kind = RILL_MEMORY_PINNED,
                                        .width = constant->size };
    RILL_TRY(add_line(making, &copy));
    making->kernels[0] = false;
  }
  const char *symbol = "";
  struct gpu_insertion insertion = making->insertion;
  const gpu_result result =
      gpu_vendor_add_kernel(&insertion, gpu_kernel_of(launch->kernel)->native, launch, making->kernels, &symbol);
  making->insertion.node = insertion.node;
  return end_node(making, result, symbol);
}

static rill_status add_other(struct making *making, const struct rill__operation *operation) {
  const struct gpu_insertion *insertion = &making->insertion;
  gpu_graph_node node = NULL;
  const char *symbol = "";
  gpu_result result = GPU_SUCCESS;
  switch (operation->kind) {
    case RILL_NODE_EVENT_RECORD:
      symbol = gpu_symbols.graph_add_record;
      result = GPU_CALL(graph_add_record, (&node, insertion->graph, insertion->after, insertion->count,
                                           gpu_event_of(operation->event)->native));
      break;
    case RILL_NODE_EVENT_WAIT:
      symbol = gpu_symbols.graph_add_wait;
      result = GPU_CALL(graph_add_wait, (&node, insertion->graph, insertion->after, insertion->count,
                                         gpu_event_of(operation->event)->native));
      break;
    case RILL_NODE_OTHER:
      symbol = gpu_symbols.graph_add_child;
      result = GPU_CALL(graph_add_child,
                        (&node, insertion->graph, insertion->after, insertion->count, (gpu_graph)operation->others));
      break;
    default:
      symbol = gpu_symbols.graph_add_empty;
      result = GPU_CALL(graph_add_empty, (&node, insertion->graph, insertion->after, insertion->count));
      break;
  }
  making->insertion.node = node;
  return end_node(making, result, symbol);
}

static rill_status add_operation(struct making *making, struct rill__operation *operation) {
  switch (operation->kind) {
    case RILL_NODE_KERNEL: return add_kernel(making, &operation->launch);
    case RILL_NODE_COPY:
      if (operation->staged != NULL) return add_staged_copy(making, operation->staged);
      return add_copy(making, &operation->copy);
    case RILL_NODE_FILL: return add_fill(making, &operation->fill.rows);
    case RILL_NODE_HOST_CALL: return add_host_node(making, call_operation, operation);
    default: return add_other(making, operation);
  }
}

/* ---- all steps ---- */

/* Steps are sorted so that each follows its predecessors.  A chain of all steps therefore satisfies all edges. */
static rill_status add_all_steps(struct making *making, const struct rill__graph_exec *exec,
                                 struct rill__operation *const *operations, gpu_graph_node *nodes,
                                 gpu_graph_node *after) {
  for (uint32_t i = 0; i < exec->count; i++) {
    const struct rill__step *step = &exec->steps[i];
    struct rill__operation *operation = operations != NULL ? operations[i] : step->operation;
    making->insertion.after = after;
    making->insertion.count = step->after_count;
    making->made = 0;
    for (uint32_t k = 0; k < step->after_count; k++) {
      const uint32_t before = step->after[k];
      RILL_ASSERT(before < i, "steps are in an order that the edges allow");
      making->kernels[k] =
          (operations != NULL ? operations[before] : exec->steps[before].operation)->kind == RILL_NODE_KERNEL;
      after[k] = nodes[before];
    }
    if (GPU_GRAPHS_ARE_CHAINS) {
      making->insertion.after = i > 0 ? &nodes[i - 1] : NULL;
      making->insertion.count = i > 0;
    }
    RILL_TRY(add_operation(making, operation));
    nodes[i] = making->insertion.node;
  }
  return RILL_OK;
}

rill_status gpu_graph_make(const struct rill__graph_exec *exec, struct rill__operation *const *operations,
                           gpu_graph_node *nodes, gpu_graph *out) {
  struct making making = { .device = exec->base.device };
  gpu_graph_node *after = malloc(((size_t)exec->count + 1) * sizeof(gpu_graph_node));
  making.kernels = malloc((size_t)exec->count + 1);
  rill_status status = RILL_OK;
  struct gpu_scope scope;
  if (after == NULL || making.kernels == NULL) {
    status = rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for a graph of %u nodes", exec->count);
  } else {
    gpu_result result = gpu_enter(making.device, &scope);
    const bool inside = result == GPU_SUCCESS;
    const char *symbol = inside ? gpu_symbols.graph_create : GPU_ENTER_TEXT;
    if (inside) result = GPU_CALL(graph_create, (&making.insertion.graph, 0));
    status = result == GPU_SUCCESS ? add_all_steps(&making, exec, operations, nodes, after)
                                   : gpu_fail(making.device, result, symbol);
    if (inside) gpu_leave(&scope);
  }
  free(after);
  free(making.kernels);
  if (status != RILL_OK) gpu_graph_unmake(making.device, making.insertion.graph);
  *out = status == RILL_OK ? making.insertion.graph : NULL;
  return status;
}

void gpu_graph_unmake(struct rill__device *device, gpu_graph graph) {
  gpu_result result;
  if (graph == NULL) return;
  GPU_RUN_INSIDE(result, device, graph_destroy, (graph));
  (void)result;
}

/* ---- changes of single nodes ---- */

static bool is_plain_launch(const struct rill__operation *operation) {
  return operation->launch.extras == NULL && !operation->launch.clustered;
}

/* Returns true if the fill is one native node, which a change can alter, and sets `out` to its values. */
static bool is_one_fill(const struct rill__operation *operation, struct gpu_fill_node *out) {
  unsigned char bytes[16];
  const struct rill__fill_2d fill = shortest_fill(&operation->fill.rows, bytes);
  *out = row_of(&fill);
  return fill.height == 1 && fill.pattern_size <= 4;
}

/* Compares plain launches. */
static bool is_same_launch(const struct rill__launch *a, const struct rill__launch *b) {
  if (a->kernel != b->kernel || memcmp(a->grid, b->grid, sizeof a->grid) != 0 ||
      memcmp(a->block, b->block, sizeof a->block) != 0 || a->shared_mem_bytes != b->shared_mem_bytes) {
    return false;
  }
  const rill_bundle_kernel *source = a->kernel->source;
  for (uint32_t i = 0; i < source->arg_count; i++) {
    if (memcmp(a->args[i], b->args[i], source->args[i].size) != 0) return false;
  }
  return true;
}

/* Returns true for a copy of one row, the only kind that the driver can change. */
static bool is_one_line(struct rill__device *device, const struct rill__copy_3d *copy) {
  return copy->height == 1 && copy->depth == 1 && is_one_copy(device, copy);
}

/* Returns true if two copies are equal.  Memory of unknown kind may have become another kind, so such copies are never
 * equal. */
static bool is_same_copy(const struct rill__copy_3d *a, const struct rill__copy_3d *b) {
  return a->dst_kind != RILL_MEMORY_UNKNOWN && a->src_kind != RILL_MEMORY_UNKNOWN && memcmp(a, b, sizeof *a) == 0;
}

static bool has_same_function(const struct rill__operation *a, const struct rill__operation *b) {
  return gpu_kernel_of(a->launch.kernel)->native == gpu_kernel_of(b->launch.kernel)->native;
}

/* The kind of change that a step's native nodes need for another operation. */
enum change { NO_CHANGE, ONE_NODE_CHANGES, NODES_CHANGE };

static enum change change_of_launch(const struct rill__operation *before, const struct rill__operation *after) {
  if (!is_plain_launch(before) || !is_plain_launch(after)) return NODES_CHANGE;
  if (!GPU_NODES_CHANGE_FUNCTION && !has_same_function(before, after)) return NODES_CHANGE;
  return is_same_launch(&before->launch, &after->launch) ? NO_CHANGE : ONE_NODE_CHANGES;
}

static enum change change_of(struct rill__device *device, const struct rill__operation *before,
                             const struct rill__operation *after) {
  struct gpu_fill_node old, new;
  if (before == after) return NO_CHANGE;
  if (before->kind != after->kind) { /* the step is disabled or enabled again */
    const struct rill__operation *const work = before->kind == RILL_NODE_EMPTY ? after : before;
    return GPU_KERNELS_ARE_DISABLED && work->kind == RILL_NODE_KERNEL && is_plain_launch(work) ? ONE_NODE_CHANGES
                                                                                               : NODES_CHANGE;
  }
  switch (after->kind) {
    case RILL_NODE_KERNEL: return change_of_launch(before, after);
    case RILL_NODE_COPY:
      if (before->staged != NULL || after->staged != NULL) return NODES_CHANGE;
      if (is_same_copy(&before->copy, &after->copy)) return NO_CHANGE;
      return is_one_line(device, &before->copy) && is_one_line(device, &after->copy) ? ONE_NODE_CHANGES : NODES_CHANGE;
    case RILL_NODE_FILL:
      if (!is_one_fill(before, &old) || !is_one_fill(after, &new)) return NODES_CHANGE;
      return memcmp(&old, &new, sizeof old) == 0 ? NO_CHANGE : ONE_NODE_CHANGES;
    case RILL_NODE_HOST_CALL: return ONE_NODE_CHANGES; /* the node refers to the operation, so it has to be changed */
    case RILL_NODE_EVENT_RECORD:
    case RILL_NODE_EVENT_WAIT: return before->event == after->event ? NO_CHANGE : NODES_CHANGE;
    case RILL_NODE_OTHER: return NODES_CHANGE;
    default: return NO_CHANGE;
  }
}

/* Changes the parameters of a node, whose operation has to be one node.  Call it inside a scope. */
static bool set_values(struct rill__device *device, gpu_graph_handle native, gpu_graph_node node,
                       struct rill__operation *operation) {
  const gpu_context context = gpu_device_of(device)->context;
  struct gpu_insertion insertion = { .exec = native, .node = node };
  struct rill__copy_3d copy;
  struct gpu_fill_node fill;
  const gpu_host_node call = { .fn = call_operation, .userData = operation };
  const char *symbol;
  switch (operation->kind) {
    case RILL_NODE_KERNEL:
      return gpu_vendor_add_kernel(&insertion, gpu_kernel_of(operation->launch.kernel)->native, &operation->launch,
                                   NULL, &symbol) == GPU_SUCCESS;
    case RILL_NODE_COPY:
      copy = with_pitches(&operation->copy);
      return gpu_vendor_add_copy(&insertion, &copy, context, &symbol) == GPU_SUCCESS;
    case RILL_NODE_FILL:
      (void)is_one_fill(operation, &fill);
      return gpu_vendor_add_fill(&insertion, &fill, context, &symbol) == GPU_SUCCESS;
    default: return gpu_vendor_set_host(&insertion, &call) == GPU_SUCCESS;
  }
}

/* Changes a node to another operation.  Work is set before its node is enabled; a node of another kind refuses the
 * change.  Call it inside a scope. */
static bool set_node(struct rill__device *device, gpu_graph_handle native, gpu_graph_node node,
                     const struct rill__operation *before, struct rill__operation *operation) {
  const struct gpu_insertion insertion = { .exec = native, .node = node };
  if (operation->kind == RILL_NODE_EMPTY) return gpu_vendor_set_enabled(&insertion, false) == GPU_SUCCESS;
  if (!set_values(device, native, node, operation)) return false;
  return before->kind == operation->kind || gpu_vendor_set_enabled(&insertion, true) == GPU_SUCCESS;
}

void gpu_graph_enable_nodes(struct rill__graph_exec *exec, struct rill__operation *const *operations) {
  const struct gpu_exec *part = rill__part(exec);
  struct gpu_scope scope;
  if (!GPU_KERNELS_ARE_DISABLED || gpu_enter(exec->base.device, &scope) != GPU_SUCCESS) return;
  for (uint32_t i = 0; i < exec->count; i++) {
    const struct gpu_insertion insertion = { .exec = part->native, .node = part->nodes[i] };
    if (exec->steps[i].operation->kind == operations[i]->kind) continue;
    (void)gpu_vendor_set_enabled(&insertion, operations[i]->kind != RILL_NODE_EMPTY);
  }
  gpu_leave(&scope);
}

/* Returns the memory that a change may allocate: the arguments, each aligned, those added by the compiler (256 bytes),
 * and an alignment. */
static size_t bytes_of_change(const struct rill__launch *launch) {
  const rill_bundle_kernel *source = launch->kernel->source;
  size_t bytes = 512;
  for (uint32_t i = 0; i < source->arg_count; i++) bytes += source->args[i].size + 15;
  return bytes;
}

/* Returns true if the driver can change the nodes of these steps one by one.  If changes leak memory, a native object
 * is changed only a few times; then another one replaces it, and the memory is freed. */
static bool may_change(struct gpu_exec *part, struct rill__device *device, const struct rill__step *steps,
                       uint32_t count, struct rill__operation *const *operations) {
  enum { MAX_CHANGES = 64, MAX_BYTES = 1 << 20 };
  size_t bytes = 0;
  if (!GPU_NODES_CHANGE) return false;
  for (uint32_t i = 0; i < count; i++) {
    const enum change change = change_of(device, steps[i].operation, operations[i]);
    if (change == NO_CHANGE) continue;
    if (change == NODES_CHANGE || !GPU_CHANGES_ALONE(operations[i]->kind)) return false;
    if (GPU_CHANGES_LEAK) bytes += bytes_of_change(&operations[i]->launch);
  }
  if (bytes == 0) return true;
  if (part->changes == MAX_CHANGES || part->change_bytes + bytes > MAX_BYTES) return false;
  part->changes++;
  part->change_bytes += bytes;
  return true;
}

bool gpu_graph_set_nodes(struct rill__graph_exec *exec, uint32_t first, uint32_t count,
                         struct rill__operation *const *operations) {
  struct gpu_exec *part = rill__part(exec);
  struct rill__device *device = exec->base.device;
  const struct rill__step *steps = exec->steps + first;
  struct gpu_scope scope;
  uint32_t set = 0;
  bool works = true;
  if (!may_change(part, device, steps, count, operations)) return false;
  if (gpu_enter(device, &scope) != GPU_SUCCESS) return false;
  for (uint32_t i = 0; i < count && works; i++) {
    if (change_of(device, steps[i].operation, operations[i]) == NO_CHANGE) continue;
    works = set_node(device, part->native, part->nodes[first + i], steps[i].operation, operations[i]);
    if (works) set++;
  }
  gpu_leave(&scope);
  if (!works && set > 0) part->half_changed = true;
  return works;
}
