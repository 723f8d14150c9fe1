#include "core/graph/capture_parts.h"

#include "core/device/life.h"
#include "core/graph/graph.h"
#include "core/sync/events.h"
#include "core/sync/submit.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

_Atomic uint32_t rill__captures_active;
static uint64_t last_capture;

/* The active captures of each backend, and those of them in mode RILL_CAPTURE_GLOBAL; the newest first. */
static struct { struct rill__capture *all, *global; } captures[RILL_BACKEND_END_];

void rill__capture_unref(struct rill__capture *capture) {
  if (atomic_fetch_sub(&capture->references, 1) == 1) free(capture);
}

struct rill__name rill__capture_name(const struct rill__capture *capture) {
  return rill__name_of(&capture->origin.stream->base);
}

rill_status rill__capture_no_memory(void) {
  return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory for a capture");
}

/* ---- members; call these under the lock ---- */

rill_status rill__member_list_place(struct rill__capture_member *member) {
  const uint32_t search = rill__graph_new_search(member->graph);
  struct rill__place_walk walk = rill__place_walk(member->place);
  member->count = 0;
  for (struct rill__graph_node *node; (node = rill__place_next(&walk)) != NULL;) {
    if (node->visited == search) continue;
    node->visited = search;
    if (!rill__graph_make_room(&member->after, member->count, &member->room, sizeof(struct rill__graph_node *)))
      return rill__capture_no_memory();
    member->after[member->count++] = node;
  }
  return RILL_OK;
}

static rill_status become_member(struct rill__capture *capture, struct rill__capture_member *member,
                                 struct rill__stream *stream, struct rill__place place) {
  RILL_REQUIRE(stream->base.device == capture->graph->base.device, RILL_ERROR_UNSUPPORTED,
               "%s belongs to %s, but the capture of %s belongs to %s: as of version %d.%d a graph belongs to one "
               "device" RILL_HINT "capture a graph for each device, and order their launches with events",
               rill__name_of(&stream->base).text, stream->base.device->name, rill__capture_name(capture).text,
               capture->graph->base.device->name, RILL_VERSION_MAJOR, RILL_VERSION_MINOR);
  uint32_t none = 0;
  /* This is a compare-and-swap because the lock of held work, under which streams are held, is not taken here. */
  if (!atomic_compare_exchange_strong(&rill__core(stream)->diverted, &none, RILL__CAPTURED)) {
    return rill__fail(RILL_ERROR_NOT_READY,
                      "%s is held: a capture would be ordered before the queued work" RILL_HINT
                      "record the event that it waits for first",
                      rill__name_of(&stream->base).text);
  }
  const struct rill__graph_table *table = stream->base.device->backend->graph;
  /* The stream is diverted before the driver starts to capture it, so the driver captures no submission of rill as work
   * of other code. */
  member->others = table->foreign_begin != NULL && atomic_load(&stream->foreign);
  const rill_status status = member->others ? RILL_DISPATCH(stream, graph, foreign_begin, stream) : RILL_OK;
  if (status != RILL_OK) {
    (void)atomic_fetch_and(&rill__core(stream)->diverted, ~(uint32_t)RILL__CAPTURED);
    return status;
  }
  rill__ref(&stream->base);
  rill__place_keep(place);
  member->place = place;
  member->capture = capture;
  member->graph = capture->graph;
  member->stream = stream;
  member->next = capture->members;
  capture->members = member;
  rill__core(stream)->member = member;
  return RILL_OK;
}

rill_status rill__capture_join(struct rill__capture *capture, struct rill__stream *stream, struct rill__place place) {
  struct rill__capture_member *member = calloc(1, sizeof *member);
  if (member == NULL) return rill__capture_no_memory();
  const rill_status status = become_member(capture, member, stream, place);
  if (status != RILL_OK) free(member);
  return status;
}

