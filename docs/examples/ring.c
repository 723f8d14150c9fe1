/* A ring of buffers that limits how far the host runs ahead of the device.
 *
 * The host writes to a pinned buffer, submits its upload, and continues with the next buffer while the device works.
 * Before it writes to a buffer again, it waits for the buffer's event. The events are created `signaled`, so the
 * first wait for each returns immediately and the loop needs no special case for its first rounds. */
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>

enum { BUFFERS = 3, ROUNDS = 100, COUNT = 1 << 16 };

static void check(rill_status status) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "%s\n", rill_last_error_text());
  exit(EXIT_FAILURE);
}

int main(void) {
  rill_device device;
  rill_stream stream;
  rill_event free_again[BUFFERS];
  uint32_t *staging[BUFFERS], *data, *results;
  check(rill_device_open(NULL, &device));
  check(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "ring"), &stream));
  check(RILL_NEW(device, RILL_MEMORY_DEVICE, COUNT, &data));
  check(RILL_NEW(device, RILL_MEMORY_PINNED, ROUNDS, &results));
  for (int i = 0; i < BUFFERS; i++) {
    check(RILL_NEW(device, RILL_MEMORY_PINNED, COUNT, &staging[i]));
    check(rill_event_create(device, RILL_EVENT_OPTIONS(.signaled = true, .blocking_sync = true), &free_again[i]));
  }

  for (uint32_t round = 0; round < ROUNDS; round++) {
    const uint32_t slot = round % BUFFERS;
    check(rill_event_synchronize(free_again[slot])); /* at most BUFFERS rounds are in flight */
    for (uint32_t i = 0; i < COUNT; i++) staging[slot][i] = round * COUNT + i;
    check(rill_copy_async(stream, data, staging[slot], sizeof *data * COUNT));
    check(rill_stream_record_event(stream, free_again[slot], 0)); /* the buffer has been read */
    check(rill_copy_async(stream, &results[round], &data[round], sizeof *data));
  }
  check(rill_stream_synchronize(stream));

  int wrong = 0;
  for (uint32_t round = 0; round < ROUNDS; round++) wrong += results[round] != round * COUNT + round;
  (void)printf("%d rounds through %d buffers, %d wrong\n", ROUNDS, BUFFERS, wrong);
  for (int i = 0; i < BUFFERS; i++) {
    check(rill_free(staging[i]));
    check(rill_event_release(free_again[i]));
  }
  check(rill_free(data));
  check(rill_free(results));
  check(rill_stream_release(stream));
  return wrong != 0;
}
