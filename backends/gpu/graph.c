/* Graphs: a native graph is made by capturing the steps, one after another, from a stream that nobody else has.  Before
 * each step the stream is set to the nodes that the step comes after, and afterwards asked for the node that it has
 * become.  So a step is made by the slot that submits such work to any stream; what becomes several native nodes is
 * known by the last of them. */
#include "backends/gpu/gpu.h"

#include <sched.h>
#include <stdlib.h>

#define GPU_SET_DEPENDENCIES 1u /* in place of those before, in both vendors' headers */

const char *gpu_graphs_missing(void) {
  const struct {
    bool there;
    const char *name;
  } needed[] = {
#define NEEDED(field) { gpu_api.field != NULL, gpu_symbols.field }
    NEEDED(capture_begin),     NEEDED(capture_end),     NEEDED(capture_info),      NEEDED(capture_update),
    NEEDED(graph_destroy),     NEEDED(graph_add_empty), NEEDED(graph_add_host),    NEEDED(graph_add_record),
    NEEDED(graph_add_wait),    NEEDED(graph_add_child), NEEDED(graph_instantiate), NEEDED(graph_launch),
    NEEDED(graph_exec_destroy)
#undef NEEDED
  };
  for (size_t i = 0; i < sizeof needed / sizeof needed[0]; i++) {
    if (!needed[i].there) return needed[i].name;
  }
  return NULL;
}

static struct gpu_exec *gpu_exec_of(struct rill__graph_exec *exec) { return rill__part(exec); }

/* ---- making a native graph ---- */

/* A graph while it is captured. */
struct capturing {
  struct rill__stream *stream;
  const struct rill__step *steps;
  struct rill__operation *const *operations; /* instead of those of the steps; or NULL */
  gpu_graph graph;
  gpu_graph_node *nodes; /* of each step */
  gpu_graph_node *after; /* room for as many as there are steps */
};

static gpu_result ask_capture(const struct capturing *capturing, gpu_graph *graph, const gpu_graph_node **nodes,
                              size_t *count) {
  gpu_capture_status status = GPU_CAPTURE_NONE;
  const gpu_result result =
      GPU_CALL(capture_info, (gpu_stream_of(capturing->stream)->native, &status, NULL, graph, nodes, count));
  return result == GPU_SUCCESS && *graph == NULL ? GPU_CAPTURE_INVALIDATED : result;
}

/* Whatever call was the first to fail for it. */
static bool is_invalidated(const struct capturing *capturing) {
  const gpu_graph_node *nodes = NULL;
  gpu_graph graph = NULL;
  size_t count = 0;
  return ask_capture(capturing, &graph, &nodes, &count) != GPU_SUCCESS;
}

static size_t collect_after(const struct capturing *capturing, const struct rill__step *step) {
  size_t count = 0;
  for (uint32_t i = 0; i < step->after_count; i++) {
    const gpu_graph_node node = capturing->nodes[step->after[i]];
    if (node != NULL) capturing->after[count++] = node;
  }
  return count;
}

static void call_operation(void *data) {
  const struct rill__operation *operation = data;
  rill__call_host(operation->host_call.fn, operation->host_call.user, RILL_OK);
}

/* A step that is no work of a stream. */
static gpu_result add_explicit_node(const struct capturing *capturing, struct rill__operation *operation, size_t count,
                                    gpu_graph_node *node, const char **symbol) {
  switch (operation->kind) {
    case RILL_NODE_HOST_CALL: {
      const gpu_host_node call = { .fn = call_operation, .userData = operation };
      *symbol = gpu_symbols.graph_add_host;
      return GPU_CALL(graph_add_host, (node, capturing->graph, capturing->after, count, &call));
    }
    case RILL_NODE_EVENT_RECORD:
      *symbol = gpu_symbols.graph_add_record;
      return GPU_CALL(graph_add_record,
                      (node, capturing->graph, capturing->after, count, gpu_event_of(operation->event)->native));
    case RILL_NODE_EVENT_WAIT:
      *symbol = gpu_symbols.graph_add_wait;
      return GPU_CALL(graph_add_wait,
                      (node, capturing->graph, capturing->after, count, gpu_event_of(operation->event)->native));
    case RILL_NODE_OTHER:
      *symbol = gpu_symbols.graph_add_child;
      return GPU_CALL(graph_add_child, (node, capturing->graph, capturing->after, count, (gpu_graph)operation->others));
    default:
      *symbol = gpu_symbols.graph_add_empty;
      return GPU_CALL(graph_add_empty, (node, capturing->graph, capturing->after, count));
  }
}

