/* Graphs: execution objects, their launches and changes, and work that other code submits to capturing streams.
 * graph_nodes.c creates native graphs. */
#include "backends/gpu/gpu.h"

#include <stdlib.h>

const char *gpu_graphs_missing(void) {
  const struct {
    bool there;
    const char *name;
  } needed[] = {
#define NEEDED(field) { gpu_api.field != NULL, gpu_symbols.field }
    NEEDED(graph_create),   NEEDED(graph_destroy),      NEEDED(graph_add_kernel), NEEDED(graph_add_copy),
    NEEDED(graph_add_fill), NEEDED(GPU_LINE_NODE),      NEEDED(graph_add_host),   NEEDED(graph_add_record),
    NEEDED(graph_add_wait), NEEDED(graph_add_child),    NEEDED(graph_add_empty),  NEEDED(graph_instantiate),
    NEEDED(graph_launch),   NEEDED(graph_exec_destroy), NEEDED(capture_begin),    NEEDED(capture_end),
    NEEDED(capture_info)
#undef NEEDED
  };
  for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
    if (!needed[i].there) return needed[i].name;
  }
  return NULL;
}

static struct gpu_exec *gpu_exec_of(struct rill__graph_exec *exec) { return rill__part(exec); }

/* ---- helpers ---- */

static bool calls_host(const struct rill__operation *operation) {
  return operation->kind == RILL_NODE_HOST_CALL || (operation->kind == RILL_NODE_COPY && operation->staged != NULL);
}

/* Returns true if launches use something that the driver does not keep alive: operations of host calls, memory of
 * constants and of staged copies, and events, which rill reuses after their release. */
static bool uses_operations(const struct rill__operation *operation) {
  return operation->kind == RILL_NODE_HOST_CALL || operation->kind == RILL_NODE_EVENT_RECORD ||
         operation->kind == RILL_NODE_EVENT_WAIT || operation->payload != NULL;
}

static void destroy_native(struct rill__device *device, gpu_graph_handle native) {
  gpu_result result;
  if (native != NULL && !gpu_forked) GPU_RUN_INSIDE(result, device, graph_exec_destroy, (native));
  (void)result;
}

/* ---- marks ----
 *
 * A mark is an event recorded after a launch.  When it is complete, what the launch uses may be released.  Marks also
 * order launches where the driver does not (gpu_exec.unordered).
 */

