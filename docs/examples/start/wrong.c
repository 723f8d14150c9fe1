/* wrong.c: makes three mistakes, and prints what rill reports about each. */
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>

enum { COUNT = 1024 };

static void check(rill_status status) {
  if (status == RILL_OK) return;
  fprintf(stderr, "%s\n", rill_last_error_text());
  exit(EXIT_FAILURE);
}

int main(void) {
  rill_device device;
  rill_stream io, compute;
  rill_event uploaded;
  uint32_t *x;
  const uint32_t one = 1, two = 2;
  check(rill_device_open(NULL, &device));
  check(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "io"), &io));
  check(rill_stream_create(device, RILL_STREAM_OPTIONS(.label = "compute"), &compute));
  check(rill_event_create(device, RILL_EVENT_OPTIONS(.label = "uploaded"), &uploaded));
  check(RILL_NEW(device, RILL_MEMORY_DEVICE, COUNT, &x));

  /* 1. A pattern of 3 bytes: the call fails, and the error text says why. */
  if (rill_fill_async(io, x, &one, 3, COUNT) != RILL_OK) fprintf(stderr, "%s\n", rill_last_error_text());

  /* 2. Two streams write x, and nothing orders them: RILL_CHECK=order finds it. */
  check(rill_fill_async(io, x, &one, sizeof one, COUNT));
  check(rill_fill_async(compute, x, &two, sizeof two, COUNT));

  /* 3. The stream waits for an event that nothing records: the host's wait times out. */
  check(rill_stream_wait_event(compute, uploaded, 0));
  check(rill_fill_async(compute, x, &one, sizeof one, COUNT));
  if (rill_stream_synchronize_for(compute, 100 * 1000 * 1000) == RILL_ERROR_TIMEOUT) {
    char text[4096];
    size_t size = sizeof text;
    fprintf(stderr, "%s\n", rill_last_error_text());
    check(rill_stream_explain(compute, text, &size));
    fprintf(stderr, "%s", text);
  }

  check(rill_stream_record_event(io, uploaded, 0)); /* lets the stream continue */
  check(rill_stream_synchronize(compute));
  check(rill_free(x));
  check(rill_event_release(uploaded));
  check(rill_stream_release(compute));
  check(rill_stream_release(io));
  return EXIT_SUCCESS;
}
