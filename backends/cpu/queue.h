/* A stream's queue: the operations in order, how many are done, and which threads and queues wait for that.
 *
 * Operations are stored one after another in chunks.  Threads that submit add them at the tail, under `lock`.  One
 * thread at a time, the owner, takes them from the head without a lock.
 *
 *   submitted   number of operations ever submitted; published after the operation is written
 *   completed   number of operations done, always a prefix of those submitted.  A mark (queue, number) is complete if
 *               and only if completed >= number; this is all that an event stores.
 *   active      true if the queue has an owner: it is in the ready list, run by a worker, parked after another queue,
 *               or taken by a thread that submits.  The thread that changes it from false to true is the owner and
 *               holds a reference.
 *
 * A queue with work is never idle.  A submitting thread stores `submitted` and then reads `active`; an owner that found
 * no operation stores `active` and then reads `submitted`.  These four accesses are sequentially consistent, so at
 * least one thread sees what the other stored, and the exchange on `active` lets exactly one continue.
 *
 * No wakeup is lost.  The owner stores `completed` and then reads `wake_at`, the smallest number that is waited for; a
 * waiter stores `wake_at` and then reads `completed`.  Waiters are in a heap, so that a wait among many costs little
 * more than a single wait.
 *
 * On a lost device, operations that have not started are ended without being run, except those with `run_if_lost`.
 * Every queue therefore drains, unless one of its operations never ends.  Waits do not depend on the draining:
 * rill__cpu_queues_abort wakes all waiters, and no wait starts after it.
 *
 * Memory: a queue that stays short has one small chunk, which is filled from the start whenever the queue was empty.
 * Further chunks are large, and are freed when the queue becomes empty.
 *
 * A queue outlives its stream while work, an event's mark or a wait refers to it.
 */
#ifndef RILL_CPU_QUEUE_H
#define RILL_CPU_QUEUE_H

#include "backends/cpu/lock.h"
#include "core/backend.h"

struct cpu_queue;

/* Header of an operation.  The queue's owner calls `run`, which returns true when the operation is done, or false if it
 * has handed the queue to a thread that will finish the operation.  `end` releases what the operation owns; may be
 * NULL. */
struct cpu_op {
  bool (*run)(struct cpu_queue *queue, struct cpu_op *op);
  void (*end)(struct cpu_op *op);
  size_t size;      /* bytes in the chunk */
  bool run_if_lost; /* the operation is also run on a lost device */
  bool again;       /* run the operation again when the queue that it handed over is resumed */
};

struct cpu_chunk {
  struct cpu_chunk *next;
  size_t size; /* including this header */
  _Alignas(64) unsigned char bytes[];
};

/* An operation whose parts several workers share; see job.c. */
struct cpu_job {
  struct cpu_queue *queue;
  struct cpu_op *op;
  void (*run)(struct cpu_op *op, uint64_t first, uint64_t end);
  uint64_t parts;
  struct cpu_gate *gate;   /* NULL: no worker can join */
  _Atomic uint32_t wanted; /* number of participants for which workers are woken; 0 while there is no job */
  _Atomic bool is_long;
  uint64_t part_ns; /* time of a part, as the owner of the latest job has measured it; 0 if it is not known */

  /* For CPU_BY_PLACE. */
  uint32_t ranges;           /* 0: parts are taken in order */
  uint32_t shift;            /* 2^shift parts are taken together */
  uint64_t length, longer;   /* parts per range; number of leading ranges that have one part more */
  uint64_t round;            /* number of jobs with ranges of this queue so far */
  struct cpu_claims *claims; /* how much of each range is taken; owned; allocated at the first use */

  /* For a schedule (schedule.h): part i of its order is (first + i * stride) % parts. */
  uint64_t first, stride;
  bool open; /* some parts have been run, others have not */

  _Alignas(64) _Atomic uint64_t taken; /* parts taken, in order; with ranges, set once none is left */

  /* For assertions only. */
  _Atomic uint64_t ran; /* number of parts run */
  _Atomic bool faulted; /* a participant faulted, so `ran` lacks its parts */
};