static rill_status capture_step(struct capturing *capturing, uint32_t i) {
  struct rill__stream *stream = capturing->stream;
  struct rill__device *device = stream->base.device;
  struct rill__operation *operation =
      capturing->operations != NULL ? capturing->operations[i] : capturing->steps[i].operation;
  const size_t count = collect_after(capturing, &capturing->steps[i]);
  if (operation->kind == RILL_NODE_USER_OBJECT && count == 0) return RILL_OK; /* it needs no native node */
  if (operation->kind > RILL_NODE_FILL) {
    const char *symbol = "";
    const gpu_result result = add_explicit_node(capturing, operation, count, &capturing->nodes[i], &symbol);
    return result == GPU_SUCCESS ? RILL_OK : gpu_fail(device, result, symbol);
  }
  GPU_TRY(device, capture_update, (gpu_stream_of(stream)->native, capturing->after, count, GPU_SET_DEPENDENCIES));
  RILL_TRY(rill__operation_submit(operation, stream));
  const gpu_graph_node *last = NULL;
  size_t last_count = 0;
  const gpu_result result = ask_capture(capturing, &capturing->graph, &last, &last_count);
  if (result != GPU_SUCCESS) return GPU_FAIL(device, result, capture_info);
  RILL_REQUIRE(last_count == 1, RILL_ERROR_INTERNAL, "a node of kind %u became %zu native nodes at once",
               operation->kind, last_count);
  capturing->nodes[i] = last[0];
  return RILL_OK;
}

/* The capture ends where all nodes are, so that none is left unjoined. */
static rill_status capture_steps(struct capturing *capturing, uint32_t count) {
  struct rill__device *device = capturing->stream->base.device;
  const gpu_graph_node *none = NULL;
  size_t none_count = 0;
  const gpu_result result = ask_capture(capturing, &capturing->graph, &none, &none_count);
  if (result != GPU_SUCCESS) return GPU_FAIL(device, result, capture_info);
  for (uint32_t i = 0; i < count; i++) RILL_TRY(capture_step(capturing, i));
  size_t made = 0;
  for (uint32_t i = 0; i < count; i++) {
    if (capturing->nodes[i] != NULL) capturing->after[made++] = capturing->nodes[i];
  }
  GPU_TRY(device, capture_update,
          (gpu_stream_of(capturing->stream)->native, capturing->after, made, GPU_SET_DEPENDENCIES));
  return RILL_OK;
}

static void destroy_native_graph(struct rill__device *device, gpu_graph graph) {
  gpu_result result;
  if (graph == NULL) return;
  GPU_RUN_INSIDE(result, device, graph_destroy, (graph));
  (void)result;
}

/* A capture whose end was refused may go on for ever. */
static void end_refused_capture(struct rill__stream *stream) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  gpu_graph graph = NULL;
  gpu_result result;
  if (!gpu_is_captured(stream)) return;
  GPU_RUN(result, device, part->inside, capture_end, (part->native, &graph));
  if (result == GPU_SUCCESS) destroy_native_graph(device, graph);
}

