/* hip_runtime_api.h over the engine: nodes of graphs whose parameters are HIP's own.  What is checked is what the
 * runtime's source checks (hip_graph.cpp). */
#include "hip_calls.h"

static struct fake_graph_place place_of(hipGraph_t graph, const hipGraphNode_t *after, size_t count) {
  return (struct fake_graph_place){ graph, (void *const *)(const void *)after, count };
}

/* Ends the caller's hold on an operation, and what nobody has taken over of it. */
static int end_op(struct fake_op *op, int code) {
  if (op->finish != NULL) op->finish(op->data);
  op->finish = NULL;
  fake_op_release(op);
  return code;
}

static int add_op(const struct fake_graph_place *place, enum fake_node kind, struct fake_op *op, hipGraphNode_t *out) {
  return end_op(op, fake_graph_add_op(place, kind, op, (void **)out));
}

static int kernel_op(const hipKernelNodeParams *values, struct fake_op **op) {
  if (values == NULL || values->func == NULL || (values->kernelParams == NULL) == (values->extra == NULL))
    return FAKE_INVALID_VALUE;
  const struct fake_launch launch = { .grid = { values->gridDim.x, values->gridDim.y, values->gridDim.z },
                                      .block = { values->blockDim.x, values->blockDim.y, values->blockDim.z },
                                      .shared = values->sharedMemBytes,
                                      .args = values->kernelParams };
  return fake_launch_node(values->func, &launch, op);
}

static int add_kernel(const struct fake_graph_place *place, const hipKernelNodeParams *values, hipGraphNode_t *out) {
  struct fake_op *op;
  const int code = kernel_op(values, &op);
  return code == FAKE_OK ? add_op(place, FAKE_NODE_KERNEL, op, out) : code;
}

hipError_t hipGraphAddKernelNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                                 const hipKernelNodeParams *launch) {
  const struct fake_graph_place place = place_of(graph, after, count);
  HIP_CALL(add_kernel(&place, launch, node));
}

static int set_kernel(hipGraphExec_t exec, hipGraphNode_t node, const hipKernelNodeParams *values) {
  struct fake_op *op;
  const int code = kernel_op(values, &op);
  return code == FAKE_OK ? end_op(op, fake_graph_exec_set(exec, node, FAKE_NODE_KERNEL, op)) : code;
}

hipError_t hipGraphExecKernelNodeSetParams(hipGraphExec_t exec, hipGraphNode_t node,
                                           const hipKernelNodeParams *launch) {
  HIP_CALL(set_kernel(exec, node, launch));
}

static int add_copy(const struct fake_graph_place *place, const struct fake_copy *copy, hipMemcpyKind kind,
                    enum fake_node node, hipGraphNode_t *out) {
  struct fake_op *op;
  if ((int)kind < 0 || kind > hipMemcpyDefault) return FAKE_INVALID_VALUE;
  const int code = fake_copy_node(copy, &op);
  return code == FAKE_OK ? add_op(place, node, op, out) : code;
}

static int add_copy_3d(const struct fake_graph_place *place, const hipMemcpy3DParms *values, hipGraphNode_t *out) {
  struct fake_copy copy;
  return fake_hip_copy_3d(values, &copy) ? add_copy(place, &copy, values->kind, FAKE_NODE_COPY_OF_ROWS, out)
                                         : FAKE_INVALID_VALUE;
}

hipError_t hipGraphAddMemcpyNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                                 const hipMemcpy3DParms *copy) {
  const struct fake_graph_place place = place_of(graph, after, count);
  HIP_CALL(add_copy_3d(&place, copy, node));
}

hipError_t hipGraphAddMemcpyNode1D(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                                   void *dst, const void *src, size_t size, hipMemcpyKind kind) {
  const struct fake_graph_place place = place_of(graph, after, count);
  const struct fake_copy copy = { .dst = dst, .src = src, .width = size, .height = 1, .depth = 1 };
  HIP_CALL(add_copy(&place, &copy, kind, FAKE_NODE_COPY, node));
}

/* Up to 6.1 the last pitch, too, has to lie in the memory. */
static int add_fill(const struct fake_graph_place *place, const hipMemsetParams *values, hipGraphNode_t *out) {
  if (values == NULL) return FAKE_INVALID_VALUE;
  const struct fake_fill fill = { .dst = values->dst,
                                  .pitch = values->pitch,
                                  .element = values->elementSize,
                                  .count = values->width,
                                  .height = values->height,
                                  .value = values->value };
  struct fake_op *op;
  void *base = NULL;
  size_t size = 0;
  int code = fake_memory_range(values->dst, &base, &size);
  if (code == FAKE_OK && values->pitch * values->height > size) code = FAKE_INVALID_VALUE;
  if (code == FAKE_OK) code = fake_fill_node(&fill, &op);
  return code == FAKE_OK ? add_op(place, values->height > 1 ? FAKE_NODE_FILL_OF_ROWS : FAKE_NODE_FILL, op, out) : code;
}

hipError_t hipGraphAddMemsetNode(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                                 const hipMemsetParams *fill) {
  const struct fake_graph_place place = place_of(graph, after, count);
  HIP_CALL(add_fill(&place, fill, node));
}
