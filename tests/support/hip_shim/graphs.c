/* Graphs: handles of graphs, nodes and execution objects are CUDA's own. */
#include "shim.h"

static CUgraph graph_of(hipGraph_t graph) { return (CUgraph)(void *)graph; }
static const CUgraphNode *nodes_of(const hipGraphNode_t *nodes) { return (const CUgraphNode *)(const void *)nodes; }
static CUgraphNode *node_out(hipGraphNode_t *node) { return (CUgraphNode *)(void *)node; }
static CUgraphExec exec_of(hipGraphExec_t exec) { return (CUgraphExec)(void *)exec; }

hipError_t hipStreamGetCaptureInfo_v2(hipStream_t stream, hipStreamCaptureStatus *status, unsigned long long *id,
                                      hipGraph_t *graph, const hipGraphNode_t **nodes, size_t *count) {
  SHIM_CALL(cuStreamGetCaptureInfo, shim_stream(stream), (CUstreamCaptureStatus *)status, (cuuint64_t *)(void *)id,
            (CUgraph *)(void *)graph, (const CUgraphNode **)(const void *)nodes, count);
}

hipError_t hipStreamUpdateCaptureDependencies(hipStream_t stream, hipGraphNode_t *nodes, size_t count,
                                              unsigned int flags) {
  SHIM_CALL(cuStreamUpdateCaptureDependencies, shim_stream(stream), node_out(nodes), count, flags);
}

hipError_t hipGraphAddEmptyNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count) {
  SHIM_CALL(cuGraphAddEmptyNode, node_out(node), graph_of(graph), nodes_of(after), count);
}

hipError_t hipGraphAddHostNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                               const hipHostNodeParams *call) {
  const CUDA_HOST_NODE_PARAMS values = { .fn = call->fn, .userData = call->userData };
  SHIM_CALL(cuGraphAddHostNode, node_out(node), graph_of(graph), nodes_of(after), count, &values);
}

hipError_t hipGraphAddEventRecordNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                                      hipEvent_t event) {
  SHIM_CALL(cuGraphAddEventRecordNode, node_out(node), graph_of(graph), nodes_of(after), count, shim_event(event));
}

hipError_t hipGraphAddEventWaitNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                                    hipEvent_t event) {
  SHIM_CALL(cuGraphAddEventWaitNode, node_out(node), graph_of(graph), nodes_of(after), count, shim_event(event));
}

hipError_t hipGraphAddChildGraphNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                                     hipGraph_t child) {
  SHIM_CALL(cuGraphAddChildGraphNode, node_out(node), graph_of(graph), nodes_of(after), count, graph_of(child));
}

hipError_t hipGraphInstantiateWithFlags(hipGraphExec_t *exec, hipGraph_t graph, unsigned long long flags) {
  SHIM_CALL(cuGraphInstantiateWithFlags, (CUgraphExec *)(void *)exec, graph_of(graph), flags);
}

hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t stream) {
  SHIM_CALL(cuGraphLaunch, exec_of(exec), shim_stream(stream));
}

hipError_t hipGraphUpload(hipGraphExec_t exec, hipStream_t stream) {
  SHIM_CALL(cuGraphUpload, exec_of(exec), shim_stream(stream));
}

hipError_t hipGraphExecUpdate(hipGraphExec_t exec, hipGraph_t graph, hipGraphNode_t *failing,
                              hipGraphExecUpdateResult *result) {
  SHIM_CALL(cuGraphExecUpdate, exec_of(exec), graph_of(graph), node_out(failing), (CUgraphExecUpdateResult *)result);
}

hipError_t hipGraphExecDestroy(hipGraphExec_t exec) { SHIM_CALL(cuGraphExecDestroy, exec_of(exec)); }