static rill_status try_native_graph(struct rill__graph_exec *exec, struct rill__operation *const *operations,
                                    struct rill__stream *scratch, gpu_graph_node *nodes, gpu_graph *out) {
  struct rill__device *device = exec->base.device;
  struct capturing capturing = { .stream = scratch, .steps = exec->steps, .operations = operations, .nodes = nodes };
  gpu_graph graph = NULL;
  capturing.after = malloc(((size_t)exec->count + 1) * sizeof(gpu_graph_node));
  RILL_REQUIRE(capturing.after != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a graph of %u nodes",
               exec->count);
  gpu_result result = GPU_CALL(capture_begin, (gpu_stream_of(scratch)->native, GPU_CAPTURE_RELAXED));
  rill_status status = result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, capture_begin);
  if (status == RILL_OK) {
    status = capture_steps(&capturing, exec->count);
    if (status != RILL_OK && is_invalidated(&capturing)) status = RILL_ERROR_CAPTURE_INVALID;
    result = GPU_CALL(capture_end, (gpu_stream_of(scratch)->native, &graph));
    if (result != GPU_SUCCESS) end_refused_capture(scratch);
    if (status == RILL_OK && result != GPU_SUCCESS) status = GPU_FAIL(device, result, capture_end);
  }
  free(capturing.after);
  if (status != RILL_OK) {
    destroy_native_graph(device, graph);
    graph = NULL;
  }
  *out = graph;
  return status;
}

/* Native captures under way for this, and how many there have been.  They wait for nothing, so their end is near; but
 * whoever waits for a device meanwhile is refused, and invalidates them.  So that waits for their end, and both try
 * again if they have met all the same. */
static _Atomic uint32_t building, builds;

void gpu_wait_until_built(void) {
  while (atomic_load(&building) > 0) (void)sched_yield();
}
uint32_t gpu_builds(void) { return atomic_load(&builds); }

/* Makes a native graph of the object's steps, or of other operations in their places; `nodes` has room for each. */
static rill_status make_native_graph(struct rill__graph_exec *exec, struct rill__operation *const *operations,
                                     struct rill__stream *scratch, gpu_graph_node *nodes, gpu_graph *out) {
  enum { TRIES = 100 };
  rill_status status = RILL_ERROR_CAPTURE_INVALID;
  rill__errors_suspend();
  for (int i = 0; i < TRIES && status == RILL_ERROR_CAPTURE_INVALID; i++) {
    (void)atomic_fetch_add(&builds, 1);
    (void)atomic_fetch_add(&building, 1);
    status = try_native_graph(exec, operations, scratch, nodes, out);
    (void)atomic_fetch_sub(&building, 1);
  }
  if (status == RILL_OK) rill__errors_resume();
  if (status != RILL_OK) rill__errors_resume_failed();
  return status;
}

/* ---- life ---- */

/* Whether launches use what the driver does not keep: operations of host calls, and memory of constants. */
static bool uses_operations(const struct rill__operation *operation) {
  return operation->kind == RILL_NODE_HOST_CALL || operation->payload != NULL;
}

static void release_old(struct gpu_exec *part) {
  for (uint32_t i = 0; i < part->old_count; i++) rill__unref(&part->old[i]->base);
  part->old_count = 0;
}

/* What a fault or a fork leaves is done. */
static bool is_idle_exec(struct rill__graph_exec *exec) {
  const struct gpu_exec *part = gpu_exec_of(exec);
  if (!part->marks || !part->launched || gpu_forked) return true;
  if (atomic_load_explicit(&exec->base.device->lost, memory_order_acquire) != RILL_OK) return true;
  return !part->unmarked && gpu_mark_is_complete(part->mark, part->place);
}

static bool gpu_graph_destroy(struct rill__graph_exec *exec) {
  struct gpu_exec *part = gpu_exec_of(exec);
  struct rill__device *device = exec->base.device;
  gpu_result result;
  if (!is_idle_exec(exec)) return false;
  release_old(part);
  free(part->old);
  free(part->nodes);
  if (gpu_forked) return true;
  if (part->native != NULL) GPU_RUN_INSIDE(result, device, graph_exec_destroy, (part->native));
  destroy_native_graph(device, part->graph);
  if (part->mark != NULL) GPU_RUN_INSIDE(result, device, event_destroy, (part->mark));
  (void)result;
  return true;
}

