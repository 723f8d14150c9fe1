/* A stream's queue: operations in order, how far they are done, and who waits for that.
 *
 * Operations lie one after another in chunks.  Threads that submit add them at the tail, under `lock`; one
 * thread at a time, the owner, takes them from the head, without a lock.
 *
 *   submitted   operations ever submitted; published after the operation is written
 *   completed   operations done, always a prefix of those submitted.  A mark (queue, number) is complete exactly
 *               if completed >= number; this is all that an event remembers.
 *   active      whether the queue has an owner: it is in the ready list, run by a worker, parked after another
 *               queue, or taken by a thread that submits.  Whoever turns it from false to true is the owner and
 *               holds a reference.
 *
 * Never idle with work left: who submits stores `submitted` and then looks at `active`; an owner that found
 * nothing stores `active` and then looks at `submitted`.  In the order of those four (sequentially consistent)
 * accesses at least one of them sees what the other one stored, and the exchange on `active` lets one go on.
 *
 * No wake-up lost: the owner stores `completed` and then looks at `wake_at`, the least number that is waited
 * for; who waits stores `wake_at` and then looks at `completed`.  Those who wait are in a heap, so that a wait among
 * many costs little more than a wait alone.
 *
 * A lost device: operations that have not started are not run any more, only ended, but for those with `when_lost`.  So
 * every queue comes to its end, unless an operation of it never does.  Nobody waits for that: rill__cpu_queues_give_up
 * wakes all who wait, and from then on no wait starts.
 *
 * Memory: a queue that stays short has one small chunk, which is filled from the start whenever the queue was empty.
 * The others of a long one are large, and go back as it becomes empty.
 *
 * A queue outlives its stream while work, an event's mark or a wait refers to it.
 */
#ifndef RILL_CPU_QUEUE_H
#define RILL_CPU_QUEUE_H

#include "backends/cpu/lock.h"
#include "core/backend.h"

struct cpu_queue;

/* The head of an operation.  Its owner calls `run`, which returns true when the operation is done, or false when
 * it has handed the queue on, to whom is going to finish it.  `end` (may be NULL) frees what it holds. */
struct cpu_op {
  bool (*run)(struct cpu_queue *queue, struct cpu_op *op);
  void (*end)(struct cpu_op *op);
  size_t size;    /* in the chunk */
  bool when_lost; /* it is run on a lost device, too */
  bool again;     /* when the queue comes back from whom `run` has handed it on to, it is run again */
};

struct cpu_chunk {
  struct cpu_chunk *next;
  size_t size; /* with this head */
  _Alignas(64) unsigned char bytes[];
};

/* Work of one operation that several workers share; see job.c. */
struct cpu_job {
  struct cpu_queue *queue;
  struct cpu_op *op;
  void (*run)(struct cpu_op *op, uint64_t first, uint64_t end);
  uint64_t parts;
  struct cpu_job *next, *previous;
  bool open;
  _Atomic bool is_long;
  _Atomic uint32_t participants;

  /* Of one whose parts have places. */
  uint32_t ranges;           /* 0: they have none */
  uint32_t shift;            /* 2^shift parts are taken together */
  uint64_t length, longer;   /* of a range, and how many ranges at the front have a part more */
  uint64_t round;            /* jobs with places of this queue so far */
  struct cpu_claims *claims; /* how much of each range is taken; from malloc, made at the first use */

  /* Of one of a schedule (schedule.h): part number i of its order is (first + i * stride) % parts. */
  uint64_t first, stride;

  _Alignas(64) _Atomic uint64_t taken; /* parts, in order; with places: all of them, once there is none left */

  /* For assertions alone. */
  _Atomic uint64_t ran; /* parts */
  _Atomic bool fallen;  /* a participant was, with the parts that it had taken */
};

