/* kernel.c: launches the kernel of scale.kernel.cu. */
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
  float *x, *result;
  check(rill_device_open(NULL, &device));
  check(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "work"), &stream));
  check(RILL_NEW(device, RILL_MEMORY_DEVICE, COUNT, &x));
  check(RILL_NEW(device, RILL_MEMORY_PINNED, COUNT, &result));
  for (int i = 0; i < COUNT; i++) result[i] = (float)i;

  const rill_launch launch = rill_launch_1d(COUNT, 256); /* at least COUNT threads, in blocks of 256 */
  check(rill_copy_async(stream, x, result, COUNT * sizeof *x));
  check(scale_launch(stream, &launch, COUNT, 2.0f, x));
  check(rill_copy_async(stream, result, x, COUNT * sizeof *x));
  check(rill_stream_synchronize(stream));
  printf("x[1] = %g, x[1000] = %g\n", result[1], result[1000]);

  check(rill_free(result));
  check(rill_free(x));
  check(rill_stream_release(stream));
  return EXIT_SUCCESS;
}
