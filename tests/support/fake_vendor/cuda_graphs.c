/* The CUDA driver API over the engine: graphs. */
#include "cuda_front.h"

static int capture_info(CUstream stream, CUstreamCaptureStatus *status, CUgraph *graph, const CUgraphNode **nodes,
                        size_t *count) {
  static const CUstreamCaptureStatus states[] = { CU_STREAM_CAPTURE_STATUS_NONE, CU_STREAM_CAPTURE_STATUS_ACTIVE,
                                                  CU_STREAM_CAPTURE_STATUS_INVALIDATED };
  int state = 0;
  void *handle = NULL;
  void *const *after = NULL;
  if (status == NULL) return FAKE_INVALID_VALUE;
  const int code = fake_capture_info(stream, &state, &handle, &after, count);
  if (code != FAKE_OK) return code;
  *status = states[state];
  if (graph != NULL) *graph = handle;
  if (nodes != NULL) *nodes = (const CUgraphNode *)(const void *)after;
  return FAKE_OK;
}

CUresult CUDAAPI cuStreamGetCaptureInfo(CUstream stream, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
                                        const CUgraphNode **nodes, size_t *count) {
  size_t none = 0;
  if (id != NULL) *id = 0;
  CU_CALL(capture_info(stream, status, graph, nodes, count != NULL ? count : &none));
}

CUresult CUDAAPI cuStreamUpdateCaptureDependencies(CUstream stream, CUgraphNode *nodes, size_t count,
                                                   unsigned int flags) {
  CU_CALL(fake_capture_update(stream, (void *const *)(const void *)nodes, count, flags));
}

/* ---- nodes ---- */

static struct fake_graph_place place_of(CUgraph graph, const CUgraphNode *after, size_t count) {
  return (struct fake_graph_place){ graph, (void *const *)(const void *)after, count };
}

#define ADD(function, ...)                                               \
  do {                                                                   \
    const struct fake_graph_place place = place_of(graph, after, count); \
    CU_CALL(function(&place, __VA_ARGS__));                              \
  } while (0)

CUresult CUDAAPI cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count) {
  ADD(fake_graph_add_empty, (void **)node);
}

static void invoke_node(const struct fake_host_call *call, int status) {
  (void)status;
  ((CUhostFn)call->function)(call->user);
}

CUresult CUDAAPI cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                    const CUDA_HOST_NODE_PARAMS *call) {
  const struct fake_host_call values = { .invoke = invoke_node,
                                         .function = (void (*)(void))call->fn,
                                         .user = call->userData };
  ADD(fake_graph_add_host, &values, (void **)node);
}

CUresult CUDAAPI cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                           CUevent event) {
  ADD(fake_graph_add_event, event, true, (void **)node);
}

CUresult CUDAAPI cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                         CUevent event) {
  ADD(fake_graph_add_event, event, false, (void **)node);
}

CUresult CUDAAPI cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                          CUgraph child) {
  ADD(fake_graph_add_child, child, (void **)node);
}

/* ---- execution objects ---- */

CUresult CUDAAPI cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
  CU_CALL(flags != 0 ? FAKE_INVALID_VALUE : fake_graph_instantiate(graph, (void **)exec));
}

CUresult CUDAAPI cuGraphLaunch(CUgraphExec exec, CUstream stream) { CU_CALL(fake_graph_launch(exec, stream)); }

CUresult CUDAAPI cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphNode *failing,
                                   CUgraphExecUpdateResult *result) {
  if (failing != NULL) *failing = NULL;
  if (result != NULL) *result = 0;
  CU_CALL(fake_graph_exec_update(exec, graph));
}

CUresult CUDAAPI cuGraphExecDestroy(CUgraphExec exec) { CU_CALL(fake_graph_exec_destroy(exec)); }

static int set_kernel(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *values) {
  const struct fake_launch launch = { .grid = { values->gridDimX, values->gridDimY, values->gridDimZ },
                                      .block = { values->blockDimX, values->blockDimY, values->blockDimZ },
                                      .shared = values->sharedMemBytes,
                                      .args = values->kernelParams };
  struct fake_function *function;
  struct fake_op *op = NULL;
  int code = fake_function_get(values->func, &function);
  if (code == FAKE_OK) code = fake_launch_op(values->func, function->module->context, &launch, &op);
  if (code != FAKE_OK) return code;
  code = fake_graph_exec_set(exec, node, op);
  if (op->finish != NULL) op->finish(op->data);
  fake_op_release(op);
  return code;
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS_v1 *launch) {
  CU_CALL(launch == NULL ? FAKE_INVALID_VALUE : set_kernel(exec, node, launch));
}
