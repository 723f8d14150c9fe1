#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

struct worker {
  rill_stream stream, other;
  rill_event event, timing, known, pending;
  float *memory, *host;
};

static rill_device device;
static rill_kernel empty_kernel, five_kernel;
static rill_kernel_ref five_ref;

/* ---- the operations ---- */

static const rill_launch one_thread = { .struct_size = sizeof(rill_launch), .grid = { 1, 1, 1 }, .block = { 1, 1, 1 } };

#define FIVE_ARGUMENTS RILL_ARGS(1024, 2.0f, worker->memory, worker->memory, worker->memory)

static void do_nothing(void *user, rill_status status) { (void)user, (void)status; }

static bool live_event(void) {
  rill_event event;
  return rill_event_create(device, NULL, &event) == RILL_OK && rill_event_release(event) == RILL_OK;
}

static bool live_stream(void) {
  rill_stream stream;
  return rill_stream_create(device, NULL, &stream) == RILL_OK && rill_stream_release(stream) == RILL_OK;
}

static bool live_memory(void) {
  void *p;
  return rill_alloc(device, BENCH_ALLOCATION_BYTES, RILL_MEMORY_DEVICE, &p) == RILL_OK && rill_free(p) == RILL_OK;
}

static bool live_pool_memory(const struct worker *worker) {
  void *p;
  return rill_alloc_async(worker->stream, BENCH_ALLOCATION_BYTES, &p) == RILL_OK &&
         rill_free_async(worker->stream, p) == RILL_OK;
}

static bool launch_and_synchronize(const struct worker *worker) {
  return rill_stream_launch(worker->stream, empty_kernel, &one_thread, NULL, 0) == RILL_OK &&
         rill_stream_synchronize(worker->stream) == RILL_OK;
}

static bool launch_hundred(const struct worker *worker) {
  for (int i = 0; i < 100; i++) {
    if (rill_stream_launch(worker->stream, empty_kernel, &one_thread, NULL, 0) != RILL_OK) return false;
  }
  return rill_stream_synchronize(worker->stream) == RILL_OK;
}

static bool is_ready(rill_event event) {
  bool ready;
  return rill_event_is_ready(event, &ready) == RILL_OK;
}

static bool is_complete(rill_stream stream) {
  bool complete;
  return rill_stream_is_complete(stream, &complete) == RILL_OK;
}

BENCH_BATCH(launch, rill_stream_launch(worker->stream, empty_kernel, &one_thread, RILL_ARGS()) != RILL_OK)
BENCH_BATCH(launch_5, rill_stream_launch(worker->stream, five_kernel, &one_thread, FIVE_ARGUMENTS) != RILL_OK)
BENCH_BATCH(launch_ref, rill_stream_launch_ref(worker->stream, &five_ref, &one_thread, FIVE_ARGUMENTS) != RILL_OK)
BENCH_BATCH(record, rill_stream_record_event(worker->stream, worker->event, 0) != RILL_OK)
BENCH_BATCH(record_timing, rill_stream_record_event(worker->stream, worker->timing, 0) != RILL_OK)
BENCH_BATCH(wait, rill_stream_wait_event(worker->other, worker->event, 0) != RILL_OK)
BENCH_BATCH(wait_known, rill_stream_wait_event(worker->other, worker->known, 0) != RILL_OK)
BENCH_BATCH(wait_stream, rill_stream_wait_stream(worker->other, worker->stream) != RILL_OK)
BENCH_BATCH(query_pending, !is_ready(worker->pending))
BENCH_BATCH(query_known, !is_ready(worker->known))
BENCH_BATCH(query_stream, !is_complete(worker->stream))
BENCH_BATCH(synchronize_event, rill_event_synchronize(worker->known) != RILL_OK)
BENCH_BATCH(synchronize_stream, rill_stream_synchronize(worker->stream) != RILL_OK)
BENCH_BATCH(copy, rill_copy_async(worker->stream, worker->memory, worker->host, BENCH_BLOCK_BYTES) != RILL_OK)
BENCH_BATCH(fill,
            rill_fill_async(worker->stream, worker->memory, &(uint32_t){ 7 }, 4, BENCH_BLOCK_BYTES / 4) != RILL_OK)
