#include "backends/gpu/gpu.h"

/* ---- creating and destroying ---- */

/* Reads the driver's id of the stream, if the driver has one. */
static void read_id(struct rill__device *device, struct gpu_stream *part) {
  if (gpu_api.stream_id == NULL) return;
  gpu_result result;
  GPU_RUN(result, device, part->inside, stream_id, (part->native, &part->id));
  part->has_id = result == GPU_SUCCESS;
}

static void set_scopes(struct gpu_stream *part, bool special) {
  part->inside = special;
  part->work_inside = special || (GPU_WORK_NEEDS_CURRENT && gpu_device_count > 1);
}

static rill_status gpu_stream_create(struct rill__stream *stream) {
  struct gpu_stream *part = gpu_stream_of(stream);
  (void)pthread_mutex_init(&part->constants_lock, NULL);
  RILL_TRY(gpu_native_create(stream->base.device, stream->priority, stream->blocking, &part->own));
  part->native = part->own->handle;
  part->place = GPU_PLACE_OF(part->own);
  set_scopes(part, false);
  return RILL_OK;
}

/* Imports one of the vendor's three default streams, which have no properties to query.  Calls resolve them each
 * time. */
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
               "native stream 0x%llx belongs to a context of %s that is not the primary one" RILL_HINT
               "create the stream in the primary context; rill works in no other context",
               (unsigned long long)stream->native, device->name);
  return RILL_OK;
}

static rill_status gpu_stream_import(struct rill__stream *stream) {
  (void)pthread_mutex_init(&gpu_stream_of(stream)->constants_lock, NULL);
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
  stream->blocking = (flags & GPU_STREAM_NON_BLOCKING) == 0;
  part->native = native;
  part->place = GPU_PLACE_OF_BORROWED(native);
  set_scopes(part, false);
  read_id(device, part);
  if (!stream->owned) return RILL_OK;
  part->own = gpu_native_new(native);
  RILL_REQUIRE(part->own != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a stream");
  part->place = GPU_PLACE_OF(part->own);
  return RILL_OK;
}

/* Works like the is_capturing function, but without an error: if the driver cannot tell, no capture is assumed. */
bool gpu_is_captured(struct rill__stream *stream) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  gpu_capture_status status = GPU_CAPTURE_NONE;
  gpu_result result;
  GPU_RUN(result, stream->base.device, part->inside, stream_is_capturing, (part->native, &status));
  return result == GPU_CAPTURE_IMPLICIT || (result == GPU_SUCCESS && status != GPU_CAPTURE_NONE);
}

/* Returns true once the work is done, because one vendor's destroy waits for the work.  A capturing stream
 * is not queried, because that would invalidate the capture. */
static bool gpu_stream_may_destroy(struct rill__stream *stream) {
  struct gpu_stream *part = gpu_stream_of(stream);
  if (gpu_forked || part->own == NULL || !stream->owned) return true;
  if (atomic_load_explicit(&stream->base.device->lost, memory_order_acquire) != RILL_OK) return true;
  if (gpu_is_captured(stream)) return false;
  const gpu_result result = GPU_CALL(stream_query, (part->native));
  part->drained = result == GPU_SUCCESS;
  return result != GPU_NOT_READY && result != GPU_CAPTURE_UNSUPPORTED; /* GPU_CAPTURE_UNSUPPORTED: see query_by_event */
}

static bool gpu_stream_destroy(struct rill__stream *stream) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  if (gpu_forked || part->own == NULL) return true;
  if (!stream->owned) {
    gpu_native_forget(part->own);
    return true;
  }
  const bool reuse = part->drained && !stream->imported && !atomic_load(&stream->foreign);
  return gpu_native_end(stream, part->own, reuse);
}

/* ---- properties ---- */

static uintptr_t gpu_stream_native(struct rill__stream *stream) {
  return stream->imported ? stream->native : (uintptr_t)gpu_stream_of(stream)->native;
}

static rill_status gpu_stream_context(struct rill__stream *stream, uintptr_t *out) {
  *out = GPU_CONTEXT_VALUE(gpu_device_of(stream->base.device)->context);
  return RILL_OK;
}

