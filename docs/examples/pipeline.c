/* pipeline.cu on rill, line by line: the same program on an NVIDIA GPU, an AMD GPU or the CPU. */
#include "pipeline.rill.h"

#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(call)                                                               \
  do {                                                                            \
    if ((call) != RILL_OK) {                                                      \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, rill_last_error_text()); \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)

enum { PIECES = 16, PIECE = 1 << 16 };

int main(void) {
  float *host, *sum_host, *buffer[2], *sum;
  rill_device device;
  rill_stream stream[2];
  rill_event start, end;
  const float zero = 0;
  CHECK(rill_device_open(NULL, &device)); /* replaces cudaSetDevice; every object names its device */
  CHECK(RILL_NEW(device, RILL_MEMORY_PINNED, PIECES * PIECE, &host));
  CHECK(RILL_NEW(device, RILL_MEMORY_PINNED, 1, &sum_host));
  CHECK(RILL_NEW(device, RILL_MEMORY_DEVICE, 1, &sum));
  for (int i = 0; i < PIECES * PIECE; i++) host[i] = 1;
  for (int s = 0; s < 2; s++) {
    CHECK(rill_stream_create(device, NULL, &stream[s])); /* non-blocking by default */
    CHECK(RILL_NEW(device, RILL_MEMORY_DEVICE, PIECE, &buffer[s]));
  }
  CHECK(rill_event_create(device, RILL_EVENT_OPTIONS(.timing = true), &start)); /* no timing by default */
  CHECK(rill_event_create(device, RILL_EVENT_OPTIONS(.timing = true), &end));

  CHECK(rill_stream_record_event(stream[0], start, 0));
  CHECK(rill_fill_async(stream[0], sum, &zero, sizeof zero, 1));
  CHECK(rill_stream_wait_stream(stream[1], stream[0])); /* creates, records and waits for an event in one call */
  for (int p = 0; p < PIECES; p++) {
    rill_stream s = stream[p % 2];
    float *x = buffer[p % 2], *h = host + (size_t)p * PIECE;
    rill_launch launch = rill_launch_1d(PIECE, 256);
    CHECK(rill_copy_async(s, x, h, sizeof(float) * PIECE)); /* the direction follows from the pointers */
    CHECK(scale_and_sum_launch(s, &launch, PIECE, 2.0f, x, sum));
    CHECK(rill_copy_async(s, h, x, sizeof(float) * PIECE));
  }
  CHECK(rill_stream_wait_stream(stream[0], stream[1]));
  CHECK(rill_copy_async(stream[0], sum_host, sum, sizeof(float)));
  CHECK(rill_stream_record_event(stream[0], end, 0));
  CHECK(rill_event_synchronize(end));
  float ms;
  CHECK(rill_event_elapsed_time(start, end, &ms));
  printf("sum %.0f, %s\n", (double)*sum_host, ms >= 0 ? "timed" : "not timed");

  CHECK(rill_event_release(start));
  CHECK(rill_event_release(end));
  for (int s = 0; s < 2; s++) {
    CHECK(rill_free(buffer[s]));
    CHECK(rill_stream_release(stream[s]));
  }
  CHECK(rill_free(sum));
  CHECK(rill_free(host));
  CHECK(rill_free(sum_host));
  return 0;
}
