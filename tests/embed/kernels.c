/* Another project's program with a kernel of its own. */
#include "scale.rill.h"

#include <rill/rill.h>
#include <stdio.h>

enum { N = 1000 };

int main(void) {
  rill_device device;
  rill_stream stream;
  uint32_t *x = NULL, *y = NULL;
  const uint32_t pattern = 21;
  const rill_launch launch = rill_launch_1d(N, 256);
  if (rill_device_open("cpu", &device) != RILL_OK || rill_stream_create(device, NULL, &stream) != RILL_OK ||
      RILL_NEW(device, RILL_MEMORY_PINNED, N, &x) != RILL_OK ||
      RILL_NEW(device, RILL_MEMORY_PINNED, N, &y) != RILL_OK ||
      rill_fill_async(stream, x, &pattern, sizeof pattern, N) != RILL_OK ||
      scale_launch(stream, &launch, N, x, y) != RILL_OK || rill_stream_synchronize(stream) != RILL_OK) {
    (void)fprintf(stderr, "%s\n", rill_last_error_text());
    return 1;
  }
  (void)printf("the kernel says %u\n", (unsigned)y[N - 1]);
  (void)rill_free(x);
  (void)rill_free(y);
  (void)rill_stream_release(stream);
  return 0;
}