/* In a pairing heap: a tree in which nobody waits for less than who is above. */
struct cpu_waiter {
  uint64_t number;
  struct cpu_queue *parked;  /* the queue to make ready, ... */
  struct rill__waker *waker; /* ... or what to wake; both NULL: a thread that sleeps on `woken` */
  _Atomic uint32_t woken;
  struct cpu_waiter *below, *beside; /* the first of those below; the next below the same one */
  struct cpu_waiter **link;          /* what points here: such a pointer, or the queue's; NULL: not in the heap */
};

struct cpu_queue {
  /* those who submit */
  struct cpu_lock lock;
  _Atomic bool active;
  struct cpu_chunk *tail;
  size_t tail_offset;
  size_t reserved; /* between begin and commit */
  _Atomic uint64_t submitted;
  _Atomic uint64_t unsettled;        /* the last operation that may write memory that rill does not know */
  _Atomic(struct cpu_chunk *) spare; /* the last small chunk used up */

  /* the owner */
  _Alignas(64) struct cpu_chunk *head;
  size_t head_offset;
  bool used;     /* operations were taken from the chunks since `shrink` looked at them */
  uint64_t seen; /* of `submitted` */
  uint64_t done; /* what `completed` says */
  _Atomic uint64_t completed, wake_at;
  _Atomic uint64_t reading; /* the last operation that started to read memory of a caller who waits for it */

  /* A queue that collects runs nothing: begin gives memory of its own, from malloc, and commit leaves it here. */
  bool collects;
  struct cpu_op *collected;

  /* rarely written */
  _Alignas(64) struct rill__device *device;
  uint32_t level; /* of priority; 0 is served first */
  _Atomic uint32_t references;
  struct cpu_lock waiters_lock;
  struct cpu_waiter *waiters;   /* the heap; under waiters_lock */
  struct cpu_waiter park;       /* for a wait at the head */
  struct cpu_queue *next_ready; /* under the pool's lock, or the schedule's */
  uint64_t rank;                /* in a schedule; 0: none yet; under the schedule's lock */

  /* The lists of queues (queues.c), under their lock.  A queue with work is among the busy ones, or about to be. */
  struct cpu_queue *next, *previous;
  _Atomic bool busy;
  uint32_t walkers; /* threads that go on from here, so it stays among the busy */
  uint64_t serial;  /* of the busy, in their order */

  struct cpu_job job; /* of the operation at the head */
};

rill_status rill__cpu_queue_new(struct rill__device *device, uint32_t level, struct cpu_queue **out);

static inline void cpu_queue_retain(struct cpu_queue *queue) {
  atomic_fetch_add_explicit(&queue->references, 1, memory_order_relaxed);
}
void rill__cpu_queue_release(struct cpu_queue *queue);

/* Submission: begin gives `size` bytes to fill in and holds the queue's lock until commit, which gives the
 * operation's number.  begin fails with text. */
rill_status rill__cpu_queue_begin(struct cpu_queue *queue, size_t size, void *out);
uint64_t rill__cpu_queue_commit(struct cpu_queue *queue);

/* The same for several operations that lie one after another in those bytes, each of a size that is a multiple of 64.
 * Gives the number of the last.  Or nothing comes of it. */
uint64_t rill__cpu_queue_commit_many(struct cpu_queue *queue, uint64_t count);
static inline void cpu_queue_abort(struct cpu_queue *queue) { cpu_release(&queue->lock); }

/* Between the two: the operation may write memory that rill does not know.  Settled: all those are done, so the memory
 * of the caller is as the stream's work so far leaves it. */
static inline void cpu_queue_unsettle_many(struct cpu_queue *queue, uint64_t count) {
  const uint64_t number = atomic_load_explicit(&queue->submitted, memory_order_relaxed) + count;
  atomic_store_explicit(&queue->unsettled, number, memory_order_release);
}
static inline void cpu_queue_unsettle(struct cpu_queue *queue) { cpu_queue_unsettle_many(queue, 1); }
static inline bool cpu_queue_is_settled(struct cpu_queue *queue) {
  const uint64_t number = atomic_load_explicit(&queue->unsettled, memory_order_acquire);
  return atomic_load_explicit(&queue->completed, memory_order_acquire) >= number;
}

