/* Creating and destroying streams, and the objects that belong to a single stream. */
#include "core/stream/stream.h"

#include "core/device/life.h"
#include "core/diagnose/order_notes.h"
#include "core/held/held.h"
#include "core/held/record.h"
#include "core/object/options.h"
#include "core/sync/events.h"
#include "core/sync/streams.h"

#include <sched.h>

static _Atomic uint64_t last_number;

void (*_Atomic rill__stream_end_caches)(struct rill__stream *stream);

static void destroy_stream(struct rill__object *object) {
  struct rill__stream *stream = (struct rill__stream *)object;
  const bool native = stream->owned || stream->imported;
  bool ended = !native || RILL_ASK(stream, stream, may_destroy, stream);
  /* The stream is removed from the list only now: earlier it may have had work, and later other threads would query a
   * native stream that no longer exists. */
  if (ended) rill__stream_unlist(stream);
  const struct rill__recorded last = { object->id, rill__stream_submitted(stream) - 1 };
  if (ended && rill__self != NULL && rill__stream_submitted(stream) > 0) rill__record_seen(object->device, &last);
  if (ended && native) ended = RILL_ASK(stream, stream, destroy, stream);
  if (!ended) {
    rill__object_postpone(object);
    return;
  }
  RILL__NOTE_ORDER(stream_ended, stream->number);
  rill__native_unlist(stream);
  rill__held_forget(stream);
  rill__object_free(object);
}

rill_status rill__stream_new(struct rill__device *device, const char *label, struct rill__stream **out) {
  const size_t size = RILL__PART_OFFSET(struct rill__stream) + device->backend->stream_size;
  RILL_TRY(rill__object_new(size, device, label, destroy_stream, out));
  (*out)->number = atomic_fetch_add(&last_number, 1) + 1;
  (*out)->base.after = (*out)->number;
  rill__stream_number_operations(*out);
  /* A new stream is not known to be idle, so that its first query finds a fault of the device that no call has seen
   * yet. */
  rill__completion_forget(&rill__core(*out)->work);
  return RILL_OK;
}

/* Determines the priority that a requested priority has on a device. */
static rill_status choose_priority(const struct rill__device *device, int32_t requested, uint32_t policy,
                                   int32_t *out) {
  const int32_t least = device->info.priority_least, greatest = device->info.priority_greatest;
  RILL_REQUIRE(policy == RILL_PRIORITY_CLAMP || policy == RILL_PRIORITY_STRICT, RILL_ERROR_INVALID_ARGUMENT,
               "priority_policy %u is neither RILL_PRIORITY_CLAMP nor RILL_PRIORITY_STRICT", policy);
  if (requested == RILL_PRIORITY_HIGH) requested = greatest;
  if (requested == RILL_PRIORITY_LOW) requested = least;
  if (policy == RILL_PRIORITY_STRICT) {
    RILL_REQUIRE(requested >= greatest && requested <= least, RILL_ERROR_OUT_OF_RANGE,
                 "priority %d is outside the range of %s, %d (greatest) to %d (least)", requested, device->name,
                 greatest, least);
  }
  *out = requested < greatest ? greatest : requested > least ? least : requested;
  return RILL_OK;
}

rill_status rill__stream_create(struct rill__device *device, const rill_stream_options *options,
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
  rill_status status = RILL_DISPATCH(stream, stream, create, stream);
  if (status == RILL_OK) {
    stream->owned = true;
    rill__stream_list(stream);
    status = rill__object_publish(&stream->base, RILL__STREAM);
  }
  if (status != RILL_OK) {
    rill__unref(&stream->base);
    return status;
  }
  *out = stream;
  return RILL_OK;
}

rill_status rill__device_default_stream(struct rill__device *device, struct rill__stream **out) {
  *out = atomic_load_explicit(&rill__core(device)->default_stream, memory_order_acquire);
  if (RILL__LIKELY(*out != NULL)) return rill__check_usable(device);
  struct rill__stream *stream = NULL;
  RILL_TRY(rill__stream_create(device, NULL, &stream));
  stream->base.borrowed = true; /* no user has the handle yet */
  struct rill__stream *none = NULL;
  if (atomic_compare_exchange_strong(&rill__core(device)->default_stream, &none, stream)) {
    *out = stream;
  } else { /* another thread has stored its object first */
    rill__object_retire(&stream->base);
    *out = none;
  }
  return RILL_OK;
}

