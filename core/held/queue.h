/* The queues of held streams and their fences (core/held/held.h).  Call these functions under the lock, unless the
 * comment says otherwise. */
#ifndef RILL_CORE_HELD_QUEUE_H
#define RILL_CORE_HELD_QUEUE_H

#include "core/held/held.h"

enum { HELD_BYTES_MAX = 64 << 20 }; /* limit per stream */

/* The reason why held work failed, for the next synchronize of its stream and for the events recorded in it. */
struct rill__failure {
  uint32_t references;
  rill_status status;
  int32_t native_code;
  char native_name[80], text[512];
};

enum fence_state { FENCE_AWAITED, FENCE_QUEUED, FENCE_ISSUED, FENCE_FAILED };

struct rill__fence {
  struct rill__object base;   /* never published: freed when no call can still be reading it */
  _Atomic uint32_t state;     /* written under the lock */
  uint32_t references, waits; /* waits: number of waits queued for the fence */
  /* equals the current claim number while a thread records the event; a fork ends all claims by changing that number */
  uint32_t claim;
  bool mark_is_event;       /* true: `mark` is the event itself, and referenced; false: the fence owns the mark */
  struct rill__event *mark; /* valid when ISSUED; NULL if there is nothing to wait for */
  uint64_t created;         /* serial number of the last queued operation when the fence was attached to its event */
  /* where the record is; valid when QUEUED and until the record is submitted or has failed */
  struct rill__queue *queue;
  struct held_op *wait_before;   /* last wait that precedes the record in that queue */
  uint64_t wait_position;        /* position of that wait; 0 if there is none */
  struct rill__queue *blocked;   /* queues whose first operation waits for this fence */
  struct rill__watch *watches;   /* valid when QUEUED: the watches to hand to the watcher when the fence is no longer
                                    QUEUED (core/held/watch.h) */
  struct rill__failure *failure; /* valid when FAILED; NULL if memory ran out */
  struct rill__name event;       /* for messages */
};

/* An entry of a queue: an operation, or a wait for a fence. */
struct held_op {
  struct held_op *next;
  struct rill__operation *operation; /* owned; NULL for a wait */
  struct rill__fence *fence; /* for a wait, and for a record once it is queued; referenced until the entry is removed */
  uint64_t position;         /* in the queue, starting at 1 */
  uint64_t serial;           /* among the entries of all queues */
  struct held_op *older, *newer; /* neighbours in rill__held_named or rill__held_any */
  /* registered memory that a copy or fill names; unused entries at the end are NULL */
  struct rill__held_range named[2];
  size_t bytes;   /* size of this struct and of the operation */
  uint32_t flags; /* for a record */
  /* for a host call: the status that it is called with if the work before it failed, else RILL_OK */
  rill_status reported;
  /* rows that the host copies after the operation; owned by its payload; may be NULL */
  const struct rill__copy_3d *deliver;
  struct {
    struct held_op *older, *newer;  /* neighbouring waits of the queue */
    uint64_t search;                /* number of the last search that visited this wait (core/held/order.c) */
    struct held_op *from, *pending; /* from: the wait that led here; pending: the next wait on the search's stack */
  } wait;
};

static inline bool rill__held_is_wait(const struct held_op *op) { return op->operation == NULL; }
static inline bool rill__held_is(const struct held_op *op, uint32_t kind) {
  return op->operation != NULL && op->operation->kind == kind;
}

/* Created when a stream is first held; freed with the stream. */
struct rill__queue {
  struct rill__stream *stream;                /* referenced while the stream is held */
  struct rill__queue *next_held, **link_held; /* list of all held queues */
  /* list of the fence that blocks the queue, or of the ready queues; link is NULL while the queue is run or not held */
  struct rill__queue *next, **link;
  struct held_op *first, **last;
  struct held_op *last_wait;
  size_t bytes;
  uint64_t pushed, removed, done; /* positions of the last operation queued, removed and submitted */
  uint64_t submitting;            /* serial number of the operation being submitted; 0 if none */
};

extern struct rill__queue *rill__held_queues, *rill__held_ready;

/* Operations of all queues that may use memory, until they have been submitted or have failed.  rill__held_named has
 * the operations that name their memory, which registered memory also counts in `uses`; rill__held_any has those that
 * may use any memory. */
struct held_list {
  struct held_op *oldest, *newest;
};
extern struct held_list rill__held_named, rill__held_any;

/* Returns the serial number of the oldest operation in both lists, or UINT64_MAX if there is none. */
static inline uint64_t rill__held_oldest(void) {
  const uint64_t named = rill__held_named.oldest != NULL ? rill__held_named.oldest->serial : UINT64_MAX;
  const uint64_t any = rill__held_any.oldest != NULL ? rill__held_any.oldest->serial : UINT64_MAX;
  return named < any ? named : any;
}

extern uint64_t rill__held_serial; /* serial number of the last operation queued */

