/* Submissions to capturing streams: nodes, memory, other graphs, records and waits. */
#include "core/graph/capture_parts.h"

#include "core/graph/graph.h"
#include "core/sync/events.h"
#include "core/sync/submit.h"

#include <stdlib.h>
#include <string.h>

/* ---- nodes ---- */

void rill__node_stream_init(struct rill__node_stream *stream, struct rill__device *device) {
  size_t size = sizeof *stream;
  __asm__("" : "+r"(size)); /* hides the size: for a known size gcc uses a string instruction, which starts slowly */
  memset(stream, 0, size);
  stream->stream.base.device = device;
  rill__core(&stream->stream)->member = &stream->member;
  atomic_store_explicit(&rill__core(&stream->stream)->diverted, RILL__CAPTURED, memory_order_relaxed);
}

rill_status rill__capture_add(struct rill__stream *stream, struct rill__operation *operation, bool *taken) {
  rill_status status = RILL_OK;
  rill__graphs_lock();
  struct rill__capture_member *member = rill__core(stream)->member;
  *taken = member != NULL;
  /* Work that other code submitted before this operation has to become a node first, or the order of the stream would
   * be lost. */
  if (member != NULL && member->capture != NULL) status = rill__member_take_foreign(member, true);
  const bool added = member != NULL && status == RILL_OK;
  if (added) status = rill__member_add_node(member, operation);
  rill__graphs_unlock();
  if (!added) rill__operation_unref(operation);
  return status;
}

/* ---- memory and other graphs ---- */

static rill_status add_free(struct rill__capture_member *member, void *p, bool *of_graph) {
  struct rill__graph *graph = member->graph;
  struct rill__operation *operation = NULL;
  bool allocated = false, freed = false;
  /* Only memory that this graph allocates is freed by a node; any other free is deferred to the end of the capture. */
  if (!rill__graph_find_memory(graph, p, &allocated, &freed)) return rill__capture_no_memory();
  RILL_REQUIRE(!freed, RILL_ERROR_NOT_FOUND, "%p has been freed in the graph", p);
  if (!allocated) return RILL_OK;
  *of_graph = true;
  if (member->capture != NULL) RILL_TRY(rill__member_take_foreign(member, true));
  RILL_TRY(rill__operation_memory(graph->base.device, RILL_NODE_FREE, p, NULL, &operation));
  return rill__member_add_node(member, operation);
}

rill_status rill__capture_free(struct rill__stream *stream, void *p, bool *taken) {
  *taken = false;
  rill__graphs_lock();
  struct rill__capture_member *member = rill__core(stream)->member;
  const rill_status status = member != NULL ? add_free(member, p, taken) : RILL_OK;
  rill__graphs_unlock();
  return status;
}

bool rill__capture_defer(struct rill__stream *stream, struct rill__captured_free *deferred) {
  rill__graphs_lock();
  struct rill__capture_member *member = rill__core(stream)->member;
  if (member != NULL) {
    deferred->next = member->frees;
    member->frees = deferred;
  }
  rill__graphs_unlock();
  return member != NULL;
}

/* Adds a node for each step, and stores it in `nodes`.  `place`: receives the nodes without successors. */
static rill_status add_steps(struct rill__capture_member *member, const struct rill__graph_exec *exec,
                             struct rill__graph_node **nodes, struct rill__graph_node **after, bool *is_last,
                             struct rill__place *place) {
  struct rill__graph *graph = member->graph;
  for (uint32_t i = 0; i < exec->count; i++) {
    const struct rill__step *step = &exec->steps[i];
    for (uint32_t k = 0; k < step->after_count; k++) {
      after[k] = nodes[step->after[k]];
      is_last[step->after[k]] = false;
    }
    const bool root = step->after_count == 0;
    /* Staged copies and claims of memory belong to the execution object, so the graph's own operations are added. */
    struct rill__operation *operation = rill__operation_of_graph(step->operation);
    rill__operation_ref(operation);
    RILL_TRY(rill__graph_add(graph, operation, root ? member->after : after, root ? member->count : step->after_count,
                             &nodes[i]));
    is_last[i] = true;
  }
  for (uint32_t i = 0; i < exec->count; i++) {
    if (is_last[i] && !rill__place_add(place, (struct rill__place){ nodes[i], NULL })) return rill__capture_no_memory();
  }
  return RILL_OK;
}