/* Ends the cached event once, from the release of the stream or from a call in progress that created the event after
 * the release.  The event's handle is made stale before the event is abandoned: a wait that holds a stream for the
 * event's first record checks the handle after attaching its fence. */
static void end_cached_event(struct rill__stream *stream) {
  struct rill__event *cached = atomic_exchange(&rill__core(stream)->cached_event, NULL);
  if (cached == NULL) return;
  rill__object_retire(&cached->base);
  rill__event_abandon(cached);
}

void rill__stream_end(struct rill__stream *stream) {
  rill__capture_abandon(stream);
  /* its owner may destroy the native stream from here on */
  if (stream->imported && !stream->owned) rill__stream_unlist(stream);
  /* set before `caches` is read; core/pool/cache.c increments `caches` before it reads this flag */
  atomic_store(&rill__core(stream)->pools_closed, true);
  if (atomic_load(&rill__core(stream)->caches) != 0) atomic_load (&rill__stream_end_caches)(stream);
  const bool borrowed = stream->imported && !stream->owned;
  while (borrowed && atomic_load(&rill__core(stream)->visitors) != 0) (void)sched_yield();
  end_cached_event(stream);
  void (*const release)(void *, uintptr_t) = rill__core(stream)->release;
  void *const user = rill__core(stream)->release_user;
  /* without `release`, `native` is not needed, and another thread may be writing it */
  const uintptr_t native = release != NULL ? stream->native : 0;
  const uint64_t id = stream->base.id;
  rill__object_retire(&stream->base);
  if (release != NULL) {
    rill__leave(&rill__self);
    rill__wait_for_users(id); /* a call of another thread may still be using the native stream */
    release(user, native);
  }
}

rill_status rill__stream_create_cached_event(struct rill__stream *stream, struct rill__event **out) {
  struct rill__event *event = NULL;
  RILL_TRY(rill__event_create(stream->base.device, NULL, &event));
  event->base.borrowed = true; /* no user has the handle yet */
  rill__core(event)->cached = true;
  struct rill__event *none = NULL;
  if (atomic_compare_exchange_strong(&rill__core(stream)->cached_event, &none, event)) {
    *out = event;
    /* The release of the stream may have looked for the event before it was stored. */
    if (!rill__object_is_live(&stream->base)) end_cached_event(stream);
  } else { /* another thread has stored its object first */
    rill__object_retire(&event->base);
    *out = none;
  }
  return RILL_OK;
}

/* Another thread may record the cached event between the record and the wait.  The driver's wait then takes a later
 * point of the same stream, which includes the earlier one.  This is not so if a stream is held: the wait may be queued
 * and then take whatever the event stands for by that time.  So this wait uses a separate event that no other thread
 * records. */
static rill_status wait_stream_held(struct rill__stream *stream, struct rill__stream *other) {
  struct rill__event *event = NULL;
  RILL_TRY(rill__event_create(other->base.device, NULL, &event));
  rill_status status = rill__stream_record(other, event, 0);
  if (status == RILL_OK) status = rill__stream_wait_for(stream, event, 0);
  rill__object_retire(&event->base);
  return status;
}

/* Submits the wait on a diverted stream.  It may make the stream join a capture, which a held stream cannot, so a
 * submission in progress is waited for first. */
static rill_status wait_stream_diverted(struct rill__stream *stream, struct rill__stream *other) {
  rill__ref(&stream->base);
  rill__ref(&other->base);
  if (rill__is_captured(other)) rill__held_wait_submitted(stream);
  const rill_status status = wait_stream_held(stream, other);
  rill__unref(&other->base);
  rill__unref(&stream->base);
  return status;
}

rill_status rill__stream_wait_stream(struct rill__stream *stream, struct rill__stream *other) {
  if (stream == other) return RILL_OK;
  RILL_TRY(rill__check_same_backend(&stream->base, &other->base));
  RILL_TRY(rill__check_usable(stream->base.device));
  struct rill__event *event = NULL;
  RILL_TRY(rill__stream_cached_event(other, &event));
  if (RILL__UNLIKELY(atomic_load_explicit(&rill__core(event)->state, memory_order_acquire) != RILL__EVENT_RECORDED ||
                     rill__is_diverted(stream) || rill__is_diverted(other))) {
    RILL_TRY(rill__stream_record(other, event, 0)); /* for threads that wait for the cached event */
    return wait_stream_diverted(stream, other);
  }
  RILL_TRY(rill__check_usable(other->base.device));
  RILL_TRY(rill__record_in_driver(other, event, 0));
  return rill__submit_wait(stream, event, 0);
}
