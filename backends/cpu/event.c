/* Events.  An event is a mark in a queue, so recording an event without timing adds no operation, and a query compares
 * two numbers. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/schedule.h"

static rill_status cpu_event_create(struct rill__event *event) {
  RILL_REQUIRE(!event->interprocess, RILL_ERROR_UNSUPPORTED,
               "interprocess: events of %s exist only in the memory of their process", event->base.device->name);
  struct cpu_event *part = rill__part(event);
  if (event->timing && event->signaled) part->time = cpu_now(); /* treated as recorded at this moment */
  return RILL_OK;
}

static void cpu_event_destroy(struct rill__event *event) {
  struct cpu_event *part = rill__part(event);
  if (part->queue != NULL) rill__cpu_queue_release(part->queue);
}

/* Resets the event.  No stamp of it is pending, because a pending stamp holds a reference to the event. */
static void cpu_event_recycle(struct rill__event *event) {
  struct cpu_event *part = rill__part(event);
  if (part->queue != NULL) rill__cpu_queue_release(part->queue);
  part->queue = NULL;
  part->number = 0;
}

static uintptr_t cpu_event_native(struct rill__event *event) {
  (void)event;
  return 0;
}

/* ---- recording ---- */

struct stamp {
  struct cpu_op op;
  struct rill__event *event; /* referenced */
  uint64_t record;
};

void rill__cpu_event_stamp(struct rill__event *event, uint64_t record) {
  struct cpu_event *part = rill__part(event);
  const uint64_t now = cpu_now();
  cpu_acquire(&part->lock);
  if (part->record == record) {
    part->time = now;
    part->timed = record;
  }
  cpu_release(&part->lock);
}

static bool run_stamp(struct cpu_queue *queue, struct cpu_op *op) {
  (void)queue;
  const struct stamp *stamp = (const struct stamp *)op;
  rill__cpu_event_stamp(stamp->event, stamp->record);
  return true;
}

static void end_stamp(struct cpu_op *op) { rill__unref(&((struct stamp *)op)->event->base); }

static rill_status submit_stamp(struct cpu_queue *queue, struct rill__event *event, uint64_t record, uint64_t *number) {
  struct stamp *stamp = NULL;
  RILL_TRY(rill__cpu_queue_begin(queue, sizeof *stamp, &stamp));
  rill__ref(&event->base);
  stamp->op.run = run_stamp;
  stamp->op.end = end_stamp;
  stamp->event = event;
  stamp->record = record;
  *number = rill__cpu_queue_commit(queue);
  return RILL_OK;
}

/* Returns the number of the record.  Call it under the event's lock, which it releases. */
static uint64_t set_mark(struct cpu_event *part, struct cpu_queue *queue, uint64_t number) {
  struct cpu_queue *before = part->queue;
  const uint64_t record = ++part->record;
  if (before != queue) {
    cpu_queue_retain(queue);
    part->queue = NULL; /* a fork at this point leaves the child with a complete mark instead of a half-written one */
    atomic_signal_fence(memory_order_seq_cst);
  }
  part->number = number;
  atomic_signal_fence(memory_order_seq_cst);
  part->queue = queue;
  cpu_release(&part->lock);
  if (before != queue && before != NULL) rill__cpu_queue_release(before);
  return record;
}

rill_status rill__cpu_event_record(struct rill__stream *stream, struct rill__event *event, uint32_t flags) {
  (void)flags; /* RILL_EVENT_EXTERNAL matters only in captures */
  struct cpu_queue *queue = cpu_queue_of(stream);
  struct cpu_event *part = rill__part(event);
  cpu_acquire(&part->lock);
  uint64_t number = 0;
  if (event->timing) {
    const rill_status status = submit_stamp(queue, event, part->record + 1, &number);
    if (RILL__UNLIKELY(status != RILL_OK)) {
      cpu_release(&part->lock);
      return status;
    }
  } else {
    number = cpu_queue_submitted(queue);
  }
  (void)set_mark(part, queue, number);
  cpu_submitted(queue);
  return RILL_OK;
}

uint64_t rill__cpu_event_set_mark(struct rill__event *event, struct cpu_queue *queue, uint64_t number) {
  struct cpu_event *part = rill__part(event);
  cpu_acquire(&part->lock);
  return set_mark(part, queue, number);
}

/* ---- waiting ---- */

struct cpu_queue *rill__cpu_event_mark(struct rill__event *event, uint64_t *number) {
  struct cpu_event *part = rill__part(event);
  cpu_acquire(&part->lock);
  struct cpu_queue *queue = part->queue;
  *number = part->number;
  if (queue != NULL) {
    if (cpu_queue_reached(queue, *number)) {
      queue = NULL;
    } else {
      cpu_queue_retain(queue);
    }
  }
  cpu_release(&part->lock);
  return queue;
}

