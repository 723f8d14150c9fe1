#include "backends/gpu/gpu.h"

static rill_status gpu_event_create(struct rill__event *event) {
  struct rill__device *device = event->base.device;
  const unsigned flags = (event->timing ? 0 : GPU_EVENT_DISABLE_TIMING) |
                         (event->blocking_sync ? GPU_EVENT_BLOCKING_SYNC : 0) |
                         (event->interprocess ? GPU_EVENT_INTERPROCESS : 0);
  if (event->interprocess) {
    const char *why = "";
    RILL_REQUIRE(gpu_device_table.supports(device, RILL_FEATURE_EVENT_IPC, &why), RILL_ERROR_UNSUPPORTED,
                 "interprocess on %s: %s", device->name, why);
  }
  gpu_result result;
  GPU_RUN_INSIDE(result, device, event_create, (&gpu_event_of(event)->native, flags));
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, event_create);
}

static rill_status gpu_event_import(struct rill__event *event) {
  gpu_event_of(event)->native = (gpu_event_handle)event->native;
  return RILL_OK;
}

/* Submitted waits for the event remain valid.  Errors are ignored, as for streams. */
static void gpu_event_destroy(struct rill__event *event) {
  if (!gpu_forked) (void)GPU_CALL(event_destroy, (gpu_event_of(event)->native));
}

/* Does nothing: core does not query the event before its next record, which replaces the old one. */
static void gpu_event_recycle(struct rill__event *event) { (void)event; }

static uintptr_t gpu_event_native(struct rill__event *event) { return (uintptr_t)gpu_event_of(event)->native; }

/* Sets the error of a failed query.  An event that was last recorded in a capture has no state to query, even if the
 * capture has ended.  One driver reports this during the capture, and an invalid value afterwards. */
static rill_status fail_query(struct rill__event *event, gpu_result result, const char *symbol) {
  if (result == GPU_INVALID_VALUE || result == GPU_CAPTURED_EVENT) {
    return rill__fail_native(RILL_ERROR_NOT_RECORDED, result, gpu_vendor_error_name(result),
                             "%s was last recorded in a capture" RILL_HINT "record it outside of captures",
                             rill__name_of(&event->base).text);
  }
  return gpu_fail(event->base.device, result, symbol);
}

/* Refuses the call, because some runtimes inspect the stream of the event's last record, and would invalidate a capture
 * in progress on that stream. */
static rill_status fail_captured(const struct rill__event *event) {
  return rill__fail(RILL_ERROR_CAPTURE_ACTIVE,
                    "%s was last recorded on a stream that is capturing: querying it or waiting for it would "
                    "invalidate the capture" RILL_HINT "end the capture first",
                    rill__name_of(&event->base).text);
}

/* The data that decides how an event is queried, besides its native event. */
struct event_query {
  uint64_t place;
  bool imported, foreign;
};

static struct event_query query_of(struct rill__event *event) {
  return (struct event_query){ .place = atomic_load_explicit(&gpu_event_of(event)->place, memory_order_acquire),
                               .imported = event->imported,
                               .foreign = atomic_load(&event->foreign) };
}

/* Returns true if the stream of the last record was destroyed or reused, which means that the event is complete;
 * otherwise sets the stream's handle.  An event that other code may record is queried as long as that is safe; an
 * imported event is always queried, because its owner records it. */
static bool is_over(const struct event_query *query, gpu_stream_handle *stream) {
  const enum gpu_place_state state = gpu_read_place(query->place, stream);
  if (RILL__LIKELY(state == GPU_PLACE_LIVES) || query->imported) return false;
  return state == GPU_PLACE_DESTROYED || !query->foreign;
}

bool gpu_event_is_over(struct rill__event *event) {
  gpu_stream_handle stream;
  const struct event_query query = query_of(event);
  return is_over(&query, &stream);
}

/* Determines the state of an event without the runtime, or whether the runtime may be queried.  Used if
 * GPU_EVENTS_ACCESS_STREAMS.  Call it between gpu_access_begin and gpu_access_end. */
enum answer { QUERY, COMPLETE, REFUSED };
static enum answer decide_query(const struct event_query *query) {
  gpu_stream_handle stream = (gpu_stream_handle)NULL;
  gpu_capture_status capture = GPU_CAPTURE_NONE;
  if (is_over(query, &stream)) return COMPLETE;
  if (stream == (gpu_stream_handle)NULL || !atomic_load_explicit(&rill__is_shared, memory_order_relaxed) ||
      !gpu_vendor_queries_break_captures()) {
    return QUERY;
  }
  const bool capturing =
      GPU_CALL(stream_is_capturing, (stream, &capture)) == GPU_SUCCESS && capture != GPU_CAPTURE_NONE;
  return capturing ? REFUSED : QUERY;
}

bool gpu_mark_is_over(uint64_t place) {
  const struct event_query query = { .place = place };
  gpu_stream_handle stream;
  return GPU_EVENTS_ACCESS_STREAMS && is_over(&query, &stream);
}

