/* Fences, and the records that events stand for. */
#include "core/held/watch.h"
#include "core/object/assert.h"
#include "core/sync/events.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- failures ---- */

struct rill__failure *rill__failure_new(rill_status status, int32_t code, const char *name, const char *text) {
  struct rill__failure *failure = calloc(1, sizeof *failure);
  if (failure == NULL) return NULL;
  failure->references = 1;
  failure->status = status;
  failure->native_code = code;
  (void)snprintf(failure->native_name, sizeof failure->native_name, "%s", name);
  (void)snprintf(failure->text, sizeof failure->text, "%.511s", text);
  return failure;
}

void rill__failure_unref(struct rill__failure *failure) {
  if (failure != NULL && --failure->references == 0) free(failure);
}

rill_status rill__fail_failed_record(struct rill__event *event) {
  struct rill__failure copy = { .status = RILL_ERROR_NOT_RECORDED,
                                .text = "there was no host memory to store the reason" };
  rill__held_lock();
  if (atomic_load(&rill__core(event)->state) == RILL__EVENT_FENCED) {
    const struct rill__failure *failure = atomic_load(&rill__core(event)->fence)->failure;
    if (failure != NULL) copy = *failure;
  }
  rill__held_unlock();
  return rill__fail_native(copy.status, copy.native_code, copy.native_name,
                           "%s was recorded on a held stream, and the work before the record failed: %s" RILL_HINT
                           "record it again",
                           rill__name_of(&event->base).text, copy.text);
}

/* ---- fences ---- */

/* The child of a fork changes this number, which ends all claims made by the parent's threads. */
static uint32_t claims = 1;
static bool is_claimed(const struct rill__fence *fence) { return fence->claim == claims; }
void rill__held_claims_end(void) { claims++; }

/* Destroys a fence.  If the event itself is the mark, this only drops a reference to it.  Otherwise the fence owns the
 * mark, which is retired like a released event. */
static void destroy_fence(struct rill__object *object) {
  struct rill__fence *fence = (struct rill__fence *)object;
  if (fence->mark_is_event) {
    rill__unref(&fence->mark->base);
  } else if (fence->mark != NULL) {
    rill__object_retire(&fence->mark->base);
  }
  free(fence);
}