/* Adds the steps of an execution object as nodes; those without successors become the member's place. */
static rill_status add_exec(struct rill__capture_member *member, const struct rill__graph_exec *exec) {
  if (exec->count == 0) return RILL_OK;
  const uint64_t before = rill__graph_mark(member->graph);
  struct rill__graph_node **nodes = calloc(2 * ((size_t)exec->count + 1), sizeof(struct rill__graph_node *));
  bool *is_last = calloc((size_t)exec->count + 1, sizeof *is_last);
  struct rill__place place = { NULL, NULL };
  struct rill__attachment *attached = NULL;
  rill_status status = nodes != NULL && is_last != NULL ? rill__member_list_place(member) : rill__capture_no_memory();
  if (status == RILL_OK) status = rill__attach_copies(&attached, rill__attached_list(exec->attached));
  if (status == RILL_OK) status = add_steps(member, exec, nodes, nodes + exec->count + 1, is_last, &place);
  if (status == RILL_OK) {
    rill__place_drop(&member->place);
    member->place = place;
    rill__attach_moved(&member->attached, &attached);
  } else {
    rill__place_drop(&place);
    /* Nodes that were added before the failure are removed, so the capture can continue without the launch. */
    rill__graph_truncate(member->graph, before);
  }
  rill__detach_all(&attached);
  free(nodes);
  free(is_last);
  return status;
}

rill_status rill__capture_exec(struct rill__stream *stream, const struct rill__graph_exec *exec, bool *taken) {
  rill_status status = RILL_OK;
  rill__graphs_lock();
  struct rill__capture_member *member = rill__core(stream)->member;
  *taken = member != NULL;
  if (member != NULL) status = rill__member_take_foreign(member, true);
  if (member != NULL && status == RILL_OK) status = add_exec(member, exec);
  rill__graphs_unlock();
  return status;
}

/* ---- events ---- */

/* Makes the event stand for a point of a capture, or for none (NULL).  Call it under the lock. */
static void set_point(struct rill__event *event, struct rill__captured_point *point) {
  struct rill__captured_point *before = rill__core(event)->captured;
  rill__core(event)->captured = point;
  if (before == NULL) return;
  rill__place_drop(&before->place);
  rill__capture_unref(before->capture);
  free(before);
}

void rill__capture_leave_event(struct rill__event *event, enum rill__event_state after) {
  uint32_t state = RILL__EVENT_CAPTURED;
  rill__graphs_lock();
  (void)atomic_compare_exchange_strong(&rill__core(event)->state, &state, after);
  if (atomic_load(&rill__core(event)->state) != RILL__EVENT_CAPTURED) set_point(event, NULL);
  rill__graphs_unlock();
}

rill_status rill__capture_fail_awaited(const struct rill__stream *stream, const struct rill__event *event) {
  return rill__fail(
      RILL_ERROR_CAPTURE_ACTIVE,
      "%s is capturing, and held streams wait for %s: a record in a capture would not release them" RILL_HINT
      "record the event outside captures first",
      rill__name_of(&stream->base).text, rill__name_of(&event->base).text);
}

/* Makes the event CAPTURED.  Another thread may hold a stream for the event at any time, so the fence is checked until
 * the change of state succeeds. */
static rill_status become_captured(struct rill__capture_member *member, struct rill__event *event) {
  uint32_t state = atomic_load(&rill__core(event)->state);
  while (state == RILL__EVENT_FENCED ||
         !atomic_compare_exchange_weak(&rill__core(event)->state, &state, RILL__EVENT_CAPTURED)) {
    if (state != RILL__EVENT_FENCED) continue;
    if (!atomic_load(&rill__event_leave_fence)(event)) return rill__capture_fail_awaited(member->stream, event);
    state = atomic_load(&rill__core(event)->state);
  }
  return RILL_OK;
}

/* Records the event at the place of the member.  The point is allocated first: once the event is CAPTURED nothing may
 * fail, because the event would stand for no point. */
static rill_status record_point(struct rill__capture_member *member, struct rill__event *event) {
  struct rill__captured_point *point = malloc(sizeof *point);
  if (point == NULL) return rill__capture_no_memory();
  atomic_store(&rill__event_leave_capture, rill__capture_leave_event);
  const rill_status status = become_captured(member, event);
  if (status != RILL_OK) {
    free(point);
    return status;
  }
  point->capture = member->capture;
  point->place = member->place;
  rill__place_keep(point->place);
  atomic_fetch_add(&member->capture->references, 1);
  set_point(event, point);
  return RILL_OK;
}