struct wait {
  struct cpu_op op;
  struct cpu_queue *awaited; /* referenced */
  uint64_t number;
};

/* Runs a second time after the queue was parked, and then succeeds. */
static bool run_wait(struct cpu_queue *queue, struct cpu_op *op) {
  const struct wait *wait = (const struct wait *)op;
  queue->park.number = wait->number;
  queue->park.parked = queue;
  return !rill__cpu_queue_park(wait->awaited, &queue->park);
}

static void end_wait(struct cpu_op *op) { rill__cpu_queue_release(((struct wait *)op)->awaited); }

rill_status rill__cpu_event_wait(struct rill__stream *stream, struct rill__event *event, uint32_t flags) {
  (void)flags;
  struct cpu_queue *queue = cpu_queue_of(stream);
  uint64_t number = 0;
  struct cpu_queue *awaited = rill__cpu_event_mark(event, &number);
  if (awaited == NULL) return RILL_OK;
  struct wait *wait = NULL;
  rill_status status = RILL_OK;
  if (awaited == queue || (status = rill__cpu_queue_begin(queue, sizeof *wait, &wait)) != RILL_OK) {
    rill__cpu_queue_release(awaited); /* a queue never waits for itself: it runs in order */
    return status;
  }
  wait->op.run = run_wait;
  wait->op.end = end_wait;
  wait->awaited = awaited;
  wait->number = number;
  if (!cpu_queue_is_settled(awaited)) cpu_queue_unsettle(queue);
  (void)rill__cpu_queue_commit(queue);
  cpu_submitted(queue);
  return RILL_OK;
}

static rill_status cpu_event_is_ready(struct rill__event *event, bool *out) {
  struct cpu_event *part = rill__part(event);
  cpu_queried();
  cpu_acquire(&part->lock);
  *out = part->queue == NULL || cpu_queue_reached(part->queue, part->number);
  cpu_release(&part->lock);
  return RILL_OK;
}

static rill_status cpu_event_synchronize(struct rill__event *event, uint64_t ns) {
  uint64_t number = 0;
  bool reached = true;
  struct cpu_queue *queue = rill__cpu_event_mark(event, &number);
  if (queue != NULL) {
    reached = rill__cpu_queue_wait(queue, number, ns, !event->blocking_sync);
    rill__cpu_queue_release(queue);
  }
  return rill__cpu_wait_status(event->base.device, reached, ns);
}

/* ---- notifying core ---- */

struct notification {
  struct cpu_waiter waiter;
  struct cpu_queue *queue; /* referenced */
};
_Static_assert(sizeof(struct notification) <= sizeof((struct rill__waker *)0)->of_backend, "room for a notification");

static bool cpu_event_notify(struct rill__event *event, struct rill__waker *waker) {
  struct notification *const notification = (void *)waker->of_backend;
  uint64_t number = 0;
  struct cpu_queue *const queue = rill__cpu_event_mark(event, &number);
  if (queue == NULL) return false;
  *notification = (struct notification){ .waiter = { .number = number, .waker = waker }, .queue = queue };
  if (rill__cpu_queue_park(queue, &notification->waiter)) return true;
  rill__cpu_queue_release(queue);
  return false;
}

/* Drops the reference to the queue.  Not done at the wakeup, because the waking thread may hold the lock of all queues.
 */
static void cpu_event_notified(struct rill__event *event, struct rill__waker *waker) {
  (void)event;
  rill__cpu_queue_release(((struct notification *)(void *)waker->of_backend)->queue);
}

/* ---- time ---- */

static bool time_of(struct rill__event *event, uint64_t *time) {
  struct cpu_event *part = rill__part(event);
  cpu_acquire(&part->lock);
  const bool known = part->timed == part->record;
  *time = part->time;
  cpu_release(&part->lock);
  return known;
}

static rill_status cpu_event_elapsed(struct rill__event *start, struct rill__event *end, float *ms) {
  uint64_t from = 0, to = 0;
  RILL_REQUIRE(time_of(start, &from), RILL_ERROR_NOT_READY, "%s has been recorded again and is not complete",
               rill__name_of(&start->base).text);
  RILL_REQUIRE(time_of(end, &to), RILL_ERROR_NOT_READY, "%s has been recorded again and is not complete",
               rill__name_of(&end->base).text);
  *ms = (float)((double)(int64_t)(to - from) * 1e-6);
  return RILL_OK;
}

const struct rill__event_table rill__cpu_event_table = {
  .create = cpu_event_create,
  .destroy = cpu_event_destroy,
  .recycle = cpu_event_recycle,
  .native = cpu_event_native,
  .is_ready = cpu_event_is_ready,
  .synchronize = cpu_event_synchronize,
  .notify = cpu_event_notify,
  .notified = cpu_event_notified,
  .elapsed = cpu_event_elapsed,
};