/* ---- core/held/queue.c ---- */

/* Frees a list of entries.  Call it without the lock. */
void rill__held_ops_free(struct held_op *list);
/* Queues an operation if the stream is held, and frees it otherwise.  `deliver`: as in the entry.  Call it without the
 * lock. */
rill_status rill__held_push(struct rill__stream *stream, struct rill__operation *operation,
                            const struct rill__copy_3d *deliver, bool *taken);

/* Removes the first operation from its queue. */
struct held_op *rill__queue_remove_first(struct rill__queue *queue);
/* Removes an operation from the list of its kind, after it has been submitted or has failed. */
void rill__held_op_end(struct held_op *op);

/* Removes all operations except host calls, which will be called with the failure's status, and adds the removed ones
 * to `dead`.  The stream's next synchronize reports `failure`, if it is not NULL. */
void rill__queue_fail(struct rill__queue *queue, struct rill__failure *failure, struct held_op **dead);

void rill__queue_link(struct rill__queue *queue, struct rill__queue **list);
void rill__queue_unlink(struct rill__queue *queue);

/* ---- what lower layers call (core/device/life.h, core/sync/events.h) ---- */

void rill__held_device_lost(struct rill__device *device);
bool rill__held_leave_fence(struct rill__event *event);

/* ---- core/held/fence.c ---- */

/* Create a fence for a record of the event (AWAITED, with one reference), and a mark.  Call them without the lock. */
rill_status rill__fence_new(struct rill__event *event, struct rill__fence **out);
rill_status rill__mark_new(struct rill__event *event, struct rill__event **out);
void rill__fence_unref(struct rill__fence *fence);

static inline enum fence_state rill__fence_state(const struct rill__fence *fence) {
  return (enum fence_state)atomic_load_explicit(&fence->state, memory_order_relaxed);
}
static inline bool rill__fence_is_pending(const struct rill__fence *fence) {
  return rill__fence_state(fence) <= FENCE_QUEUED;
}

/* Sets the state to QUEUED, ISSUED or FAILED. */
void rill__fence_set_state(struct rill__fence *fence, enum fence_state state);

/* Make the fence ISSUED or FAILED.  `is_event`: the mark is the event itself; otherwise the fence owns the mark.  The
 * queues that it blocked become ready. */
void rill__fence_issue(struct rill__fence *fence, struct rill__event *mark, bool is_event);
void rill__fence_fail(struct rill__fence *fence, struct rill__failure *failure);

/* Count a wait that is queued for the fence, and remove it from the count. */
void rill__fence_add_wait(struct rill__fence *fence);
void rill__fence_remove_wait(struct rill__fence *fence);

/* Returns the fence that the event stands for, or NULL if the event is not FENCED. */
static inline struct rill__fence *rill__event_fence(struct rill__event *event) {
  return atomic_load(&rill__core(event)->state) == RILL__EVENT_FENCED ? atomic_load(&rill__core(event)->fence) : NULL;
}
static inline bool rill__event_is_at(struct rill__event *event, const struct rill__fence *fence) {
  return rill__event_fence(event) == fence;
}

/* Make the event stand for `fence`, with a reference, and no longer stand for its fence. */
void rill__event_attach(struct rill__event *event, struct rill__fence *fence);
void rill__event_detach(struct rill__event *event, enum rill__event_state after);

/* Returns true if other code may also record the native event. */
static inline bool rill__event_is_shared(const struct rill__event *event) {
  return event->interprocess || atomic_load(&event->foreign);
}

/* Claims the event's fence, after waiting until no other thread has claimed it; NULL if the event has no fence. Records
 * through a fence exclude each other by this claim. */
struct rill__fence *rill__event_claim(struct rill__event *event);
void rill__event_unclaim(struct rill__fence *fence);
void rill__held_claims_end(void); /* for the child of a fork */

/* Creates a failure with one reference; returns NULL if memory ran out. */
struct rill__failure *rill__failure_new(rill_status status, int32_t code, const char *name, const char *text);
void rill__failure_unref(struct rill__failure *failure); /* accepts NULL */

/* ---- core/held/order.c ---- */

/* Checks a record of the event at the end of the queue.  Fails if the queue itself waits for the record's fence,
 * directly or through other queues. */
rill_status rill__held_check_order(struct rill__queue *queue, const struct rill__fence *fence,
                                   const struct rill__event *event);

/* Describes what the queue waits for, up to the event that has never been recorded: ": stream "a" waits for event "x",
 * ..."; or "". */
struct held_chain {
  char text[600];
};
void rill__held_describe(const struct rill__queue *queue, struct held_chain *out);

/* ---- core/held/run.c ---- */

/* Submits everything that is ready to the driver.  Called without the lock, by the thread that made something ready. */
void rill__held_run(void);

/* ---- core/held/host.c ---- */

void rill__held_changed(void); /* wakes the threads that wait for a change */
void rill__held_await_change(void);

#endif
