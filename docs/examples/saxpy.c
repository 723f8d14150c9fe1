/* One kernel source for any device, launched with the typed function from rillcc's header, then by handle.
 *
 *     rillcc -o saxpy.rill.c --header saxpy.rill.h saxpy.kernel.cu
 *     cc saxpy.c saxpy.rill.c $(pkg-config --cflags --libs rill) && ./a.out
 */
#include "saxpy.rill.h"

#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 100000 };

static void check(rill_status status) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "%s\n", rill_last_error_text());
  exit(EXIT_FAILURE);
}

int main(void) {
  rill_device device;
  rill_stream stream;
  float *host = NULL, *x = NULL, *y = NULL;
  const float one = 1;
  check(rill_device_open(NULL, &device));
  check(rill_stream_create(device, NULL, &stream));
  check(RILL_NEW(device, RILL_MEMORY_PINNED, N, &host));
  check(RILL_NEW(device, RILL_MEMORY_DEVICE, N, &x));
  check(RILL_NEW(device, RILL_MEMORY_DEVICE, N, &y));

  for (int i = 0; i < N; i++) host[i] = (float)i;
  check(rill_copy_async(stream, x, host, N * sizeof *x));
  check(rill_fill_async(stream, y, &one, sizeof one, N));

  /* The compiler checks the arguments; the kernel is loaded at its first launch. */
  rill_launch launch = rill_launch_1d(N, 256);
  check(saxpy_launch(stream, &launch, N, 2.0f, x, y));

  /* Launches the kernel by its handle: the call checks the number and the sizes of the arguments. */
  rill_module module;
  rill_kernel kernel;
  check(rill_module_load(device, &saxpy_bundle, &module));
  check(rill_module_get_kernel(module, "saxpy", &kernel));
  check(rill_stream_launch(stream, kernel, &launch, RILL_ARGS(N, 2.0f, x, y)));

  check(rill_copy_async(stream, host, y, N * sizeof *host));
  check(rill_stream_synchronize(stream));

  int wrong = 0;
  for (int i = 0; i < N; i++) wrong += host[i] < 4.0f * (float)i + 1 || host[i] > 4.0f * (float)i + 1;
  (void)printf("y[%d] = %.0f, %d wrong values\n", N - 1, (double)host[N - 1], wrong);

  check(rill_kernel_release(kernel));
  check(rill_module_release(module));
  check(rill_free(host));
  check(rill_free(x));
  check(rill_free(y));
  check(rill_stream_release(stream));
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
