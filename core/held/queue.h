/* The queues of held streams and their fences (core/held/held.h).  Functions are called under the lock, but for those
 * that say otherwise. */
#ifndef RILL_CORE_HELD_QUEUE_H
#define RILL_CORE_HELD_QUEUE_H

#include "core/held/held.h"

enum { HELD_BYTES_MAX = 64 << 20 }; /* queued for one stream */

/* Why held work failed: for the next synchronize of its stream, and for the events that were recorded in it. */
struct rill__failure {
  uint32_t references;
  rill_status status;
  int32_t native_code;
  char native_name[80], text[512];
};

enum fence_state { FENCE_AWAITED, FENCE_QUEUED, FENCE_ISSUED, FENCE_FAILED };

struct rill__fence {
  struct rill__object base;      /* never published: memory that goes when no call can be reading it */
  _Atomic uint32_t state;        /* written under the lock */
  uint32_t references, waits;    /* waits: how many are queued for it */
  uint32_t claim;                /* of a thread that records the event; counted, so that a fork ends all */
  bool mark_is_event;            /* the mark is the event itself, which is kept; else it is owned */
  struct rill__event *mark;      /* ISSUED; NULL: there is nothing to wait for */
  uint64_t created;              /* serial number of the last operation when the event got it */
  struct rill__queue *queue;     /* QUEUED, and until the record has been handed over or has failed: where, ... */
  struct held_op *wait_before;   /* ... after this wait, ... */
  uint64_t wait_position;        /* ... which is at this position; 0: none */
  struct rill__queue *blocked;   /* those whose first operation waits for it */
  struct rill__watch *watches;   /* QUEUED: those that arrive when it is not any more (core/held/watch.h) */
  struct rill__failure *failure; /* FAILED; NULL if memory ran out */
  struct rill__name event;       /* for texts */
};

/* An entry of a queue: an operation, or a wait for a fence. */
struct held_op {
  struct held_op *next;
  struct rill__operation *operation; /* owned; NULL: a wait */
  struct rill__fence *fence;         /* of a wait, or of a record once it is queued; referenced until it is taken out */
  uint64_t position;                 /* in the queue, from 1 on */
  uint64_t serial;                   /* among the entries of all queues */
  struct held_op *older, *newer;     /* of rill__held_named or rill__held_any */
  struct rill__held_range named[2];  /* registered memory that a copy or fill names; the first ones that are not NULL */
  size_t bytes;                      /* of this struct and the operation */
  uint32_t flags;                    /* of a record */
  rill_status reported; /* of a host call: what it gets when it does not run normally; RILL_OK if it does */
  const struct rill__copy_3d *deliver; /* rows that the host copies after the operation; in its payload, or NULL */
  struct {
    struct held_op *older, *newer;  /* waits of the queue */
    uint64_t search;                /* the last search that came here (core/held/order.c), ... */
    struct held_op *from, *pending; /* ... the wait that led to this queue, and the next to look at */
  } wait;
};

static inline bool rill__held_is_wait(const struct held_op *op) { return op->operation == NULL; }
static inline bool rill__held_is(const struct held_op *op, uint32_t kind) {
  return op->operation != NULL && op->operation->kind == kind;
}

/* Made when a stream is first held, and kept as long as the stream. */
struct rill__queue {
  struct rill__stream *stream;                /* kept while it is held */
  struct rill__queue *next_held, **link_held; /* of all that are held */
  struct rill__queue *next,
      **link; /* of a fence that blocks it, or of the ready ones; link NULL: it is run, or not held */
  struct held_op *first, **last;
  struct held_op *last_wait;
  size_t bytes;
  uint64_t pushed, removed, done; /* positions: the last one queued, taken out, and handed over */
  uint64_t submitting;            /* serial number of the operation that is being handed over; 0: none */
};

extern struct rill__queue *rill__held_queues, *rill__held_ready;

/* Operations of all queues that may use memory, until they have been handed over or have failed: those that name the
 * memory, which count in registered memory as long, and those that may use any. */
struct held_list {
  struct held_op *oldest, *newest;
};
extern struct held_list rill__held_named, rill__held_any;

/* The serial number of the oldest one of both; UINT64_MAX: there is none. */
static inline uint64_t rill__held_oldest(void) {
  const uint64_t named = rill__held_named.oldest != NULL ? rill__held_named.oldest->serial : UINT64_MAX;
  const uint64_t any = rill__held_any.oldest != NULL ? rill__held_any.oldest->serial : UINT64_MAX;
  return named < any ? named : any;
}

extern uint64_t rill__held_serial; /* of the last operation that was queued */