rill_status rill__fence_new(struct rill__event *event, struct rill__fence **out) {
  *out = calloc(1, sizeof **out);
  RILL_REQUIRE(*out != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to wait for an event on the host");
  rill__object_init(&(*out)->base, event->base.device, destroy_fence);
  (*out)->references = 1;
  (*out)->event = rill__name_of(&event->base);
  return RILL_OK;
}

rill_status rill__mark_new(struct rill__event *event, struct rill__event **out) {
  rill_event_options options = RILL_EVENT_OPTIONS_INIT;
  options.timing = event->timing;
  options.blocking_sync = event->blocking_sync;
  return rill__event_create(event->base.device, &options, out);
}

void rill__fence_unref(struct rill__fence *fence) {
  RILL_ASSERT_HELD_LOCKED();
  RILL_ASSERT(fence->references > 0 && (fence->references > 1 || (fence->waits == 0 && fence->blocked == NULL)),
              "a fence that is waited for is referenced");
  /* A call may have loaded the pointer from its event just before it was detached, so the memory is freed only when all
   * current epochs have ended. */
  if (--fence->references > 0) return;
  rill__failure_unref(fence->failure);
  rill__object_defer(&fence->base);
}

void rill__fence_set_state(struct rill__fence *fence, enum fence_state state) {
  RILL_ASSERT_HELD_LOCKED();
  RILL_ASSERT(rill__fence_is_pending(fence) && state > rill__fence_state(fence),
              "a fence is first AWAITED, may become QUEUED, and becomes ISSUED or FAILED, which are final");
  atomic_store_explicit(&fence->state, state, memory_order_release);
}

/* Sets the final state.  The blocked queues only become ready here.  The caller submits them by rill__held_run, after
 * it has released the lock. */
static void resolve_fence(struct rill__fence *fence, enum fence_state state) {
  rill__fence_set_state(fence, state);
  while (fence->blocked != NULL) {
    struct rill__queue *queue = fence->blocked;
    rill__queue_unlink(queue);
    rill__queue_link(queue, &rill__held_ready);
  }
  rill__watches_arrive(fence->watches);
  fence->watches = NULL;
  rill__held_changed();
}

void rill__fence_issue(struct rill__fence *fence, struct rill__event *mark, bool is_event) {
  RILL_ASSERT(mark != NULL || !is_event, "a fence that an event issues has that event");
  fence->mark = mark;
  fence->mark_is_event = is_event;
  if (is_event) {
    rill__ref(&mark->base);
    /* From here on the waits in queues are for the event itself: until they are submitted, a new record of the event
     * must use another mark. */
    rill__core(mark)->awaited += fence->waits;
  }
  resolve_fence(fence, FENCE_ISSUED);
}

void rill__fence_fail(struct rill__fence *fence, struct rill__failure *failure) {
  fence->failure = failure;
  if (failure != NULL) failure->references++;
  resolve_fence(fence, FENCE_FAILED);
}

void rill__fence_add_wait(struct rill__fence *fence) {
  fence->references++;
  fence->waits++;
  if (fence->mark_is_event) rill__core(fence->mark)->awaited++;
}

/* Makes an event that is its own mark stand for its native event again, if no wait is queued for it and no thread is
 * recording it. */
static void detach_unawaited(struct rill__event *event) {
  const struct rill__fence *fence = rill__event_fence(event);
  if (fence == NULL || !fence->mark_is_event || rill__core(event)->awaited > 0 || is_claimed(fence)) return;
  rill__event_detach(event, RILL__EVENT_RECORDED);
}

/* The last wait for a mark may be for an older fence than the one that the event stands for now. */
void rill__fence_remove_wait(struct rill__fence *fence) {
  RILL_ASSERT(fence->waits > 0 && (!fence->mark_is_event || rill__core(fence->mark)->awaited > 0),
              "a fence, and the event that is its mark, count the waits that are queued");
  fence->waits--;
  if (fence->mark_is_event && --rill__core(fence->mark)->awaited == 0) detach_unawaited(fence->mark);
  rill__fence_unref(fence);
}

/* ---- what an event stands for ---- */

/* Takes no lock: each state is stored with release order after the fields that it makes valid, and the caller's epoch
 * keeps the fence allocated even if the event is detached meanwhile. */
enum rill__meaning rill__fence_meaning(struct rill__event *event, struct rill__event **point) {
  const uint32_t state = atomic_load_explicit(&rill__core(event)->state, memory_order_acquire);
  if (state == RILL__EVENT_RECORDED) return RILL__RECORD_ISSUED;
  if (state == RILL__EVENT_UNRECORDED) return RILL__NO_RECORD;
  if (state == RILL__EVENT_CAPTURED) return RILL__RECORD_CAPTURED;
  struct rill__fence *fence = atomic_load_explicit(&rill__core(event)->fence, memory_order_acquire);
  switch ((enum fence_state)atomic_load_explicit(&fence->state, memory_order_acquire)) {
    case FENCE_AWAITED: return RILL__NO_RECORD;
    case FENCE_QUEUED: return RILL__RECORD_HELD;
    case FENCE_FAILED: return RILL__RECORD_FAILED;
    case FENCE_ISSUED: break;
  }
  *point = fence->mark;
  return RILL__RECORD_ISSUED;
}

void rill__event_attach(struct rill__event *event, struct rill__fence *fence) {
  struct rill__fence *const old = rill__event_fence(event);
  RILL_ASSERT_HELD_LOCKED();
  fence->references++;
  fence->created = rill__held_serial;
  /* The fence is stored before the state: a thread that reads FENCED without the lock then finds a fence. */
  atomic_store_explicit(&rill__core(event)->fence, fence, memory_order_release);
  atomic_store(&rill__core(event)->state, RILL__EVENT_FENCED);
  if (old != NULL) rill__fence_unref(old);
}

/* The event keeps its pointer to the fence for threads that have just read FENCED without the lock. */
void rill__event_detach(struct rill__event *event, enum rill__event_state after) {
  struct rill__fence *const fence = atomic_load(&rill__core(event)->fence);
  RILL_ASSERT_HELD_LOCKED();
  RILL_ASSERT(atomic_load(&rill__core(event)->state) == RILL__EVENT_FENCED,
              "an event leaves the fence that it stands for");
  atomic_store(&rill__core(event)->state, after);
  rill__fence_unref(fence);
}

/* Reads the event's fence again after each wait: the thread that had the claim may have attached another fence. */
struct rill__fence *rill__event_claim(struct rill__event *event) {
  struct rill__fence *fence;
  while ((fence = rill__event_fence(event)) != NULL && is_claimed(fence)) rill__held_await_change();
  if (fence != NULL) fence->claim = claims;
  return fence;
}

void rill__event_unclaim(struct rill__fence *fence) {
  RILL_ASSERT(is_claimed(fence), "records through a fence exclude each other");
  fence->claim = 0;
  rill__held_changed();
}

/* Claims the fence first, because a record in progress may be about to make another mark the event's last record. */
bool rill__event_share(struct rill__event *event) {
  rill__held_lock();
  struct rill__fence *const fence = rill__event_claim(event);
  const bool issued = fence != NULL && rill__fence_state(fence) == FENCE_ISSUED;
  const bool elsewhere = issued && fence->mark != event;
  if (fence != NULL) rill__event_unclaim(fence);
  if (issued && !elsewhere) rill__event_detach(event, RILL__EVENT_RECORDED);
  if (!elsewhere) {
    atomic_store(&rill__is_shared, true);
    atomic_store(&event->foreign, true);
  }
  rill__held_unlock();
  return !elsewhere;
}

void rill__event_export(struct rill__event *event) {
  uint32_t state = RILL__EVENT_UNRECORDED;
  atomic_store(&rill__is_shared, true);
  atomic_store(&event->foreign, true);
  /* Another process may record the event at any time, so waits must go to the driver, never into a queue that only this
   * process would submit. */
  (void)atomic_compare_exchange_strong(&rill__core(event)->state, &state, RILL__EVENT_RECORDED);
  rill__held_lock();
  struct rill__fence *const fence = rill__event_fence(event);
  /* A QUEUED fence stays: when its record is submitted, the native event is recorded also. */
  if (fence != NULL && rill__fence_state(fence) != FENCE_QUEUED) {
    fence->references++;
    rill__event_detach(event, RILL__EVENT_RECORDED);
    if (rill__fence_state(fence) == FENCE_AWAITED) rill__fence_issue(fence, NULL, false);
    rill__fence_unref(fence);
  }
  rill__held_unlock();
  rill__held_run();
}

/* An AWAITED fence stays: streams are held for it, and their work would never be submitted. */
bool rill__held_leave_fence(struct rill__event *event) {
  rill__held_lock();
  const struct rill__fence *const fence = rill__event_fence(event);
  const bool awaited = fence != NULL && rill__fence_state(fence) == FENCE_AWAITED;
  if (fence != NULL && !awaited) rill__event_detach(event, RILL__EVENT_UNRECORDED);
  rill__held_unlock();
  return !awaited;
}

/* The message is formatted before the lock is taken, and the queues are submitted after it is released. */
void rill__event_abandon(struct rill__event *event) {
  if (RILL__LIKELY(atomic_load(&rill__core(event)->state) != RILL__EVENT_FENCED)) return;
  char text[300];
  (void)snprintf(text, sizeof text, "%s was released without having been recorded, while held work waited for it",
                 rill__name_of(&event->base).text);
  rill__held_lock();
  struct rill__fence *const fence = rill__event_fence(event);
  if (fence != NULL && rill__fence_state(fence) == FENCE_AWAITED) {
    struct rill__failure *failure = rill__failure_new(RILL_ERROR_NOT_RECORDED, 0, "", text);
    rill__fence_fail(fence, failure);
    rill__failure_unref(failure);
  }
  rill__held_unlock();
  rill__held_run();
}

rill_status rill__fail_captured_record(struct rill__event *event) {
  return rill__fail(RILL_ERROR_NOT_RECORDED,
                    "%s was last recorded in a capture: it stands for a place in a graph, not for work" RILL_HINT
                    "record it outside captures, or in one with RILL_EVENT_EXTERNAL",
                    rill__name_of(&event->base).text);
}

/* ---- recording ---- */

/* Refuses a record in a capture for which streams are held: the capture would never complete the record. */
static rill_status refuse_capture_of_record(const struct rill__event *event, struct rill__stream *stream) {
  bool capturing = false;
  if (!atomic_load(&rill__is_shared)) return RILL_OK;
  RILL_TRY(RILL_DISPATCH(stream, stream, is_capturing, stream, &capturing));
  return capturing ? rill__capture_fail_awaited(stream, event) : RILL_OK;
}

/* Directs the new record to an event of its own, with a fence for it, because waits for the event's last record are
 * queued. */
static rill_status set_apart(struct rill__recording *recording) {
  struct rill__event *mark = NULL;
  RILL_TRY(rill__mark_new(recording->event, &mark));
  const rill_status status = rill__fence_new(recording->event, &recording->next);
  if (status != RILL_OK) {
    rill__object_retire(&mark->base);
    return status;
  }
  recording->next->mark = mark;
  recording->target = mark;
  return RILL_OK;
}

/* Checks under the lock whether the stream is held: if it has become held since the caller checked, records of the
 * event may be queued in it, and a record made in the driver now would be earlier than these. */
rill_status rill__recording_begin(struct rill__recording *recording, struct rill__stream *stream,
                                  struct rill__event *event) {
  *recording = (struct rill__recording){ .event = event, .target = event };
  if (RILL__LIKELY(atomic_load(&rill__core(event)->state) != RILL__EVENT_FENCED)) return RILL_OK;
  rill__held_lock();
  struct rill__fence *const fence = rill__event_claim(event);
  const enum fence_state state = fence != NULL ? rill__fence_state(fence) : FENCE_ISSUED;
  /* A shared event is always recorded itself, because other code waits for the native event. */
  const bool apart = fence != NULL && rill__core(event)->awaited > 0 && !rill__event_is_shared(event);
  recording->held = rill__is_held(stream);
  if (fence != NULL) {
    /* The reference keeps the fence alive after the detach, for the streams that are held for it. */
    fence->references++;
    recording->fence = fence;
    recording->replaces_queued = state == FENCE_QUEUED;
  }
  rill__held_unlock();
  rill_status status = RILL_OK;
  if (state == FENCE_AWAITED && !recording->held) status = refuse_capture_of_record(event, stream);
  if (status == RILL_OK && apart && !recording->held) status = set_apart(recording);
  /* Nothing was recorded, so this only gives up the claim and the references. */
  if (status != RILL_OK || recording->held) rill__recording_end(recording, RILL_ERROR_NOT_READY);
  return status;
}

static bool count_first_record(struct rill__event *event, uint32_t *state) {
  *state = RILL__EVENT_UNRECORDED;
  return atomic_compare_exchange_strong(&rill__core(event)->state, state, RILL__EVENT_RECORDED);
}

/* Makes an UNRECORDED or CAPTURED event RECORDED; returns false for any other state.  Call it without the lock, because
 * the lock of captures is taken before it. */
static bool count_as_recorded(struct rill__event *event) {
  uint32_t state;
  if (count_first_record(event, &state)) return true;
  if (state == RILL__EVENT_CAPTURED) rill__capture_leave_event(event, RILL__EVENT_RECORDED);
  return state == RILL__EVENT_CAPTURED;
}

/* Issues the first record of an event for which streams are held. */
static void issue_awaited(struct rill__event *event, struct rill__fence *fence) {
  rill__fence_issue(fence, event, true);
  detach_unawaited(event);
}

/* Notes a record of the native event.  Work queued for the event keeps its fence, and the event now stands for its
 * native event. */
void rill__event_recorded_natively(struct rill__event *event) {
  /* the place of this record is not known */
  atomic_store_explicit(&rill__core(event)->recorded_on, 0, memory_order_relaxed);
  if (RILL__LIKELY(atomic_load(&rill__core(event)->state) == RILL__EVENT_RECORDED) || count_as_recorded(event)) return;
  uint32_t state;
  rill__held_lock();
  struct rill__fence *const fence = rill__event_fence(event);
  if (fence == NULL) (void)count_first_record(event, &state);
  if (fence != NULL && rill__fence_state(fence) == FENCE_AWAITED) {
    issue_awaited(event, fence);
  } else if (fence != NULL) {
    rill__event_detach(event, RILL__EVENT_RECORDED);
  }
  rill__held_unlock();
}

/* Ends a record of an event that stood for no fence when the record started.  The record precedes whatever the event
 * stands for by now. */
static void end_first(struct rill__event *event) {
  if (RILL__LIKELY(count_as_recorded(event))) return;
  uint32_t state;
  rill__held_lock();
  struct rill__fence *const fence = rill__event_fence(event);
  if (fence == NULL) (void)count_first_record(event, &state); /* the wait that attached a fence was refused */
  if (fence != NULL && rill__fence_state(fence) == FENCE_AWAITED) issue_awaited(event, fence);
  rill__held_unlock();
  rill__held_run();
}

/* Makes the event stand for the record, unless a later record was queued meanwhile.  The later record uses the same
 * fence if the fence was AWAITED, and otherwise another fence.  Call it under the lock. */
static void end_fenced(const struct rill__recording *recording) {
  struct rill__event *event = recording->event;
  struct rill__fence *fence = recording->fence;
  const enum fence_state state = rill__fence_state(fence);
  if (recording->next != NULL) rill__fence_issue(recording->next, recording->target, false);
  if (!rill__event_is_at(event, fence) || (state == FENCE_QUEUED && !recording->replaces_queued)) return;
  if (recording->next != NULL) {
    rill__event_attach(event, recording->next);
  } else if (state == FENCE_AWAITED) {
    issue_awaited(event, fence);
  } else if (!fence->mark_is_event) {
    rill__event_detach(event, RILL__EVENT_RECORDED);
  }
}

void rill__recording_end(struct rill__recording *recording, rill_status status) {
  if (recording->fence == NULL) {
    if (status == RILL_OK) end_first(recording->event);
    return;
  }
  rill__held_lock();
  if (status == RILL_OK) end_fenced(recording);
  rill__event_unclaim(recording->fence);
  detach_unawaited(recording->event);
  if (recording->next != NULL) rill__fence_unref(recording->next);
  rill__fence_unref(recording->fence);
  rill__held_unlock();
  rill__held_run();
}