BENCH_BATCH(host_call, rill_stream_host_call(worker->stream, do_nothing, NULL) != RILL_OK)
BENCH_BATCH(host_function, rill_stream_host_call(worker->stream, do_nothing, NULL) != RILL_OK)
BENCH_BATCH(event_life, ((void)worker, !live_event()))
BENCH_BATCH(stream_life, ((void)worker, !live_stream()))
BENCH_BATCH(memory_life, ((void)worker, !live_memory()))
BENCH_BATCH(pool_life, !live_pool_memory(worker))
BENCH_BATCH(round_trip, !launch_and_synchronize(worker))
BENCH_BATCH(idle_round_trip, !launch_and_synchronize(worker))
BENCH_BATCH(hundred, !launch_hundred(worker))

/* ---- the side ---- */

static bool open_side(const struct bench_target *target, char *text, size_t size) {
  rill_module module;
  device = target->device;
  five_ref = (rill_kernel_ref){ .bundle = target->bundle, .name = "five", .cache = { 0, 0 } };
  (void)snprintf(text, size, "%d.%d.%d", RILL_VERSION_MAJOR, RILL_VERSION_MINOR, RILL_VERSION_PATCH);
  if (!target->launches || (rill_module_load(device, target->bundle, &module) == RILL_OK &&
                            rill_module_get_kernel(module, "empty", &empty_kernel) == RILL_OK &&
                            rill_module_get_kernel(module, "five", &five_kernel) == RILL_OK)) {
    return true;
  }
  (void)snprintf(text, size, "%s", rill_last_error_text());
  return false;
}

static bool enter(void) { return true; }

static void *new_worker(void) {
  struct worker *worker = calloc(1, sizeof *worker);
  const bool made = worker != NULL && rill_stream_create(device, NULL, &worker->stream) == RILL_OK &&
                    rill_stream_create(device, NULL, &worker->other) == RILL_OK &&
                    rill_event_create(device, NULL, &worker->event) == RILL_OK &&
                    rill_event_create(device, RILL_EVENT_OPTIONS(.timing = true), &worker->timing) == RILL_OK &&
                    rill_event_create(device, NULL, &worker->known) == RILL_OK &&
                    rill_event_create(device, NULL, &worker->pending) == RILL_OK &&
                    rill_alloc(device, BENCH_BLOCK_BYTES, RILL_MEMORY_DEVICE, (void **)&worker->memory) == RILL_OK &&
                    rill_alloc(device, BENCH_BLOCK_BYTES, RILL_MEMORY_PINNED, (void **)&worker->host) == RILL_OK &&
                    rill_stream_record_event(worker->stream, worker->event, 0) == RILL_OK &&
                    rill_stream_record_event(worker->stream, worker->known, 0) == RILL_OK &&
                    rill_event_synchronize(worker->known) == RILL_OK;
  return made ? worker : NULL;
}

/* An event that is complete nevertheless, where nothing ever is pending, has its native handle given out: the driver
 * is then asked at every query. */
static bool make_pending(void *worker_, rill_event gate, uintptr_t native_gate) {
  const struct worker *worker = worker_;
  uintptr_t native;
  bool ready;
  (void)native_gate;
  return rill_stream_wait_event(worker->stream, gate, 0) == RILL_OK &&
         rill_stream_record_event(worker->stream, worker->pending, 0) == RILL_OK &&
         rill_event_is_ready(worker->pending, &ready) == RILL_OK &&
         (!ready || rill_event_native(worker->pending, &native) == RILL_OK);
}

static void explain(char *text, size_t size) { (void)snprintf(text, size, "%s", rill_last_error_text()); }

const struct bench_side bench_rill = {
  .name = "rill",
  .open = open_side,
  .enter = enter,
  .new_worker = new_worker,
  .make_pending = make_pending,
  .explain = explain,
  .batches = BENCH_TABLE(),
};