/* An element of a pairing heap: a tree in which no element's number is smaller than its parent's. */
struct cpu_waiter {
  uint64_t number;
  struct cpu_queue *parked;  /* queue to make ready, or ... */
  struct rill__waker *waker; /* ... waker to call; if both are NULL, a thread sleeps on `woken` */
  _Atomic uint32_t woken;
  struct cpu_waiter *below, *beside; /* first child; next sibling */
  struct cpu_waiter **link;          /* the pointer to this element; NULL if it is not in the heap */
};

struct cpu_queue {
  /* used by submitting threads */
  struct cpu_lock lock;
  _Atomic bool active;
  struct cpu_chunk *tail;
  size_t tail_offset;
  size_t reserved; /* bytes between begin and commit */
  _Atomic uint64_t submitted;
  _Atomic uint64_t unsettled;        /* number of the last operation that may write memory unknown to rill */
  _Atomic(struct cpu_chunk *) spare; /* last small chunk that was used up */

  /* used by the owner */
  _Alignas(64) struct cpu_chunk *head;
  size_t head_offset;
  bool used;     /* operations were taken since the last call of shrink */
  uint64_t seen; /* last value read from `submitted` */
  uint64_t done; /* equals `completed` */
  _Atomic uint64_t completed, wake_at;
  _Atomic uint64_t reading; /* number of the last operation that started to read memory of a waiting caller */

  /* A queue that collects runs nothing: begin allocates the operation separately, and commit leaves it here. */
  bool collects;
  struct cpu_op *collected;

  /* rarely written */
  _Alignas(64) struct rill__device *device;
  uint32_t level; /* priority level; 0 is served first */
  _Atomic uint32_t references;
  struct cpu_lock waiters_lock;
  struct cpu_waiter *waiters;   /* root of the heap; under waiters_lock */
  struct cpu_waiter park;       /* used by a wait at the head of this queue */
  struct cpu_queue *next_ready; /* under the lock of the workers or of the schedule */
  uint64_t rank;                /* used in a schedule; 0 if not yet assigned; under the schedule's lock */

  /* Lists of queues (queues.c), under their lock.  A queue with work is in the busy list, or about to be added. */
  struct cpu_queue *next, *previous;
  _Atomic bool busy;
  uint32_t iterators; /* threads that will continue from this queue, so it has to stay in the busy list */
  uint64_t serial;    /* position in the order of the busy list */

  struct cpu_job job; /* job of the operation at the head */
};

rill_status rill__cpu_queue_new(struct rill__device *device, uint32_t level, struct cpu_queue **out);

static inline void cpu_queue_retain(struct cpu_queue *queue) {
  atomic_fetch_add_explicit(&queue->references, 1, memory_order_relaxed);
}
void rill__cpu_queue_release(struct cpu_queue *queue);

/* Submit an operation.  begin returns `size` bytes to fill in, and holds the queue's lock until commit, which returns
 * the operation's number.  If begin fails, the error text is set. */
rill_status rill__cpu_queue_begin(struct cpu_queue *queue, size_t size, void *out);
uint64_t rill__cpu_queue_commit(struct cpu_queue *queue);

/* Commits several operations stored one after another in these bytes, each of a size that is a multiple of 64.  Returns
 * the number of the last one.  cpu_queue_abort discards them instead. */
uint64_t rill__cpu_queue_commit_many(struct cpu_queue *queue, uint64_t count);
static inline void cpu_queue_abort(struct cpu_queue *queue) { cpu_release(&queue->lock); }

/* Notes that the operation may write memory that rill does not know; called between begin and commit.  The queue is
 * settled when all such operations are done: the caller's memory is then up to date with the stream's work. */
static inline void cpu_queue_unsettle_many(struct cpu_queue *queue, uint64_t count) {
  const uint64_t number = atomic_load_explicit(&queue->submitted, memory_order_relaxed) + count;
  atomic_store_explicit(&queue->unsettled, number, memory_order_release);
}
static inline void cpu_queue_unsettle(struct cpu_queue *queue) { cpu_queue_unsettle_many(queue, 1); }
static inline bool cpu_queue_is_settled(struct cpu_queue *queue) {
  const uint64_t number = atomic_load_explicit(&queue->unsettled, memory_order_acquire);
  return atomic_load_explicit(&queue->completed, memory_order_acquire) >= number;
}

