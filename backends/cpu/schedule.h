/* Seeded schedules (RILL_CPU_SCHEDULE): any legal order of operations and blocks, chosen by a generator.
 *
 * Without a schedule, workers run what is ready at once.  With one, what is ready waits until a step is asked for, and
 * one worker at a time makes steps: it chooses a queue that is ready and runs its next operation, or some of the parts
 * of an operation that has parts.  A thread of the host asks for steps
 *
 *   - after each submission: as many as the generator says, often none, so that work runs late; or all, early;
 *   - when it queries an event or a stream: so a loop that polls ends;
 *   - when it waits: until what it waits for is done, and not one more.
 *
 * It sleeps until the steps are made, so nothing runs beside the only thread that submits, and the order follows from
 * the program and the seed alone.
 *
 * Two things end that, since a program must not hang here that ends elsewhere.  The pacer, a thread that looks every
 * 5 ms, takes the turn from a step that sleeps, as a host call may that waits for the host, or that takes a second, as
 * a kernel may that polls; and while no thread of the process runs, or none has called for a second, it asks for steps
 * itself.
 *
 * Invariants
 * - A queue is in `ready` or is being run by one worker, or parked, or has no owner.
 * - At most one worker has the turn.  A worker that the turn was taken from ends its step and then waits for a turn.
 * - A thread goes on when the steps that it asked for have ended, or the turn was taken from one, or the time of its
 *   wait is over.  So if one thread alone asks, no step runs beside it. */
#ifndef RILL_CPU_SCHEDULE_H
#define RILL_CPU_SCHEDULE_H

#include "backends/cpu/workers.h"

/* Set before the device is opened, and never changed. */
extern bool rill__cpu_scheduled;

/* Reads the setting, and prints the seed. */
void rill__cpu_schedule_read(void);

/* Before the first worker starts: 0, or why the pacer could not be started. */
int rill__cpu_schedule_start(void);

/* What a worker does instead of looking for work. */
_Noreturn void rill__cpu_schedule_serve(struct cpu_worker *worker);

/* Hands over a queue that the caller owns. */
void rill__cpu_schedule_push(struct cpu_queue *queue);

/* As rill__cpu_queue_wait. */
bool rill__cpu_schedule_wait(struct cpu_queue *queue, uint64_t number, uint64_t ns);

/* At the end of a submission, and before a query.  Without locks. */
void rill__cpu_schedule_submitted(void) __attribute__((cold));
void rill__cpu_schedule_queried(void) __attribute__((cold));
static inline void cpu_submitted(const struct cpu_queue *queue) {
  if (RILL__UNLIKELY(rill__cpu_scheduled) && !queue->collects) rill__cpu_schedule_submitted();
}
static inline void cpu_queried(void) {
  if (RILL__UNLIKELY(rill__cpu_scheduled)) rill__cpu_schedule_queried();
}

/* As rill__cpu_workers_share: the parts are run by later steps, in an order of the generator's where that is legal. And
 * for such a step: runs some of them; true if they were the last. */
bool rill__cpu_schedule_share(struct cpu_queue *queue, struct cpu_op *op, uint64_t parts, enum cpu_sharing sharing,
                              void (*run)(struct cpu_op *op, uint64_t first, uint64_t end));
bool rill__cpu_schedule_parts(struct cpu_queue *queue);

/* The worker fell in its step, which the caller is going to end. */
void rill__cpu_schedule_fallen(const struct cpu_worker *worker);

/* The device is lost: who waits is woken, and what is left ends without being asked for. */
void rill__cpu_schedule_give_up(void);

/* In the child of a fork: there are no workers, no pacer and no work. */
void rill__cpu_schedule_reset(void);

#endif