static rill_status add_event_node(struct rill__capture_member *member, uint32_t kind, struct rill__event *event) {
  struct rill__operation *operation = NULL;
  RILL_TRY(rill__operation_event(kind, event, &operation));
  return rill__member_add_node(member, operation);
}

rill_status rill__capture_record(struct rill__stream *stream, struct rill__event *event, uint32_t flags, bool *taken) {
  rill_status status = RILL_OK;
  rill__graphs_lock();
  struct rill__capture_member *member = rill__core(stream)->member;
  *taken = member != NULL;
  if (member != NULL) {
    const bool node = (flags & RILL_EVENT_EXTERNAL) != 0 || member->capture == NULL;
    if (member->capture != NULL) status = rill__member_take_foreign(member, true);
    if (status == RILL_OK)
      status = node ? add_event_node(member, RILL_NODE_EVENT_RECORD, event) : record_point(member, event);
  }
  rill__graphs_unlock();
  return status;
}

static rill_status fail_ended(const struct rill__event *event) {
  return rill__fail(RILL_ERROR_NOT_RECORDED,
                    "%s was last recorded in a capture that has ended: it stands for no work" RILL_HINT
                    "record it outside captures",
                    rill__name_of(&event->base).text);
}

/* Makes a capturing stream wait for an event outside its capture, or fails with the reason why it cannot. */
static rill_status wait_external(struct rill__capture_member *member, struct rill__event *event, uint32_t flags,
                                 const struct rill__captured_point *point) {
  if ((flags & RILL_EVENT_EXTERNAL) != 0 || member->capture == NULL) {
    return add_event_node(member, RILL_NODE_EVENT_WAIT, event);
  }
  if (point != NULL && point->capture->ended) return fail_ended(event);
  RILL_REQUIRE(point == NULL, RILL_ERROR_CAPTURE_ACTIVE,
               "%s belongs to the capture of %s, but %s was recorded in the capture of %s: two captures cannot be "
               "merged" RILL_HINT "begin one capture, and join the other streams to it with an event",
               rill__name_of(&member->stream->base).text, rill__capture_name(member->capture).text,
               rill__name_of(&event->base).text, rill__capture_name(point->capture).text);
  struct rill__event_core *core = rill__core(event);
  const uint32_t state = atomic_load(&core->state);
  RILL_REQUIRE(state == RILL__EVENT_RECORDED, RILL_ERROR_NOT_RECORDED,
               "%s has never been recorded, or only on a held stream, and a capturing stream cannot be held" RILL_HINT
               "record it in the capture first, or pass RILL_WAIT_IF_RECORDED",
               rill__name_of(&event->base).text);
  return rill__fail(RILL_ERROR_CAPTURE_ACTIVE,
                    "%s belongs to the capture of %s (thread %d began the capture), but %s was recorded outside the "
                    "capture: the graph cannot wait for it" RILL_HINT
                    "wait before the capture begins, or pass RILL_EVENT_EXTERNAL",
                    rill__name_of(&member->stream->base).text, rill__capture_name(member->capture).text,
                    (int)member->capture->thread_id, rill__name_of(&event->base).text);
}

rill_status rill__capture_wait(struct rill__stream *stream, struct rill__event *event, uint32_t flags, bool *taken) {
  rill_status status = RILL_OK;
  rill__graphs_lock();
  struct rill__capture_member *member = rill__core(stream)->member;
  const bool captured = atomic_load(&rill__core(event)->state) == RILL__EVENT_CAPTURED;
  const struct rill__captured_point *point = captured ? rill__core(event)->captured : NULL;
  /* Either the stream is a member, or the event is captured and the stream joins its capture. */
  *taken = member != NULL || point != NULL;
  if (member == NULL && point != NULL) {
    status = point->capture->ended ? fail_ended(event) : rill__capture_join(point->capture, stream, point->place);
  } else if (member != NULL) {
    const bool own = point != NULL && point->capture == member->capture && (flags & RILL_EVENT_EXTERNAL) == 0;
    if (member->capture != NULL) status = rill__member_take_foreign(member, true);
    if (status == RILL_OK && !own) status = wait_external(member, event, flags, point);
    if (status == RILL_OK && own && !rill__place_add(&member->place, point->place)) status = rill__capture_no_memory();
  }
  rill__graphs_unlock();
  return status;
}