/* Returns the id of the stream.  Native streams and their ids are reused.  rill's numbers have the highest bit set, so
 * they differ from the drivers' ids, which count from 1. */
static rill_status id(struct rill__stream *stream, uint64_t *out) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  *out = part->has_id ? part->id : stream->number | UINT64_C(1) << 63;
  return RILL_OK;
}

/* Returns whether the handle still belongs to this stream.  If the handle was reused, the id differs.  If the stream
 * was destroyed and its handle was not reused, the driver may refuse the call, which is not guaranteed. */
static rill_status validate(struct rill__stream *stream, bool *same) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  RILL_REQUIRE(part->has_id, RILL_ERROR_UNSUPPORTED, "the driver of %s did not report the id of native stream 0x%llx",
               device->name, (unsigned long long)stream->native);
  unsigned long long now = 0;
  gpu_result result;
  GPU_RUN(result, device, false, stream_id, (part->native, &now));
  *same = result == GPU_SUCCESS && now == part->id;
  if (result == GPU_SUCCESS) return RILL_OK;
  const rill_status status = GPU_FAIL(device, result, stream_id);
  /* the stream was destroyed, unless its context was */
  const bool destroyed = result == GPU_INVALID_HANDLE || result == GPU_CONTEXT_DESTROYED;
  return destroyed && status != RILL_ERROR_DEVICE_LOST ? RILL_OK : status;
}

static rill_status gpu_stream_is_capturing(struct rill__stream *stream, bool *out) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  gpu_capture_status status = GPU_CAPTURE_NONE;
  gpu_result result;
  GPU_RUN(result, device, part->inside, stream_is_capturing, (part->native, &status));
  /* the null stream, while a blocking stream is captured */
  if (result == GPU_CAPTURE_IMPLICIT) {
    *out = true;
    return RILL_OK;
  }
  *out = status != GPU_CAPTURE_NONE;
  return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, stream_is_capturing);
}

/* Refuses to query or synchronize a stream that other code captures, because that would invalidate the capture. */
static rill_status refuse_captured(struct rill__stream *stream) {
  bool capturing = false;
  if (RILL__LIKELY(!atomic_load_explicit(&stream->foreign, memory_order_relaxed))) return RILL_OK;
  RILL_TRY(gpu_stream_is_capturing(stream, &capturing));
  RILL_REQUIRE(!capturing, RILL_ERROR_CAPTURE_ACTIVE,
               "%s is capturing: querying it or waiting for it would invalidate the capture" RILL_HINT
               "end the capture first",
               rill__name_of(&stream->base).text);
  return RILL_OK;
}

static gpu_result gpu_stream_query(struct rill__stream *stream) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  gpu_result result;
  GPU_RUN(result, stream->base.device, part->inside, stream_query, (part->native));
  return result;
}

/* Returns true for a runtime that refuses to query streams while any thread captures in global mode, even in relaxed
 * mode.  The refusal does not invalidate the capture. */
static bool is_refused_anyway(gpu_result result) {
  return GPU_MAY_IGNORE_RELAXED && RILL__UNLIKELY(result == GPU_CAPTURE_UNSUPPORTED);
}

/* Records an event and queries it instead, until the work before it is complete or the time limit has passed.  Only one
 * event is recorded: if each query recorded a new one, the newest event might never be complete when it is queried. */
static gpu_result query_by_event(struct rill__stream *stream, struct gpu_backoff *backoff) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  gpu_event_handle event;
  gpu_result result;
  if (gpu_is_captured(stream)) return GPU_CAPTURE_UNSUPPORTED;
  GPU_RUN_INSIDE(result, stream->base.device, event_create, (&event, GPU_EVENT_DISABLE_TIMING));
  if (result != GPU_SUCCESS) return result;
  GPU_RUN(result, stream->base.device, part->inside, event_record, (event, part->native));
  if (result == GPU_SUCCESS) {
    do {
      result = GPU_CALL(event_query, (event));
    } while (result == GPU_NOT_READY && gpu_backoff_again(backoff));
  }
  (void)GPU_CALL(event_destroy, (event));
  return result;
}

