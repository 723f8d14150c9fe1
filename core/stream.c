#include "core/stream/stream.h"

#include "core/device/life.h"
#include "core/diagnose/waits.h"
#include "core/held/held.h"
#include "core/held/record.h"
#include "core/memory/memory.h"
#include "core/object/options.h"
#include "core/object/origin.h"
#include "core/sync/events.h"
#include "core/sync/submit.h"

/* ---- life ---- */

rill_status rill_stream_create(rill_device device, const rill_stream_options *options, rill_stream *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_STREAM;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  struct rill__stream *stream = NULL;
  RILL_TRY(rill__stream_create(d, options, &stream));
  out->id = stream->base.id;
  rill__origin_note(&stream->base);
  return RILL_OK;
}

rill_status rill_stream_import(rill_device device, uintptr_t native, const rill_import_options *options,
                               rill_stream *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_STREAM;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  rill_import_options o = RILL_IMPORT_OPTIONS_INIT;
  RILL_TRY(rill__import_options_read(&o, options, native <= 2));
  RILL_REQUIRE(d->backend->stream->import != NULL, RILL_ERROR_UNSUPPORTED, "%s has no native streams to import",
               d->name);
  RILL_TRY(rill__device_activate(d));
  struct rill__stream *stream = NULL;
  RILL_TRY(rill__stream_import(d, native, &o, &stream));
  out->id = stream->base.id;
  rill__origin_note(&stream->base);
  return RILL_OK;
}

rill_status rill_stream_retain(rill_stream stream) {
  RILL_ENTER();
  return rill__object_retain(stream.id, RILL__STREAM);
}

rill_status rill_stream_release(rill_stream stream) {
  RILL_ENTER();
  struct rill__object *last = NULL;
  const rill_status status = rill__object_release(stream.id, RILL__STREAM, &last);
  if (last != NULL) rill__stream_end((struct rill__stream *)last);
  return status;
}

/* ---- queries ---- */

#define RILL_ENTER_STREAM(out_value)                \
  RILL_ENTER();                                     \
  if (out != NULL) *out = (out_value);              \
  struct rill__stream *s;                           \
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s); \
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL")

static bool is_not_held(struct rill__stream *stream) { return !rill__is_held(stream); }

static rill_status export_native(struct rill__stream *stream, uintptr_t *out) {
  const uintptr_t native = RILL_ASK(stream, stream, native, stream);
  bool may = true;
  if (native != 0) atomic_store(&rill__is_shared, true);
  RILL_TRY(rill__capture_share(stream, native != 0 ? rill__stream_share : is_not_held, &may));
  RILL_REQUIRE(may, RILL_ERROR_NOT_READY,
               "%s is held: work submitted to its native stream would overtake the queued work" RILL_HINT
               "record the event that it waits for first",
               rill__name_of(&stream->base).text);
  if (native != 0 && !stream->imported) RILL_TRY(rill__native_list(stream, native));
  *out = native;
  return RILL_OK;
}

rill_status rill_stream_native(rill_stream stream, uintptr_t *out) {
  RILL_ENTER_STREAM(0);
  rill__ref(&s->base);
  rill__held_wait_submitted(s);
  const rill_status status = export_native(s, out);
  rill__unref(&s->base);
  return status;
}

rill_status rill_stream_context(rill_stream stream, uintptr_t *out) {
  RILL_ENTER_STREAM(0);
  return RILL_DISPATCH(s, stream, context, s, out);
}

rill_status rill_stream_device(rill_stream stream, rill_device *out) {
  RILL_ENTER_STREAM(RILL_NULL_DEVICE);
  out->id = s->base.device->base.id;
  return RILL_OK;
}

rill_status rill_stream_priority(rill_stream stream, int32_t *out) {
  RILL_ENTER_STREAM(0);
  *out = s->priority;
  return RILL_OK;
}

rill_status rill_stream_is_blocking(rill_stream stream, bool *out) {
  RILL_ENTER_STREAM(false);
  *out = s->blocking;
  return RILL_OK;
}

rill_status rill_stream_label(rill_stream stream, const char **out) {
  RILL_ENTER_STREAM(NULL);
  *out = s->base.label != NULL ? s->base.label : "";
  return RILL_OK;
}

rill_status rill_stream_id(rill_stream stream, uint64_t *out) {
  RILL_ENTER_STREAM(0);
  uint64_t id = s->number;
  if (s->base.device->backend->stream->id != NULL) RILL_TRY(RILL_DISPATCH(s, stream, id, s, &id));
  *out = id;
  return RILL_OK;
}

