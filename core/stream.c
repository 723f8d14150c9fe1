#include "core/stream.h"
#include "core/device/life.h"
#include "core/held/held.h"
#include "core/held/record.h"
#include "core/memory.h"
#include "core/object/options.h"
#include "core/pool/pool.h"
#include "core/sync/events.h"
#include "core/sync/streams.h"
#include "core/sync/submit.h"

#include <sched.h>
#include <stdlib.h>

static _Atomic uint64_t last_number;

/* ---- life ---- */

static void destroy_stream(struct rill__object *object) {
  struct rill__stream *stream = (struct rill__stream *)object;
  const bool native = stream->owned || stream->imported;
  bool ended = !native || RILL_DOOR(stream, stream, may_destroy, stream);
  if (ended)
    rill__stream_unlist(stream); /* not before, since it has work; not after: others look at its native stream */
  if (ended && native) ended = RILL_DOOR(stream, stream, destroy, stream);
  if (!ended) {
    rill__object_postpone(object);
    return;
  }
  rill__native_unlist(stream);
  rill__held_forget(stream);
  rill__object_free(object);
}

/* rill__object.recycle of streams that nobody else knows: they are destroyed, but many at a time, since to look at all
 * threads costs microseconds (rill__reclaim). */
static bool ends_with_others(struct rill__object *object) {
  (void)object;
  return false;
}

rill_status rill__stream_new(struct rill__device *device, const char *label, struct rill__stream **out) {
  const size_t size = RILL__PART_OFFSET(struct rill__stream) + device->backend->stream_size;
  RILL_TRY(rill__object_new(size, device, label, destroy_stream, out));
  (*out)->number = atomic_fetch_add(&last_number, 1) + 1;
  rill__completion_forget(&(*out)->work); /* the first question finds a fault of the device that nobody knows of yet */
  return RILL_OK;
}

/* What a priority asked for is on a device. */
static rill_status choose_priority(const struct rill__device *device, int32_t asked, uint32_t policy, int32_t *out) {
  const int32_t least = device->info.priority_least, greatest = device->info.priority_greatest;
  RILL_REQUIRE(policy == RILL_PRIORITY_CLAMP || policy == RILL_PRIORITY_STRICT, RILL_ERROR_INVALID_ARGUMENT,
               "priority_policy %u is neither RILL_PRIORITY_CLAMP nor RILL_PRIORITY_STRICT", policy);
  if (asked == RILL_PRIORITY_HIGH) asked = greatest;
  if (asked == RILL_PRIORITY_LOW) asked = least;
  if (policy == RILL_PRIORITY_STRICT) {
    RILL_REQUIRE(asked >= greatest && asked <= least, RILL_ERROR_OUT_OF_RANGE,
                 "priority %d is outside the range of %s, %d (greatest) to %d (least)", asked, device->name, greatest,
                 least);
  }
  *out = asked < greatest ? greatest : asked > least ? least : asked;
  return RILL_OK;
}

static rill_status create_stream(struct rill__device *device, const rill_stream_options *options,
                                 struct rill__stream **out) {
  rill_stream_options o = RILL_STREAM_OPTIONS_INIT;
  RILL_TRY(rill__options_read(&o, sizeof o, options, "rill_stream_options"));
  RILL_TRY(rill__device_activate(device));
  int32_t priority = 0;
  RILL_TRY(choose_priority(device, o.priority, o.priority_policy, &priority));
  struct rill__stream *stream = NULL;
  RILL_TRY(rill__stream_new(device, o.label, &stream));
  stream->priority = priority;
  stream->blocking = o.blocking;
  rill_status status = RILL_DOOR(stream, stream, create, stream);
  if (status == RILL_OK) {
    stream->owned = true;
    stream->base.recycle = ends_with_others;
    rill__stream_list(stream);
    status = rill__object_publish(&stream->base, RILL__STREAM);
  }
  if (status != RILL_OK) {
    rill__drop(&stream->base);
    return status;
  }
  *out = stream;
  return RILL_OK;
}

rill_status rill__device_default_stream(struct rill__device *device, struct rill__stream **out) {
  *out = atomic_load_explicit(&device->default_stream, memory_order_acquire);
  if (RILL__LIKELY(*out != NULL)) return rill__check_usable(device);
  struct rill__stream *stream = NULL;
  RILL_TRY(create_stream(device, NULL, &stream));
  stream->base.borrowed = true; /* nobody has the handle yet */
  struct rill__stream *none = NULL;
  if (atomic_compare_exchange_strong(&device->default_stream, &none, stream)) {
    *out = stream;
  } else { /* another thread was first */
    rill__object_retire(&stream->base);
    *out = none;
  }
  return RILL_OK;
}

