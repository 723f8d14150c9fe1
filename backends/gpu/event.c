#include "backends/gpu/gpu.h"

static rill_status create(struct rill__event *event) {
  struct rill__device *device = event->base.device;
  const unsigned flags = (event->timing ? 0 : GPU_EVENT_FLAG_DISABLE_TIMING) |
                         (event->blocking_sync ? GPU_EVENT_FLAG_BLOCKING_SYNC : 0) |
                         (event->interprocess ? GPU_EVENT_FLAG_INTERPROCESS : 0);
  if (event->interprocess) {
    const char *why = "";
    RILL_REQUIRE(gpu_device_table.supports(device, RILL_FEATURE_IPC, &why), RILL_ERROR_UNSUPPORTED,
                 "interprocess on %s: %s", device->name, why);
  }
  gpu_result result;
  GPU_RUN_INSIDE(result, device, event_create, (&gpu_event_of(event)->native, flags));
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, event_create);
}

static rill_status import(struct rill__event *event) {
  gpu_event_of(event)->native = (gpu_event_handle)event->native;
  return RILL_OK;
}

/* Waits made for the event stay good.  A refusal leaves nothing to do, as with streams. */
static void destroy(struct rill__event *event) {
  if (!gpu_forked) (void)GPU_CALL(event_destroy(gpu_event_of(event)->native));
}

/* Core asks nothing of an event before its next record, and that replaces whatever it marks. */
static void recycle(struct rill__event *event) { (void)event; }

static uintptr_t native(struct rill__event *event) { return (uintptr_t)gpu_event_of(event)->native; }

/* An event last recorded in a capture, which may have ended, has no state of its own to ask for: one driver says
 * so during the capture, and calls the question invalid afterwards. */
static rill_status fail_question(struct rill__event *event, gpu_result result, const char *symbol) {
  if (result == GPU_INVALID_VALUE || result == GPU_CAPTURED_EVENT) {
    return rill__fail_native(RILL_ERROR_NOT_RECORDED, result, gpu_vendor_error_name(result),
                             "%s was last recorded in a capture" RILL_HINT "record it outside of captures",
                             rill__name_of(&event->base).text);
  }
  return gpu_fail(event->base.device, result, symbol);
}

static rill_status is_ready(struct rill__event *event, bool *out) {
  gpu_result result;
  GPU_RUN(result, event->base.device, false, event_query, (gpu_event_of(event)->native));
  *out = result == GPU_SUCCESS;
  if (*out || result == GPU_NOT_READY) return RILL_OK;
  return fail_question(event, result, gpu_symbols.event_query);
}

static rill_status synchronize(struct rill__event *event, uint64_t ns) {
  const gpu_event_handle handle = gpu_event_of(event)->native;
  struct rill__device *device = event->base.device;
  gpu_result result;
  if (ns == RILL__FOREVER) {
    GPU_RUN(result, device, false, event_synchronize, (handle));
    return result == GPU_SUCCESS ? RILL_OK : fail_question(event, result, gpu_symbols.event_synchronize);
  }
  struct gpu_patience patience = gpu_patience_begin(ns);
  for (;;) {
    GPU_RUN(result, device, false, event_query, (handle));
    if (result == GPU_SUCCESS) return RILL_OK;
    if (result != GPU_NOT_READY) return fail_question(event, result, gpu_symbols.event_query);
    if (!gpu_patience_again(&patience)) return gpu_fail_unfinished("event", ns);
  }
}

/* Of its own events core knows whether they have timing and were recorded.  Of imported ones the driver does, and
 * has one code for both. */
static rill_status elapsed(struct rill__event *start, struct rill__event *end, float *ms) {
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
  .create = create,
  .import = import,
  .destroy = destroy,
  .recycle = recycle,
  .native = native,
  .is_ready = is_ready,
  .synchronize = synchronize,
  .elapsed = elapsed,
  .ipc_export = gpu_ipc_export_event,
  .ipc_import = gpu_ipc_import_event,
};
