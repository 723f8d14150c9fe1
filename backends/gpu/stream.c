#include "backends/gpu/gpu.h"

/* ---- life ---- */

/* The driver's number of the stream, where it has one.  Asking in the usual mode would break a capture that is under
 * way, so it happens once, now and aside. */
static void read_id(struct rill__device *device, struct gpu_stream *part) {
  if (gpu_api.stream_id == NULL) return;
  gpu_result result;
  struct gpu_aside aside = gpu_step_aside();
  GPU_RUN(result, device, part->inside, stream_id, (part->native, &part->id));
  gpu_step_back(&aside);
  part->has_id = result == GPU_SUCCESS;
}

static void set_scopes(struct gpu_stream *part, bool special) {
  part->inside = special;
  part->work_inside = special || (GPU_WORK_NEEDS_CURRENT && gpu_device_count > 1);
}

static rill_status create(struct rill__stream *stream) {
  struct rill__device *device = stream->base.device;
  struct gpu_stream *part = gpu_stream_of(stream);
  const unsigned flags = stream->blocking ? 0 : GPU_STREAM_FLAG_NON_BLOCKING;
  gpu_result result;
  (void)pthread_mutex_init(&part->whole, NULL);
  GPU_RUN_INSIDE(result, device, stream_create, (&part->native, flags, stream->priority));
  if (result != GPU_SUCCESS) return GPU_FAIL(device, result, stream_create);
  set_scopes(part, false);
  read_id(device, part);
  return RILL_OK;
}

/* The vendor's three default streams: there is nothing to ask about them, and calls name them anew each time. */
static rill_status import_special(struct rill__stream *stream) {
  struct gpu_stream *part = gpu_stream_of(stream);
  part->native = gpu_vendor_special_stream(stream->native);
  set_scopes(part, true);
  stream->priority = 0;
  stream->blocking = true;
  read_id(stream->base.device, part);
  return RILL_OK;
}

static rill_status check_owner(struct rill__stream *stream, gpu_stream_handle native) {
  struct rill__device *device = stream->base.device;
  const struct gpu_device *owner_part = gpu_device_of(device);
  enum gpu_owner owner = GPU_OWNER_THIS;
  const gpu_result result = gpu_vendor_stream_owner(native, owner_part->native, owner_part->context, &owner);
  if (result != GPU_SUCCESS) return gpu_fail(device, result, GPU_OWNER_TEXT);
  RILL_REQUIRE(owner != GPU_OWNER_OTHER_DEVICE, RILL_ERROR_WRONG_DEVICE,
               "native stream 0x%llx is not one of %s" RILL_HINT "import it on the device that it was created on",
               (unsigned long long)stream->native, device->name);
  RILL_REQUIRE(owner != GPU_OWNER_OTHER_CONTEXT, RILL_ERROR_UNSUPPORTED,
               "native stream 0x%llx belongs to a context of %s that is not the primary one, in which rill works, in "
               "any version" RILL_HINT "create the stream in the primary context",
               (unsigned long long)stream->native, device->name);
  return RILL_OK;
}

static rill_status import(struct rill__stream *stream) {
  (void)pthread_mutex_init(&gpu_stream_of(stream)->whole, NULL);
  if (stream->native <= 2) return import_special(stream);
  struct rill__device *device = stream->base.device;
  struct gpu_stream *part = gpu_stream_of(stream);
  const gpu_stream_handle native = (gpu_stream_handle)stream->native;
  RILL_TRY(check_owner(stream, native));
  int priority = 0;
  unsigned flags = 0;
  gpu_result result;
  GPU_RUN(result, device, false, stream_priority, (native, &priority));
  if (result != GPU_SUCCESS) return GPU_FAIL(device, result, stream_priority);
  GPU_RUN(result, device, false, stream_flags, (native, &flags));
  if (result != GPU_SUCCESS) return GPU_FAIL(device, result, stream_flags);
  stream->priority = priority;
  stream->blocking = (flags & GPU_STREAM_FLAG_NON_BLOCKING) == 0;
  part->native = native;
  set_scopes(part, false);
  read_id(device, part);
  return RILL_OK;
}

/* A stream in a capture is not asked about its work: that would break the capture. */
static bool has_work(const struct gpu_stream *part) {
  gpu_capture_status capture = GPU_CAPTURE_NONE;
  if (GPU_CALL(stream_is_capturing(part->native, &capture)) == GPU_SUCCESS && capture != GPU_CAPTURE_NONE) return true;
  struct gpu_aside aside = gpu_step_aside();
  const gpu_result result = GPU_CALL(stream_query(part->native));
  gpu_step_back(&aside);
  return result == GPU_NOT_READY;
}

/* Ends with its work, not before: one vendor would wait for it here, and core looks among its streams for what may
 * still use a module. */
static bool destroy(struct rill__stream *stream) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  if (gpu_forked) return true;
  const bool lost = atomic_load_explicit(&stream->base.device->lost, memory_order_acquire) != RILL_OK;
  if (!lost && has_work(part)) return false;
  /* A refusal leaves nothing to do: the driver has shut down at exit, or the device is lost. */
  if (!lost || !GPU_MAY_HANG_BEHIND_FAULT) (void)GPU_CALL(stream_destroy(part->native));
  return true;
}

/* ---- what a stream tells ---- */

static uintptr_t native(struct rill__stream *stream) {
  return stream->imported ? stream->native : (uintptr_t)gpu_stream_of(stream)->native;
}