bool gpu_mark_is_complete(gpu_event_handle mark, uint64_t place) {
  if (!GPU_EVENTS_ACCESS_STREAMS) return GPU_CALL(event_query, (mark)) == GPU_SUCCESS;
  const struct event_query query = { .place = place };
  const int access = gpu_access_begin();
  const enum answer answer = decide_query(&query);
  const bool complete = answer == COMPLETE || (answer == QUERY && GPU_CALL(event_query, (mark)) == GPU_SUCCESS);
  gpu_access_end(access);
  return complete;
}

/* Returns GPU_SUCCESS if the event is complete.  Sets `refused` if the event must not be queried. */
static gpu_result gpu_event_query(struct rill__event *event, bool *refused) {
  gpu_result result = GPU_SUCCESS;
  enum answer answer = QUERY;
  const int access = GPU_EVENTS_ACCESS_STREAMS ? gpu_access_begin() : -1;
  if (GPU_EVENTS_ACCESS_STREAMS) {
    const struct event_query query = query_of(event);
    answer = decide_query(&query);
  }
  *refused = answer == REFUSED;
  if (RILL__LIKELY(answer == QUERY)) {
    GPU_RUN(result, event->base.device, false, event_query, (gpu_event_of(event)->native));
  }
  if (GPU_EVENTS_ACCESS_STREAMS) gpu_access_end(access);
  return result;
}

static rill_status gpu_event_is_ready(struct rill__event *event, bool *out) {
  bool refused = false;
  const gpu_result result = gpu_event_query(event, &refused);
  if (RILL__UNLIKELY(refused)) return fail_captured(event);
  *out = result == GPU_SUCCESS;
  if (*out || result == GPU_NOT_READY) return RILL_OK;
  return fail_query(event, result, gpu_symbols.event_query);
}

static rill_status synchronize_for(struct rill__event *event, uint64_t ns) {
  bool refused = false;
  gpu_result result;
  struct gpu_backoff backoff = gpu_backoff_start(ns);
  while ((result = gpu_event_query(event, &refused)) == GPU_NOT_READY) {
    if (!gpu_backoff_again(&backoff)) return gpu_fail_unfinished("event", ns);
  }
  if (refused) return fail_captured(event);
  return result == GPU_SUCCESS ? RILL_OK : fail_query(event, result, gpu_symbols.event_query);
}

static rill_status gpu_event_synchronize(struct rill__event *event, uint64_t ns) {
  gpu_result result = GPU_SUCCESS;
  if (ns != RILL__FOREVER) return synchronize_for(event, ns);
  const int access = GPU_EVENTS_ACCESS_STREAMS ? gpu_access_begin() : -1;
  const struct event_query query = query_of(event);
  const enum answer answer = GPU_EVENTS_ACCESS_STREAMS ? decide_query(&query) : QUERY;
  if (answer == QUERY) {
    GPU_RUN(result, event->base.device, false, event_synchronize, (gpu_event_of(event)->native));
  }
  if (GPU_EVENTS_ACCESS_STREAMS) gpu_access_end(access);
  if (answer == REFUSED) return fail_captured(event);
  /* The mode is relaxed, so the refusal did no harm; see query_by_event (stream.c). */
  if (GPU_MAY_IGNORE_RELAXED && result == GPU_CAPTURE_UNSUPPORTED) return synchronize_for(event, RILL__FOREVER);
  return result == GPU_SUCCESS ? RILL_OK : fail_query(event, result, gpu_symbols.event_synchronize);
}

/* Returns the time between two events.  Core knows whether its own events have timing and were recorded.  For imported
 * events only the driver knows, and it reports both cases with the same code. */
static rill_status gpu_event_elapsed(struct rill__event *start, struct rill__event *end, float *ms) {
  struct rill__device *device = start->base.device;
  gpu_result result;
  GPU_RUN(result, device, false, event_elapsed_time, (ms, gpu_event_of(start)->native, gpu_event_of(end)->native));
  if (result == GPU_SUCCESS) return RILL_OK;
  *ms = 0;
  if (result == GPU_INVALID_HANDLE && (start->imported || end->imported)) {
    return rill__fail_native(RILL_ERROR_TIMING_DISABLED, result, gpu_vendor_error_name(result),
                             "%s is imported, and was created without timing or has not been recorded",
                             rill__name_of(start->imported ? &start->base : &end->base).text);
  }
  return GPU_FAIL(device, result, event_elapsed_time);
}

const struct rill__event_table gpu_event_table = {
  .create = gpu_event_create,
  .import = gpu_event_import,
  .destroy = gpu_event_destroy,
  .recycle = gpu_event_recycle,
  .native = gpu_event_native,
  .is_ready = gpu_event_is_ready,
  .synchronize = gpu_event_synchronize,
  .elapsed = gpu_event_elapsed,
  .ipc_export = gpu_ipc_export_event,
  .ipc_import = gpu_ipc_import_event,
};
