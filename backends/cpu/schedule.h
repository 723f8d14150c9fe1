/* Seeded schedules (RILL_CPU_SCHEDULE): any legal order of operations and blocks, chosen by a random generator.
 *
 * Without a schedule, workers run whatever is ready at once.  With a schedule, ready queues wait until a step is
 * requested, and one worker at a time makes steps: it chooses a ready queue and runs its next operation, or some of the
 * parts of an operation that has parts.  A host thread requests steps
 *
 * - after each submission: as many as the generator decides, often none, so that work runs late, or all, so that work
 *   runs early;
 * - when it queries an event or a stream, so that a polling loop ends;
 * - when it waits: until what it waits for is done, and no further.
 *
 * The thread sleeps until the steps are made.  If only one thread submits, nothing therefore runs concurrently with it,
 * and the order depends only on the program and the seed.
 *
 * There are two exceptions, because a program that ends without a schedule must not hang with one.  The pacer is a
 * thread that checks every 5 ms.  It takes the turn from a step that sleeps, such as a host call that waits for the
 * host, and from a step that runs for a second, such as a kernel that polls.  It requests steps itself while all
 * threads of the process sleep, or when no thread has requested any for a second.
 *
 * Invariants
 * - A queue is in `ready`, is being run by one worker, is parked, or has no owner.
 * - At most one worker has the turn.  A worker that lost the turn to the pacer ends its step and then waits for a turn.
 * - A thread continues when the steps that it requested have ended, when the pacer took the turn from a step, or when
 *   its wait has timed out.  So if only one thread makes requests, no step runs concurrently with it.
 */
#ifndef RILL_CPU_SCHEDULE_H
#define RILL_CPU_SCHEDULE_H

#include "backends/cpu/workers.h"

/* Set before the device is opened, and not changed afterwards. */
extern bool rill__cpu_scheduled;

/* Reads the setting and prints the seed. */
void rill__cpu_schedule_read(void);

/* Starts the pacer; called before the first worker starts.  Returns 0, or the error code if the pacer could not be
 * started. */
int rill__cpu_schedule_start(void);

/* Makes steps, if there is a schedule: the loop of a worker. */
_Noreturn void rill__cpu_schedule_serve(struct cpu_worker *worker);

/* Makes a queue that the caller owns ready. */
void rill__cpu_schedule_push(struct cpu_queue *queue);

/* Works like rill__cpu_queue_wait. */
bool rill__cpu_schedule_wait(struct cpu_queue *queue, uint64_t number, uint64_t ns);

/* Request steps at the end of a submission, and before a query.  Call them without locks. */
void rill__cpu_schedule_submitted(void) __attribute__((cold));
void rill__cpu_schedule_queried(void) __attribute__((cold));
static inline void cpu_submitted(const struct cpu_queue *queue) {
  if (RILL__UNLIKELY(rill__cpu_scheduled) && !queue->collects) rill__cpu_schedule_submitted();
}
static inline void cpu_queried(void) {
  if (RILL__UNLIKELY(rill__cpu_scheduled)) rill__cpu_schedule_queried();
}

/* rill__cpu_schedule_share works like rill__cpu_workers_share, but the parts are run by later steps, in random order
 * where that is legal.  Such a step calls rill__cpu_schedule_parts, which runs some parts and returns true if they were
 * the last. */
bool rill__cpu_schedule_share(struct cpu_queue *queue, struct cpu_op *op, uint64_t parts, enum cpu_sharing sharing,
                              void (*run)(struct cpu_op *op, uint64_t first, uint64_t end));
bool rill__cpu_schedule_parts(struct cpu_queue *queue);

/* Gives up the turn of a worker that faulted in its step; the caller ends the operation. */
void rill__cpu_schedule_drop_turn(const struct cpu_worker *worker);

/* Wakes all waiting threads when the device is lost, and ends the remaining work without further requests. */
void rill__cpu_schedule_abort(void);

/* Resets the state in the child of a fork, where there are no workers, no pacer and no work. */
void rill__cpu_schedule_reset(void);

#endif