static rill_status context(struct rill__stream *stream, uintptr_t *out) {
  *out = GPU_CONTEXT_VALUE(gpu_device_of(stream->base.device)->context);
  return RILL_OK;
}

static rill_status id(struct rill__stream *stream, uint64_t *out) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  *out = part->has_id ? part->id : stream->number;
  return RILL_OK;
}

/* A handle that is used again names a stream with another id; one that is not is refused, at best. */
static rill_status validate(struct rill__stream *stream, bool *same) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  RILL_REQUIRE(part->has_id, RILL_ERROR_UNSUPPORTED, "the driver of %s did not tell the id of native stream 0x%llx",
               device->name, (unsigned long long)stream->native);
  unsigned long long now = 0;
  gpu_result result;
  struct gpu_aside aside = gpu_step_aside();
  GPU_RUN(result, device, false, stream_id, (part->native, &now));
  gpu_step_back(&aside);
  *same = result == GPU_SUCCESS && now == part->id;
  if (result == GPU_SUCCESS) return RILL_OK;
  const rill_status status = GPU_FAIL(device, result, stream_id);
  /* Destroyed, unless it is the whole context that has gone. */
  const bool gone = result == GPU_INVALID_HANDLE || result == GPU_CONTEXT_DESTROYED;
  return gone && status != RILL_ERROR_DEVICE_LOST ? RILL_OK : status;
}

static rill_status is_capturing(struct rill__stream *stream, bool *out) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  gpu_capture_status status = GPU_CAPTURE_NONE;
  gpu_result result;
  GPU_RUN(result, device, part->inside, stream_is_capturing, (part->native, &status));
  /* The null stream, while a stream that blocks with it is being captured. */
  if (result == GPU_CAPTURE_IMPLICIT) {
    *out = true;
    return RILL_OK;
  }
  *out = status != GPU_CAPTURE_NONE;
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, stream_is_capturing);
}

static rill_status is_complete(struct rill__stream *stream, bool *out) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  gpu_result result;
  GPU_RUN(result, device, part->inside, stream_query, (part->native));
  *out = result == GPU_SUCCESS;
  if (RILL__LIKELY(*out) || result == GPU_NOT_READY) return RILL_OK;
  return GPU_FAIL(device, result, stream_query);
}

/* ---- ordering ---- */

/* The vendors take the external flags inside captures only; outside, rill's has no effect. */
static rill_status external_applies(struct rill__stream *stream, uint32_t flags, bool *out) {
  *out = false;
  return (flags & RILL_EVENT_EXTERNAL) == 0 ? RILL_OK : is_capturing(stream, out);
}

static rill_status record_external(struct rill__stream *stream, struct rill__event *event) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  RILL_REQUIRE(gpu_api.event_record_with_flags != NULL, RILL_ERROR_UNSUPPORTED,
               "RILL_EVENT_EXTERNAL in a capture: the driver of %s cannot record with flags: %s came later",
               device->name, gpu_symbols.event_record_with_flags);
  gpu_result result;
  GPU_RUN(result, device, part->inside, event_record_with_flags,
          (gpu_event_of(event)->native, part->native, GPU_RECORD_FLAG_EXTERNAL));
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, event_record_with_flags);
}

static rill_status record(struct rill__stream *stream, struct rill__event *event, uint32_t flags) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  if (RILL__UNLIKELY(flags != 0)) {
    bool external = false;
    RILL_TRY(external_applies(stream, flags, &external));
    if (external) return record_external(stream, event);
  }
  gpu_result result;
  GPU_RUN(result, device, part->inside, event_record, (gpu_event_of(event)->native, part->native));
  return RILL__LIKELY(result == GPU_SUCCESS) ? RILL_OK : GPU_FAIL(device, result, event_record);
}

static rill_status wait(struct rill__stream *stream, struct rill__event *event, uint32_t flags) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  unsigned native_flags = 0;
  if (RILL__UNLIKELY(flags != 0)) {
    bool external = false;
    RILL_TRY(external_applies(stream, flags, &external));
    if (external) native_flags = GPU_WAIT_FLAG_EXTERNAL;
  }
  gpu_result result;
  GPU_RUN(result, device, part->inside, stream_wait_event, (part->native, gpu_event_of(event)->native, native_flags));
  return RILL__LIKELY(result == GPU_SUCCESS) ? RILL_OK : GPU_FAIL(device, result, stream_wait_event);
}

/* ---- the host ---- */

static rill_status synchronize(struct rill__stream *stream, uint64_t ns) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  gpu_result result;
  if (ns == RILL__FOREVER) {
    GPU_RUN(result, device, part->inside, stream_synchronize, (part->native));
    return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, stream_synchronize);
  }
  struct gpu_patience patience = gpu_patience_begin(ns);
  for (;;) {
    GPU_RUN(result, device, part->inside, stream_query, (part->native));
    if (result == GPU_SUCCESS) return RILL_OK;
    if (result != GPU_NOT_READY) return GPU_FAIL(device, result, stream_query);
    if (!gpu_patience_again(&patience)) return gpu_fail_unfinished("stream", ns);
  }
}

const struct rill__stream_table gpu_stream_table = {
  .create = create,
  .import = import,
  .destroy = destroy,
  .native = native,
  .context = context,
  .id = id,
  .validate = validate,
  .record = record,
  .wait = wait,
  .synchronize = synchronize,
  .is_complete = is_complete,
  .is_capturing = is_capturing,
  .host_call = gpu_host_call,
};