rill_status rill_stream_is_complete(rill_stream stream, bool *out) {
  RILL_ENTER_STREAM(false);
  RILL_TRY(rill__check_usable(s->base.device));
  if (rill__is_captured(s)) RILL_TRY(rill__capture_refuse(s));
  *out = rill__known_idle(s);
  if (*out) RILL__NOTE_ORDER(seen_stream, s);
  if (*out || rill__is_held(s)) return RILL_OK;
  const struct rill__completion_query query = rill__query_completion(&rill__core(s)->work);
  RILL_TRY(RILL_DISPATCH(s, stream, is_complete, s, out));
  if (*out) rill__completion_remember(&rill__core(s)->work, &query);
  if (*out) RILL__NOTE_ORDER(seen_stream, s);
  return RILL_OK;
}

rill_status rill_stream_is_capturing(rill_stream stream, bool *out) {
  RILL_ENTER_STREAM(false);
  RILL_TRY(rill__check_usable(s->base.device));
  *out = rill__is_captured(s);
  return *out ? RILL_OK : RILL_DISPATCH(s, stream, is_capturing, s, out);
}

rill_status rill_stream_validate(rill_stream stream) {
  RILL_ENTER();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  if (!s->imported || s->native <= 2) return RILL_OK;
  struct rill__device *device = s->base.device;
  RILL_TRY(rill__check_usable(device));
  const char *why = "";
  RILL_REQUIRE(RILL_ASK(device, device, supports, device, RILL_FEATURE_STREAM_ID, &why), RILL_ERROR_UNSUPPORTED,
               "rill_stream_validate on %s: %s", device->name, why);
  bool same = false;
  RILL_TRY(RILL_DISPATCH(s, stream, validate, s, &same));
  RILL_REQUIRE(same, RILL_ERROR_STALE_HANDLE,
               "native stream 0x%llx has been destroyed since it was imported, and another stream now has the same "
               "handle" RILL_HINT "release the handle, and import the new stream",
               (unsigned long long)s->native);
  return RILL_OK;
}

/* ---- events ---- */

rill_status rill_stream_record_event(rill_stream stream, rill_event event, uint32_t flags) {
  RILL_ENTER_TO_SUBMIT();
  struct rill__stream *s;
  struct rill__event *e;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_RESOLVE(RILL__EVENT, event, "event", &e);
  RILL_TRY(rill__check_same_device(&s->base, &e->base));
  RILL_REQUIRE((flags & ~(uint32_t)RILL_EVENT_EXTERNAL) == 0, RILL_ERROR_INVALID_ARGUMENT,
               "flags are 0x%x, but must be RILL_EVENT_EXTERNAL or 0", flags);
  RILL_REQUIRE(!rill__core(e)->cached, RILL_ERROR_INVALID_ARGUMENT,
               "%s is the cached event of a stream" RILL_HINT "record an event of your own",
               rill__name_of(&e->base).text);
  return rill__stream_record(s, e, flags);
}

rill_status rill_stream_record_new_event(rill_stream stream, const rill_event_options *options, rill_event *out) {
  RILL_ENTER_STREAM(RILL_NULL_EVENT);
  struct rill__event *e = NULL;
  RILL_TRY(rill__event_create(s->base.device, options, &e));
  rill__core(e)->given = true;
  const rill_status status = rill__stream_record(s, e, 0);
  if (status == RILL_OK) {
    out->id = e->base.id;
    rill__origin_note(&e->base);
  } else {
    rill__object_retire(&e->base);
  }
  return status;
}

/* Submits a wait through which the stream joins a capture.  A held stream cannot join, so this first blocks while the
 * queue of the stream is being submitted. */
static __attribute__((cold)) rill_status join_by_event(struct rill__stream *stream, struct rill__event *event,
                                                       uint32_t flags) {
  rill__ref(&stream->base);
  rill__ref(&event->base);
  rill__held_wait_submitted(stream);
  const rill_status status = rill__stream_wait_for(stream, event, flags);
  rill__unref(&event->base);
  rill__unref(&stream->base);
  return status;
}

rill_status rill_stream_wait_event(rill_stream stream, rill_event event, uint32_t flags) {
  RILL_ENTER_TO_SUBMIT();
  struct rill__stream *s;
  struct rill__event *e, *point;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_RESOLVE(RILL__EVENT, event, "event", &e);
  RILL_TRY(rill__check_same_backend(&s->base, &e->base));
  const uint32_t either = RILL_WAIT_IF_RECORDED | RILL_WAIT_MUST_BE_RECORDED;
  RILL_REQUIRE((flags & ~(either | RILL_EVENT_EXTERNAL)) == 0 && (flags & either) != either,
               RILL_ERROR_INVALID_ARGUMENT,
               "flags are 0x%x, but only RILL_EVENT_EXTERNAL and one of RILL_WAIT_* may be set", flags);
  RILL_TRY(rill__check_usable(s->base.device));
  RILL_TRY(rill__check_usable(e->base.device));
  const enum rill__meaning meaning = rill__event_meaning(e, &point);
  if (RILL__UNLIKELY(meaning == RILL__NO_RECORD)) {
    if (rill__is_captured(s) && (flags & RILL_EVENT_EXTERNAL) != 0)
      return rill__stream_wait_for(s, e, flags & RILL_EVENT_EXTERNAL);
    if (e->signaled || (flags & RILL_WAIT_IF_RECORDED) != 0) return RILL_OK;
    RILL_REQUIRE((flags & RILL_WAIT_MUST_BE_RECORDED) == 0, RILL_ERROR_NOT_RECORDED, "%s has never been recorded",
                 rill__name_of(&e->base).text);
  } else if (meaning == RILL__RECORD_ISSUED && rill__known_complete(point) && !rill__is_captured(s)) {
    RILL__NOTE_ORDER(ordered, s, point);
    return RILL_OK;
  } else if (RILL__UNLIKELY(meaning == RILL__RECORD_CAPTURED) && rill__is_held(s)) {
    return join_by_event(s, e, flags & RILL_EVENT_EXTERNAL);
  }
  return rill__stream_wait_for(s, e, flags & RILL_EVENT_EXTERNAL);
}