static rill_status gpu_stream_is_complete(struct rill__stream *stream, bool *out) {
  enum { LONGEST = 100000 }; /* nanoseconds; usually enough for an event of an idle stream */
  RILL_TRY(refuse_captured(stream));
  gpu_result result = gpu_stream_query(stream);
  if (is_refused_anyway(result)) {
    struct gpu_backoff backoff = gpu_backoff_start(LONGEST);
    result = query_by_event(stream, &backoff);
  }
  *out = result == GPU_SUCCESS;
  if (RILL__LIKELY(*out) || result == GPU_NOT_READY) return RILL_OK;
  return GPU_FAIL(stream->base.device, result, stream_query);
}

/* ---- ordering ---- */

/* Returns whether RILL_EVENT_EXTERNAL applies.  The vendors accept the external flags only inside captures; outside,
 * rill's flag has no effect. */
static rill_status external_applies(struct rill__stream *stream, uint32_t flags, bool *out) {
  *out = false;
  return (flags & RILL_EVENT_EXTERNAL) == 0 ? RILL_OK : gpu_stream_is_capturing(stream, out);
}

static gpu_result record_external(struct rill__stream *stream, struct rill__event *event) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  gpu_result result;
  GPU_RUN(result, stream->base.device, part->inside, event_record_with_flags,
          (gpu_event_of(event)->native, part->native, GPU_RECORD_EXTERNAL));
  return result;
}

/* Notes where the event was recorded.  `before`: the place noted when the record started.  Returns false if another
 * thread has recorded the event meanwhile, because it is unknown then which record the runtime remembers. */
static bool note_place(struct gpu_event *event, uint64_t before, uint64_t place) {
  if (RILL__LIKELY(((before ^ place) & ~(uint64_t)GPU_PLACE_TURNS) == 0)) {
    return atomic_load_explicit(&event->place, memory_order_acquire) == before;
  }
  place |= (before + GPU_PLACE_TURN) & GPU_PLACE_TURNS;
  return atomic_compare_exchange_strong(&event->place, &before, place);
}

static rill_status record(struct rill__stream *stream, struct rill__event *event, uint32_t flags) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct gpu_event *event_part = gpu_event_of(event);
  struct rill__device *device = stream->base.device;
  bool external = false;
  if (RILL__UNLIKELY(flags != 0)) {
    RILL_TRY(external_applies(stream, flags, &external));
    RILL_REQUIRE(!external || gpu_api.event_record_with_flags != NULL, RILL_ERROR_UNSUPPORTED,
                 "RILL_EVENT_EXTERNAL in a capture: the driver of %s is too old to have %s", device->name,
                 gpu_symbols.event_record_with_flags);
  }
  uint64_t before;
  do {
    gpu_result result;
    before = GPU_EVENTS_ACCESS_STREAMS ? atomic_load_explicit(&event_part->place, memory_order_acquire) : 0;
    if (RILL__UNLIKELY(external)) {
      result = record_external(stream, event);
    } else {
      GPU_RUN(result, device, part->inside, event_record, (event_part->native, part->native));
    }
    if (RILL__UNLIKELY(result != GPU_SUCCESS)) {
      return gpu_fail(device, result, external ? gpu_symbols.event_record_with_flags : gpu_symbols.event_record);
    }
  } while (GPU_EVENTS_ACCESS_STREAMS && RILL__UNLIKELY(!note_place(event_part, before, part->place)));
  atomic_store_explicit(&event_part->after_host_calls, gpu_has_host_calls(part), memory_order_relaxed);
  return RILL_OK;
}

/* Returns true if the event is complete and needs no wait.  Some runtimes refuse the wait if the stream of the event's
 * last record, or another stream at its address, is now capturing. */
static bool is_complete_anyway(struct rill__stream *stream, struct rill__event *event, gpu_result result) {
  bool ready = false;
  if (!GPU_EVENTS_ACCESS_STREAMS || result != GPU_CAPTURE_ISOLATION || gpu_is_captured(stream)) return false;
  rill__errors_suspend();
  const rill_status status = gpu_event_table.is_ready(event, &ready);
  rill__errors_resume();
  return status == RILL_OK && ready;
}