/* Makes the calling thread the owner of an idle queue and submits an operation that it does by itself, up to
 * rill__cpu_queue_cancel.  False if the queue is not idle. */
bool rill__cpu_queue_take(struct cpu_queue *queue);
void rill__cpu_queue_cancel(struct cpu_queue *queue);

/* For the owner on a worker: runs operations until there are none or the queue was handed on. */
void rill__cpu_queue_run(struct cpu_queue *queue);

/* For the owner on a worker of a schedule: runs an operation or some of its parts, and hands the queue on. */
void rill__cpu_queue_step(struct cpu_queue *queue);

/* As rill__cpu_queue_run, beginning with the end of the operation at the head: for the last participant of a job. */
void rill__cpu_queue_resume(struct cpu_queue *queue);

/* The same for an owner that is no worker: ends the operation and leaves the rest to the workers. */
void rill__cpu_queue_hand_on(struct cpu_queue *queue);

static inline bool cpu_is_lost(const struct rill__device *device) {
  return atomic_load_explicit(&device->lost, memory_order_acquire) != RILL_OK;
}

static inline bool cpu_queue_reached(struct cpu_queue *queue, uint64_t number) {
  return atomic_load_explicit(&queue->completed, memory_order_acquire) >= number;
}
static inline uint64_t cpu_queue_submitted(struct cpu_queue *queue) {
  return atomic_load_explicit(&queue->submitted, memory_order_acquire);
}

/* In the child of a fork: gives up all that is queued. */
void rill__cpu_queue_forget_chunks(struct cpu_queue *queue);

/* ---- waiting: wait.c ---- */

/* Makes `waiter->parked` ready, or wakes `waiter->waker`, when the waiter's number is reached.  False, and nothing
 * done, if it is, or if the device is lost. */
bool rill__cpu_queue_park(struct cpu_queue *queue, struct cpu_waiter *waiter);

/* Blocks until `number` is reached, for `ns` at most; false if it was not, or the device is lost.  `spin`: looks for a
 * while before it sleeps. */
bool rill__cpu_queue_wait(struct cpu_queue *queue, uint64_t number, uint64_t ns, bool spin);

/* For an operation that reads memory of a caller, who waits until it is done: called before it does, false if it must
 * not, since the caller has been woken.  The caller: blocks until the operation is done; when the device is lost, only
 * as long as the memory is being read. */
bool rill__cpu_queue_begin_reading(struct cpu_queue *queue);
rill_status rill__cpu_queue_wait_for_reading(struct cpu_queue *queue, uint64_t number);

/* For the owner: wakes who waits for `completed` or less; all who wait. */
void rill__cpu_queue_wake(struct cpu_queue *queue, uint64_t completed);

/* ---- all queues: queues.c ---- */

void rill__cpu_queues_add(struct cpu_queue *queue);
void rill__cpu_queues_remove(struct cpu_queue *queue);

/* After something was submitted. */
void rill__cpu_queues_add_busy(struct cpu_queue *queue);
static inline void cpu_queue_is_busy(struct cpu_queue *queue) {
  if (RILL__UNLIKELY(!atomic_load(&queue->busy))) rill__cpu_queues_add_busy(queue);
}

/* Blocks until all that was submitted to any queue before the call is done; false if the device is lost. */
bool rill__cpu_queues_synchronize(void);

/* Wakes all who wait: their device is lost. */
void rill__cpu_queues_give_up(void);

/* For fork.  In the child what was pending counts as done, without having run. */
void rill__cpu_queues_lock(void);
void rill__cpu_queues_unlock(void);
void rill__cpu_queues_reset(void);

#endif
