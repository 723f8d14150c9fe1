/* Adds up 16-bit floating-point numbers with a kernel that works warp by warp.
 *
 *     rillcc -o warp_sum.rill.c --header warp_sum.rill.h warp_sum.kernel.cu
 *     cc warp_sum.c warp_sum.rill.c $(pkg-config --cflags --libs rill) && ./a.out
 */
#include "warp_sum.rill.h"

#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 10000 };

static void check(rill_status status) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "%s\n", rill_last_error_text());
  exit(EXIT_FAILURE);
}

int main(void) {
  rill_device device;
  rill_stream stream;
  rill_half *x = NULL;
  float *total = NULL;
  check(rill_device_open(NULL, &device));
  check(rill_stream_create(device, NULL, &stream));
  check(RILL_NEW(device, RILL_MEMORY_PINNED, N, &x));
  check(RILL_NEW(device, RILL_MEMORY_PINNED, 1, &total));

  float expected = 0;
  for (int i = 0; i < N; i++) {
    const float v = (float)(i % 8) / 4; /* exact in 16 bits, like every sum */
    x[i] = rill_to_half(v);
    expected += v;
  }
  *total = 0;

  const rill_launch launch = rill_launch_1d(2048, 256);
  check(warp_sum_launch(stream, &launch, N, x, total));
  check(rill_stream_synchronize(stream));
  (void)printf("sum %.2f, expected %.2f\n", (double)*total, (double)expected);
  const int code = *total == expected ? EXIT_SUCCESS : EXIT_FAILURE;

  check(rill_free(x));
  check(rill_free(total));
  check(rill_stream_release(stream));
  return code;
}
