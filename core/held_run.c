#include "core/held_queue.h"

#include "core/launch_extras.h"
#include "core/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- failure ---- */

static void fail_point(struct rill__point *point, struct rill__event *event) {
  point->state = POINT_FAILED;
  if (atomic_load(&event->held_point) != point) return;
  atomic_store(&event->recorded, !point->first); /* as it was before */
  atomic_store(&event->held_point, NULL);
  rill__point_unuse(point);
}

static void note_failure(struct rill__held *held, rill_status status, int32_t code, const char *name,
                         const char *text) {
  struct rill__failure *failure = held->failure;
  if (failure == NULL) return; /* there was one before; the first counts */
  failure->status = status;
  failure->native_code = code;
  (void)snprintf(failure->native_name, sizeof failure->native_name, "%s", name);
  (void)snprintf(failure->text, sizeof failure->text, "%.511s", text);
  struct rill__failure *none = NULL;
  if (atomic_compare_exchange_strong(&held->stream->failure, &none, failure)) held->failure = NULL;
}

/* Takes out all operations at `link` and behind but host calls, which will be told.  Those taken out are put on `dead`.
 * Under the lock. */
static void fail_from(struct rill__held *held, struct held_op **link, rill_status status, struct held_op **dead) {
  while (*link != NULL) {
    struct held_op *op = *link;
    if (op->kind == HELD_HOST_CALL) {
      if (op->told == RILL_OK) op->told = status;
      link = &op->next;
      continue;
    }
    if (op->kind == HELD_RECORD) fail_point(op->record.point, op->record.event);
    *link = op->next;
    held->bytes -= op->bytes;
    op->next = *dead;
    *dead = op;
  }
  held->last = link;
}

static struct held_op *dead_ops; /* to be freed without the lock; guarded by the lock */

void rill__held_fail_waits(struct rill__event *event, rill_status status, int32_t native_code, const char *native_name,
                           const char *text) {
  for (struct rill__held *held = rill__held_streams; held != NULL; held = held->next) {
    struct held_op **link = &held->first;
    while (*link != NULL && !((*link)->kind == HELD_WAIT_EVENT && (*link)->event == event)) link = &(*link)->next;
    if (*link == NULL) continue;
    fail_from(held, link, status, &dead_ops);
    note_failure(held, status, native_code, native_name, text);
  }
  rill__held_changed();
}

void rill__held_device_lost(struct rill__device *device) {
  rill__held_lock();
  for (struct rill__held *held = rill__held_streams; held != NULL; held = held->next) {
    if (held->stream->base.device == device) fail_from(held, &held->first, RILL_ERROR_DEVICE_LOST, &dead_ops);
  }
  rill__held_changed();
  rill__held_unlock();
  rill__held_run();
}

/* The operations stay where they are: what they own may be another thread's, which is not here. */
void rill__held_drop_all(void) {
  for (struct rill__held *held = rill__held_streams; held != NULL; held = held->next) {
    for (struct held_op *op = held->first; op != NULL; op = op->next) {
      if (op->kind == HELD_RECORD) fail_point(op->record.point, op->record.event);
    }
    atomic_store(&held->stream->held, NULL);
    atomic_store(&held->stream->base.device->held_streams, 0);
  }
  rill__held_streams = NULL;
  atomic_store(&rill__held_count, 0);
  rill__held_changed();
}

/* ---- handing over ---- */

struct told_call {
  rill_host_fn fn;
  void *user;
  rill_status status;
};

static void tell(void *user, rill_status stream_status) {
  const struct told_call call = *(struct told_call *)user;
  free(user);
  (void)stream_status;
  call.fn(call.user, call.status);
}

/* The call was accepted, so it runs in any case; where the driver cannot take it, here. */
static rill_status give_host_call(struct rill__stream *stream, const struct held_op *op) {
  if (op->told == RILL_OK) {
    const rill_status status = RILL_DOOR(stream, stream, host_call, stream, op->host_call.fn, op->host_call.user);
    if (status != RILL_OK) op->host_call.fn(op->host_call.user, status);
    return status;
  }
  struct told_call *call = malloc(sizeof *call);
  if (call != NULL) {
    *call = (struct told_call){ op->host_call.fn, op->host_call.user, op->told };
    if (RILL_DOOR(stream, stream, host_call, stream, tell, call) == RILL_OK) return RILL_OK;
  }
  free(call);
  op->host_call.fn(op->host_call.user, op->told);
  return RILL_OK;
}

static void deliver(void *user, rill_status stream_status) {
  const struct held_staging *staging = user;
  const struct rill__copy_3d *copy = &staging->deliver;
  if (stream_status == RILL_OK) rill__copy_rows(copy, 0, copy->height * copy->depth);
}

static rill_status give_copy(struct rill__stream *stream, struct held_op *op) {
  struct held_staging *staging = op->copy.staging;
  const struct rill__copy_3d *ends = &op->copy.ends;
  if (ends->height == 1 && ends->depth == 1) {
    RILL_TRY(
        RILL_DOOR(stream, memory, copy, stream, ends->dst, ends->dst_kind, ends->src, ends->src_kind, ends->width));
  } else {
    RILL_TRY(RILL_DOOR(stream, memory, copy_3d, stream, ends));
  }
  if (staging == NULL) return RILL_OK;
  op->copy.staging = NULL; /* the driver uses it from here on */
  rill_status status = staging->down ? RILL_DOOR(stream, stream, host_call, stream, deliver, staging) : RILL_OK;
  if (status == RILL_OK) status = RILL_DOOR(stream, stream, record, stream, staging->done, 0);
  staging->state = status == RILL_OK ? STAGING_MARKED : STAGING_UNMARKED;
  rill__staging_keep(staging);
  return status;
}