/* Makes the calling thread the owner of an idle queue and submits an operation that the thread performs itself until it
 * calls rill__cpu_queue_cancel.  Returns false if the queue is not idle. */
bool rill__cpu_queue_take(struct cpu_queue *queue);
void rill__cpu_queue_cancel(struct cpu_queue *queue);

/* Runs operations until there are none or the queue was handed over.  Called by the owner, on a worker. */
void rill__cpu_queue_run(struct cpu_queue *queue);

/* Runs one operation, or some of its parts, and hands the queue over.  Called by the owner, on a worker of a
 * schedule. */
void rill__cpu_queue_step(struct cpu_queue *queue);

/* Ends the operation at the head, then works like rill__cpu_queue_run.  Called by the last participant of a job. */
void rill__cpu_queue_resume(struct cpu_queue *queue);

/* Works like rill__cpu_queue_resume, but leaves the other operations to the workers. */
void rill__cpu_queue_pass_on(struct cpu_queue *queue);

/* Ends the operation at the head and leaves the rest to the workers.  Called by an owner that is not a worker. */
void rill__cpu_queue_finish_head(struct cpu_queue *queue);

static inline bool cpu_is_lost(const struct rill__device *device) {
  return atomic_load_explicit(&device->lost, memory_order_acquire) != RILL_OK;
}

static inline bool cpu_queue_reached(struct cpu_queue *queue, uint64_t number) {
  return atomic_load_explicit(&queue->completed, memory_order_acquire) >= number;
}
static inline uint64_t cpu_queue_submitted(struct cpu_queue *queue) {
  return atomic_load_explicit(&queue->submitted, memory_order_acquire);
}

/* Drops everything that is queued, in the child of a fork. */
void rill__cpu_queue_forget_chunks(struct cpu_queue *queue);

/* ---- waiting: wait.c ---- */

/* Makes `waiter->parked` ready, or wakes `waiter->waker`, when the waiter's number is reached.  Returns false and does
 * nothing if the number is reached already or the device is lost. */
bool rill__cpu_queue_park(struct cpu_queue *queue, struct cpu_waiter *waiter);

/* Blocks until `number` is reached, for at most `ns`.  Returns false if it was not reached or the device is lost.
 * `spin`: poll for a while before sleeping. */
bool rill__cpu_queue_wait(struct cpu_queue *queue, uint64_t number, uint64_t ns, bool spin);

/* Used if an operation reads memory of a caller that waits for it.  The operation calls rill__cpu_queue_begin_reading
 * before it reads; if the result is false, it must not read, because the caller has been woken.  The caller calls the
 * second function, which blocks until the operation is done or, if the device is lost, while the memory is being
 * read. */
bool rill__cpu_queue_begin_reading(struct cpu_queue *queue);
rill_status rill__cpu_queue_wait_for_reading(struct cpu_queue *queue, uint64_t number);

/* Wakes all waiters for `completed` or less.  Called by the owner, and with UINT64_MAX for all waiters. */
void rill__cpu_queue_wake(struct cpu_queue *queue, uint64_t completed);

/* ---- all queues: queues.c ---- */

void rill__cpu_queues_add(struct cpu_queue *queue);
void rill__cpu_queues_remove(struct cpu_queue *queue);

/* Moves the queue to the busy list.  Called after a submission. */
void rill__cpu_queues_add_busy(struct cpu_queue *queue);
static inline void cpu_queue_is_busy(struct cpu_queue *queue) {
  if (RILL__UNLIKELY(!atomic_load(&queue->busy))) rill__cpu_queues_add_busy(queue);
}

/* Blocks until everything submitted to any queue before the call is done.  Returns false if the device is lost. */
bool rill__cpu_queues_synchronize(void);

/* Wakes all waiters because their device is lost. */
void rill__cpu_queues_abort(void);

/* Lock and unlock the lists around a fork, and reset all queues in the child, where pending work counts as done without
 * having run. */
void rill__cpu_queues_lock(void);
void rill__cpu_queues_unlock(void);
void rill__cpu_queues_reset(void);

#endif
