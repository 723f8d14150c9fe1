/* Graphs of the CUDA driver's own; built with its vendor.h. */
#include "graphs.h"

#include "backends/gpu/gpu.h"

#include <stdlib.h>

static struct {
  CUfunction function;
  CUstream stream;
  CUdeviceptr memory;
  CUgraph graph;
  CUgraphExec exec;
  CUgraphNode *nodes;
  unsigned count;
} side;

#define WORKS(call) (gpu_api.call == CUDA_SUCCESS)

static bool open_side(rill_stream stream, rill_kernel kernel, void *memory) {
  char why[256];
  uintptr_t context = 0, function = 0, native = 0;
  if (gpu_load(why, sizeof why) == NULL || rill_stream_context(stream, &context) != RILL_OK ||
      rill_kernel_native(kernel, &function) != RILL_OK || rill_stream_native(stream, &native) != RILL_OK) {
    return false;
  }
  side.function = (CUfunction)function;
  side.stream = (CUstream)native;
  side.memory = GPU_POINTER(memory);
  return WORKS(context_push((CUcontext)context));
}

/* The driver copies the arguments in the call. */
#define KERNEL_NODE(n, a)                                                                               \
  {                                                                                                     \
    .func = side.function, .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, \
    .blockDimZ = 1, .kernelParams = (void *[]) {                                                        \
      &(n), &(a), &side.memory, &side.memory, &side.memory                                              \
    }                                                                                                   \
  }

static bool build(CUgraph *graph, CUgraphNode *nodes, unsigned count, unsigned from, int value) {
  float a = 2;
  int n = 1;
  const CUDA_KERNEL_NODE_PARAMS_v1 values = KERNEL_NODE(n, a);
  if (!WORKS(graph_create(graph, 0))) return false;
  for (unsigned i = 0; i < count; i++) {
    if (i == from) n = value;
    if (!WORKS(graph_add_kernel(&nodes[i], *graph, i > 0 ? &nodes[i - 1] : NULL, i > 0, &values))) return false;
  }
  return true;
}

static bool make(unsigned count) {
  side.count = count;
  side.nodes = malloc(count * sizeof(CUgraphNode));
  return side.nodes != NULL && build(&side.graph, side.nodes, count, count, 1) &&
         WORKS(graph_instantiate(&side.exec, side.graph, 0));
}

static bool set_argument(unsigned node, int n) {
  float a = 2;
  const CUDA_KERNEL_NODE_PARAMS_v1 values = KERNEL_NODE(n, a);
  return WORKS(graph_set_kernel(side.exec, side.nodes[node], &values));
}

static bool update(unsigned count, unsigned from, int value) {
  CUgraph graph = NULL;
  CUgraphNode failing = NULL;
  gpu_update_result why;
  CUgraphNode *nodes = malloc(count * sizeof(CUgraphNode));
  const bool works = nodes != NULL && build(&graph, nodes, count, from, value) &&
                     WORKS(graph_update(side.exec, graph, &failing, &why)) && WORKS(graph_destroy(graph));
  free(nodes);
  return works;
}

static bool launch(void) { return WORKS(graph_launch(side.exec, side.stream)); }

static bool end(void) {
  free(side.nodes);
  return WORKS(graph_exec_destroy(side.exec)) && WORKS(graph_destroy(side.graph));
}

const struct graph_side rill__cuda_graph_side = { open_side, make, set_argument, update, launch, end };
