/* Steps of the tour that make, launch and change graphs.  A step that makes several calls undoes what it has done when
 * one of them fails. */
#include "tour_steps.h"

#define TRY(call)                           \
  do {                                      \
    const rill_status status_ = (call);     \
    if (status_ != RILL_OK) return status_; \
  } while (0)

static const uint32_t pattern[4] = { 0x01020304, 0x05060708, 0x090a0b0c, 0x0d0e0f10 };
static const size_t half = TOUR_WORDS / 2 * sizeof(uint32_t);

/* Without graph support, another step has reported it. */
static bool has_graphs(void) { return rill_device_supports(vendor.device, RILL_FEATURE_GRAPH, NULL); }
static bool has_changes(void) { return rill_device_supports(vendor.device, RILL_FEATURE_GRAPH_UPDATE, NULL); }

/* Leaves no objects. */
static rill_status edit_nodes(struct tour *t, rill_graph graph, rill_graph_node last) {
  rill_graph_node_params params = RILL_GRAPH_NODE_PARAMS_INIT;
  rill_graph_node extra;
  TRY(rill_graph_get_node_params(graph, t->fill_node, &params));
  TRY(rill_graph_set_node_params(graph, t->fill_node, &params));
  TRY(rill_graph_add_empty(graph, &last, 1, &extra));
  return rill_graph_remove_node(graph, extra);
}

/* A node of each kind, in a chain. */
static rill_status add_nodes(struct tour *t, rill_graph graph) {
  const rill_launch shape = rill_launch_1d(1, 1);
  uint32_t *counter = t->memory;
  rill_graph_node last;
  TRY(rill_graph_add_fill(graph, NULL, 0, t->memory, pattern, 4, TOUR_WORDS, &last));
  t->fill_node = last;
  TRY(rill_graph_add_fill_2d(graph, &last, 1, t->memory, 48, pattern, 16, 2, 5, &last));
  TRY(rill_graph_add_copy(graph, &last, 1, t->more, t->memory, half, &last));
  TRY(rill_graph_add_copy_2d(graph, &last, 1, t->pinned, 40, t->more, 48, 32, 5, &last));
  TRY(rill_graph_add_copy(graph, &last, 1, t->pageable, t->pinned, half, &last));
  TRY(rill_graph_add_copy(graph, &last, 1, t->more, t->pageable, half, &last));
  TRY(rill_graph_add_copy_2d(graph, &last, 1, t->pageable, 40, t->more, 48, 32, 5, &last));
  if (vendor.has_kernels) {
    TRY(rill_graph_add_kernel(graph, &last, 1, t->kernel, &shape, RILL_ARGS(counter), &last));
    t->kernel_node = last;
  }
  TRY(rill_graph_add_host_call(graph, &last, 1, tour_count_call, t, &last));
  TRY(rill_graph_add_event_record(graph, &last, 1, t->event, &last));
  TRY(rill_graph_add_event_wait(graph, &last, 1, t->event, &last));
  TRY(rill_graph_add_empty(graph, &last, 1, &last));
  return edit_nodes(t, graph, last);
}

STEP(make_graph) {
  POISON(t->graph);
  if (!has_graphs()) t->graph = RILL_NULL_GRAPH;
  rill_status status = has_graphs() ? rill_graph_create(vendor.device, &t->graph) : RILL_OK;
  if (CHECKED(t, status, t->graph) != RILL_OK || !has_graphs()) return status;
  status = add_nodes(t, t->graph);
  if (status != RILL_OK) ignore(rill_graph_release(t->graph));
  if (status != RILL_OK) t->graph.id = 0;
  return status;
}

STEP(instantiate) {
  if (!has_graphs()) return RILL_OK;
  POISON(t->exec);
  const rill_status status = rill_graph_instantiate(t->graph, &t->exec);
  return CHECKED(t, status, t->exec);
}

