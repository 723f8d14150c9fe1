/* two_streams.c: one stream uploads, the other one computes, and an event orders them. */
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
  rill_stream io, compute;
  rill_event uploaded;
  float *x, *result;
  check(rill_device_open(NULL, &device));
  check(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "io"), &io));
  check(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "compute"), &compute));
  check(rill_event_create(device, RILL_EVENT_OPTIONS(.label = "uploaded"), &uploaded));
  check(RILL_NEW(device, RILL_MEMORY_DEVICE, COUNT, &x));
  check(RILL_NEW(device, RILL_MEMORY_PINNED, COUNT, &result));
  for (int i = 0; i < COUNT; i++) result[i] = 1;

  const rill_launch launch = rill_launch_1d(COUNT, 256);
  check(rill_copy_async(io, x, result, COUNT * sizeof *x));
  check(rill_stream_record_event(io, uploaded, 0));
  check(rill_stream_wait_event(compute, uploaded, 0)); /* the device waits; the host continues */
  check(scale_launch(compute, &launch, COUNT, 3.0f, x));
  check(rill_copy_async(compute, result, x, COUNT * sizeof *x));
  check(rill_stream_synchronize(compute));
  printf("first %g, last %g\n", result[0], result[COUNT - 1]);

  check(rill_free(result));
  check(rill_free(x));
  check(rill_event_release(uploaded));
  check(rill_stream_release(compute));
  check(rill_stream_release(io));
  return EXIT_SUCCESS;
}