rill_status rill__member_add_node(struct rill__capture_member *member, struct rill__operation *operation) {
  if (member->collect != NULL) {
    *member->collect = operation;
    return RILL_OK;
  }
  /* This is an explicit node, added while a capture adds to the same graph.  If the capture failed, truncating its
   * nodes would remove this node. */
  if (member->capture == NULL && member->graph->capture != NULL) {
    rill__operation_unref(operation);
    return rill__fail(RILL_ERROR_CAPTURE_ACTIVE, "a capture of %s adds to the graph" RILL_HINT "end the capture first",
                      rill__capture_name(member->graph->capture).text);
  }
  struct rill__graph_node *const *after = &member->place.node, *node = NULL;
  size_t count = member->place.node != NULL;
  const rill_status status = member->place.join != NULL ? rill__member_list_place(member) : RILL_OK;
  if (status != RILL_OK) {
    rill__operation_unref(operation);
    return status;
  }
  if (member->capture == NULL || member->place.join != NULL) {
    after = member->after;
    count = member->count;
  }
  /* The new node alone is the place from here on: it comes after everything that the old place contained. */
  RILL_TRY(rill__graph_add(member->graph, operation, after, count, &node));
  rill__place_drop(&member->place);
  member->place.node = member->last = node;
  return RILL_OK;
}

rill_status rill__member_take_foreign(struct rill__capture_member *member, bool again) {
  struct rill__stream *stream = member->stream;
  struct rill__operation *operation = NULL;
  uintptr_t graph = 0;
  if (!member->others || (again && !RILL_ASK(stream, graph, foreign_has_work, stream))) return RILL_OK;
  member->others = false;
  rill_status status = RILL_DISPATCH(stream, graph, foreign_end, stream, &graph);
  if (status == RILL_OK && graph != 0) {
    status = rill__operation_foreign(stream->base.device, graph, &operation);
    if (status == RILL_OK) status = rill__member_add_node(member, operation);
  }
  if (status == RILL_OK && again) status = RILL_DISPATCH(stream, graph, foreign_begin, stream);
  member->others = again && status == RILL_OK;
  /* The work of the other library is lost, so the graph would be incomplete. */
  if (status != RILL_OK) member->capture->broken = true;
  return status;
}

/* Removes all members from the capture and returns them.  The driver's captures of all members end first, while each
 * member still has its place, because work that other code submitted becomes a node after that place.  A failure there
 * sets `broken`, which finish_capture reports, so errors are suspended. */
static struct rill__capture_member *leave_all(struct rill__capture *capture) {
  struct rill__capture_member *const members = capture->members;
  RILL_ASSERT_GRAPHS_LOCKED();
#if RILL_CHECKS
  for (const struct rill__capture_member *member = members; member != NULL; member = member->next) {
    RILL_ASSERT(member->capture == capture && member->graph == capture->graph, "a member belongs to one capture");
    RILL_ASSERT(rill__core(member->stream)->member == member && rill__is_captured(member->stream),
                "submissions to a member are diverted");
  }
#endif
  capture->members = NULL;
  rill__errors_suspend();
  for (struct rill__capture_member *member = members; member != NULL; member = member->next) {
    (void)rill__member_take_foreign(member, false);
  }
  rill__errors_resume();
  for (struct rill__capture_member *member = members; member != NULL; member = member->next) {
    rill__place_drop(&member->place);
    rill__core(member->stream)->member = NULL;
    (void)atomic_fetch_and(&rill__core(member->stream)->diverted, ~(uint32_t)RILL__CAPTURED);
  }
  return members;
}

/* Frees the members of a capture that has ended.  Call it without the lock: dropping the last reference to a stream
 * destroys it. */
static void free_members(struct rill__capture_member *members) {
  while (members != NULL) {
    struct rill__capture_member *member = members;
    members = member->next;
    while (member->frees != NULL) {
      struct rill__captured_free *deferred = member->frees;
      member->frees = deferred->next;
      deferred->end(member->stream, deferred);
    }
    rill__detach_all(&member->attached);
    rill__unref(&member->stream->base);
    free(member->after);
    if (member == &member->capture->origin) rill__capture_unref(member->capture);
    else free(member);
  }
}

/* ---- beginning and ending ---- */

static rill_status fail_capturing(const struct rill__stream *stream, const struct rill__capture *capture) {
  const bool own = stream == capture->origin.stream;
  return rill__fail(RILL_ERROR_CAPTURE_ACTIVE,
                    "%s is capturing%s%s (thread %d began the capture); the call would invalidate the capture" RILL_HINT
                    "end the capture first",
                    rill__name_of(&stream->base).text, own ? "" : " for ", own ? "" : rill__capture_name(capture).text,
                    (int)capture->thread_id);
}

