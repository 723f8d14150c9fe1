/* stream.c: fills memory on the device, copies it to the host, and waits once. */
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
  uint32_t *on_device, *on_host;
  const uint32_t value = 42;
  check(rill_device_open(NULL, &device)); /* $RILL_DEVICE, else the first GPU, else the CPU */
  check(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "work"), &stream));
  check(RILL_NEW(device, RILL_MEMORY_DEVICE, COUNT, &on_device));
  check(RILL_NEW(device, RILL_MEMORY_PINNED, COUNT, &on_host));

  check(rill_fill_async(stream, on_device, &value, sizeof value, COUNT));
  check(rill_copy_async(stream, on_host, on_device, COUNT * sizeof *on_host));
  check(rill_stream_synchronize(stream)); /* the host waits here, and nowhere else */
  printf("first %u, last %u\n", on_host[0], on_host[COUNT - 1]);

  check(rill_free(on_host));
  check(rill_free(on_device));
  check(rill_stream_release(stream));
  return EXIT_SUCCESS;
}
