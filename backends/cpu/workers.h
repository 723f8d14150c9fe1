/* The workers that run queues.
 *
 * A worker takes a ready queue and runs its operations.  If there is none, it helps with a job, an operation whose
 * parts several workers share.  If there is no job, it polls briefly and then sleeps.
 *
 * Invariant: every ready queue gets a worker, however long kernels and host calls of other queues block.
 *   - When a queue becomes ready, at least as many workers are on their way (polling, woken or starting) as queues are
 *     ready, or another worker is called, or no worker sleeps and the base number of workers has been started.  A
 *     worker sleeps only when nothing is ready.
 *   - If no ready queue is taken for one tick of the watcher, all workers may be blocked, and the watcher starts
 *     further ones.  It stops at the base number plus 252, which limits how many operations may block at once.
 * Workers beyond the base number end after they have been idle for a while.
 *
 * A worker whose kernel faults is parked for good, inside the signal handler (fault.c).  The watcher does what the
 * worker cannot: it marks the device as lost and leaves the worker's job on its behalf.  If the worker was the last
 * participant of the job, or ran the operation alone, the watcher also ends the operation and hands the queue over.  A
 * fault therefore leaves no trace in the pool of workers.
 *
 * No lock is held while a queue or a job is run.
 */
#ifndef RILL_CPU_WORKERS_H
#define RILL_CPU_WORKERS_H

#include "backends/cpu/queue.h"

enum { CPU_LEVELS = 3 }; /* levels of priority */

struct cpu_fibers;

/* The kernel that a worker is running. */
struct cpu_inside {
  struct rill__device *device;
  const char *kernel, *label; /* label: of the launch; may be NULL */
};

/* The resources of a worker for the blocks that it runs. */
struct cpu_worker {
  uint32_t number;           /* lowest number that was free when the worker started */
  void *shared;              /* dynamic shared memory of a block: CPU_SHARED_BYTES bytes */
  struct cpu_fibers *fibers; /* created at the first use */

  /* Used when the worker faults. */
  _Atomic(const struct cpu_inside *) inside; /* NULL outside kernels */
  struct cpu_queue *queue;                   /* queue of the operation that it runs or helps with */
  struct cpu_job *job;                       /* NULL if it runs the operation alone */
  uintptr_t stack, stack_guard;              /* lowest address of its stack, and of the guard below it */
  struct {
    int number, code; /* si_signo and si_code of the signal */
    uintptr_t address;
  } fault;
};
enum { CPU_SHARED_BYTES = 232448 };

/* Returns the calling worker, or NULL on other threads. */
struct cpu_worker *rill__cpu_worker_self(void);

/* Starts the first worker, unless that has been done.  Call it before making a queue ready. */
rill_status rill__cpu_workers_start(void);

/* Number of workers that run operations at a time: the value set, or RILL_CPU_WORKERS, or the number of processors, in
 * this order.  Setting 0 restores the default. */
enum { CPU_WORKERS_MAX = 1024 };
void rill__cpu_workers_set_count(uint32_t count);
uint32_t rill__cpu_workers_count(void);

/* Reads RILL_CPU_WORKERS.  If it is not a number from 1 to CPU_WORKERS_MAX, prints a warning and keeps the default. */
void rill__cpu_workers_read_count(void);

/* Passes a queue that the caller owns to the workers. */
void rill__cpu_workers_push(struct cpu_queue *queue);

/* Returns true if the owner of a queue that has run `count` operations should let another queue run first. */
bool rill__cpu_workers_should_yield(uint32_t level, uint32_t count);

/* Returns true if a waiting thread may poll; false on a single processor. */
bool rill__cpu_workers_may_spin(void);

/* Starts the watcher, which handles faults of kernels, unless that has been done. */
rill_status rill__cpu_workers_start_watcher(void);

/* Parks the calling worker for good.  Called in the signal handler. */
_Noreturn void rill__cpu_workers_park_faulted(struct cpu_worker *worker);

/* Starts another worker.  Returns false if there are too many or it could not be started. */
bool rill__cpu_workers_add(void);

/* Resets the state in the child of a fork, where no worker exists. */
void rill__cpu_workers_reset(void);

/* ---- jobs: job.c ---- */

/* The distribution of parts to workers.  In order: a part never starts before parts with lower numbers, so it may wait
 * for them.  By place: the same worker gets the same parts every time, as far as it is free to take them. */
enum cpu_sharing { CPU_IN_ORDER, CPU_BY_PLACE };

/* Shares parts 0 to `parts` - 1 of an operation with other workers, and returns what the operation's `run` has to
 * return.  The callback `run` is called for ranges of parts, each part once, on several workers concurrently. */
bool rill__cpu_workers_share(struct cpu_queue *queue, struct cpu_op *op, uint64_t parts, enum cpu_sharing sharing,
                             void (*run)(struct cpu_op *op, uint64_t first, uint64_t end));

#endif