/* Adds the capture to the lists.  A separate list has only the captures that refuse calls, so that no call looks
 * through captures that do not concern it.  Call it under the lock. */
static void enter_lists(struct rill__capture *capture) {
  const uint32_t backend = capture->graph->base.device->backend->id;
  capture->next = captures[backend].all;
  capture->link = &captures[backend].all;
  if (capture->next != NULL) capture->next->link = &capture->next;
  *capture->link = capture;
  if (capture->mode == RILL_CAPTURE_RELAXED) return;
  const bool global = capture->mode == RILL_CAPTURE_GLOBAL;
  capture->link_refusing = global ? &captures[backend].global : &rill__self->captures[backend];
  capture->next_refusing = *capture->link_refusing;
  if (capture->next_refusing != NULL) capture->next_refusing->link_refusing = &capture->next_refusing;
  *capture->link_refusing = capture;
}

static void leave_lists(struct rill__capture *capture) {
  *capture->link = capture->next;
  if (capture->next != NULL) capture->next->link = capture->link;
  if (capture->link_refusing == NULL) return;
  *capture->link_refusing = capture->next_refusing;
  if (capture->next_refusing != NULL) capture->next_refusing->link_refusing = capture->link_refusing;
}

/* Returns a capture that a call for a device of the backend would invalidate, or NULL. */
static const struct rill__capture *find_refusing(uint32_t backend, bool any) {
  if (any || captures[backend].global != NULL) return any ? captures[backend].all : captures[backend].global;
  const struct rill__capture *mine = rill__self->captures[backend];
  /* The record may have belonged to another thread before: only captures of the current thread count, and they come
   * first in the list. */
  return mine != NULL && mine->thread == rill__self->number ? mine : NULL;
}

/* Makes the stream the first member, placed after the nodes that the caller names. */
static rill_status join_first(struct rill__capture *capture, struct rill__stream *stream,
                              const struct rill__capture_start *start) {
  struct rill__place place = { NULL, NULL };
  bool memory = true;
  for (size_t i = 0; i < start->after_count && memory; i++) {
    memory = rill__place_add(&place, (struct rill__place){ start->after[i], NULL });
  }
  const rill_status status =
      memory ? become_member(capture, &capture->origin, stream, place) : rill__capture_no_memory();
  rill__place_drop(&place);
  return status;
}

/* Creates the graph and its first member.  Call it under the lock. */
static rill_status begin_capture(struct rill__stream *stream, const struct rill__capture_start *start,
                                 struct rill__capture *capture) {
  if (rill__core(stream)->member != NULL) return fail_capturing(stream, rill__core(stream)->member->capture);
  struct rill__graph *graph = start->into;
  if (graph != NULL) {
    RILL_REQUIRE(graph->capture == NULL, RILL_ERROR_CAPTURE_ACTIVE,
                 "a capture of %s is already adding nodes to the graph", rill__capture_name(graph->capture).text);
    RILL_TRY(rill__graph_check_live(start->after, start->after_count));
    rill__ref(&graph->base);
  } else {
    RILL_TRY(rill__graph_new(stream->base.device, &graph));
    /* until the capture ends: the handle is already visible, and users must not release the graph */
    graph->base.borrowed = true;
  }
  capture->graph = graph;
  capture->first = rill__graph_mark(graph);
  const rill_status status = join_first(capture, stream, start);
  if (status != RILL_OK) {
    if (start->into == NULL) rill__object_retire(&graph->base);
    if (start->into != NULL) rill__unref(&graph->base);
    return status;
  }
  graph->capture = capture;
  capture->id = ++last_capture;
  enter_lists(capture);
  atomic_fetch_add(&rill__captures_active, 1);
  return RILL_OK;
}

/* Adds nodes for the work that other code has submitted to any member.  Fails only for causes other than an invalid
 * capture, which `broken` already records. */
static rill_status take_all_foreign(struct rill__capture *capture) {
  for (struct rill__capture_member *member = capture->members; member != NULL; member = member->next) {
    const rill_status status = rill__member_take_foreign(member, false);
    if (status != RILL_OK && status != RILL_ERROR_CAPTURE_INVALID) return status;
  }
  return RILL_OK;
}

