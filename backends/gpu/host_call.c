#include "backends/gpu/gpu.h"

#include <stdlib.h>

/* The vendors have two ways to call the host from a stream.  A stream callback is also called after a fault, with the
 * status, but cannot be captured.  A host function can be captured, but is never called after a fault.  Callbacks are
 * therefore used outside captures, and host functions inside, where the contract promises nothing about faults. */

/* Data of a call, because the vendors pass only one pointer. */
struct gpu_closure {
  rill_host_fn fn;
  void *user;
  uint64_t stream; /* id of the stream */
  struct gpu_device *device;
  struct gpu_closure *next; /* next captured closure */
};

/* Returns a closure.  A few closures are kept for reuse.  The thread that swaps a pointer out of its slot owns the
 * closure, which rules out the ABA problem. */
static struct gpu_closure *new_closure(struct gpu_device *device) {
  for (int i = 0; i < GPU_SPARE_CLOSURES; i++) {
    if (atomic_load_explicit(&device->spare[i], memory_order_relaxed) == NULL) continue;
    struct gpu_closure *closure = atomic_exchange_explicit(&device->spare[i], NULL, memory_order_acquire);
    if (closure != NULL) return closure;
  }
  return malloc(sizeof(struct gpu_closure));
}

static void end_closure(struct gpu_closure *closure) {
  struct gpu_device *device = closure->device;
  for (int i = 0; i < GPU_SPARE_CLOSURES; i++) {
    struct gpu_closure *empty = NULL;
    if (atomic_load_explicit(&device->spare[i], memory_order_relaxed) == NULL &&
        atomic_compare_exchange_strong_explicit(&device->spare[i], &empty, closure, memory_order_release,
                                                memory_order_relaxed)) {
      return;
    }
  }
  free(closure);
}

static void call_from_stream(gpu_stream_handle stream, gpu_native_result result, void *data) {
  (void)stream;
  const struct gpu_closure closure = *(struct gpu_closure *)data;
  end_closure(data);
  rill__call_host(closure.stream, closure.fn, closure.user, gpu_status_of((gpu_result)result));
}

/* Calls the function.  Called once for each launch of the graph, so the closure is not freed. */
static void call_from_graph(void *data) {
  const struct gpu_closure *closure = data;
  rill__call_host(0, closure->fn, closure->user, RILL_OK);
}

static rill_status capture_call(struct rill__stream *stream, struct gpu_closure *closure) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  if (gpu_api.launch_host_function == NULL) {
    end_closure(closure);
    return rill__fail(RILL_ERROR_UNSUPPORTED, "a host call in a capture: the driver of %s is too old to have %s",
                      device->name, gpu_symbols.launch_host_function);
  }
  gpu_result result;
  GPU_RUN(result, device, part->inside, launch_host_function, (part->native, call_from_graph, closure));
  if (result != GPU_SUCCESS) {
    end_closure(closure);
    return GPU_FAIL(device, result, launch_host_function);
  }
  /* The lifetime of graphs created from the capture is unknown here, so the closure is kept. */
  closure->next = atomic_load(&closure->device->captured);
  while (!atomic_compare_exchange_weak(&closure->device->captured, &closure->next, closure)) continue;
  return RILL_OK;
}

rill_status gpu_host_call(struct rill__stream *stream, rill_host_fn fn, void *user) {
  struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  bool capturing = false;
  if (atomic_load_explicit(&rill__is_shared, memory_order_relaxed)) {
    RILL_TRY(gpu_stream_table.is_capturing(stream, &capturing));
  }
  struct gpu_closure *closure = new_closure(gpu_device_of(device));
  RILL_REQUIRE(closure != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for the call");
  *closure = (struct gpu_closure){ fn, user, stream->base.id, gpu_device_of(device), NULL };
  if (RILL__UNLIKELY(capturing)) return capture_call(stream, closure);
  (void)atomic_fetch_add_explicit(&part->host_calls, 1, memory_order_relaxed);
  gpu_result result;
  GPU_RUN(result, device, part->inside, stream_add_callback, (part->native, call_from_stream, closure, 0));
  if (RILL__LIKELY(result == GPU_SUCCESS)) return RILL_OK;
  end_closure(closure);
  return GPU_FAIL(device, result, stream_add_callback);
}