static rill_status new_mark(struct rill__device *device, struct gpu_mark **out) {
  gpu_result result;
  struct gpu_mark *mark = calloc(1, sizeof *mark);
  RILL_REQUIRE(mark != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a graph");
  atomic_init(&mark->references, 1);
  GPU_RUN_INSIDE(result, device, event_create, (&mark->event, GPU_EVENT_DISABLE_TIMING));
  if (result == GPU_SUCCESS) {
    *out = mark;
    return RILL_OK;
  }
  free(mark);
  return GPU_FAIL(device, result, event_create);
}

static void release_mark(struct rill__device *device, struct gpu_mark *mark) {
  gpu_result result;
  if (mark == NULL || atomic_fetch_sub(&mark->references, 1) != 1) return;
  if (!gpu_forked) GPU_RUN_INSIDE(result, device, event_destroy, (mark->event));
  (void)result;
  free(mark);
}

/* Returns whether the mark is complete.  After a fault or a fork every mark counts as complete. */
static bool is_mark_over(const struct rill__device *device, const struct gpu_mark *mark) {
  if (gpu_forked || atomic_load_explicit(&device->lost, memory_order_acquire) != RILL_OK) return true;
  return mark->recorded && gpu_mark_is_complete(mark->event, mark->place);
}

static bool is_idle_exec(struct rill__graph_exec *exec) {
  const struct gpu_exec *part = gpu_exec_of(exec);
  if (part->launched == GPU_NEVER_LAUNCHED || part->launched == GPU_LAUNCHED_UNMARKED) return true;
  return is_mark_over(exec->base.device, part->mark);
}

static rill_status mark_launches(struct rill__graph_exec *exec) {
  struct gpu_exec *part = gpu_exec_of(exec);
  if (part->mark == NULL) RILL_TRY(new_mark(exec->base.device, &part->mark));
  part->marks = true;
  return RILL_OK;
}

/* ---- what changes have replaced ----
 *
 * Earlier launches may still use what a change replaced, so it is released when their mark is complete.
 */

struct replaced {
  struct rill__object base;
  struct gpu_mark *mark;         /* referenced */
  gpu_graph_handle native;       /* owned; may be NULL */
  struct rill__object *attached; /* referenced; may be NULL */
  uint32_t count;
  struct rill__operation *operations[]; /* referenced */
};

static void destroy_replaced(struct rill__object *object) {
  struct replaced *replaced = (struct replaced *)object;
  if (!is_mark_over(object->device, replaced->mark)) {
    rill__object_postpone(object);
    return;
  }
  for (uint32_t i = 0; i < replaced->count; i++) rill__operation_unref(replaced->operations[i]);
  if (replaced->attached != NULL) rill__unref(replaced->attached);
  destroy_native(object->device, replaced->native);
  release_mark(object->device, replaced->mark);
  free(replaced);
}

/* Prepares the struct that will own what a change replaces.  Called before a change of `count` operations.  `out` is
 * NULL if no marked launch is pending. */
static rill_status begin_replacing(struct rill__graph_exec *exec, uint32_t count, struct replaced **out) {
  *out = NULL;
  if (is_idle_exec(exec)) return RILL_OK;
  struct replaced *replaced = calloc(1, sizeof *replaced + count * sizeof(struct rill__operation *));
  RILL_REQUIRE(replaced != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to change a graph of %u nodes", exec->count);
  rill__object_init(&replaced->base, exec->base.device, destroy_replaced);
  replaced->base.after = exec->base.after;
  *out = replaced;
  return RILL_OK;
}

static void replace_operation(struct replaced *replaced, struct rill__operation *before) {
  if (replaced == NULL || !uses_operations(before)) return;
  rill__operation_ref(before);
  replaced->operations[replaced->count++] = before;
}

static void end_replacing(struct rill__graph_exec *exec, struct replaced *replaced) {
  const struct gpu_exec *part = gpu_exec_of(exec);
  if (replaced == NULL) return;
  if (replaced->count == 0 && replaced->native == NULL && replaced->attached == NULL) {
    free(replaced);
    return;
  }
  (void)atomic_fetch_add(&part->mark->references, 1);
  replaced->mark = part->mark;
  rill__object_postpone(&replaced->base);
}

/* ---- instantiating and destroying ---- */

static bool gpu_graph_destroy(struct rill__graph_exec *exec) {
  struct gpu_exec *part = gpu_exec_of(exec);
  struct rill__device *device = exec->base.device;
  if (!is_idle_exec(exec)) return false;
  free(part->nodes);
  release_mark(device, part->mark);
  destroy_native(device, part->native);
  if (!gpu_forked) gpu_graph_unmake(device, part->graph);
  return true;
}

/* Notes the effects that an operation has on each launch: host calls, records, and whether launches are marked. */
static rill_status note_operation(struct rill__graph_exec *exec, const struct rill__operation *operation) {
  struct gpu_exec *part = gpu_exec_of(exec);
  const bool replaceable = operation->kind == RILL_NODE_COPY || operation->kind == RILL_NODE_FILL;
  part->calls_host |= calls_host(operation);
  part->records |= operation->kind == RILL_NODE_EVENT_RECORD;
  return replaceable || uses_operations(operation) ? mark_launches(exec) : RILL_OK;
}

static rill_status make_native(struct rill__graph_exec *exec) {
  struct gpu_exec *part = gpu_exec_of(exec);
  gpu_result result;
  RILL_TRY(gpu_graph_make(exec, NULL, part->nodes, &part->graph));
  GPU_RUN_INSIDE(result, exec->base.device, graph_instantiate, (&part->native, part->graph, 0));
  if (result != GPU_SUCCESS) return GPU_FAIL(exec->base.device, result, graph_instantiate);
  /* A launch without nodes submits no work, so the driver may not order it with other launches of the object. */
  part->unordered = GPU_GRAPHS_OVERLAP || exec->count == 0;
  if (part->unordered || exec->attached != NULL) RILL_TRY(mark_launches(exec));
  for (uint32_t i = 0; i < exec->count; i++) RILL_TRY(note_operation(exec, exec->steps[i].operation));
  return RILL_OK;
}

static rill_status gpu_graph_instantiate(struct rill__graph_exec *exec) {
  struct gpu_exec *part = gpu_exec_of(exec);
  part->nodes = calloc((size_t)exec->count + 1, sizeof(gpu_graph_node));
  RILL_REQUIRE(part->nodes != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a graph of %u nodes", exec->count);
  const rill_status status = make_native(exec);
  if (status != RILL_OK) (void)gpu_graph_destroy(exec);
  return status;
}

/* ---- replacing native objects ---- */

/* Replaces a native object that cannot be changed as required, because a step needs more or different native nodes.
 * The mark orders launches of the old object before those of the new one.  `replaced`: NULL if no launch is pending. */
static rill_status replace_native(struct rill__graph_exec *exec, gpu_graph graph, gpu_graph_node *nodes,
                                  struct replaced *replaced) {
  struct gpu_exec *part = gpu_exec_of(exec);
  struct rill__device *device = exec->base.device;
  gpu_graph_handle native = NULL;
  gpu_result result;
  GPU_RUN_INSIDE(result, device, graph_instantiate, (&native, graph, 0));
  if (result != GPU_SUCCESS) return GPU_FAIL(device, result, graph_instantiate);
  if (replaced != NULL) replaced->native = part->native;
  if (replaced == NULL) destroy_native(device, part->native);
  gpu_graph_unmake(device, part->graph);
  free(part->nodes);
  part->native = native;
  part->graph = graph;
  part->nodes = nodes;
  part->changes = 0;
  part->change_bytes = 0;
  part->unordered |= part->launched != GPU_NEVER_LAUNCHED;
  return RILL_OK;
}

/* Takes ownership of the graph and of `nodes` if it sets `taken`. */
static rill_status take_new_graph(struct rill__graph_exec *exec, gpu_graph graph, gpu_graph_node *nodes,
                                  struct replaced *replaced, bool *taken) {
  const struct gpu_exec *part = gpu_exec_of(exec);
  struct rill__device *device = exec->base.device;
  gpu_update_result why = 0;
  gpu_result result;
  const char *symbol = "";
  GPU_CALL_INSIDE(result, device, gpu_vendor_update(part->native, graph, &why, &symbol));
  if (result == GPU_SUCCESS) return RILL_OK;
  if (result != GPU_UPDATE_FAILURE) return gpu_fail(device, result, symbol);
  RILL_REQUIRE(part->launched != GPU_LAUNCHED_UNMARKED, RILL_ERROR_UNSUPPORTED,
               "the driver of %s refuses the change (reason %u), and the object cannot be replaced, because launches "
               "of the replacement could not be ordered after the earlier launches" RILL_HINT
               "instantiate the graph again",
               device->name, (unsigned)why);
  RILL_TRY(replace_native(exec, graph, nodes, replaced));
  *taken = true;
  return RILL_OK;
}

/* Creates a native graph of the new operations and changes the object to it.  `operations`: NULL for the present
 * ones. */
static rill_status change_all(struct rill__graph_exec *exec, struct rill__operation *const *operations,
                              struct replaced *replaced) {
  gpu_graph graph = NULL;
  bool taken = false;
  gpu_graph_node *nodes = calloc((size_t)exec->count + 1, sizeof(gpu_graph_node));
  RILL_REQUIRE(nodes != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to change a graph of %u nodes", exec->count);
  rill_status status = gpu_graph_make(exec, operations, nodes, &graph);
  if (status == RILL_OK) status = take_new_graph(exec, graph, nodes, replaced, &taken);
  if (status == RILL_OK && !taken && operations != NULL) gpu_graph_enable_nodes(exec, operations);
  if (status == RILL_OK) gpu_exec_of(exec)->half_changed = false;
  if (taken) return RILL_OK;
  gpu_graph_unmake(exec->base.device, graph);
  free(nodes);
  return status;
}

/* Completes a change that the driver applied only partly.  Called before a launch of the native object. */
static rill_status finish_partial_change(struct rill__graph_exec *exec) {
  struct replaced *replaced = NULL;
  if (RILL__LIKELY(!gpu_exec_of(exec)->half_changed)) return RILL_OK;
  RILL_TRY(begin_replacing(exec, 0, &replaced));
  const rill_status status = change_all(exec, NULL, replaced);
  end_replacing(exec, replaced);
  return status;
}

/* ---- launches ---- */

/* Updates the stream and the events for the launch's records and host calls. */
static void note_steps(const struct rill__graph_exec *exec, struct gpu_stream *on, const struct gpu_exec *part) {
  if (part->calls_host) (void)atomic_fetch_add_explicit(&on->host_calls, 1, memory_order_relaxed);
  for (uint32_t i = 0; i < exec->count && part->records; i++) {
    if (exec->steps[i].operation->kind != RILL_NODE_EVENT_RECORD) continue;
    struct gpu_event *event = gpu_event_of(exec->steps[i].operation->event);
    atomic_store_explicit(&event->place, on->place, memory_order_release);
    atomic_store_explicit(&event->after_host_calls, gpu_has_host_calls(on), memory_order_relaxed);
  }
}

/* Returns true if replaced parts still wait for the launch that the mark stands for. */
static bool is_awaited_mark(const struct gpu_mark *mark) {
  return mark->recorded && atomic_load_explicit(&mark->references, memory_order_acquire) > 1;
}

/* Records the mark of a launch, after the launch on the stream. */
static rill_status record_mark(struct rill__graph_exec *exec, const struct gpu_stream *on) {
  struct gpu_exec *part = gpu_exec_of(exec);
  gpu_result result;
  GPU_RUN(result, exec->base.device, on->inside, event_record, (part->mark->event, on->native));
  part->mark->place = on->place;
  part->mark->recorded = result == GPU_SUCCESS;
  part->launched = result == GPU_SUCCESS ? GPU_LAUNCHED_MARKED : GPU_LAUNCHED_MARK_REFUSED;
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(exec->base.device, result, event_record);
}

static rill_status gpu_graph_launch(struct rill__graph_exec *exec, struct rill__stream *stream) {
  struct gpu_exec *part = gpu_exec_of(exec);
  struct gpu_stream *on = gpu_stream_of(stream);
  struct rill__device *device = exec->base.device;
  gpu_result result = GPU_SUCCESS;
  RILL_TRY(finish_partial_change(exec));
  if (part->unordered && part->launched != GPU_NEVER_LAUNCHED && part->last != on->native) {
    RILL_REQUIRE(part->launched == GPU_LAUNCHED_MARKED, RILL_ERROR_NOT_READY,
                 "the last launch of the object was on another stream, and this launch cannot be ordered after it, "
                 "because the driver refused to record an event" RILL_HINT
                 "launch the object on that stream again before you launch it here");
    const int access = GPU_EVENTS_ACCESS_STREAMS ? gpu_access_begin() : -1;
    if (!gpu_mark_is_over(part->mark->place)) {
      GPU_RUN(result, device, on->inside, stream_wait_event, (on->native, part->mark->event, 0));
    }
    if (GPU_EVENTS_ACCESS_STREAMS) gpu_access_end(access);
    if (result != GPU_SUCCESS) return GPU_FAIL(device, result, stream_wait_event);
  }
  struct gpu_mark *mark = part->mark;
  if (part->marks && RILL__UNLIKELY(is_awaited_mark(mark))) RILL_TRY(new_mark(device, &mark));
  note_steps(exec, on, part);
  GPU_RUN(result, device, on->work_inside, graph_launch, (part->native, on->native));
  if (RILL__UNLIKELY(result != GPU_SUCCESS)) {
    if (mark != part->mark) release_mark(device, mark);
    return GPU_FAIL(device, result, graph_launch);
  }
  part->launched = GPU_LAUNCHED_UNMARKED;
  part->last = on->native;
  if (!part->marks) return RILL_OK;
  if (RILL__UNLIKELY(mark != part->mark)) release_mark(device, part->mark);
  part->mark = mark;
  return record_mark(exec, on);
}

static rill_status gpu_graph_upload(struct rill__graph_exec *exec, struct rill__stream *stream) {
  struct gpu_stream *on = gpu_stream_of(stream);
  struct rill__device *device = exec->base.device;
  gpu_result result;
  RILL_REQUIRE(gpu_api.graph_upload != NULL, RILL_ERROR_UNSUPPORTED,
               "the driver of %s uploads graphs at their first launch: it has no %s", device->name,
               gpu_symbols.graph_upload);
  RILL_TRY(finish_partial_change(exec));
  GPU_RUN(result, device, on->work_inside, graph_upload, (gpu_exec_of(exec)->native, on->native));
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, graph_upload);
}

static uintptr_t gpu_graph_native(struct rill__graph_exec *exec, bool graph) {
  const struct gpu_exec *part = gpu_exec_of(exec);
  if (graph) return (uintptr_t)part->graph;
  return part->half_changed ? 0 : (uintptr_t)part->native; /* 0, because the object would not run the current steps */
}

/* ---- changes ---- */

static rill_status set_all(struct rill__graph_exec *exec, struct rill__operation *const *operations,
                           struct replaced *replaced) {
  for (uint32_t i = 0; i < exec->count; i++) RILL_TRY(note_operation(exec, operations[i]));
  if (!gpu_exec_of(exec)->half_changed && gpu_graph_set_nodes(exec, 0, exec->count, operations)) return RILL_OK;
  return change_all(exec, operations, replaced);
}

static rill_status gpu_graph_update(struct rill__graph_exec *exec, struct rill__operation *const *operations,
                                    struct rill__object *attached) {
  struct replaced *replaced = NULL;
  if (attached != NULL) RILL_TRY(mark_launches(exec));
  RILL_TRY(begin_replacing(exec, exec->count, &replaced));
  const rill_status status = set_all(exec, operations, replaced);
  for (uint32_t i = 0; i < exec->count && status == RILL_OK; i++) {
    if (operations[i] != exec->steps[i].operation) replace_operation(replaced, exec->steps[i].operation);
  }
  if (status == RILL_OK && replaced != NULL && exec->attached != NULL) {
    rill__ref(exec->attached);
    replaced->attached = exec->attached;
  }
  end_replacing(exec, replaced);
  return status;
}

/* Changes a step by creating another native graph. */
static rill_status set_in_new_graph(struct rill__graph_exec *exec, uint32_t step, struct rill__operation *operation,
                                    struct replaced *replaced) {
  struct rill__operation **operations = malloc(exec->count * sizeof(struct rill__operation *));
  RILL_REQUIRE(operations != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to change a graph of %u nodes",
               exec->count);
  for (uint32_t i = 0; i < exec->count; i++) operations[i] = i == step ? operation : exec->steps[i].operation;
  const rill_status status = change_all(exec, operations, replaced);
  free(operations);
  return status;
}

static rill_status gpu_graph_set(struct rill__graph_exec *exec, uint32_t step, struct rill__operation *operation) {
  struct rill__operation *const before = exec->steps[step].operation;
  struct replaced *replaced = NULL;
  RILL_TRY(note_operation(exec, operation));
  if (operation->kind == RILL_NODE_EMPTY) RILL_TRY(mark_launches(exec)); /* may be enabled again later */
  if (uses_operations(before)) RILL_TRY(begin_replacing(exec, 1, &replaced));
  rill_status status = RILL_OK;
  if (!gpu_graph_set_nodes(exec, step, 1, &operation)) {
    if (!uses_operations(before)) status = begin_replacing(exec, 0, &replaced);
    if (status == RILL_OK) status = set_in_new_graph(exec, step, operation, replaced);
  }
  if (status == RILL_OK) replace_operation(replaced, before);
  end_replacing(exec, replaced);
  return status;
}

/* ---- work that other code submits ---- */

static rill_status foreign_begin(struct rill__stream *stream) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  gpu_result result;
  GPU_RUN(result, stream->base.device, part->inside, capture_begin, (part->native, GPU_CAPTURE_RELAXED));
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(stream->base.device, result, capture_begin);
}

/* Returns whether other code has submitted work.  An invalidated capture counts as having work; ending it reports the
 * reason. */
static bool foreign_has_work(struct rill__stream *stream) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  gpu_capture_status status = GPU_CAPTURE_NONE;
  const gpu_graph_node *nodes = NULL;
  gpu_graph graph = NULL;
  size_t count = 0;
  gpu_result result;
  GPU_RUN(result, stream->base.device, part->inside, capture_info,
          (part->native, &status, NULL, &graph, &nodes, &count));
  return result != GPU_SUCCESS || graph == NULL || count > 0;
}

/* Tries again to end a capture, which would otherwise never end after a refusal. */
static void end_refused_capture(struct rill__stream *stream) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  gpu_graph graph = NULL;
  gpu_result result;
  if (!gpu_is_captured(stream)) return;
  GPU_RUN(result, stream->base.device, part->inside, capture_end, (part->native, &graph));
  if (result == GPU_SUCCESS) gpu_graph_unmake(stream->base.device, graph);
}