rill_status rill_stream_create(rill_device device, const rill_stream_options *options, rill_stream *out) {
  rill__reclaim();
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_STREAM;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  struct rill__stream *stream = NULL;
  RILL_TRY(create_stream(d, options, &stream));
  out->id = stream->base.id;
  return RILL_OK;
}

rill_status rill_stream_retain(rill_stream stream) {
  RILL_ENTER();
  return rill__object_retain(stream.id, RILL__STREAM);
}

void rill__stream_end(struct rill__stream *stream) {
  if (stream->imported && !stream->owned) rill__stream_unlist(stream); /* from here on its owner may destroy it */
  rill__pools_stream_end(stream);
  const bool borrowed = stream->imported && !stream->owned;
  while (borrowed && atomic_load(&stream->visitors) != 0) (void)sched_yield();
  struct rill__event *cached = atomic_load(&stream->cached_event);
  if (cached != NULL) rill__object_retire(&cached->base);
  void (*const release)(void *, uintptr_t) = stream->release;
  void *const user = stream->release_user;
  const uintptr_t native = release != NULL ? stream->native : 0; /* else another thread may be writing it */
  const uint64_t id = stream->base.id;
  if (atomic_load(&stream->foreign)) stream->base.recycle = NULL;
  rill__object_retire(&stream->base);
  if (release != NULL) {
    rill__leave(&rill__self);
    rill__wait_for_users(id); /* another thread's call may still be using the native stream */
    release(user, native);
  }
}

rill_status rill_stream_release(rill_stream stream) {
  RILL_ENTER();
  struct rill__object *last = NULL;
  const rill_status status = rill__object_release(stream.id, RILL__STREAM, &last);
  if (last != NULL) rill__stream_end((struct rill__stream *)last);
  rill__leave(&self);
  rill__reclaim();
  return status;
}

/* ---- what a stream tells ---- */

#define RILL_ENTER_STREAM(out_value)                \
  RILL_ENTER();                                     \
  if (out != NULL) *out = (out_value);              \
  struct rill__stream *s;                           \
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s); \
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL")

rill_status rill_stream_native(rill_stream stream, uintptr_t *out) {
  RILL_ENTER_STREAM(0);
  const uintptr_t native = RILL_DOOR(s, stream, native, s);
  if (native != 0) atomic_store(&rill__is_shared, true);
  RILL_REQUIRE(native == 0 ? !rill__is_held(s) : rill__stream_share(s), RILL_ERROR_NOT_READY,
               "%s is held: work given to its native stream would pass what is queued" RILL_HINT
               "record the event that it waits for first",
               rill__name_of(&s->base).text);
  if (native != 0 && !s->imported) RILL_TRY(rill__native_list(s, native));
  *out = native;
  return RILL_OK;
}

rill_status rill_stream_context(rill_stream stream, uintptr_t *out) {
  RILL_ENTER_STREAM(0);
  return RILL_DOOR(s, stream, context, s, out);
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
  *out = s->number;
  if (s->base.device->backend->stream->id == NULL) return RILL_OK;
  return RILL_DOOR(s, stream, id, s, out);
}

rill_status rill_stream_is_complete(rill_stream stream, bool *out) {
  RILL_ENTER_STREAM(false);
  RILL_TRY(rill__check_usable(s->base.device));
  *out = rill__known_idle(s);
  if (*out || rill__is_held(s)) return RILL_OK;
  const struct rill__question asked = rill__completion_ask(&s->work);
  RILL_TRY(RILL_DOOR(s, stream, is_complete, s, out));
  if (*out) rill__completion_remember(&s->work, &asked);
  return RILL_OK;
}

rill_status rill_stream_is_capturing(rill_stream stream, bool *out) {
  RILL_ENTER_STREAM(false);
  RILL_TRY(rill__check_usable(s->base.device));
  return RILL_DOOR(s, stream, is_capturing, s, out);
}

/* ---- events ---- */

