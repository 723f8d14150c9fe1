/* cuda.h over the engine: nodes of graphs whose parameters are CUDA's own.  They are checked as the header's comments
 * say, and no less strictly where those leave it open. */
#include "front.h"

#include <string.h>

/* A node to be added to a graph, or one of an execution object to be changed. */
struct target {
  struct fake_graph_place place;
  CUgraphNode *out;
  bool change;
  CUgraphExec exec;
  CUgraphNode node;
};

static struct target new_node(CUgraph graph, const CUgraphNode *after, size_t count, CUgraphNode *out) {
  return (struct target){ .place = { graph, (void *const *)(const void *)after, count }, .out = out };
}

static struct target node_of(CUgraphExec exec, CUgraphNode node) {
  return (struct target){ .change = true, .exec = exec, .node = node };
}

/* Ends the caller's hold on an operation, and what nobody has taken over of it. */
static int give_op(const struct target *target, enum fake_node kind, struct fake_op *op) {
  const int code = target->change ? fake_graph_exec_set(target->exec, target->node, kind, op)
                                  : fake_graph_add_op(&target->place, kind, op, (void **)target->out);
  if (op->finish != NULL) op->finish(op->data);
  op->finish = NULL;
  fake_op_release(op);
  return code;
}

/* ---- kernels ---- */

static int kernel_op(const CUDA_KERNEL_NODE_PARAMS_v1 *values, struct fake_op **op) {
  if (values == NULL || (values->kernelParams != NULL && values->extra != NULL)) return FAKE_INVALID_VALUE;
  const struct fake_launch launch = { .grid = { values->gridDimX, values->gridDimY, values->gridDimZ },
                                      .block = { values->blockDimX, values->blockDimY, values->blockDimZ },
                                      .shared = values->sharedMemBytes,
                                      .args = values->kernelParams };
  return fake_launch_node(values->func, &launch, op);
}

static int give_kernel(struct target target, const CUDA_KERNEL_NODE_PARAMS_v1 *values) {
  struct fake_op *op;
  const int code = kernel_op(values, &op);
  return code == FAKE_OK ? give_op(&target, FAKE_NODE_KERNEL, op) : code;
}

CUresult CUDAAPI cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                      const CUDA_KERNEL_NODE_PARAMS_v1 *launch) {
  CU_CALL(give_kernel(new_node(graph, after, count, node), launch));
}

CUresult CUDAAPI cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_KERNEL_NODE_PARAMS_v1 *launch) {
  CU_CALL(give_kernel(node_of(exec, node), launch));
}

/* Those that the header calls valid for nodes. */
static int set_attribute(CUgraphNode node, CUlaunchAttributeID id, const CUlaunchAttributeValue *value) {
  if (fake_graph_kind(node) != FAKE_NODE_KERNEL || value == NULL) return FAKE_INVALID_VALUE;
  switch ((int)id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN: break;
    default: return FAKE_INVALID_VALUE;
  }
  struct fake_launch launch = { .cooperative = false };
  const CUlaunchAttribute attribute = { .id = id, .value = *value };
  const int code = fake_cuda_take_attribute(&attribute, &launch);
  if (code == FAKE_OK) fake_launch_carried |= launch.carried;
  return code;
}

CUresult CUDAAPI cuGraphKernelNodeSetAttribute(CUgraphNode node, CUlaunchAttributeID id,
                                               const CUlaunchAttributeValue *value) {
  CU_CALL(set_attribute(node, id, value));
}

/* ---- edges ---- */

/* What lets a kernel start early leads from a kernel to a kernel, by one of two ports. */
static bool good_edge(const CUgraphEdgeData *edge, CUgraphNode from, CUgraphNode to) {
  static const CUgraphEdgeData plain;
  if (edge->type == 0) return memcmp(edge, &plain, sizeof plain) == 0;
  return edge->type == 1 && (edge->from_port == 1 || edge->from_port == 2) && edge->to_port == 0 &&
         fake_graph_kind(from) == FAKE_NODE_KERNEL && fake_graph_kind(to) == FAKE_NODE_KERNEL;
}

static int add_edges(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edges,
                     size_t count) {
  for (size_t i = 0; i < count && edges != NULL; i++)
    if (!good_edge(&edges[i], from[i], to[i])) return FAKE_INVALID_VALUE;
  return fake_graph_add_edges(graph, (void *const *)(const void *)from, (void *const *)(const void *)to, count);
}

CUresult CUDAAPI cuGraphAddDependencies_v2(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                           const CUgraphEdgeData *edges, size_t count) {
  CU_CALL(add_edges(graph, from, to, edges, count));
}

/* ---- copies and fills ---- */