/* Checks that every node comes before the current place of the first stream. */
static rill_status check_joined(struct rill__capture *capture) {
  struct rill__graph *graph = capture->graph;
  bool no_memory = false;
  char names[400] = "";
  size_t used = 0;
  uint32_t unjoined = 0;
  RILL_TRY(take_all_foreign(capture));
  RILL_REQUIRE(!capture->broken, RILL_ERROR_CAPTURE_INVALID,
               "work that another library submitted to a stream of the capture of %s cannot become a graph" RILL_HINT
               "join that library's streams to the capture before the next rill call for the stream, and do not "
               "synchronize in between",
               rill__capture_name(capture).text);
  RILL_TRY(rill__member_list_place(&capture->origin));
  const uint32_t search =
      rill__graph_search(graph, capture->first, capture->origin.after, capture->origin.count, &no_memory);
  if (no_memory) return rill__capture_no_memory();
  for (uint32_t i = rill__graph_first_from(graph, capture->first); i < graph->count; i++) {
    if (graph->nodes[i]->visited != search) unjoined++;
  }
  if (unjoined == 0) return RILL_OK;
  for (const struct rill__capture_member *member = capture->members; member != NULL && used < sizeof names;
       member = member->next) {
    bool has_work = false;
    struct rill__place_walk walk = rill__place_walk(member->place);
    for (struct rill__graph_node *node; (node = rill__place_next(&walk)) != NULL;) {
      has_work |= node->visited != search && rill__node_serial(node) >= capture->first;
    }
    if (!has_work) continue;
    used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "",
                             rill__name_of(&member->stream->base).text);
  }
  /* No stream's place contains an unjoined node: the program set the places itself and left these nodes out. */
  RILL_REQUIRE(used > 0, RILL_ERROR_CAPTURE_INVALID,
               "%u nodes of the capture of %s are unjoined: they come before the dependencies of no stream" RILL_HINT
               "include them when you set the dependencies of a stream",
               unjoined, rill__capture_name(capture).text);
  return rill__fail(
      RILL_ERROR_CAPTURE_INVALID,
      "%s must be joined back to %s: %u nodes of the capture are unjoined" RILL_HINT
      "before you end the capture, record an event on each joined stream, and make the first stream wait for it",
      names, rill__capture_name(capture).text, unjoined);
}

/* Dismantles the capture.  On success `out` is its graph, which belongs to the caller; on failure the graph is
 * released.  Returns the members, which the caller frees without the lock. */
static struct rill__capture_member *finish_capture(struct rill__capture *capture, rill_status status,
                                                   struct rill__graph **out) {
  struct rill__graph *graph = capture->graph;
  const bool into = !graph->base.borrowed;
  leave_lists(capture);
  RILL_ASSERT(!capture->ended && graph->capture == capture, "an active capture is the one that adds to its graph");
  atomic_fetch_sub(&rill__captures_active, 1);
  /* The members are removed first: work that other code submitted becomes nodes, and truncating a failed capture then
   * removes these. */
  struct rill__capture_member *const members = leave_all(capture);
  capture->ended = true;
  graph->capture = NULL;
  graph->base.borrowed = false;
  for (struct rill__capture_member *member = members; member != NULL && status == RILL_OK; member = member->next) {
    rill__attach_moved(&graph->attached, &member->attached);
  }
  if (status != RILL_OK && into) rill__graph_truncate(graph, capture->first);
  if (into) rill__unref(&capture->graph->base);
  if (status != RILL_OK && !into) rill__object_retire(&graph->base);
  *out = status == RILL_OK ? graph : NULL;
  return members;
}

/* The last release of a stream makes its handle stale first and then looks for a capture (rill__capture_abandon).  This
 * function adds the capture first and then checks the handle.  So at least one of the two finds the other and ends the
 * capture. */