rill_status rill_stream_record_event(rill_stream stream, rill_event event, uint32_t flags) {
  RILL_ENTER();
  struct rill__stream *s;
  struct rill__event *e;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_RESOLVE(RILL__EVENT, event, "event", &e);
  RILL_TRY(rill__check_same_device(&s->base, &e->base));
  RILL_REQUIRE((flags & ~(uint32_t)RILL_EVENT_EXTERNAL) == 0, RILL_ERROR_INVALID_ARGUMENT,
               "flags 0x%x: a record takes RILL_EVENT_EXTERNAL or 0", flags);
  RILL_REQUIRE(!e->cached, RILL_ERROR_INVALID_ARGUMENT,
               "%s is the cached event of a stream" RILL_HINT "record an event of your own",
               rill__name_of(&e->base).text);
  return rill__stream_record(s, e, flags);
}

rill_status rill_stream_record_new_event(rill_stream stream, const rill_event_options *options, rill_event *out) {
  RILL_ENTER_STREAM(RILL_NULL_EVENT);
  struct rill__event *e = NULL;
  RILL_TRY(rill__event_create(s->base.device, options, &e));
  const rill_status status = rill__stream_record(s, e, 0);
  if (status == RILL_OK) {
    out->id = e->base.id;
  } else {
    rill__object_retire(&e->base);
  }
  return status;
}

rill_status rill_stream_wait_event(rill_stream stream, rill_event event, uint32_t flags) {
  RILL_ENTER();
  struct rill__stream *s;
  struct rill__event *e, *point;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_RESOLVE(RILL__EVENT, event, "event", &e);
  RILL_TRY(rill__check_same_backend(&s->base, &e->base));
  const uint32_t either = RILL_WAIT_IF_RECORDED | RILL_WAIT_MUST_BE_RECORDED;
  RILL_REQUIRE((flags & ~(either | RILL_EVENT_EXTERNAL)) == 0 && (flags & either) != either,
               RILL_ERROR_INVALID_ARGUMENT, "flags 0x%x: a wait takes RILL_EVENT_EXTERNAL and one of RILL_WAIT_*",
               flags);
  RILL_TRY(rill__check_usable(s->base.device));
  RILL_TRY(rill__check_usable(e->base.device));
  const enum rill__meaning meaning = rill__event_meaning(e, &point);
  if (RILL__UNLIKELY(meaning == RILL__NO_RECORD)) {
    if (e->signaled || (flags & RILL_WAIT_IF_RECORDED) != 0) return RILL_OK;
    RILL_REQUIRE((flags & RILL_WAIT_MUST_BE_RECORDED) == 0, RILL_ERROR_NOT_RECORDED, "%s has never been recorded",
                 rill__name_of(&e->base).text);
  } else if (meaning == RILL__RECORD_ISSUED && (flags & RILL_EVENT_EXTERNAL) == 0 && rill__known_complete(point)) {
    return RILL_OK;
  }
  return rill__stream_wait_for(s, e, flags & RILL_EVENT_EXTERNAL);
}

/* The stream's cached event, made at the first use. */
static rill_status cached_event(struct rill__stream *stream, struct rill__event **out) {
  *out = atomic_load_explicit(&stream->cached_event, memory_order_acquire);
  if (RILL__LIKELY(*out != NULL)) return RILL_OK;
  struct rill__event *event = NULL;
  RILL_TRY(rill__event_create(stream->base.device, NULL, &event));
  event->base.borrowed = true; /* nobody has the handle yet */
  event->cached = true;
  struct rill__event *none = NULL;
  if (atomic_compare_exchange_strong(&stream->cached_event, &none, event)) {
    *out = event;
  } else { /* another thread was first */
    rill__object_retire(&event->base);
    *out = none;
  }
  return RILL_OK;
}

rill_status rill_stream_cached_event(rill_stream stream, rill_event *out) {
  RILL_ENTER_STREAM(RILL_NULL_EVENT);
  struct rill__event *event = NULL;
  RILL_TRY(cached_event(s, &event));
  out->id = event->base.id;
  return RILL_OK;
}

/* Another thread may record the cached event between the two calls: the driver's wait then takes a later point of the
 * same stream, which includes the earlier one.  Where anything is held that is not so: the wait may be queued, and take
 * whatever the event stands for by then.  So it gets an event that nobody else records. */