static rill_status give_record(struct rill__stream *stream, const struct held_op *op) {
  if (atomic_load(&op->record.event->held_point) == op->record.point) { /* not recorded elsewhere since */
    RILL_TRY(RILL_DOOR(stream, stream, record, stream, op->record.event, op->record.flags));
    rill__memo_changed(&op->record.event->memo);
  }
  return RILL_DOOR(stream, stream, record, stream, op->record.point->mark, 0);
}

static rill_status give_launch(struct rill__stream *stream, struct held_op *op) {
  const rill_status status = RILL_DOOR(stream, kernel, launch, stream, &op->launch.shape);
  struct rill__constants *constants = op->launch.constants;
  op->launch.constants = NULL; /* the driver may use them from here on */
  rill__constants_finish(stream, constants);
  return status;
}

static rill_status give(struct rill__stream *stream, struct held_op *op) {
  switch (op->kind) {
    case HELD_WAIT_EVENT: return RILL_ERROR_INTERNAL; /* cannot go */
    case HELD_WAIT_POINT: return RILL_DOOR(stream, stream, wait, stream, op->point->mark, 0);
    case HELD_RECORD: return give_record(stream, op);
    case HELD_HOST_CALL: return give_host_call(stream, op);
    case HELD_COPY: return give_copy(stream, op);
    case HELD_FILL: return rill__fill_rows(stream, &op->fill.rows);
    case HELD_PREFETCH: return RILL_DOOR(stream, memory, prefetch, stream, op->prefetch.p, op->prefetch.size);
    case HELD_LAUNCH: return give_launch(stream, op);
  }
  return RILL_ERROR_INTERNAL;
}

/* ---- running ---- */

static bool can_go(const struct held_op *op) {
  if (op->kind == HELD_WAIT_EVENT) return false;
  return op->kind != HELD_WAIT_POINT || op->point->state != POINT_HELD;
}

/* Under the lock, which it gives up meanwhile. */
static void free_dead(void) {
  struct held_op *list = dead_ops;
  dead_ops = NULL;
  rill__held_unlock();
  while (list != NULL) {
    struct held_op *op = list;
    list = op->next;
    rill__held_op_free(op);
  }
  rill__held_lock();
}

/* Hands the first operation over.  Under the lock, which it gives up meanwhile. */
static void give_first(struct rill__held *held) {
  struct held_op *op = held->first;
  held->first = op->next;
  if (held->first == NULL) held->last = &held->first;
  held->bytes -= op->bytes;
  held->giving = op->serial;
  const bool failed_point = op->kind == HELD_WAIT_POINT && op->point->state == POINT_FAILED;
  rill__held_unlock();
  const rill_status status = failed_point ? RILL_ERROR_NOT_RECORDED : give(held->stream, op);
  rill__memo_changed(&held->stream->memo);
  rill__held_lock();
  held->giving = 0;
  held->stream->held_popped = op->position;
  if (op->kind == HELD_RECORD) {
    struct rill__point *point = op->record.point;
    if (status != RILL_OK) {
      fail_point(point, op->record.event);
    } else {
      point->state = POINT_ISSUED;
      if (atomic_load(&op->record.event->held_point) == point) {
        atomic_store(&op->record.event->held_point, NULL);
        rill__point_unuse(point);
      }
    }
  }
  if (status != RILL_OK) {
    const struct rill__error_record *error = rill__failure();
    fail_from(held, &held->first, status, &dead_ops);
    if (failed_point) {
      note_failure(held, status, 0, "", "it waited for a record on a held stream whose work failed");
    } else {
      note_failure(held, status, error->native_code, error->native_name, error->message);
    }
  }
  op->next = dead_ops;
  dead_ops = op;
  rill__held_changed();
}

/* Ends the holding of a stream whose queue is empty.  Under the lock, which it gives up meanwhile. */
static void end_holding(struct rill__held *held) {
  struct rill__stream *stream = held->stream;
  *held->link = held->next;
  if (held->next != NULL) held->next->link = held->link;
  atomic_store(&stream->held, NULL);
  atomic_fetch_sub(&stream->base.device->held_streams, 1);
  atomic_fetch_sub(&rill__held_count, 1);
  rill__held_changed();
  rill__held_unlock();
  free(held->failure);
  free(held);
  rill__drop(&stream->base);
  rill__held_lock();
}

static struct rill__held *find_ready(void) {
  for (struct rill__held *held = rill__held_streams; held != NULL; held = held->next) {
    if (!held->running && (held->first == NULL || can_go(held->first))) return held;
  }
  return NULL;
}

void rill__held_run(void) {
  rill__errors_aside();
  rill__held_lock();
  for (struct rill__held *held = find_ready(); held != NULL; held = find_ready()) {
    held->running = true;
    while (held->first != NULL && can_go(held->first)) give_first(held);
    held->running = false;
    if (held->first == NULL) end_holding(held);
    if (dead_ops != NULL) free_dead();
  }
  if (dead_ops != NULL) free_dead();
  rill__held_unlock();
  rill__errors_back();
}