rill_status rill_stream_cached_event(rill_stream stream, rill_event *out) {
  RILL_ENTER_STREAM(RILL_NULL_EVENT);
  struct rill__event *event = NULL;
  RILL_TRY(rill__stream_cached_event(s, &event));
  out->id = event->base.id;
  return RILL_OK;
}

rill_status rill_stream_wait_stream(rill_stream stream, rill_stream other) {
  RILL_ENTER_TO_SUBMIT();
  struct rill__stream *s, *o;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_RESOLVE(RILL__STREAM, other, "other", &o);
  return rill__stream_wait_stream(s, o);
}

rill_status rill_stream_wait_device(rill_stream stream, rill_device device) {
  RILL_ENTER_TO_SUBMIT();
  struct rill__stream *s, *o = NULL;
  struct rill__device *d;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_TRY(rill__check_same_backend(&s->base, &d->base));
  RILL_TRY(rill__device_default_stream(d, &o));
  return rill__stream_wait_stream(s, o);
}

/* ---- waits of the host ---- */

static rill_status synchronize_stream(struct rill__thread *self, struct rill__stream *stream, uint64_t ns) {
  RILL_TRY(rill__check_usable(stream->base.device));
  if (rill__is_captured(stream)) RILL_TRY(rill__capture_refuse(stream));
  const bool held =
      rill__is_held(stream) || atomic_load_explicit(&rill__core(stream)->failure, memory_order_relaxed) != NULL;
  const bool idle = !held && rill__known_idle(stream);
  const uint64_t number = stream->number;
  if (idle && RILL__LIKELY(!rill__memory_awaits_host(stream->base.device))) {
    RILL__NOTE_ORDER(seen_stream, stream);
    rill__leave(&self);
    rill__reclaim_after(number);
    return RILL_OK;
  }
  rill__ref_and_leave(self, &stream->base);
  struct rill__observed wait;
  rill_status status = rill__host_wait_begin(&wait, RILL__OBSERVED_STREAM_WAIT, &stream->base);
  if (status == RILL_OK && held) status = rill__held_wait_for_stream(stream, &ns);
  if (status == RILL_OK && !idle) {
    const struct rill__completion_query query = rill__query_completion(&rill__core(stream)->work);
    status = RILL_DISPATCH(stream, stream, synchronize, stream, ns);
    if (status == RILL_OK) rill__completion_remember(&rill__core(stream)->work, &query);
  }
  status = rill__host_wait_end(&wait, status);
  if (status == RILL_OK) RILL__NOTE_ORDER(seen_stream, stream);
  if (status == RILL_OK) status = rill__held_failure(stream);
  if (status == RILL_OK) status = rill__memory_synchronized(stream->base.device, false);
  rill__unref(&stream->base);
  if (status == RILL_OK) rill__reclaim_after(number);
  return status;
}

rill_status rill_stream_synchronize(rill_stream stream) {
  RILL_ENTER_TO_BLOCK();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  return synchronize_stream(self, s, RILL__FOREVER);
}

rill_status rill_stream_synchronize_for(rill_stream stream, uint64_t ns) {
  RILL_ENTER_TO_BLOCK();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  return synchronize_stream(self, s, ns);
}

rill_status rill_stream_host_call(rill_stream stream, rill_host_fn fn, void *user) {
  RILL_ENTER_TO_SUBMIT();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(fn != NULL, RILL_ERROR_INVALID_ARGUMENT, "fn is NULL");
  RILL_TRY(rill__check_usable(s->base.device));
  RILL_DIVERT(s, rill__held_host_call, fn, user);
  return rill__submit_host_call(s, fn, user);
}

rill_status rill_stream_fail(rill_stream stream, rill_status status, const char *text) {
  RILL_ENTER();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(status > RILL_OK && status < RILL_STATUS_END_, RILL_ERROR_INVALID_ARGUMENT, "status %d is not a failure",
               (int)status);
  RILL_REQUIRE(text != NULL, RILL_ERROR_INVALID_ARGUMENT, "text is NULL");
  return rill__stream_note_failure(s, status, text);
}
