/* Records and waits of held streams: what binds to what. */
#include "core/held_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct rill__held *rill__held_streams;
_Atomic uint32_t rill__held_count;
uint64_t rill__held_serial;

/* A point of its own at what `event` marks in the driver now: a stream of no other use waits for the event and marks
 * that. */
static rill_status mark_now(struct rill__event *event, struct rill__point **out) {
  struct rill__stream *helper = NULL;
  RILL_TRY(rill__stream_create(event->base.device, NULL, &helper));
  rill_status status = rill__point_new(event->base.device, out);
  if (status == RILL_OK) {
    status = RILL_DOOR(helper, stream, wait, helper, event, 0);
    if (status == RILL_OK) status = rill__stream_record(helper, (*out)->mark, 0);
    (*out)->state = POINT_ISSUED;
    if (status != RILL_OK) rill__point_free(*out);
  }
  rill__object_retire(&helper->base);
  return status;
}

/* ---- records ---- */

/* The text of a chain of waits, built from its far end. */
struct chain {
  char text[600];
};

static void chain_add(struct chain *chain, const struct rill__stream *stream, const char *event) {
  const size_t used = strlen(chain->text);
  (void)snprintf(chain->text + used, sizeof chain->text - used, "%s%s waits for %s",
                 used > 0 ? ", recorded where " : "", rill__name_of(&stream->base).text, event);
}

/* Whether work of `stream` at `position` can be reached only after a first record of `event`.  Under the lock.  Queues
 * are finite and points lead to earlier records only, so this ends. */
static bool depends_on(const struct rill__stream *stream, uint64_t position, const struct rill__event *event,
                       struct chain *chain) {
  const struct rill__held *held = atomic_load(&stream->held);
  if (held == NULL) return false;
  for (const struct held_op *op = held->first; op != NULL && op->position < position; op = op->next) {
    const size_t used = strlen(chain->text);
    if (op->kind == HELD_WAIT_EVENT && op->event == event) {
      chain_add(chain, stream, rill__name_of(&event->base).text);
      return true;
    }
    if (op->kind != HELD_WAIT_POINT || op->point->state != POINT_HELD) continue;
    chain_add(chain, stream, op->point->event.text);
    if (depends_on(op->point->stream, op->point->position, event, chain)) return true;
    chain->text[used] = '\0';
  }
  return false;
}

/* Turns every wait for the first record of `event` into a wait for `point`.  Under the lock. */
static void bind_waits(struct rill__event *event, struct rill__point *point) {
  for (struct rill__held *held = rill__held_streams; held != NULL; held = held->next) {
    for (struct held_op *op = held->first; op != NULL; op = op->next) {
      if (op->kind != HELD_WAIT_EVENT || op->event != event) continue;
      op->kind = HELD_WAIT_POINT;
      op->point = point;
      rill__point_use(point);
      rill__drop(&event->base); /* not the last: the caller uses it */
    }
  }
}

rill_status rill__held_record(struct rill__stream *stream, struct rill__event *event, uint32_t flags, bool *taken) {
  struct held_op *op = NULL;
  struct rill__point *point = NULL;
  *taken = false;
  RILL_TRY(rill__held_op_new(HELD_RECORD, 0, &op));
  const rill_status made = rill__point_new(stream->base.device, &point);
  if (made != RILL_OK) {
    free(op);
    return made;
  }
  rill__keep(&event->base);
  op->record.event = event;
  op->record.point = point;
  op->record.flags = flags;
  struct chain chain = { "" };
  bool circle = false;
  rill__held_lock();
  struct rill__held *held = atomic_load(&stream->held);
  if (held != NULL && rill__held_has_room(held, op)) {
    const bool recorded = atomic_load(&event->recorded);
    circle = !recorded && depends_on(stream, UINT64_MAX, event, &chain);
    if (!circle) {
      rill__held_append(held, op);
      *taken = true;
      point->event = rill__name_of(&event->base);
      point->stream = stream;
      point->position = op->position;
      struct rill__point *before = atomic_load(&event->held_point);
      point->first = before != NULL ? before->first : !recorded;
      rill__point_use(point);
      atomic_store(&event->held_point, point);
      if (before != NULL) rill__point_unuse(before);
      rill__memo_changed(&event->memo);
      atomic_store(&event->recorded, true);
      bind_waits(event, point);
    }
  }
  const rill_status status =
      *taken || held == NULL ? RILL_OK
      : circle
          ? rill__fail(RILL_ERROR_INVALID_ARGUMENT, "a record of %s on %s could only be reached through itself: %s",
                       rill__name_of(&event->base).text, rill__name_of(&stream->base).text, chain.text)
          : rill__held_fail_full(held, op);
  rill__held_unlock();
  if (!*taken) rill__held_op_free(op);
  return status;
}

void rill__held_recorded(struct rill__event *event) {
  bool watched = false;
  rill__held_lock();
  struct rill__point *before = atomic_load(&event->held_point);
  if (before != NULL) {
    atomic_store(&event->held_point, NULL);
    rill__point_unuse(before);
  }
  for (struct rill__held *held = rill__held_streams; held != NULL && !watched; held = held->next) {
    for (struct held_op *op = held->first; op != NULL && !watched; op = op->next) {
      watched = op->kind == HELD_WAIT_EVENT && op->event == event;
    }
  }
  rill__held_unlock();
  if (!watched) return;
  /* The waits keep the point that this record made, though the event may be recorded again before they are reached. */
  struct rill__point *point = NULL;
  rill__errors_aside();
  const bool marked = mark_now(event, &point) == RILL_OK;
  rill__held_lock();
  if (marked) {
    bind_waits(event, point);
    rill__point_unuse(point);
  } else {
    const struct rill__error_record *error = rill__failure();
    rill__held_fail_waits(event, error->status, error->native_code, error->native_name, error->message);
  }
  rill__held_unlock();
  rill__errors_back();
  rill__held_run();
}

