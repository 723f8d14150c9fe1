/* The HIP runtime API over the engine: graphs. */
#include "hip_calls.h"

static int capture_info(hipStream_t stream, hipStreamCaptureStatus *status, hipGraph_t *graph,
                        const hipGraphNode_t **nodes, size_t *count) {
  static const hipStreamCaptureStatus states[] = { hipStreamCaptureStatusNone, hipStreamCaptureStatusActive,
                                                   hipStreamCaptureStatusInvalidated };
  int state = 0;
  void *handle = NULL;
  void *const *after = NULL;
  if (status == NULL) return FAKE_INVALID_VALUE;
  const int code = fake_capture_info(stream, &state, &handle, &after, count);
  if (code != FAKE_OK) return code;
  *status = states[state];
  if (graph != NULL) *graph = handle;
  if (nodes != NULL) *nodes = (const hipGraphNode_t *)(const void *)after;
  return FAKE_OK;
}

hipError_t hipStreamGetCaptureInfo_v2(hipStream_t stream, hipStreamCaptureStatus *status, unsigned long long *id,
                                      hipGraph_t *graph, const hipGraphNode_t **nodes, size_t *count) {
  size_t none = 0;
  if (id != NULL) *id = 0;
  HIP_CALL(capture_info(stream, status, graph, nodes, count != NULL ? count : &none));
}

hipError_t hipStreamUpdateCaptureDependencies(hipStream_t stream, hipGraphNode_t *nodes, size_t count,
                                              unsigned int flags) {
  HIP_CALL(fake_capture_update(stream, (void *const *)(const void *)nodes, count, flags));
}

/* ---- nodes ---- */

static struct fake_graph_place place_of(hipGraph_t graph, const hipGraphNode_t *after, size_t count) {
  return (struct fake_graph_place){ graph, (void *const *)(const void *)after, count };
}

#define ADD(function, ...)                                               \
  do {                                                                   \
    const struct fake_graph_place place = place_of(graph, after, count); \
    HIP_CALL(function(&place, __VA_ARGS__));                             \
  } while (0)

hipError_t hipGraphAddEmptyNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count) {
  ADD(fake_graph_add_empty, (void **)node);
}

static void invoke_node(const struct fake_host_call *call, int status) {
  (void)status;
  ((hipHostFn_t)call->function)(call->user);
}

hipError_t hipGraphAddHostNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                               const hipHostNodeParams *call) {
  const struct fake_host_call values = { .invoke = invoke_node,
                                         .function = (void (*)(void))call->fn,
                                         .user = call->userData };
  ADD(fake_graph_add_host, &values, (void **)node);
}

hipError_t hipGraphAddEventRecordNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                                      hipEvent_t event) {
  ADD(fake_graph_add_event, event, true, (void **)node);
}

hipError_t hipGraphAddEventWaitNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                                    hipEvent_t event) {
  ADD(fake_graph_add_event, event, false, (void **)node);
}

hipError_t hipGraphAddChildGraphNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                                     hipGraph_t child) {
  ADD(fake_graph_add_child, child, (void **)node);
}

/* ---- execution objects ---- */

hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *exec, hipGraph_t graph, unsigned long long flags) {
  HIP_CALL(flags != 0 ? FAKE_INVALID_VALUE : fake_graph_instantiate(graph, (void **)exec));
}

hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) { HIP_CALL(fake_graph_launch(exec, stream)); }

hipError_t hipGraphExecUpdate(hipGraphExec_t exec, hipGraph_t graph, hipGraphNode_t *failing,
                              hipGraphExecUpdateResult *result) {
  if (failing != NULL) *failing = NULL;
  if (result != NULL) *result = 0;
  HIP_CALL(fake_graph_exec_update(exec, graph));
}

hipError_t hipGraphExecDestroy(hipGraphExec_t exec) { HIP_CALL(fake_graph_exec_destroy(exec)); }