static rill_status wait_stream_held(struct rill__stream *stream, struct rill__stream *other) {
  struct rill__event *event = NULL;
  RILL_TRY(rill__event_create(other->base.device, NULL, &event));
  rill_status status = rill__stream_record(other, event, 0);
  if (status == RILL_OK) status = rill__stream_wait_for(stream, event, 0);
  rill__object_retire(&event->base);
  return status;
}

static rill_status wait_stream(struct rill__stream *stream, struct rill__stream *other) {
  if (stream == other) return RILL_OK;
  RILL_TRY(rill__check_same_backend(&stream->base, &other->base));
  RILL_TRY(rill__check_usable(stream->base.device));
  struct rill__event *event = NULL;
  RILL_TRY(cached_event(other, &event));
  if (RILL__UNLIKELY(atomic_load_explicit(&event->state, memory_order_acquire) != RILL__EVENT_RECORDED ||
                     rill__is_held(stream) || rill__is_held(other))) {
    RILL_TRY(rill__stream_record(other, event, 0)); /* for who waits for the cached event */
    return wait_stream_held(stream, other);
  }
  RILL_TRY(rill__check_usable(other->base.device));
  RILL_TRY(rill__record_in_driver(other, event, 0));
  rill_status status = RILL_OK;
  RILL_SUBMIT(status, stream, stream, wait, stream, event, 0);
  return status;
}

rill_status rill_stream_wait_stream(rill_stream stream, rill_stream other) {
  RILL_ENTER();
  struct rill__stream *s, *o;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_RESOLVE(RILL__STREAM, other, "other", &o);
  return wait_stream(s, o);
}

rill_status rill_stream_wait_device(rill_stream stream, rill_device device) {
  RILL_ENTER();
  struct rill__stream *s, *o = NULL;
  struct rill__device *d;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_TRY(rill__check_same_backend(&s->base, &d->base));
  RILL_TRY(rill__device_default_stream(d, &o));
  return wait_stream(s, o);
}

/* ---- the host ---- */

static rill_status synchronize(struct rill__thread *self, struct rill__stream *stream, uint64_t ns) {
  RILL_TRY(rill__check_usable(stream->base.device));
  const bool held = rill__is_held(stream) || atomic_load_explicit(&stream->failure, memory_order_relaxed) != NULL;
  const bool idle = !held && rill__known_idle(stream);
  if (idle && RILL__LIKELY(!rill__memory_awaits_host(stream->base.device))) return RILL_OK;
  rill__keep_and_leave(self, &stream->base);
  rill_status status = held ? rill__held_wait_for_stream(stream, &ns) : RILL_OK;
  if (status == RILL_OK && !idle) {
    const struct rill__question asked = rill__completion_ask(&stream->work);
    status = RILL_DOOR(stream, stream, synchronize, stream, ns);
    if (status == RILL_OK) rill__completion_remember(&stream->work, &asked);
  }
  if (status == RILL_OK) status = rill__held_failure(stream);
  if (status == RILL_OK) rill__memory_synchronized(stream->base.device);
  rill__drop(&stream->base);
  return status;
}

rill_status rill_stream_synchronize(rill_stream stream) {
  rill__reclaim();
  RILL_ENTER_TO_BLOCK();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  return synchronize(self, s, RILL__FOREVER);
}

rill_status rill_stream_synchronize_for(rill_stream stream, uint64_t ns) {
  rill__reclaim();
  RILL_ENTER_TO_BLOCK();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  return synchronize(self, s, ns);
}

rill_status rill_stream_host_call(rill_stream stream, rill_host_fn fn, void *user) {
  RILL_ENTER();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(fn != NULL, RILL_ERROR_INVALID_ARGUMENT, "fn is NULL");
  RILL_TRY(rill__check_usable(s->base.device));
  if (rill__is_held(s)) {
    bool taken = false;
    RILL_TRY(rill__held_host_call(s, fn, user, &taken));
    if (taken) return RILL_OK;
  }
  rill_status status = RILL_OK;
  RILL_SUBMIT(status, s, stream, host_call, s, fn, user);
  return status;
}

rill_status rill_stream_fail(rill_stream stream, rill_status status, const char *text) {
  RILL_ENTER();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(status > RILL_OK && status <= RILL_ERROR_INTERNAL, RILL_ERROR_INVALID_ARGUMENT,
               "status %d is that of no failure", (int)status);
  RILL_REQUIRE(text != NULL, RILL_ERROR_INVALID_ARGUMENT, "text is NULL");
  return rill__stream_note_failure(s, status, text);
}