/* ---- core/held/queue.c ---- */

/* Without the lock: frees a list of entries; and gives an operation to the stream's queue if it is held, else frees it.
 * `deliver`: as in the entry. */
void rill__held_ops_free(struct held_op *list);
rill_status rill__held_push(struct rill__stream *stream, struct rill__operation *operation,
                            const struct rill__copy_3d *deliver, bool *taken);

/* Takes the first operation out; and out of the list of all, when it has been handed over. */
struct held_op *rill__queue_remove_first(struct rill__queue *queue);
void rill__held_op_end(struct held_op *op);

/* Takes all operations out but host calls, which get the status; those taken out are put on `dead`.  The stream's next
 * synchronize reports `failure`, if it is not NULL. */
void rill__queue_fail(struct rill__queue *queue, struct rill__failure *failure, struct held_op **dead);

void rill__queue_link(struct rill__queue *queue, struct rill__queue **list);
void rill__queue_unlink(struct rill__queue *queue);

/* ---- what lower layers call (core/device/life.h, core/sync/events.h) ---- */

void rill__held_device_lost(struct rill__device *device);
bool rill__held_leave_fence(struct rill__event *event);

/* ---- core/held/fence.c ---- */

/* Without the lock: a fence for a record of the event, with one reference, AWAITED; and a mark. */
rill_status rill__fence_new(struct rill__event *event, struct rill__fence **out);
rill_status rill__mark_new(struct rill__event *event, struct rill__event **out);
void rill__fence_unref(struct rill__fence *fence);

static inline enum fence_state rill__fence_state(const struct rill__fence *fence) {
  return (enum fence_state)atomic_load_explicit(&fence->state, memory_order_relaxed);
}
static inline bool rill__fence_is_pending(const struct rill__fence *fence) {
  return rill__fence_state(fence) <= FENCE_QUEUED;
}

/* QUEUED, ISSUED or FAILED. */
void rill__fence_set_state(struct rill__fence *fence, enum fence_state state);

/* ISSUED, with a mark that it owns or that is the event itself, or FAILED: what it blocks is ready. */
void rill__fence_issue(struct rill__fence *fence, struct rill__event *mark, bool is_event);
void rill__fence_fail(struct rill__fence *fence, struct rill__failure *failure);

/* A wait is queued for the fence, and is so no more. */
void rill__fence_add_wait(struct rill__fence *fence);
void rill__fence_remove_wait(struct rill__fence *fence);

/* What the event stands for, NULL if it is not FENCED; and whether it is this. */
static inline struct rill__fence *rill__event_fence(struct rill__event *event) {
  return atomic_load(&rill__core(event)->state) == RILL__EVENT_FENCED ? atomic_load(&rill__core(event)->fence) : NULL;
}
static inline bool rill__event_is_at(struct rill__event *event, const struct rill__fence *fence) {
  return rill__event_fence(event) == fence;
}

/* The event stands for `fence`, in which it gets a reference; and for that no more. */
void rill__event_attach(struct rill__event *event, struct rill__fence *fence);
void rill__event_detach(struct rill__event *event, enum rill__event_state after);

/* Others may record the native event, too. */
static inline bool rill__event_is_shared(const struct rill__event *event) {
  return event->interprocess || atomic_load(&event->foreign);
}

/* Records through a fence exclude each other.  The fence, NULL if the event has none, when nobody else has claimed
 * it. */
struct rill__fence *rill__event_claim(struct rill__event *event);
void rill__event_unclaim(struct rill__fence *fence);
void rill__held_claims_end(void); /* in the child of a fork */

/* NULL if memory ran out. */
struct rill__failure *rill__failure_new(rill_status status, int32_t code, const char *name, const char *text);
void rill__failure_unref(struct rill__failure *failure); /* may be NULL */

/* ---- core/held/order.c ---- */

/* Refuses a record at the end of the queue for a fence that the queue waits for itself; else the fence may be queued
 * there. */
rill_status rill__held_check_order(struct rill__queue *queue, const struct rill__fence *fence,
                                   const struct rill__event *event);

/* What the queue waits for, up to the event that nobody has recorded: ": stream "a" waits for event "x", ..."; or "".
 */
struct held_chain {
  char text[600];
};
void rill__held_describe(const struct rill__queue *queue, struct held_chain *out);

/* ---- core/held/run.c ---- */

/* Without the lock: hands all that is ready to the driver.  Called by whoever made something ready. */
void rill__held_run(void);

/* ---- core/held/host.c ---- */

void rill__held_changed(void); /* wakes who waits for a change */
void rill__held_await_change(void);

#endif