static rill_status make_mark(struct rill__graph_exec *exec) {
  struct gpu_exec *part = gpu_exec_of(exec);
  gpu_result result;
  if (part->mark != NULL) return RILL_OK;
  GPU_RUN_INSIDE(result, exec->base.device, event_create, (&part->mark, GPU_EVENT_DISABLE_TIMING));
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(exec->base.device, result, event_create);
}

static rill_status instantiate_native(struct rill__graph_exec *exec) {
  struct gpu_exec *part = gpu_exec_of(exec);
  gpu_result result;
  GPU_RUN_INSIDE(result, exec->base.device, graph_instantiate, (&part->native, part->graph, 0));
  if (result != GPU_SUCCESS) return GPU_FAIL(exec->base.device, result, graph_instantiate);
  part->marks = GPU_GRAPHS_OVERLAP;
  for (uint32_t i = 0; i < exec->count; i++) {
    const struct rill__operation *operation = exec->steps[i].operation;
    part->marks |= uses_operations(operation);
    part->calls_host |= operation->kind == RILL_NODE_HOST_CALL;
    part->records |= operation->kind == RILL_NODE_EVENT_RECORD;
  }
  return part->marks ? make_mark(exec) : RILL_OK;
}

static rill_status gpu_graph_instantiate(struct rill__graph_exec *exec, struct rill__stream *scratch) {
  struct gpu_exec *part = gpu_exec_of(exec);
  part->nodes = calloc((size_t)exec->count + 1, sizeof(gpu_graph_node));
  RILL_REQUIRE(part->nodes != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a graph of %u nodes", exec->count);
  rill_status status = make_native_graph(exec, NULL, scratch, part->nodes, &part->graph);
  if (status == RILL_OK) status = instantiate_native(exec);
  if (status != RILL_OK) (void)gpu_graph_destroy(exec);
  return status;
}

/* ---- launches ---- */

/* What records and host calls note of the stream that they are work of. */
static void note_steps(const struct rill__graph_exec *exec, struct gpu_stream *on, const struct gpu_exec *part) {
  if (part->calls_host) (void)atomic_fetch_add_explicit(&on->host_calls, 1, memory_order_relaxed);
  for (uint32_t i = 0; i < exec->count && part->records; i++) {
    if (exec->steps[i].operation->kind != RILL_NODE_EVENT_RECORD) continue;
    struct gpu_event *event = gpu_event_of(exec->steps[i].operation->event);
    atomic_store_explicit(&event->place, on->place, memory_order_release);
    atomic_store_explicit(&event->after_host_calls, gpu_has_host_calls(on), memory_order_relaxed);
  }
}

static rill_status gpu_graph_launch(struct rill__graph_exec *exec, struct rill__stream *stream) {
  struct gpu_exec *part = gpu_exec_of(exec);
  struct gpu_stream *on = gpu_stream_of(stream);
  struct rill__device *device = exec->base.device;
  gpu_result result = GPU_SUCCESS;
  if (GPU_GRAPHS_OVERLAP && part->launched && part->last != on->native) {
    RILL_REQUIRE(!part->unmarked, RILL_ERROR_NOT_READY,
                 "the driver has refused to mark the end of the object's last launch, on another stream" RILL_HINT
                 "launch it there again first");
    const int looking = GPU_EVENTS_LOOK_AT_STREAMS ? gpu_look_begin() : -1;
    if (!gpu_mark_is_over(part->place)) {
      GPU_RUN(result, device, on->inside, stream_wait_event, (on->native, part->mark, 0));
    }
    if (GPU_EVENTS_LOOK_AT_STREAMS) gpu_look_end(looking);
    if (result != GPU_SUCCESS) return GPU_FAIL(device, result, stream_wait_event);
  }
  note_steps(exec, on, part);
  GPU_RUN(result, device, on->work_inside, graph_launch, (part->native, on->native));
  if (RILL__UNLIKELY(result != GPU_SUCCESS)) return GPU_FAIL(device, result, graph_launch);
  part->launched = true;
  part->last = on->native;
  part->place = on->place;
  if (!part->marks) return RILL_OK;
  GPU_RUN(result, device, on->inside, event_record, (part->mark, on->native));
  part->unmarked = result != GPU_SUCCESS;
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, event_record);
}

