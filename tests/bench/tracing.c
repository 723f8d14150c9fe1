/* Measures the cost of a trace: ns for each operation without a trace and with one, as the thread that submits sees
 * it, and with the time until all is complete.
 *
 *     tracing [DEVICE]     cuda:0, hip:0, cpu; none: the default device
 *
 * Over a driver whose calls return at once, what is left is the layer itself.  Batches without a trace and with one
 * alternate.  Nothing is judged: the exit status is 1 if a call failed, else 0. */
#include <rill/rill.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "overhead.rill.h"

enum { BYTES = 4096, BATCH = 1000, TILES = 500, ROUNDS = 20 };
enum { UPLOAD_START, UPLOAD_END, BLUR_START, BLUR_END, SHARPEN_END, TONE_END, DOWNLOAD_START, DOWNLOAD_END, POINTS };

static rill_device device;
static rill_stream stream, other, third;
static rill_event event, points[POINTS];
static rill_kernel empty;
static float *memory, *host;
static const rill_launch one_thread = { .struct_size = sizeof(rill_launch), .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } };

#define TRY(call)                                                     \
  do {                                                                \
    if ((call) != RILL_OK) {                                          \
      (void)fprintf(stderr, "tracing: %s\n", rill_last_error_text()); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

static void launch(void) { TRY(rill_stream_launch(stream, empty, &one_thread, NULL, 0)); }
static void copy(void) { TRY(rill_copy_async(stream, memory, host, BYTES)); }
static void fill(void) { TRY(rill_fill_async(stream, memory, "\1", 1, BYTES)); }
static void record_and_wait(void) {
  TRY(rill_stream_record_event(stream, event, 0));
  TRY(rill_stream_wait_event(other, event, 0));
}
static void launch_and_wait(void) {
  TRY(rill_stream_launch(stream, empty, &one_thread, NULL, 0));
  TRY(rill_stream_synchronize(stream));
}

/* The calls that rill demo makes for a tile: two copies, three kernels, three waits and eight records. */
static void mark(rill_stream where, int point) { TRY(rill_stream_record_event(where, points[point], 0)); }
static void tile(void) {
  TRY(rill_stream_wait_event(stream, points[DOWNLOAD_END], RILL_WAIT_IF_RECORDED));
  mark(stream, UPLOAD_START);
  TRY(rill_copy_async(stream, memory, host, BYTES));
  mark(stream, UPLOAD_END);
  TRY(rill_stream_wait_event(other, points[UPLOAD_END], 0));
  for (int point = BLUR_START; point < TONE_END; point++) {
    mark(other, point);
    TRY(rill_stream_launch(other, empty, &one_thread, NULL, 0));
  }
  mark(other, TONE_END);
  TRY(rill_stream_wait_event(third, points[TONE_END], 0));
  mark(third, DOWNLOAD_START);
  TRY(rill_copy_async(third, host, memory, BYTES));
  mark(third, DOWNLOAD_END);
}

static double now(void) {
  struct timespec time;
  (void)clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

struct cost {
  double submitting, all; /* ns an operation */
};

static struct cost run(void (*operation)(void), int batch) {
  const double begin = now();
  for (int i = 0; i < batch; i++) operation();
  const double submitted = now();
  TRY(rill_device_synchronize(device));
  return (struct cost){ (submitted - begin) / batch, (now() - begin) / batch };
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}
static double median(double values[ROUNDS]) {
  qsort(values, ROUNDS, sizeof *values, by_size);
  return values[ROUNDS / 2];
}

static void measure(const char *name, void (*operation)(void), int batch, const char *path) {
  double submitting[2][ROUNDS], all[2][ROUNDS];
  for (int i = 0; i < ROUNDS; i++) {
    for (int traced = 0; traced < 2; traced++) {
      if (traced) TRY(rill_trace_start(RILL_TRACE_OPTIONS(.path = path)));
      if (traced) operation(); /* of a process the first makes what the trace needs */
      TRY(rill_device_synchronize(device));
      const struct cost cost = run(operation, batch);
      submitting[traced][i] = cost.submitting;
      all[traced][i] = cost.all;
      if (traced) TRY(rill_trace_stop());
    }
  }
  const double before = median(submitting[0]), with = median(submitting[1]);
  const double all_before = median(all[0]), all_with = median(all[1]);
  (void)printf("%-24s %9.0f %9.0f %+9.0f    %9.0f %9.0f %+9.0f\n", name, before, with, with - before, all_before,
               all_with, all_with - all_before);
}

int main(int argc, char **argv) {
  char path[64];
  rill_module module;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  (void)snprintf(path, sizeof path, "/tmp/rill-tracing-%ld.json", (long)getpid());
  TRY(rill_device_open(argc > 1 ? argv[1] : NULL, &device));
  TRY(rill_device_get_info(device, &info));
  TRY(rill_stream_create(device, NULL, &stream));
  TRY(rill_stream_create(device, NULL, &other));
  TRY(rill_stream_create(device, NULL, &third));
  TRY(rill_event_create(device, NULL, &event));
  for (int i = 0; i < POINTS; i++) TRY(rill_event_create(device, RILL_EVENT_OPTIONS(.timing = true), &points[i]));
  TRY(RILL_NEW(device, RILL_MEMORY_DEVICE, BYTES / sizeof *memory, &memory));
  TRY(RILL_NEW(device, RILL_MEMORY_PINNED, BYTES / sizeof *host, &host));
  const bool launches = rill_module_load(device, &overhead_bundle, &module) == RILL_OK;
  if (launches) TRY(rill_module_get_kernel(module, "empty", &empty));
  (void)printf("%s\n%-24s %29s    %29s\n%-24s %9s %9s %9s    %9s %9s %9s\n", info.name, "ns an operation", "submitting",
               "until all is complete", "", "alone", "traced", "more", "alone", "traced", "more");
  if (launches) measure("launch", launch, BATCH, path);
  if (launches) measure("launch + synchronize", launch_and_wait, BATCH, path);
  measure("copy 4 KiB to device", copy, BATCH, path);
  measure("fill 4 KiB", fill, BATCH, path);
  measure("record + wait", record_and_wait, BATCH, path);
  if (launches) measure("tile of rill demo", tile, TILES, path);
  (void)unlink(path);
  return 0;
}