/* ---- waits ---- */

/* `why` not: NULL if it may. */
static rill_status ask_whether_to_hold(struct rill__stream *stream, const char **why) {
  bool capturing = false;
  *why = stream->imported ? "an imported stream cannot be held: others submit to it"
         : atomic_load(&stream->foreign)
             ? "a stream whose native handle was given out cannot be held: others may submit to it"
             : NULL;
  if (*why != NULL) return RILL_OK;
  RILL_TRY(RILL_DOOR(stream, stream, is_capturing, stream, &capturing));
  if (capturing) *why = "a capturing stream cannot be held";
  return RILL_OK;
}

static struct rill__held *new_held(struct rill__stream *stream) {
  struct rill__held *held = calloc(1, sizeof *held);
  struct rill__failure *failure = calloc(1, sizeof *failure);
  if (held == NULL || failure == NULL) {
    free(held);
    free(failure);
    return NULL;
  }
  held->stream = stream;
  held->last = &held->first;
  held->failure = failure;
  return held;
}

static void free_held(struct rill__held *held) {
  if (held == NULL) return;
  free(held->failure);
  free(held);
}

/* Under the lock. */
static void begin_holding(struct rill__stream *stream, struct rill__held *held) {
  held->next = rill__held_streams;
  held->link = &rill__held_streams;
  if (held->next != NULL) held->next->link = &held->next;
  rill__held_streams = held;
  rill__keep(&stream->base);
  atomic_fetch_add(&stream->base.device->held_streams, 1);
  atomic_fetch_add(&rill__held_count, 1);
  atomic_store(&stream->held, held);
}

/* Queues a wait on a stream, making it held if it is not.  `point` NULL: for the first record of `event`. */
static rill_status queue_wait(struct rill__stream *stream, struct rill__event *event, struct rill__point *point,
                              bool *taken) {
  struct held_op *op = NULL;
  *taken = false;
  RILL_TRY(rill__held_op_new(HELD_WAIT_EVENT, 0, &op));
  struct rill__held *fresh = new_held(stream);
  rill_status status =
      fresh != NULL ? RILL_OK : rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory to hold a stream");
  rill__held_lock();
  struct rill__held *held = atomic_load(&stream->held);
  atomic_store(&event->watched, true);
  struct rill__point *const last = atomic_load(&event->held_point);
  if (point == NULL && last != NULL) point = last; /* its last record is held, perhaps since a moment ago */
  const bool gone = point == NULL && atomic_load(&event->recorded); /* recorded a moment ago: the driver has it */
  if (status != RILL_OK || gone) {
    *taken = false;
  } else if (point == NULL && !rill__object_is_live(&event->base)) {
    status = rill__fail(RILL_ERROR_STALE_HANDLE, "event is released while a wait for its first record begins");
  } else if (held != NULL && !rill__held_has_room(held, op)) {
    status = rill__held_fail_full(held, op);
  } else {
    if (held == NULL) {
      begin_holding(stream, fresh);
      held = fresh;
      fresh = NULL;
    }
    if (point != NULL) {
      op->kind = HELD_WAIT_POINT;
      op->point = point;
      rill__point_use(point);
    } else {
      op->event = event;
      rill__keep(&event->base);
    }
    rill__held_append(held, op);
    *taken = true;
  }
  rill__held_unlock();
  free_held(fresh);
  if (!*taken) free(op);
  return status;
}

rill_status rill__held_wait(struct rill__stream *stream, struct rill__event *event, bool *taken) {
  *taken = false;
  const bool recorded = atomic_load(&event->recorded);
  const bool on_point = atomic_load(&event->held_point) != NULL;
  if (!recorded || on_point) {
    const char *why = NULL;
    if (!rill__is_held(stream)) RILL_TRY(ask_whether_to_hold(stream, &why));
    RILL_REQUIRE(why == NULL, RILL_ERROR_NOT_RECORDED,
                 "%s has %s, and %s" RILL_HINT "record it first, or pass RILL_WAIT_IF_RECORDED",
                 rill__name_of(&event->base).text, on_point ? "a record that is held back" : "never been recorded",
                 why);
    RILL_TRY(queue_wait(stream, event, NULL, taken));
    if (*taken) {
      rill__held_run(); /* the point may have been issued in between */
      return RILL_OK;
    }
  }
  if (!rill__is_held(stream)) return RILL_OK;
  /* The driver has the point, the stream is held: keep the point for its turn. */
  struct rill__point *point = NULL;
  RILL_TRY(mark_now(event, &point));
  const rill_status status = queue_wait(stream, event, point, taken);
  rill__point_free(point);
  rill__held_run();
  return status;
}

void rill__held_abandoned(struct rill__event *event) {
  char text[300];
  (void)snprintf(text, sizeof text, "%s was released without ever having been recorded, and work was held for it",
                 rill__name_of(&event->base).text);
  rill__held_lock();
  if (!atomic_load(&event->recorded)) rill__held_fail_waits(event, RILL_ERROR_NOT_RECORDED, 0, "", text);
  rill__held_unlock();
  rill__held_run();
}
