/* graph.c: captures a stream's work as a graph, and launches the graph ten times. */
#include "scale.rill.h"

#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 20 };

static void check(rill_status status) {
  if (status == RILL_OK) return;
  fprintf(stderr, "%s\n", rill_last_error_text());
  exit(EXIT_FAILURE);
}

int main(void) {
  rill_device device;
  rill_stream stream;
  rill_graph graph;
  rill_graph_exec step;
  float *x, *result;
  const float one = 1;
  check(rill_device_open(NULL, &device));
  check(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "work"), &stream));
  check(RILL_NEW(device, RILL_MEMORY_DEVICE, COUNT, &x));
  check(RILL_NEW(device, RILL_MEMORY_PINNED, COUNT, &result));
  check(rill_fill_async(stream, x, &one, sizeof one, COUNT));

  const rill_launch launch = rill_launch_1d(COUNT, 256);
  check(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  check(scale_launch(stream, &launch, COUNT, 2.0f, x)); /* becomes a node; nothing runs yet */
  check(rill_copy_async(stream, result, x, COUNT * sizeof *x));
  check(rill_stream_capture_end(stream, &graph));
  check(rill_graph_instantiate(graph, &step));
  check(rill_graph_release(graph));

  for (int i = 0; i < 10; i++) check(rill_graph_launch(step, stream));
  check(rill_stream_synchronize(stream));
  printf("after 10 launches %g\n", result[0]);

  check(rill_graph_exec_release(step));
  check(rill_free(result));
  check(rill_free(x));
  check(rill_stream_release(stream));
  return EXIT_SUCCESS;
}