STEP(instantiate_again) {
  rill_graph_exec exec;
  if (!has_graphs()) return RILL_OK;
  POISON(exec);
  const rill_status status = rill_graph_instantiate(t->graph, &exec);
  if (CHECKED(t, status, exec) == RILL_OK) ignore(rill_graph_exec_release(exec));
  return status;
}

#define LAUNCHING(name, call) \
  STEP(name) { return has_graphs() ? (call) : RILL_OK; }
#define CHANGING(name, call) \
  STEP(name) { return has_changes() ? (call) : RILL_OK; }

LAUNCHING(graph_launch, rill_graph_launch(t->exec, t->stream))
LAUNCHING(graph_upload, rill_graph_upload(t->exec, t->stream))
LAUNCHING(graph_launch_elsewhere, rill_graph_launch(t->exec, t->other))
LAUNCHING(held_graph, rill_graph_launch(t->exec, t->stream))
CHANGING(graph_set_fill, rill_graph_exec_set_fill(t->exec, t->fill_node, t->memory, pattern, 4, TOUR_WORDS - 1))
CHANGING(graph_update, rill_graph_update(t->exec, t->graph))

/* Fills that are several nodes are created again with all others. */
STEP(graph_update_all) {
  rill_graph graph;
  if (!has_changes()) return RILL_OK;
  const rill_graph_node fill = t->fill_node, kernel = t->kernel_node;
  TRY(rill_graph_create(vendor.device, &graph));
  rill_status status = add_nodes(t, graph);
  t->fill_node = fill;
  t->kernel_node = kernel;
  if (status == RILL_OK) status = rill_graph_update(t->exec, graph);
  ignore(rill_graph_release(graph));
  return status;
}

STEP(graph_set_kernel_arg) {
  uint32_t *counter = t->memory + 1;
  if (!has_changes()) return RILL_OK;
  return rill_graph_exec_set_kernel_arg(t->exec, t->kernel_node, 0, &counter, sizeof counter);
}

/* Another stream joins the capture, and is joined back. */
static rill_status submit_captured(struct tour *t) {
  void *p = NULL;
  TRY(rill_fill_async(t->high, t->memory, pattern, 8, TOUR_WORDS / 2));
  TRY(rill_stream_wait_stream(t->other, t->high));
  TRY(rill_copy_async(t->other, t->more, t->memory, half));
  TRY(rill_alloc_async(t->high, half, &p));
  TRY(rill_copy_async(t->high, p, t->pinned, half));
  TRY(rill_stream_host_call(t->high, tour_count_call, t));
  TRY(rill_free_async(t->high, p));
  TRY(rill_stream_wait_stream(t->high, t->other));
  return rill_stream_record_event(t->high, t->event, RILL_EVENT_EXTERNAL);
}

/* Waits for the end, so that released objects are destroyed now and not in a later step. */
static rill_status run_captured(struct tour *t, rill_graph graph) {
  rill_graph_exec exec;
  TRY(rill_graph_instantiate(graph, &exec));
  rill_status status = rill_graph_launch(exec, t->stream);
  if (status == RILL_OK) status = rill_stream_synchronize(t->stream);
  ignore(rill_graph_exec_release(exec));
  return status;
}

/* The native handle of the first stream was given out, so the driver captures what others may submit to it. */
STEP(graph_capture) {
  rill_graph graph;
  if (!has_graphs()) return RILL_OK;
  TRY(rill_stream_capture_begin(t->high, RILL_CAPTURE_THREAD));
  rill_status status = submit_captured(t);
  if (status != RILL_OK) {
    ignore(rill_stream_capture_abort(t->high));
    return status;
  }
  TRY(rill_stream_capture_end(t->high, &graph));
  status = run_captured(t, graph);
  ignore(rill_graph_release(graph));
  return status;
}

STEP(release_graph_exec) {
  const rill_status status = rill_graph_exec_release(t->exec);
  t->exec.id = 0;
  return status;
}

STEP(release_graph) {
  const rill_status status = rill_graph_release(t->graph);
  t->graph.id = 0;
  return status;
}
