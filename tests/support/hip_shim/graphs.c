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

/* ---- nodes ---- */

hipError_t hipGraphCreate(hipGraph_t *graph, unsigned int flags) {
  SHIM_CALL(cuGraphCreate, (CUgraph *)(void *)graph, flags);
}

static CUDA_KERNEL_NODE_PARAMS_v1 kernel_values(const hipKernelNodeParams *launch) {
  return (CUDA_KERNEL_NODE_PARAMS_v1){
    .func = (CUfunction)launch->func,
    .gridDimX = launch->gridDim.x,
    .gridDimY = launch->gridDim.y,
    .gridDimZ = launch->gridDim.z,
    .blockDimX = launch->blockDim.x,
    .blockDimY = launch->blockDim.y,
    .blockDimZ = launch->blockDim.z,
    .sharedMemBytes = launch->sharedMemBytes,
    .kernelParams = launch->kernelParams,
  };
}

hipError_t hipGraphAddKernelNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                                 const hipKernelNodeParams *launch) {
  const CUDA_KERNEL_NODE_PARAMS_v1 values = kernel_values(launch);
  SHIM_CALL(cuGraphAddKernelNode, node_out(node), graph_of(graph), nodes_of(after), count, &values);
}

hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                           const hipKernelNodeParams *launch) {
  const CUDA_KERNEL_NODE_PARAMS_v1 values = kernel_values(launch);
  SHIM_CALL(cuGraphExecKernelNodeSetParams, exec_of(exec), (CUgraphNode)(void *)node, &values);
}

/* Within a call: the driver's context is current. */
static CUmemorytype type_of(const void *p) {
  CUmemorytype type = (CUmemorytype)0;
  const CUresult result = shim_cuda.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, shim_pointer(p));
  return result == CUDA_SUCCESS && type != CU_MEMORYTYPE_HOST ? CU_MEMORYTYPE_UNIFIED : CU_MEMORYTYPE_HOST;
}

static CUresult add_copy(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                         const hipMemcpy3DParms *copy) {
  CUcontext context = NULL;
  const CUDA_MEMCPY3D values = {
    .srcMemoryType = type_of(copy->srcPtr.ptr),
    .srcHost = copy->srcPtr.ptr,
    .srcDevice = shim_pointer(copy->srcPtr.ptr),
    .srcPitch = copy->srcPtr.pitch,
    .srcHeight = copy->srcPtr.ysize,
    .dstMemoryType = type_of(copy->dstPtr.ptr),
    .dstHost = copy->dstPtr.ptr,
    .dstDevice = shim_pointer(copy->dstPtr.ptr),
    .dstPitch = copy->dstPtr.pitch,
    .dstHeight = copy->dstPtr.ysize,
    .WidthInBytes = copy->extent.width,
    .Height = copy->extent.height,
    .Depth = copy->extent.depth,
  };
  const hipError_t code = shim_context(shim_current_device(), &context);
  if (code != hipSuccess) return (CUresult)code;
  return shim_cuda.cuGraphAddMemcpyNode(node_out(node), graph_of(graph), nodes_of(after), count, &values, context);
}

hipError_t hipGraphAddMemcpyNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                                 const hipMemcpy3DParms *copy) {
  hipError_t code = shim_enter();
  if (code == hipSuccess) {
    code = (hipError_t)add_copy(node, graph, after, count, copy);
    shim_leave();
  }
  return shim_result((int)code);
}

hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                                   void *dst, const void *src, size_t size, hipMemcpyKind kind) {
  const hipMemcpy3DParms copy = {
    .srcPtr = { .ptr = (void *)(uintptr_t)src, .pitch = size, .xsize = size, .ysize = 1 },
    .dstPtr = { .ptr = dst, .pitch = size, .xsize = size, .ysize = 1 },
    .extent = { .width = size, .height = 1, .depth = 1 },
    .kind = kind,
  };
  return hipGraphAddMemcpyNode(node, graph, after, count, &copy);
}

hipError_t hipGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                                 const hipMemsetParams *fill) {
  const CUDA_MEMSET_NODE_PARAMS_v1 values = {
    .dst = shim_pointer(fill->dst),
    .pitch = fill->pitch,
    .value = fill->value,
    .elementSize = fill->elementSize,
    .width = fill->width,
    .height = fill->height,
  };
  CUcontext context = NULL;
  const hipError_t code = shim_context(shim_current_device(), &context);
  if (code != hipSuccess) return shim_result((int)code);
  SHIM_CALL(cuGraphAddMemsetNode, node_out(node), graph_of(graph), nodes_of(after), count, &values, context);
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

hipError_t hipGraphExecDestroy(hipGraphExec_t exec) { SHIM_CALL(cuGraphExecDestroy, exec_of(exec)); }
