#include "core/graph/capture.h"

#include "core/device/life.h"
#include "core/graph/building.h"
#include "core/graph/graph.h"
#include "core/held/held.h"
#include "core/object/origin.h"
#include "core/sync/faults.h"

#include <stdlib.h>

static rill_status check_begin(struct rill__stream *stream, uint32_t mode) {
  struct rill__device *device = stream->base.device;
  const char *why = "";
  RILL_REQUIRE(mode <= RILL_CAPTURE_RELAXED, RILL_ERROR_INVALID_ARGUMENT,
               "mode is %u, but must be RILL_CAPTURE_GLOBAL, _THREAD or _RELAXED", mode);
  RILL_REQUIRE(RILL_ASK(device, device, supports, device, RILL_FEATURE_GRAPH, &why) && device->backend->graph != NULL,
               RILL_ERROR_UNSUPPORTED, "captures on %s: %s", device->name, why);
  RILL_REQUIRE(!stream->imported || stream->native > 1, RILL_ERROR_UNSUPPORTED,
               "%s is the legacy null stream of %s, which cannot be captured, because other streams synchronize with "
               "it" RILL_HINT "capture a stream of your own",
               rill__name_of(&stream->base).text, device->name);
  RILL_TRY(rill__check_usable(device));
  bool capturing = false;
  if (atomic_load(&stream->foreign) && !rill__is_captured(stream)) {
    RILL_TRY(RILL_DISPATCH(stream, stream, is_capturing, stream, &capturing));
  }
  RILL_REQUIRE(!capturing, RILL_ERROR_CAPTURE_ACTIVE, "another library is already capturing %s",
               rill__name_of(&stream->base).text);
  return RILL_OK;
}

/* Fills `start->after` with the nodes of the handles in `after`, and begins the capture. */
static rill_status begin_to_graph(struct rill__stream *stream, struct rill__capture_start *start,
                                  const rill_graph_node *after) {
  struct rill__graph_node **nodes = calloc(start->after_count + 1, sizeof(struct rill__graph_node *));
  RILL_REQUIRE(nodes != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for %zu nodes", start->after_count);
  rill_status status = RILL_OK;
  for (size_t i = 0; i < start->after_count && status == RILL_OK; i++) {
    status = rill__graph_node_find(after[i], "after", start->into, &nodes[i]);
    if (status == RILL_OK && rill__graph_of(nodes[i]) != start->into) {
      status = rill__fail(RILL_ERROR_INVALID_ARGUMENT, "after: node 0x%llx belongs to another graph",
                          (unsigned long long)after[i].id);
    }
  }
  start->after = nodes;
  if (status == RILL_OK) status = rill__capture_begin(stream, start);
  free(nodes);
  return status;
}

/* Begins a capture.  If the queue of the stream is being submitted, first waits until its work has reached the driver.
 * `after` contains handles of nodes of start->into, if there is one. */
static rill_status begin_settled(struct rill__stream *stream, struct rill__capture_start *start,
                                 const rill_graph_node *after) {
  rill__ref(&stream->base);
  if (start->into != NULL) rill__ref(&start->into->base);
  rill__held_wait_submitted(stream);
  const rill_status status =
      start->into != NULL ? begin_to_graph(stream, start, after) : rill__capture_begin(stream, start);
  if (start->into != NULL) rill__unref(&start->into->base);
  if (status == RILL_OK) rill__faults_note_capture(stream);
  rill__unref(&stream->base);
  return status;
}

rill_status rill_stream_capture_begin(rill_stream stream, uint32_t mode) {
  RILL_ENTER();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_TRY(check_begin(s, mode));
  struct rill__capture_start start = { .mode = mode };
  return begin_settled(s, &start, NULL);
}

rill_status rill_stream_capture_begin_to_graph(rill_stream stream, rill_graph graph, const rill_graph_node *after,
                                               size_t after_count, uint32_t mode) {
  RILL_ENTER();
  struct rill__stream *s;
  struct rill__graph *g;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_RESOLVE(RILL__GRAPH, graph, "graph", &g);
  RILL_TRY(rill__graph_check_device(g, &s->base));
  RILL_REQUIRE(after != NULL || after_count == 0, RILL_ERROR_INVALID_ARGUMENT, "after is NULL, but after_count is %zu",
               after_count);
  RILL_REQUIRE(after_count < SIZE_MAX / sizeof(void *), RILL_ERROR_OUT_OF_RANGE, "after_count is %zu", after_count);
  RILL_TRY(check_begin(s, mode));
  struct rill__capture_start start = { .mode = mode, .into = g, .after_count = after_count };
  return begin_settled(s, &start, after);
}

rill_status rill_stream_capture_end(rill_stream stream, rill_graph *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_GRAPH;
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  struct rill__graph *graph = NULL;
  RILL_TRY(rill__capture_end(s, false, &graph));
  if (graph == NULL) return RILL_OK;
  out->id = graph->base.id;
  rill__origin_note(&graph->base);
  return RILL_OK;
}

rill_status rill_stream_capture_abort(rill_stream stream) {
  RILL_ENTER();
  struct rill__stream *s;
  struct rill__graph *none = NULL;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  return rill__capture_end(s, true, &none);
}

rill_status rill_stream_capture_id(rill_stream stream, uint64_t *out) {
  RILL_ENTER();
  if (out != NULL) *out = 0;
  struct rill__stream *s;
  struct rill__capture_state state;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  rill__capture_query(s, &state);
  *out = state.id;
  return RILL_OK;
}

rill_status rill_stream_capture_graph(rill_stream stream, rill_graph *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_GRAPH;
  struct rill__stream *s;
  struct rill__capture_state state;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  rill__capture_query(s, &state);
  out->id = state.graph;
  return RILL_OK;
}

rill_status rill_stream_capture_get_dependencies(rill_stream stream, rill_graph_node *nodes, size_t *count) {
  RILL_ENTER();
  const size_t room = count != NULL ? *count : 0;
  if (count != NULL) *count = 0;
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(count != NULL, RILL_ERROR_INVALID_ARGUMENT, "count is NULL");
  RILL_REQUIRE(nodes != NULL || room == 0, RILL_ERROR_INVALID_ARGUMENT, "nodes is NULL, but *count is %zu", room);
  return rill__capture_get_place(s, nodes, room, count);
}

rill_status rill_stream_capture_set_dependencies(rill_stream stream, const rill_graph_node *nodes, size_t count,
                                                 bool add) {
  RILL_ENTER();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(nodes != NULL || count == 0, RILL_ERROR_INVALID_ARGUMENT, "nodes is NULL, but count is %zu", count);
  return rill__capture_set_place(s, nodes, count, add);
}