static rill_status gpu_graph_upload(struct rill__graph_exec *exec, struct rill__stream *stream) {
  struct gpu_stream *on = gpu_stream_of(stream);
  struct rill__device *device = exec->base.device;
  gpu_result result;
  RILL_REQUIRE(gpu_api.graph_upload != NULL, RILL_ERROR_UNSUPPORTED,
               "the driver of %s uploads graphs at their first launch: it has no %s", device->name,
               gpu_symbols.graph_upload);
  GPU_RUN(result, device, on->work_inside, graph_upload, (gpu_exec_of(exec)->native, on->native));
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, graph_upload);
}

static uintptr_t gpu_graph_native(struct rill__graph_exec *exec, bool graph) {
  const struct gpu_exec *part = gpu_exec_of(exec);
  return graph ? (uintptr_t)part->graph : (uintptr_t)part->native;
}

/* ---- changes ---- */

/* Launches that have been made may use the operations that go. */
static rill_status keep_old(struct rill__graph_exec *exec, struct rill__operation *const *operations) {
  struct gpu_exec *part = gpu_exec_of(exec);
  uint32_t more = 0;
  if (part->old_count > 0 && is_idle_exec(exec)) release_old(part);
  for (uint32_t i = 0; i < exec->count; i++) {
    const struct rill__operation *now = exec->steps[i].operation;
    if (operations[i] != now && uses_operations(now)) more++;
  }
  if (part->old_count + more <= part->old_room) return RILL_OK;
  const uint32_t room = 2 * (part->old_count + more);
  struct rill__operation **larger = realloc(part->old, room * sizeof(struct rill__operation *));
  RILL_REQUIRE(larger != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to change a graph of %u nodes", exec->count);
  part->old = larger;
  part->old_room = room;
  return RILL_OK;
}

static void add_old(struct rill__graph_exec *exec, struct rill__operation *const *operations) {
  struct gpu_exec *part = gpu_exec_of(exec);
  for (uint32_t i = 0; i < exec->count && part->launched; i++) {
    struct rill__operation *now = exec->steps[i].operation;
    if (operations[i] == now || !uses_operations(now)) continue;
    rill__ref(&now->base);
    part->old[part->old_count++] = now;
  }
}

static bool is_plain_launch(const struct rill__operation *operation) {
  return operation->kind == RILL_NODE_KERNEL && operation->launch.extras == NULL && !operation->launch.clustered;
}

/* The step that differs, if it is one alone that the driver can change by itself; else the number of steps. */
static uint32_t find_single_kernel(const struct rill__graph_exec *exec, struct rill__operation *const *operations) {
  uint32_t found = exec->count, changes = 0;
  for (uint32_t i = 0; i < exec->count; i++) {
    if (operations[i] == exec->steps[i].operation) continue;
    changes++;
    if (is_plain_launch(operations[i]) && is_plain_launch(exec->steps[i].operation)) found = i;
  }
  return changes == 1 ? found : exec->count;
}

/* By a native graph of the new operations. */
static rill_status update_from_new_graph(struct rill__graph_exec *exec, struct rill__operation *const *operations,
                                         struct rill__stream *scratch, uint32_t *failing_step) {
  const struct gpu_exec *part = gpu_exec_of(exec);
  struct rill__device *device = exec->base.device;
  gpu_graph_node failing = NULL;
  gpu_update_result why = 0;
  gpu_graph graph = NULL;
  gpu_result result;
  RILL_REQUIRE(gpu_api.graph_update != NULL, RILL_ERROR_UNSUPPORTED,
               "the driver of %s cannot update graphs: it has no %s", device->name, gpu_symbols.graph_update);
  gpu_graph_node *nodes = calloc((size_t)exec->count + 1, sizeof(gpu_graph_node));
  RILL_REQUIRE(nodes != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to change a graph of %u nodes", exec->count);
  rill_status status = make_native_graph(exec, operations, scratch, nodes, &graph);
  if (status == RILL_OK) {
    GPU_RUN_INSIDE(result, device, graph_update, (part->native, graph, &failing, &why));
    if (result == GPU_UPDATE_FAILURE) {
      uint32_t at = 0;
      while (at < exec->count && nodes[at] != failing) at++;
      *failing_step = at;
      status =
          rill__fail(RILL_ERROR_UNSUPPORTED,
                     "the driver of %s refuses the change, at node %u of %u, for its reason %u: what becomes another "
                     "number of its nodes, as patterns of more than 4 bytes do, cannot be changed" RILL_HINT
                     "instantiate the graph anew",
                     device->name, at, exec->count, (unsigned)why);
    } else if (result != GPU_SUCCESS) {
      status = GPU_FAIL(device, result, graph_update);
    }
    destroy_native_graph(device, graph);
  }
  free(nodes);
  return status;
}

static rill_status gpu_graph_update(struct rill__graph_exec *exec, struct rill__operation *const *operations,
                                    struct rill__stream *scratch, uint32_t *failing) {
  const struct gpu_exec *part = gpu_exec_of(exec);
  RILL_TRY(keep_old(exec, operations));
  gpu_result result = GPU_NOT_SUPPORTED;
  const uint32_t single = find_single_kernel(exec, operations);
  if (single < exec->count) {
    const struct rill__launch *launch = &operations[single]->launch;
    struct gpu_scope scope;
    result = gpu_enter(exec->base.device, &scope);
    if (result != GPU_SUCCESS) return gpu_fail(exec->base.device, result, GPU_ENTER_TEXT);
    result = gpu_vendor_set_kernel(part->native, part->nodes[single], gpu_kernel_of(launch->kernel)->native, launch);
    gpu_leave(&scope);
  }
  if (result != GPU_SUCCESS) RILL_TRY(update_from_new_graph(exec, operations, scratch, failing));
  add_old(exec, operations);
  return RILL_OK;
}

/* ---- what others submit ---- */

static rill_status others_begin(struct rill__stream *stream) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  gpu_result result;
  GPU_RUN(result, stream->base.device, part->inside, capture_begin, (part->native, GPU_CAPTURE_RELAXED));
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(stream->base.device, result, capture_begin);
}

/* A capture that has been invalidated has: its end says why. */
static bool others_have_work(struct rill__stream *stream) {
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

static void others_destroy(struct rill__device *device, uintptr_t graph) {
  if (!gpu_forked) destroy_native_graph(device, (gpu_graph)graph);
}

static rill_status others_end(struct rill__stream *stream, uintptr_t *out) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  const bool any = others_have_work(stream);
  gpu_graph graph = NULL;
  gpu_result result;
  *out = 0;
  GPU_RUN(result, stream->base.device, part->inside, capture_end, (part->native, &graph));
  if (result != GPU_SUCCESS) {
    end_refused_capture(stream);
    return GPU_FAIL(stream->base.device, result, capture_end);
  }
  if (any) *out = (uintptr_t)graph;
  if (!any) destroy_native_graph(stream->base.device, graph);
  return RILL_OK;
}

const struct rill__graph_table gpu_graph_table = {
  .instantiate = gpu_graph_instantiate,
  .launch = gpu_graph_launch,
  .update = gpu_graph_update,
  .upload = gpu_graph_upload,
  .native = gpu_graph_native,
  .destroy = gpu_graph_destroy,
  .others_begin = others_begin,
  .others_have_work = others_have_work,
  .others_end = others_end,
  .others_destroy = others_destroy,
};
