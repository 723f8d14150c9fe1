/* What a user's first program does: a fill on one stream, a copy on another, an event between them.  C and C++. */
#ifdef TWO_FILES
#include "rill.h"
#else
#include <rill/rill.h>
#endif

#include <stdio.h>

int main(int argc, char **argv) {
  rill_device device;
  rill_stream fill, copy;
  rill_event filled;
  uint32_t *memory = NULL, *host = NULL;
  const uint32_t pattern = 42;
  if (rill_device_open(argc > 1 ? argv[1] : "cpu", &device) != RILL_OK ||
      rill_stream_create(device, NULL, &fill) != RILL_OK || rill_stream_create(device, NULL, &copy) != RILL_OK ||
      RILL_NEW(device, RILL_MEMORY_DEVICE, 1000, &memory) != RILL_OK ||
      RILL_NEW(device, RILL_MEMORY_PINNED, 1000, &host) != RILL_OK ||
      rill_fill_async(fill, memory, &pattern, sizeof pattern, 1000) != RILL_OK ||
      rill_stream_record_new_event(fill, NULL, &filled) != RILL_OK ||
      rill_stream_wait_event(copy, filled, 0) != RILL_OK ||
      rill_copy_async(copy, host, memory, 1000 * sizeof *host) != RILL_OK || rill_stream_synchronize(copy) != RILL_OK) {
    (void)fprintf(stderr, "%s\n", rill_last_error_text());
    return 1;
  }
  (void)printf("rill %u.%u says %u\n", (unsigned)(rill_version() >> 16), (unsigned)(rill_version() >> 8 & 255),
               (unsigned)host[999]);
  (void)rill_free(memory);
  (void)rill_free(host);
  (void)rill_event_release(filled);
  (void)rill_stream_release(fill);
  (void)rill_stream_release(copy);
  return host == NULL;
}
