/* Another project's program with kernels that come with rill. */
#include "axpy.rill.h"
#include "rill_kernels.h"

#include <stdio.h>

enum { N = 100000 };

int main(void) {
  rill_device device;
  rill_stream stream;
  float *x = NULL, *y = NULL, *sum = NULL;
  const float one = 1;
  const rill_launch launch = rill_kernels_wide(N, sizeof *x, 1024);
  if (rill_device_open("cpu", &device) != RILL_OK || rill_stream_create(device, NULL, &stream) != RILL_OK ||
      RILL_NEW(device, RILL_MEMORY_PINNED, N, &x) != RILL_OK ||
      RILL_NEW(device, RILL_MEMORY_PINNED, N, &y) != RILL_OK ||
      RILL_NEW(device, RILL_MEMORY_PINNED, 1, &sum) != RILL_OK ||
      rill_fill_async(stream, x, &one, sizeof one, N) != RILL_OK ||
      rill_fill_async(stream, y, &one, sizeof one, N) != RILL_OK ||
      axpy_f32_launch(stream, &launch, N, 2, x, y) != RILL_OK || rill_kernels_sum_f32(stream, N, y, sum) != RILL_OK ||
      rill_stream_synchronize(stream) != RILL_OK) {
    (void)fprintf(stderr, "%s\n", rill_last_error_text());
    return 1;
  }
  (void)printf("the sum is %.0f\n", (double)*sum);
  (void)rill_free(x);
  (void)rill_free(y);
  (void)rill_free(sum);
  (void)rill_stream_release(stream);
  return 0;
}
