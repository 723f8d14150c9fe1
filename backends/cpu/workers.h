/* The workers that run queues.
 *
 * A worker takes a queue that is ready and runs its operations; else it helps with a job, an operation whose
 * parts several workers share; else it spins shortly, then sleeps.
 *
 * Invariant: every ready queue gets a worker, however long kernels and host calls of other queues block.
 *   - Under the pool's lock, as many workers are on their way (spinning, woken or starting) as queues are ready,
 *     or nobody sleeps and all of the base number have been started.  A worker sleeps only when nothing is ready.
 *   - If then no ready queue is taken for a tick of the watcher, all workers may be inside code that blocks, and
 *     the watcher starts another one.  It stops at 252 more than the base number: so many operations may block at once.
 * Workers beyond the base number end when they have had nothing to do for a while.
 *
 * A worker whose kernel faults is parked for ever, inside the handler of the signal (fault.c).  The watcher does what
 * the worker cannot: it loses the device, leaves the worker's job for it, and if that was the last in the job, or the
 * only one with its queue, ends the operation and hands the queue on.  So faults leave no trace in the pool.
 *
 * No lock is held while a queue or a job is run.
 */
#ifndef RILL_CPU_WORKERS_H
#define RILL_CPU_WORKERS_H

#include "backends/cpu/queue.h"

enum { CPU_LEVELS = 3 }; /* of priority */

struct cpu_fibers;

/* The kernel that a worker is in. */
struct cpu_inside {
  struct rill__device *device;
  const char *kernel, *label; /* label: of the launch; may be NULL */
};

/* What a worker has for the blocks that it runs. */
struct cpu_worker {
  uint32_t number;           /* the least that no other worker had when it began */
  void *shared;              /* dynamic shared memory of a block: CPU_SHARED_BYTES */
  struct cpu_fibers *fibers; /* made at the first use */

  /* For a fault. */
  _Atomic(const struct cpu_inside *) inside; /* NULL: not in a kernel */
  struct cpu_queue *queue;                   /* of the operation that it runs, or helps with: */
  struct cpu_job *job;                       /* NULL: it runs the operation alone */
  uintptr_t stack, stack_guard;              /* where its own stack ends, and the guard below that starts */
  struct {
    int number, code; /* of the signal */
    uintptr_t address;
  } fault;
};
enum { CPU_SHARED_BYTES = 232448 };

/* The calling worker; NULL for other threads. */
struct cpu_worker *rill__cpu_worker_self(void);

/* Starts the first worker, unless that has been done.  What makes a queue ready calls it first. */
rill_status rill__cpu_workers_start(void);

/* How many workers run operations at a time: what was set, else RILL_CPU_WORKERS, else as many as processors.  0 sets
 * the default. */
enum { CPU_WORKERS_MOST = 1024 };
void rill__cpu_workers_set_count(uint32_t count);
uint32_t rill__cpu_workers_count(void);

/* Reads RILL_CPU_WORKERS.  If it is not a number from 1 to CPU_WORKERS_MOST, says so and keeps the default. */
void rill__cpu_workers_read_count(void);

/* Hands a queue that the caller owns to the workers. */
void rill__cpu_workers_push(struct cpu_queue *queue);

/* Whether the owner of a queue that has run `count` operations should let another queue go first. */
bool rill__cpu_workers_wants_other(uint32_t level, uint32_t count);

/* Whether a thread that waits may spin: not on a single processor. */
bool rill__cpu_workers_may_spin(void);

/* Starts the watcher, unless that has been done: faults of kernels are its business. */
rill_status rill__cpu_workers_start_watcher(void);

/* The calling worker, in the handler of a signal, is never heard of again. */
_Noreturn void rill__cpu_workers_fall(struct cpu_worker *worker);

/* Starts another worker; false if there are too many, or it could not be started. */
bool rill__cpu_workers_add(void);

/* In the child of a fork: no worker exists. */
void rill__cpu_workers_reset(void);

/* ---- jobs: job.c ---- */

/* How parts are given to workers.  In order: none before those with lower numbers, so a part may wait for these.  By
 * place: the same parts to the same worker every time, as far as it is there to take them. */
enum cpu_sharing { CPU_IN_ORDER, CPU_BY_PLACE };

/* What an operation returns that shares its parts 0 to `parts` - 1 with other workers: `run` is called for ranges
 * of them, each part once, on several workers at once. */
bool rill__cpu_workers_share(struct cpu_queue *queue, struct cpu_op *op, uint64_t parts, enum cpu_sharing sharing,
                             void (*run)(struct cpu_op *op, uint64_t first, uint64_t end));

#endif