rill_status rill__capture_begin(struct rill__stream *stream, const struct rill__capture_start *start) {
  struct rill__capture *capture = calloc(1, sizeof *capture);
  if (capture == NULL) return rill__capture_no_memory();
  atomic_init(&capture->references, 1);
  capture->mode = start->mode;
  capture->thread = rill__self->number;
  capture->thread_id = gettid();
  struct rill__capture_member *left = NULL;
  struct rill__graph *none = NULL;
  rill__graphs_lock();
  rill_status status = begin_capture(stream, start, capture);
  if (status != RILL_OK) {
    free(capture);
  } else if (!rill__object_is_live(&stream->base)) {
    left = finish_capture(capture, RILL_ERROR_CAPTURE_INVALID, &none);
    status = rill__fail_handle(stream->base.id, RILL__STREAM, "stream");
  }
  rill__graphs_unlock();
  free_members(left);
  return status;
}

static rill_status check_end(const struct rill__stream *stream, const struct rill__capture_member *member) {
  RILL_REQUIRE(member != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is not capturing", rill__name_of(&stream->base).text);
  const struct rill__capture *capture = member->capture;
  RILL_REQUIRE(member == &capture->origin, RILL_ERROR_INVALID_ARGUMENT,
               "%s joined a capture that was begun on %s" RILL_HINT "end the capture there",
               rill__name_of(&stream->base).text, rill__capture_name(capture).text);
  RILL_REQUIRE(capture->mode == RILL_CAPTURE_RELAXED || capture->thread == rill__self->number,
               RILL_ERROR_CAPTURE_ACTIVE,
               "thread %d began the capture of %s in a mode other than relaxed: no other thread may end it" RILL_HINT
               "end it on that thread, or begin it with RILL_CAPTURE_RELAXED",
               (int)capture->thread_id, rill__capture_name(capture).text);
  return RILL_OK;
}

rill_status rill__capture_end(struct rill__stream *stream, bool abort, struct rill__graph **out) {
  rill_status status = RILL_OK;
  *out = NULL;
  rill__graphs_lock();
  const struct rill__capture_member *member = rill__core(stream)->member;
  struct rill__capture_member *left = NULL;
  if (abort && member == NULL) {
    rill__graphs_unlock();
    return RILL_OK;
  }
  status = check_end(stream, member);
  if (status == RILL_OK) {
    struct rill__capture *capture = member->capture;
    const bool into = !capture->graph->base.borrowed;
    /* before finish_capture, which removes the places of the members */
    if (!abort) status = check_joined(capture);
    if (!abort && status == RILL_OK && into && !rill__object_try_ref(&capture->graph->base)) {
      status = rill__fail(RILL_ERROR_CAPTURE_INVALID,
                          "the graph that the capture of %s adds to has been released" RILL_HINT
                          "keep a reference until the capture has ended",
                          rill__capture_name(capture).text);
    }
    left = finish_capture(capture, abort ? RILL_ERROR_CAPTURE_INVALID : status, out);
  }
  rill__graphs_unlock();
  free_members(left);
  return status;
}

void rill__capture_abandon(struct rill__stream *stream) {
  if (atomic_load(&rill__core(stream)->diverted) != RILL__CAPTURED) return; /* read after the handle has become stale */
  struct rill__capture_member *left = NULL;
  struct rill__graph *none = NULL;
  rill__graphs_lock();
  const struct rill__capture_member *member = rill__core(stream)->member;
  if (member != NULL && member == &member->capture->origin)
    left = finish_capture(member->capture, RILL_ERROR_CAPTURE_INVALID, &none);
  rill__graphs_unlock();
  free_members(left);
}

void rill__capture_query(struct rill__stream *stream, struct rill__capture_state *state) {
  *state = (struct rill__capture_state){ 0 };
  if (!rill__is_captured(stream)) return;
  rill__graphs_lock();
  const struct rill__capture_member *member = rill__core(stream)->member;
  if (member != NULL) {
    state->id = member->capture->id;
    state->graph = member->graph->base.id;
  }
  rill__graphs_unlock();
}

/* ---- reading and setting places ---- */

static rill_status list_place(struct rill__capture_member *member, rill_graph_node *nodes, size_t room, size_t *count) {
  RILL_TRY(rill__member_take_foreign(member, true));
  RILL_TRY(rill__member_list_place(member));
  for (size_t i = 0; i < member->count && i < room; i++) nodes[i].id = rill__node_id(member->after[i]);
  *count = member->count;
  return RILL_OK;
}

rill_status rill__capture_get_place(struct rill__stream *stream, rill_graph_node *nodes, size_t room, size_t *count) {
  rill_status status = RILL_OK;
  *count = 0;
  rill__graphs_lock();
  struct rill__capture_member *const member = rill__core(stream)->member;
  if (member != NULL) status = list_place(member, nodes, room, count);
  rill__graphs_unlock();
  return status;
}

static rill_status add_to_place(const struct rill__graph *graph, struct rill__place *place, rill_graph_node node) {
  struct rill__graph_node *found = NULL;
  RILL_TRY(rill__graph_node_find(node, "node", graph, &found));
  RILL_REQUIRE(rill__graph_of(found) == graph, RILL_ERROR_INVALID_ARGUMENT,
               "node 0x%llx belongs to a graph other than the capture's", (unsigned long long)node.id);
  RILL_TRY(rill__graph_node_check(found, "node"));
  return rill__place_add(place, (struct rill__place){ found, NULL }) ? RILL_OK : rill__capture_no_memory();
}

static rill_status set_place(struct rill__capture_member *member, const rill_graph_node *nodes, size_t count,
                             bool add) {
  struct rill__place place = { NULL, NULL };
  rill_status status = rill__member_take_foreign(member, true);
  if (status == RILL_OK && add && !rill__place_add(&place, member->place)) status = rill__capture_no_memory();
  for (size_t i = 0; i < count && status == RILL_OK; i++) status = add_to_place(member->graph, &place, nodes[i]);
  if (status != RILL_OK) {
    rill__place_drop(&place);
    return status;
  }
  rill__place_drop(&member->place);
  member->place = place;
  return RILL_OK;
}

rill_status rill__capture_set_place(struct rill__stream *stream, const rill_graph_node *nodes, size_t count, bool add) {
  rill_status status = RILL_OK;
  rill__graphs_lock();
  struct rill__capture_member *const member = rill__core(stream)->member;
  if (member != NULL) status = set_place(member, nodes, count, add);
  rill__graphs_unlock();
  RILL_REQUIRE(member != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is not capturing", rill__name_of(&stream->base).text);
  return status;
}

/* ---- the checks that protect captures ---- */

rill_status rill__capture_share(struct rill__stream *stream, bool (*share)(struct rill__stream *stream), bool *out) {
  rill_status status = RILL_OK;
  rill__graphs_lock();
  const struct rill__capture_member *member = rill__core(stream)->member;
  if (member != NULL && !atomic_load(&stream->foreign)) {
    status = rill__fail(RILL_ERROR_CAPTURE_ACTIVE,
                        "%s is capturing (thread %d began the capture), and its native stream was never used before; "
                        "work submitted to it would not be captured" RILL_HINT
                        "call rill_stream_native, or the library that uses the stream, once before the capture begins",
                        rill__name_of(&stream->base).text, (int)member->capture->thread_id);
  }
  if (status == RILL_OK) *out = share(stream);
  rill__graphs_unlock();
  return status;
}

rill_status rill__capture_refuse(struct rill__stream *stream) {
  rill_status status = RILL_OK;
  rill__graphs_lock();
  const struct rill__capture_member *member = rill__core(stream)->member;
  if (member != NULL) status = fail_capturing(stream, member->capture);
  rill__graphs_unlock();
  return status;
}

rill_status rill__capture_check_slow(struct rill__device *device, bool any) {
  rill_status status = RILL_OK;
  rill__graphs_lock();
  const struct rill__capture *capture = find_refusing(device->backend->id, any);
  if (capture != NULL) {
    status = rill__fail(RILL_ERROR_CAPTURE_ACTIVE,
                        "%s is capturing (thread %d began the capture); the call would invalidate the capture" RILL_HINT
                        "end the capture first",
                        rill__capture_name(capture).text, (int)capture->thread_id);
  }
  rill__graphs_unlock();
  return status;
}

/* Ends all captures in the child of a fork: the threads that were capturing do not exist there.  Memory that these
 * threads may have been changing is not freed. */
void rill__captures_after_fork(void) {
  for (uint32_t backend = 0; backend < RILL_BACKEND_END_; backend++) {
    while (captures[backend].all != NULL) {
      struct rill__graph *none = NULL;
      (void)finish_capture(captures[backend].all, RILL_ERROR_CAPTURE_INVALID, &none);
    }
  }
}