static rill_status wait(struct rill__stream *stream, struct rill__event *event, uint32_t flags) {
  struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  unsigned native_flags = 0;
  if (RILL__UNLIKELY(flags != 0)) {
    bool external = false;
    RILL_TRY(external_applies(stream, flags, &external));
    if (external) native_flags = GPU_WAIT_EXTERNAL;
  }
  if (RILL__UNLIKELY(atomic_load_explicit(&gpu_event_of(event)->after_host_calls, memory_order_relaxed))) {
    (void)atomic_fetch_add_explicit(&part->host_calls, 1, memory_order_relaxed);
  }
  gpu_result result = GPU_SUCCESS;
  const int access = GPU_EVENTS_ACCESS_STREAMS ? gpu_access_begin() : -1;
  if (!GPU_EVENTS_ACCESS_STREAMS || native_flags != 0 || RILL__LIKELY(!gpu_event_is_over(event))) {
    GPU_RUN(result, device, part->inside, stream_wait_event, (part->native, gpu_event_of(event)->native, native_flags));
  }
  if (GPU_EVENTS_ACCESS_STREAMS) gpu_access_end(access);
  if (RILL__LIKELY(result == GPU_SUCCESS) || is_complete_anyway(stream, event, result)) return RILL_OK;
  return GPU_FAIL(device, result, stream_wait_event);
}

/* ---- the host ---- */

static rill_status gpu_stream_synchronize(struct rill__stream *stream, uint64_t ns) {
  const struct gpu_stream *part = gpu_stream_of(stream);
  struct rill__device *device = stream->base.device;
  gpu_result result;
  RILL_TRY(refuse_captured(stream));
  if (ns == RILL__FOREVER) {
    GPU_RUN(result, device, part->inside, stream_synchronize, (part->native));
    if (!is_refused_anyway(result)) {
      return result == GPU_SUCCESS ? RILL_OK : GPU_FAIL(device, result, stream_synchronize);
    }
  }
  struct gpu_backoff backoff = gpu_backoff_start(ns);
  do {
    result = gpu_stream_query(stream);
    if (is_refused_anyway(result)) result = query_by_event(stream, &backoff);
    if (result == GPU_SUCCESS) return RILL_OK;
    if (result != GPU_NOT_READY) return GPU_FAIL(device, result, stream_query);
  } while (gpu_backoff_again(&backoff));
  return gpu_fail_unfinished("stream", ns);
}

rill_status gpu_wait_for_host_calls(struct rill__stream *stream, const void *src) {
  struct gpu_stream *part = gpu_stream_of(stream);
  const uint32_t calls = atomic_load_explicit(&part->host_calls, memory_order_relaxed);
  bool capturing = false, known = false, complete = false;
  RILL_TRY(gpu_stream_is_capturing(stream, &capturing));
  if (capturing) return RILL_OK; /* the source is read when the graph runs */
  RILL_TRY(gpu_memory_table.is_known(stream->base.device, src, &known));
  if (known) return RILL_OK; /* pinned by other code, and read in stream order */
  RILL_TRY(gpu_stream_is_complete(stream, &complete));
  if (!complete && rill__in_host_call) return rill__fail_in_host_call();
  if (!complete) RILL_TRY(gpu_stream_synchronize(stream, RILL__FOREVER));
  atomic_store_explicit(&part->host_calls_done, calls, memory_order_relaxed);
  return RILL_OK;
}

const struct rill__stream_table gpu_stream_table = {
  .create = gpu_stream_create,
  .import = gpu_stream_import,
  .may_destroy = gpu_stream_may_destroy,
  .destroy = gpu_stream_destroy,
  .native = gpu_stream_native,
  .context = gpu_stream_context,
  .id = id,
  .validate = validate,
  .record = record,
  .wait = wait,
  .synchronize = gpu_stream_synchronize,
  .is_complete = gpu_stream_is_complete,
  .is_capturing = gpu_stream_is_capturing,
  .host_call = gpu_host_call,
};
