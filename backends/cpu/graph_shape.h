/* Divides the nodes of a graph into chains and segments; done once per execution object. */
#ifndef RILL_BACKENDS_CPU_GRAPH_SHAPE_H
#define RILL_BACKENDS_CPU_GRAPH_SHAPE_H

#include "backends/cpu/cpu.h"

/* Consecutive nodes of one chain that run without waiting for another chain. */
struct cpu_segment {
  uint32_t first, end;      /* range in `sequence` */
  uint32_t chain, position; /* position: in its chain, starting at 1 */
  uint32_t first_wait, wait_count;
  bool starts; /* waits for the start of the launch */
};

/* Shared by all plans of an execution object. */
struct cpu_shape {
  _Atomic uint32_t references;
  uint32_t *sequence; /* nodes, segment by segment */
  struct cpu_segment *segments;
  uint32_t segment_count, chain_count;
  uint32_t *waits; /* segment numbers */
  uint32_t chain_segments[CPU_CHAINS];
};

/* Creates a shape with one reference. */
rill_status rill__cpu_shape_new(const struct rill__graph_exec *exec, struct cpu_shape **out);
void rill__cpu_shape_release(struct cpu_shape *shape);

#endif