static int check_context(CUcontext handle) {
  struct fake_context *context;
  return handle == NULL ? FAKE_INVALID_CONTEXT : fake_context_get(handle, &context);
}

/* Memory of the type that it is said to be: host memory is not the device's, and unified memory is known. */
static bool good_end(CUmemorytype type, const void *p) {
  enum fake_memory kind;
  const bool known = fake_memory_kind(p, &kind);
  if (type == CU_MEMORYTYPE_HOST)
    return !known || kind == FAKE_HOST_MEMORY || kind == FAKE_REGISTERED || kind == FAKE_MANAGED_MEMORY;
  return (type == CU_MEMORYTYPE_UNIFIED || type == CU_MEMORYTYPE_DEVICE) && known;
}

static bool good_pitches(const CUDA_MEMCPY3D *v) {
  return v->srcPitch >= v->WidthInBytes && v->dstPitch >= v->WidthInBytes && v->srcHeight >= v->Height &&
         v->dstHeight >= v->Height && v->srcPitch <= INT32_MAX && v->dstPitch <= INT32_MAX;
}

static int copy_op(const CUDA_MEMCPY3D *v, CUcontext context, struct fake_op **op) {
  const int code = check_context(context);
  if (code != FAKE_OK || v == NULL) return code != FAKE_OK ? code : FAKE_INVALID_VALUE;
  const void *src = v->srcMemoryType == CU_MEMORYTYPE_HOST ? v->srcHost : (const void *)(uintptr_t)v->srcDevice;
  void *dst = v->dstMemoryType == CU_MEMORYTYPE_HOST ? v->dstHost : (void *)(uintptr_t)v->dstDevice;
  const struct fake_copy copy = { .dst = dst,
                                  .src = src,
                                  .dst_pitch = v->dstPitch,
                                  .src_pitch = v->srcPitch,
                                  .width = v->WidthInBytes,
                                  .height = v->Height,
                                  .dst_slice = v->dstPitch * v->dstHeight,
                                  .src_slice = v->srcPitch * v->srcHeight,
                                  .depth = v->Depth };
  if (!good_pitches(v) || !good_end(v->srcMemoryType, src) || !good_end(v->dstMemoryType, dst))
    return FAKE_INVALID_VALUE;
  return fake_copy_node(&copy, op);
}

static int give_copy(struct target target, const CUDA_MEMCPY3D *values, CUcontext context) {
  struct fake_op *op;
  const int code = copy_op(values, context, &op);
  return code == FAKE_OK ? give_op(&target, FAKE_NODE_COPY, op) : code;
}

CUresult CUDAAPI cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                      const CUDA_MEMCPY3D *copy, CUcontext context) {
  CU_CALL(give_copy(new_node(graph, after, count, node), copy, context));
}

CUresult CUDAAPI cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *copy,
                                                CUcontext context) {
  CU_CALL(give_copy(node_of(exec, node), copy, context));
}

static enum fake_node fill_kind(const CUDA_MEMSET_NODE_PARAMS_v1 *values) {
  return values->height > 1 ? FAKE_NODE_FILL_OF_ROWS : FAKE_NODE_FILL;
}

static int fill_op(const CUDA_MEMSET_NODE_PARAMS_v1 *values, CUcontext context, struct fake_op **op) {
  const int code = check_context(context);
  if (code != FAKE_OK || values == NULL) return code != FAKE_OK ? code : FAKE_INVALID_VALUE;
  const struct fake_fill fill = { .dst = (char *)(uintptr_t)values->dst,
                                  .pitch = values->pitch,
                                  .element = values->elementSize,
                                  .count = values->width,
                                  .height = values->height,
                                  .value = values->value };
  return fake_fill_node(&fill, op);
}

static int give_fill(struct target target, const CUDA_MEMSET_NODE_PARAMS_v1 *values, CUcontext context) {
  struct fake_op *op;
  const int code = fill_op(values, context, &op);
  return code == FAKE_OK ? give_op(&target, fill_kind(values), op) : code;
}

CUresult CUDAAPI cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *after, size_t count,
                                      const CUDA_MEMSET_NODE_PARAMS_v1 *fill, CUcontext context) {
  CU_CALL(give_fill(new_node(graph, after, count, node), fill, context));
}

CUresult CUDAAPI cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                const CUDA_MEMSET_NODE_PARAMS_v1 *fill, CUcontext context) {
  CU_CALL(give_fill(node_of(exec, node), fill, context));
}

/* ---- host calls ---- */

CUresult CUDAAPI cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *call) {
  const struct fake_host_call values = fake_call_of_node(call);
  CU_CALL(fake_graph_exec_set_host(exec, node, &values));
}

/* ---- enabling ---- */

CUresult CUDAAPI cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled) {
  CU_CALL(fake_graph_exec_enable(exec, node, enabled != 0));
}
