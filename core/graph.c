#include "core/graph/graph.h"

#include "core/device/life.h"
#include "core/graph/building.h"
#include "core/kernel/launch.h"
#include "core/memory/memory.h"
#include "core/object/origin.h"

#include <stdlib.h>
#include <string.h>

/* ---- life ---- */

rill_status rill_graph_create(rill_device device, rill_graph *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_GRAPH;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  const char *why = "";
  RILL_REQUIRE(RILL_ASK(d, device, supports, d, RILL_FEATURE_GRAPH, &why) && d->backend->graph != NULL,
               RILL_ERROR_UNSUPPORTED, "graphs on %s: %s", d->name, why);
  RILL_TRY(rill__device_activate(d));
  struct rill__graph *graph = NULL;
  RILL_TRY(rill__graph_new(d, &graph));
  out->id = graph->base.id;
  rill__origin_note(&graph->base);
  return RILL_OK;
}

rill_status rill_graph_retain(rill_graph graph) {
  RILL_ENTER();
  return rill__object_retain(graph.id, RILL__GRAPH);
}

rill_status rill_graph_release(rill_graph graph) {
  RILL_ENTER();
  struct rill__object *last = NULL;
  const rill_status status = rill__object_release(graph.id, RILL__GRAPH, &last);
  if (last != NULL) rill__object_retire(last);
  return status;
}

/* ---- building ---- */

rill_status rill_graph_add_kernel(rill_graph graph, const rill_graph_node *after, size_t after_count,
                                  rill_kernel kernel, const rill_launch *launch, const rill_arg *args, size_t arg_count,
                                  rill_graph_node *out) {
  RILL_ENTER_NODE();
  struct rill__kernel *k;
  RILL_RESOLVE(RILL__KERNEL, kernel, "kernel", &k);
  RILL_TRY(rill__graph_check_device(building.graph, &k->base));
  RILL_TRY(rill__building_check(&building));
  return rill__building_finish(&building, rill__launch(s, k, launch, args, arg_count));
}

rill_status rill_graph_add_copy(rill_graph graph, const rill_graph_node *after, size_t after_count, void *dst,
                                const void *src, size_t n, rill_graph_node *out) {
  RILL_ENTER_NODE();
  RILL_TRY(rill__building_check(&building));
  return rill__building_finish(&building, rill__copy_line(self, s, dst, src, n));
}

rill_status rill_graph_add_copy_2d(rill_graph graph, const rill_graph_node *after, size_t after_count, void *dst,
                                   size_t dst_pitch, const void *src, size_t src_pitch, size_t width, size_t height,
                                   rill_graph_node *out) {
  RILL_ENTER_NODE();
  RILL_TRY(rill__building_check(&building));
  struct rill__copy_3d copy = {
    .dst = dst,
    .src = src,
    .width = width,
    .height = height,
    .depth = 1,
    .dst_pitch = dst_pitch,
    .src_pitch = src_pitch,
  };
  return rill__building_finish(&building, rill__copy_submit(self, s, &copy));
}

rill_status rill_graph_add_copy_3d(rill_graph graph, const rill_graph_node *after, size_t after_count,
                                   const rill_copy_3d *copy, rill_graph_node *out) {
  RILL_ENTER_NODE();
  struct rill__copy_3d request;
  RILL_TRY(rill__building_check(&building));
  RILL_TRY(rill__copy_3d_read(&request, copy));
  return rill__building_finish(&building, rill__copy_submit(self, s, &request));
}

rill_status rill_graph_add_fill(rill_graph graph, const rill_graph_node *after, size_t after_count, void *dst,
                                const void *pattern, size_t pattern_size, size_t count, rill_graph_node *out) {
  RILL_ENTER_NODE();
  RILL_TRY(rill__building_check(&building));
  return rill__building_finish(&building, rill__fill_line(s, dst, pattern, pattern_size, count));
}

rill_status rill_graph_add_fill_2d(rill_graph graph, const rill_graph_node *after, size_t after_count, void *dst,
                                   size_t dst_pitch, const void *pattern, size_t pattern_size, size_t width,
                                   size_t height, rill_graph_node *out) {
  RILL_ENTER_NODE();
  RILL_TRY(rill__building_check(&building));
  struct rill__fill_2d fill = {
    .dst = dst,
    .pitch = dst_pitch,
    .width = width,
    .height = height,
    .pattern = pattern,
    .pattern_size = pattern_size,
  };
  return rill__building_finish(&building, rill__fill_submit(s, &fill));
}

rill_status rill_graph_add_host_call(rill_graph graph, const rill_graph_node *after, size_t after_count,
                                     rill_host_fn fn, void *user, rill_graph_node *out) {
  RILL_ENTER_NODE();
  struct rill__operation *operation = NULL;
  bool taken = false;
  RILL_TRY(rill__building_check(&building));
  RILL_REQUIRE(fn != NULL, RILL_ERROR_INVALID_ARGUMENT, "fn is NULL");
  RILL_TRY(rill__operation_host_call(building.graph->base.device, fn, user, &operation));
  return rill__building_finish(&building, rill__capture_add(s, operation, &taken));
}

rill_status rill_graph_add_empty(rill_graph graph, const rill_graph_node *after, size_t after_count,
                                 rill_graph_node *out) {
  RILL_ENTER_NODE();
  (void)s;
  RILL_TRY(rill__building_check(&building));
  return rill__building_finish(&building, RILL_OK);
}

