/* OpenMP threads that submit work: each has its own stream, and one stream gathers the results.
 *
 * Handles are numbers that any thread may use, and there is no current device to set. Events order the work of the
 * threads on the device. The only barrier that the threads need is the one at the end of the parallel loop, which
 * orders their calls before the wait of the last stream. */
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>

enum { PARTS = 16, COUNT = 1 << 14 };

static void check(rill_status status) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "%s\n", rill_last_error_text()); /* the calling thread's own error */
  exit(EXIT_FAILURE);
}

int main(void) {
  rill_device device;
  rill_stream gather, streams[PARTS];
  rill_event done[PARTS];
  uint32_t *data, *host;
  check(rill_device_open(NULL, &device));
  check(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "gather"), &gather));
  check(RILL_NEW(device, RILL_MEMORY_DEVICE, PARTS * COUNT, &data));
  check(RILL_NEW(device, RILL_MEMORY_PINNED, PARTS * COUNT, &host));

#pragma omp parallel for
  for (int part = 0; part < PARTS; part++) {
    const uint32_t value = (uint32_t)part + 1;
    check(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "part"), &streams[part]));
    check(rill_fill_async(streams[part], data + (size_t)part * COUNT, &value, sizeof value, COUNT));
    check(rill_stream_record_new_event(streams[part], NULL, &done[part]));
  }

  for (int part = 0; part < PARTS; part++) check(rill_stream_wait_event(gather, done[part], 0));
  check(rill_copy_async(gather, host, data, sizeof *data * PARTS * COUNT));
  check(rill_stream_synchronize(gather));

  int wrong = 0;
  for (uint32_t i = 0; i < PARTS * COUNT; i++) wrong += host[i] != i / COUNT + 1;
  (void)printf("%d parts, %d wrong values\n", PARTS, wrong);
  for (int part = 0; part < PARTS; part++) {
    check(rill_event_release(done[part]));
    check(rill_stream_release(streams[part]));
  }
  check(rill_free(data));
  check(rill_free(host));
  check(rill_stream_release(gather));
  return wrong != 0;
}
