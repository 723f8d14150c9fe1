/* graphs.c's other side: a chain of kernels of five arguments as a graph of the driver's own. */
#ifndef RILL_TESTS_BENCH_GRAPHS_H
#define RILL_TESTS_BENCH_GRAPHS_H

#include <rill/rill.h>

/* Each returns false if a call of the driver failed. */
struct graph_side {
  /* On the stream's device; the kernel is a native one, its fifth to third arguments are `memory`. */
  bool (*open)(rill_stream stream, rill_kernel kernel, void *memory);
  bool (*make)(unsigned count); /* builds a chain and instantiates it */
  bool (*set_argument)(unsigned node, int value);
  /* Builds another chain and updates by it; `value` is in the nodes from `from` on, in those before what `make` has. */
  bool (*update)(unsigned count, unsigned from, int value);
  bool (*launch)(void);
  bool (*end)(void);
};

extern const struct graph_side rill__cuda_graph_side;

#endif
