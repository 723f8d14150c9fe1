/* A vendor's interface over the engine: graphs. */
#include "front.h"

static int capture_info(vendor_stream stream, vendor_capture_status *status, vendor_graph *graph,
                        const vendor_node **nodes, size_t *count) {
  int state = 0;
  void *handle = NULL;
  void *const *after = NULL;
  if (status == NULL) return FAKE_INVALID_VALUE;
  const int code = fake_capture_info(stream, &state, &handle, &after, count);
  if (code != FAKE_OK) return code;
  *status = (vendor_capture_status)state; /* numbered as the vendors do */
  if (graph != NULL) *graph = handle;
  if (nodes != NULL) *nodes = (const vendor_node *)(const void *)after;
  return FAKE_OK;
}

vendor_result VENDOR(StreamGetCaptureInfo)(vendor_stream stream, vendor_capture_status *status, vendor_capture_id *id,
                                           vendor_graph *graph, const vendor_node **nodes, size_t *count) {
  size_t none = 0;
  if (id != NULL) *id = 0;
  VENDOR_CALL(capture_info(stream, status, graph, nodes, count != NULL ? count : &none));
}

/* ---- nodes ---- */

static struct fake_graph_place place_of(vendor_graph graph, const vendor_node *after, size_t count) {
  return (struct fake_graph_place){ graph, (void *const *)(const void *)after, count };
}

#define ADD(function, ...)                                               \
  do {                                                                   \
    const struct fake_graph_place place = place_of(graph, after, count); \
    VENDOR_CALL(function(&place, __VA_ARGS__));                          \
  } while (0)

vendor_result VENDOR(GraphCreate)(vendor_graph *out, unsigned int flags) {
  VENDOR_CALL(flags != 0 ? FAKE_INVALID_VALUE : fake_graph_create((void **)out));
}

vendor_result VENDOR(GraphAddEmptyNode)(vendor_node *node, vendor_graph graph, const vendor_node *after, size_t count) {
  ADD(fake_graph_add_empty, (void **)node);
}

static void invoke_node(const struct fake_host_call *call, int status) {
  (void)status;
  ((vendor_host_fn)call->function)(call->user);
}

struct fake_host_call fake_call_of_node(const vendor_host_node *node) {
  return (struct fake_host_call){ .invoke = invoke_node, .function = (void (*)(void))node->fn, .user = node->userData };
}

vendor_result VENDOR(GraphAddHostNode)(vendor_node *node, vendor_graph graph, const vendor_node *after, size_t count,
                                       const vendor_host_node *call) {
  const struct fake_host_call values = fake_call_of_node(call);
  ADD(fake_graph_add_host, &values, (void **)node);
}

vendor_result VENDOR(GraphAddEventRecordNode)(vendor_node *node, vendor_graph graph, const vendor_node *after,
                                              size_t count, vendor_event event) {
  ADD(fake_graph_add_event, event, true, (void **)node);
}

vendor_result VENDOR(GraphAddEventWaitNode)(vendor_node *node, vendor_graph graph, const vendor_node *after,
                                            size_t count, vendor_event event) {
  ADD(fake_graph_add_event, event, false, (void **)node);
}

vendor_result VENDOR(GraphAddChildGraphNode)(vendor_node *node, vendor_graph graph, const vendor_node *after,
                                             size_t count, vendor_graph child) {
  ADD(fake_graph_add_child, child, (void **)node);
}

vendor_result VENDOR(GraphDestroy)(vendor_graph graph) { VENDOR_CALL(fake_graph_destroy(graph)); }

/* ---- execution objects ---- */

vendor_result VENDOR(GraphInstantiateWithFlags)(vendor_exec *exec, vendor_graph graph, unsigned long long flags) {
  VENDOR_CALL(flags != 0 ? FAKE_INVALID_VALUE : fake_graph_instantiate(graph, (void **)exec));
}

vendor_result VENDOR(GraphLaunch)(vendor_exec exec, vendor_stream stream) {
  VENDOR_CALL(fake_graph_launch(exec, stream));
}

vendor_result VENDOR(GraphUpload)(vendor_exec exec, vendor_stream stream) {
  VENDOR_CALL(fake_graph_upload(exec, stream));
}

vendor_result VENDOR(GraphExecUpdate)(vendor_exec exec, vendor_graph graph, vendor_node *failing,
                                      vendor_update_result *result) {
  void *refused = NULL;
  if (failing == NULL) failing = (vendor_node *)(void *)&refused;
  *failing = NULL;
  if (result != NULL) *result = 0;
  VENDOR_CALL(fake_graph_exec_update(exec, graph, (void **)failing));
}

vendor_result VENDOR(GraphExecDestroy)(vendor_exec exec) { VENDOR_CALL(fake_graph_exec_destroy(exec)); }

/* ---- user objects ---- */

vendor_result VENDOR(UserObjectCreate)(vendor_object *out, void *data, vendor_host_fn destroy, unsigned int refs,
                                       unsigned int flags) {
  VENDOR_CALL(fake_object_create((void **)out, data, destroy, refs, flags));
}

vendor_result VENDOR(UserObjectRelease)(vendor_object object, unsigned int refs) {
  VENDOR_CALL(fake_object_release(object, refs));
}

vendor_result VENDOR(GraphRetainUserObject)(vendor_graph graph, vendor_object object, unsigned int refs,
                                            unsigned int flags) {
  VENDOR_CALL(fake_graph_retain_object(graph, object, refs, flags));
}
