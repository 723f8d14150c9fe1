/* Two streams and an event: a producer fills a buffer, a consumer copies it out, and the host waits once.
 *
 *     cc hello_streams.c $(pkg-config --cflags --libs rill) && ./a.out
 */
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1 << 16, ROUNDS = 4 };

static void check(rill_status status) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "%s\n", rill_last_error_text());
  exit(EXIT_FAILURE);
}

int main(void) {
  rill_device device;
  check(rill_device_open(NULL, &device));

  rill_stream producer, consumer;
  check(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "producer"), &producer));
  check(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "consumer"), &consumer));

  /* `taken` guards the buffer.  It is created signaled, because the first round has nothing to wait for. */
  rill_event filled, taken;
  check(rill_event_create(device, NULL, &filled));
  check(rill_event_create(device, RILL_EVENT_OPTIONS(.signaled = true), &taken));

  uint32_t *buffer = NULL, *results = NULL;
  check(RILL_NEW(device, RILL_MEMORY_DEVICE, COUNT, &buffer));
  check(RILL_NEW(device, RILL_MEMORY_PINNED, COUNT * ROUNDS, &results));

  for (uint32_t round = 0; round < ROUNDS; round++) {
    check(rill_stream_wait_event(producer, taken, 0));
    check(rill_fill_async(producer, buffer, &round, sizeof round, COUNT));
    check(rill_stream_record_event(producer, filled, 0));

    check(rill_stream_wait_event(consumer, filled, 0));
    check(rill_copy_async(consumer, results + (size_t)round * COUNT, buffer, COUNT * sizeof *buffer));
    check(rill_stream_record_event(consumer, taken, 0));
  }
  check(rill_stream_synchronize(consumer));

  int wrong = 0;
  for (uint32_t i = 0; i < COUNT * ROUNDS; i++) wrong += results[i] != i / COUNT;
  (void)printf("%d rounds, %d wrong values\n", ROUNDS, wrong);

  check(rill_free(buffer));
  check(rill_free(results));
  check(rill_event_release(filled));
  check(rill_event_release(taken));
  check(rill_stream_release(producer));
  check(rill_stream_release(consumer));
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