rill_status rill_graph_add_event_record(rill_graph graph, const rill_graph_node *after, size_t after_count,
                                        rill_event event, rill_graph_node *out) {
  RILL_ENTER_NODE();
  struct rill__event *e;
  bool taken = false;
  RILL_RESOLVE(RILL__EVENT, event, "event", &e);
  RILL_TRY(rill__graph_check_event(building.graph, e, true));
  RILL_TRY(rill__building_check(&building));
  return rill__building_finish(&building, rill__capture_record(s, e, RILL_EVENT_EXTERNAL, &taken));
}

rill_status rill_graph_add_event_wait(rill_graph graph, const rill_graph_node *after, size_t after_count,
                                      rill_event event, rill_graph_node *out) {
  RILL_ENTER_NODE();
  struct rill__event *e;
  bool taken = false;
  RILL_RESOLVE(RILL__EVENT, event, "event", &e);
  RILL_TRY(rill__graph_check_event(building.graph, e, false));
  RILL_TRY(rill__building_check(&building));
  return rill__building_finish(&building, rill__capture_wait(s, e, RILL_EVENT_EXTERNAL, &taken));
}

rill_status rill_graph_add_edge(rill_graph graph, rill_graph_node from, rill_graph_node to) {
  RILL_ENTER();
  struct rill__graph *g;
  struct rill__graph_node *first = NULL, *second = NULL;
  RILL_RESOLVE(RILL__GRAPH, graph, "graph", &g);
  RILL_TRY(rill__find_node_of(g, from, "from", &first));
  RILL_TRY(rill__find_node_of(g, to, "to", &second));
  rill__graphs_lock();
  rill_status status = rill__graph_check_complete(g);
  if (status == RILL_OK) status = rill__graph_connect(first, second);
  rill__graphs_unlock();
  return status;
}

/* ---- queries ---- */

rill_status rill_graph_find_node(rill_graph graph, const char *label, uint32_t nth, rill_graph_node *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_GRAPH_NODE;
  struct rill__graph *g;
  RILL_RESOLVE(RILL__GRAPH, graph, "graph", &g);
  RILL_REQUIRE(label != NULL && out != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               label == NULL ? "label" : "out");
  uint32_t found = 0;
  rill__graphs_lock();
  rill__graph_renumber(g);
  for (uint32_t i = 0; i < g->count && found <= nth; i++) {
    if (!rill__operation_has_name(g->nodes[i]->operation, label)) continue;
    if (found++ == nth) out->id = rill__node_id(g->nodes[i]);
  }
  rill__graphs_unlock();
  RILL_REQUIRE(out->id != 0, RILL_ERROR_NOT_FOUND, "the graph has %u nodes labelled \"%s\"; there is no number %u",
               found, label, nth);
  return RILL_OK;
}

rill_status rill_graph_get_nodes(rill_graph graph, rill_graph_node *nodes, size_t *count) {
  RILL_ENTER();
  const size_t room = count != NULL ? *count : 0;
  if (count != NULL) *count = 0;
  struct rill__graph *g;
  RILL_RESOLVE(RILL__GRAPH, graph, "graph", &g);
  RILL_REQUIRE(count != NULL, RILL_ERROR_INVALID_ARGUMENT, "count is NULL");
  RILL_REQUIRE(nodes != NULL || room == 0, RILL_ERROR_INVALID_ARGUMENT, "nodes is NULL, but *count is %zu", room);
  rill__graphs_lock();
  rill__graph_renumber(g);
  for (uint32_t i = 0; i < g->count && i < room; i++) nodes[i].id = rill__node_id(g->nodes[i]);
  *count = g->count;
  rill__graphs_unlock();
  return RILL_OK;
}

rill_status rill_graph_get_edges(rill_graph graph, rill_graph_node *from, rill_graph_node *to, size_t *count) {
  RILL_ENTER();
  const size_t room = count != NULL ? *count : 0;
  if (count != NULL) *count = 0;
  struct rill__graph *g;
  RILL_RESOLVE(RILL__GRAPH, graph, "graph", &g);
  RILL_REQUIRE(count != NULL, RILL_ERROR_INVALID_ARGUMENT, "count is NULL");
  RILL_REQUIRE((from != NULL && to != NULL) || room == 0, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL, but *count is %zu",
               from == NULL ? "from" : "to", room);
  size_t listed = 0;
  rill__graphs_lock();
  rill__graph_renumber(g);
  for (uint32_t i = 0; i < g->count; i++) {
    const struct rill__graph_node *node = g->nodes[i];
    for (uint32_t k = 0; k < node->after_count && listed < room; k++, listed++) {
      from[listed].id = rill__node_id(g->nodes[node->after[k]]);
      to[listed].id = rill__node_id(node);
    }
  }
  *count = g->edges;
  rill__graphs_unlock();
  return RILL_OK;
}

rill_status rill_graph_node_kind(rill_graph_node node, uint32_t *out) {
  RILL_ENTER();
  if (out != NULL) *out = 0;
  struct rill__graph_node *n = NULL;
  RILL_TRY(rill__graph_node_find(node, "node", NULL, &n));
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  rill__graphs_lock();
  const rill_status status = rill__graph_node_check(n, "node");
  *out = n->kind;
  rill__graphs_unlock();
  return status;
}
