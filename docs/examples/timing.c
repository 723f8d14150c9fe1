/* Measures how long work takes on the device, with two timing events around it.
 *
 * The first round wakes the device and is not counted; the fastest of the others is reported.
 */
#include <rill/rill.h>
#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 16 << 20, ROUNDS = 6 };

static void check(rill_status status) {
  if (status == RILL_OK) return;
  (void)fprintf(stderr, "%s\n", rill_last_error_text());
  exit(EXIT_FAILURE);
}

/* The measured work. */
static rill_status fill(rill_stream stream, void *device_memory, void *host_memory) {
  const uint32_t zero = 0;
  (void)host_memory;
  return rill_fill_async(stream, device_memory, &zero, sizeof zero, BYTES / sizeof zero);
}
static rill_status upload(rill_stream stream, void *device_memory, void *host_memory) {
  return rill_copy_async(stream, device_memory, host_memory, BYTES);
}
static rill_status download(rill_stream stream, void *device_memory, void *host_memory) {
  return rill_copy_async(stream, host_memory, device_memory, BYTES);
}

int main(void) {
  static const struct {
    const char *name;
    rill_status (*run)(rill_stream, void *, void *);
  } jobs[] = { { "fill", fill }, { "upload", upload }, { "download", download } };

  rill_device device;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  rill_stream stream;
  rill_event start, end;
  void *device_memory = NULL, *host_memory = NULL;
  check(rill_device_open(NULL, &device));
  check(rill_device_get_info(device, &info));
  check(rill_device_default_stream(device, &stream)); /* borrowed: needs no release */
  check(rill_event_create(device, RILL_EVENT_OPTIONS(.timing = true, .label = "start"), &start));
  check(rill_event_create(device, RILL_EVENT_OPTIONS(.timing = true, .label = "end"), &end));
  check(rill_alloc(device, BYTES, RILL_MEMORY_DEVICE, &device_memory));
  check(rill_alloc(device, BYTES, RILL_MEMORY_PINNED, &host_memory));

  (void)printf("%s, %d MiB\n", info.name, BYTES >> 20);
  for (size_t job = 0; job < sizeof jobs / sizeof *jobs; job++) {
    float best = 0;
    for (int round = 0; round < ROUNDS; round++) {
      float ms = 0;
      check(rill_stream_record_event(stream, start, 0));
      check(jobs[job].run(stream, device_memory, host_memory));
      check(rill_stream_record_event(stream, end, 0));
      check(rill_event_synchronize(end));
      check(rill_event_elapsed_time(start, end, &ms));
      if (round == 1 || (round > 1 && ms < best)) best = ms;
    }
    (void)printf("%-9s %8.3f ms", jobs[job].name, (double)best);
    if (best > 0) (void)printf("  %7.1f GB/s", (double)BYTES / (double)best / 1e6);
    (void)printf("\n");
  }

  check(rill_free(device_memory));
  check(rill_free(host_memory));
  check(rill_event_release(start));
  check(rill_event_release(end));
  return EXIT_SUCCESS;
}
