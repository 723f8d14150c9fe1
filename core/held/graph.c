/* Launches of graphs, on any stream. */
#include "core/graph/graph.h"
#include "core/held/queue.h"

static rill_status fail_held_launch(void) {
  return rill__fail(
      RILL_ERROR_NOT_READY,
      "launches of the execution object are queued on a held stream, and this call would overtake them" RILL_HINT
      "record the event that the stream waits for first");
}

rill_status rill__exec_claim_to_change(struct rill__graph_exec *exec) {
  for (;;) {
    rill__exec_claim(exec);
    if (atomic_load(&rill__core(exec)->held_launches) == 0) return RILL_OK;
    rill__exec_unclaim(exec);
    if (!rill__held_wait_launches(exec)) return fail_held_launch();
  }
}

static void for_each_record(struct rill__graph_exec *exec, void (*visit)(struct rill__event *event)) {
  if (rill__core(exec)->records == 0) return;
  for (uint32_t i = 0; i < exec->count; i++) {
    if (exec->steps[i].operation->kind == RILL_NODE_EVENT_RECORD) visit(exec->steps[i].operation->event);
  }
}

/* Count a record by a graph as a submission of the event, so that the completion cache does not answer for the event
 * with the completion of an earlier record. */
static void begin_record(struct rill__event *event) { rill__submission_begin_nested(&rill__core(event)->work); }
static void end_record(struct rill__event *event) { rill__submission_end_nested(&rill__core(event)->work); }

/* Ends a claim, and then submits what was held for the graph's events: launches of the same object, which claim it, may
 * be among that work. */
static void end_launch(struct rill__graph_exec *exec, bool recorded) {
  const bool records = recorded && rill__core(exec)->records > 0;
  if (records) for_each_record(exec, rill__event_recorded_natively);
  rill__exec_unclaim(exec);
  if (records) rill__held_run();
}

/* Queues a launch if the stream is held.  Call it while the object is claimed. */
static rill_status hold_launch(struct rill__stream *stream, struct rill__graph_exec *exec, bool *taken) {
  struct rill__operation *operation = NULL;
  RILL_TRY(rill__operation_exec(exec, &operation));
  return rill__held_push(stream, operation, NULL, taken);
}

/* Claims the object for a launch, which must follow the held launches of the object.  They are either in the queue of
 * the same stream, or have to be submitted first. */
static rill_status claim_to_launch(struct rill__graph_exec *exec, struct rill__stream *stream) {
  struct rill__exec_core *core = rill__core(exec);
  for (;;) {
    rill__exec_claim(exec);
    if (atomic_load(&core->held_launches) == 0) return RILL_OK;
    if (core->held_stream == stream && rill__is_held(stream)) return RILL_OK;
    rill__exec_unclaim(exec);
    if (!rill__held_wait_launches(exec)) return fail_held_launch();
  }
}

/* ---- node by node ---- */

_Atomic bool rill__graphs_in_steps;

/* Returns true for a step that only orders others, or whose memory lives as long as the execution object. */
static bool has_no_work(const struct rill__operation *operation) {
  return operation->kind == RILL_NODE_EMPTY || operation->kind == RILL_NODE_ALLOC || operation->kind == RILL_NODE_FREE;
}

static bool can_go_in_steps(const struct rill__graph_exec *exec) {
  for (uint32_t i = 0; i < exec->count; i++) {
    const struct rill__operation *const operation = exec->steps[i].operation;
    const bool staged = operation->kind == RILL_NODE_COPY && operation->staged != NULL;
    const bool alone = operation->kind == RILL_NODE_KERNEL || operation->kind == RILL_NODE_COPY ||
                       operation->kind == RILL_NODE_FILL || operation->kind == RILL_NODE_HOST_CALL;
    if (staged || !(alone || has_no_work(operation))) return false;
  }
  return true;
}

static rill_status submit_graph(struct rill__stream *stream, struct rill__graph_exec *exec) {
  if (RILL__LIKELY(!atomic_load_explicit(&rill__graphs_in_steps, memory_order_relaxed)) || !can_go_in_steps(exec)) {
    return rill__submit_graph(stream, exec);
  }
  rill_status status = RILL_OK;
  /* every step comes after the steps that it depends on */
  for (uint32_t i = 0; i < exec->count && status == RILL_OK; i++) {
    const struct rill__operation *const operation = exec->steps[i].operation;
    if (!has_no_work(operation)) status = rill__submit_operation(stream, operation);
  }
  return status;
}

/* The stream may stop being held between two checks; `taken` is then false, and the launch goes to the driver.  After a
 * failed submission nothing was recorded, so end_launch must not treat the graph's events as recorded. */
rill_status rill__graph_launch(struct rill__graph_exec *exec, struct rill__stream *stream) {
  rill_status status = RILL_OK;
  bool taken = false;
  RILL_TRY(claim_to_launch(exec, stream));
  if (rill__is_held(stream)) status = hold_launch(stream, exec, &taken);
  if (status == RILL_OK && !taken && rill__is_captured(stream)) status = rill__capture_exec(stream, exec, &taken);
  if (status == RILL_OK && !taken) {
    exec->base.after = stream->number; /* if the object's destruction is postponed, it waits for this launch */
    for_each_record(exec, begin_record);
    status = submit_graph(stream, exec);
    for_each_record(exec, end_record);
    taken = status != RILL_OK;
  }
  end_launch(exec, status == RILL_OK && !taken);
  return status;
}

static rill_status upload(struct rill__graph_exec *exec, struct rill__stream *stream) {
  if (rill__is_captured(stream)) RILL_TRY(rill__capture_refuse(stream));
  RILL_REQUIRE(!rill__is_held(stream), RILL_ERROR_NOT_READY,
               "%s is held, and an upload cannot be queued" RILL_HINT
               "record the event that it waits for first, or upload on another stream",
               rill__name_of(&stream->base).text);
  return stream->base.device->backend->graph->upload != NULL ? rill__submit_upload(stream, exec) : RILL_OK;
}

/* Waits for a submission in progress first: an upload must not be refused because of a hold that is just ending. */
rill_status rill__graph_upload(struct rill__graph_exec *exec, struct rill__stream *stream) {
  rill__held_wait_submitted(stream);
  RILL_TRY(rill__exec_claim_to_change(exec));
  const rill_status status = upload(exec, stream);
  rill__exec_unclaim(exec);
  return status;
}

/* Claims the object without checking for held launches: this launch is one of them, and the held launches after it are
 * in the same queue. */
rill_status rill__graph_launch_held(struct rill__graph_exec *exec, struct rill__stream *stream) {
  rill_status status = RILL_OK;
  rill__exec_claim(exec);
  exec->base.after = stream->number;
  for_each_record(exec, begin_record);
  status = submit_graph(stream, exec);
  for_each_record(exec, end_record);
  end_launch(exec, status == RILL_OK);
  return status;
}