static void foreign_destroy(struct rill__device *device, uintptr_t graph) {
  if (!gpu_forked) gpu_graph_unmake(device, (gpu_graph)graph);
}

static rill_status foreign_end(struct rill__stream *stream, uintptr_t *out) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  const bool any = foreign_has_work(stream);
  gpu_graph graph = NULL;
  gpu_result result;
  *out = 0;
  GPU_RUN(result, stream->base.device, part->inside, capture_end, (part->native, &graph));
  if (result != GPU_SUCCESS) {
    end_refused_capture(stream);
    return GPU_FAIL(stream->base.device, result, capture_end);
  }
  if (any) *out = (uintptr_t)graph;
  if (!any) gpu_graph_unmake(stream->base.device, graph);
  return RILL_OK;
}

const struct rill__graph_table gpu_graph_table = {
  .instantiate = gpu_graph_instantiate,
  .launch = gpu_graph_launch,
  .update = gpu_graph_update,
  .set = gpu_graph_set,
  .upload = gpu_graph_upload,
  .native = gpu_graph_native,
  .destroy = gpu_graph_destroy,
  .foreign_begin = foreign_begin,
  .foreign_has_work = foreign_has_work,
  .foreign_end = foreign_end,
  .foreign_destroy = foreign_destroy,
};
