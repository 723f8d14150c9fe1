/* Runs the threads of a block that may wait for one another, as fibers on one worker.
 *
 * One thread runs at a time.  A thread that comes to a barrier or to an exchange of its warp is put in line there; who
 * completes the line, by coming last or by ending, puts all of it into the line of those that are ready.  Then the
 * first that is ready goes on; if none is, the next thread of the block starts, on a stack of its own.  A thread that
 * ends without having waited leaves its stack to the next one, so a kernel that does not come to its barriers runs as
 * a plain loop.
 *
 * A warp may have several exchanges at a time, each among the lanes of another mask.  A thread that asks which lanes
 * are active is put in line with those that ask at the same place; the line is complete when nothing else can run.
 *
 * Invariant: every thread that has started and not ended is the running one, is ready, or is in one line; a line never
 * holds all that it waits for.  So if nobody is ready and all have started, the threads wait for each other for ever:
 * some at a barrier, others in their warp.
 */
#ifndef RILL_CPU_FIBER_H
#define RILL_CPU_FIBER_H

#include <rill/device/cpu_image.h>
#include <stdbool.h>
#include <stddef.h>

enum { CPU_WARP_SIZE = 32 };

struct cpu_fibers;

/* The calling worker's fibers with stacks for `threads` of them, made at the first use, each with room for `stack`
 * bytes of the kernel's; NULL when memory for the stacks ran out. */
struct cpu_fibers *rill__cpu_fibers_for(struct cpu_fibers **own, uint32_t threads, size_t stack);

/* Frees those whose stacks are larger than `above`, and those that have been given up. */
void rill__cpu_fibers_free(struct cpu_fibers **own, size_t above);

/* The same of those that few kernels need; whether there are any. */
void rill__cpu_fibers_trim(struct cpu_fibers **own);
bool rill__cpu_fibers_are_large(const struct cpu_fibers *fibers);

/* How the threads of a block came to their end. */
struct cpu_fibers_end {
  bool given_up;                /* they did not; the fibers cannot be used again: rill__cpu_fibers_free */
  uint32_t at_barrier, in_warp; /* how many wait there for ever; 0 if rill__cpu_fibers_give_up was called */
};

/* Runs all threads of a block of at most as many threads. */
struct cpu_fibers_end rill__cpu_fibers_run(struct cpu_fibers *fibers, const rill_cpu_kernel *kernel,
                                           const rill_cpu_block *block);

/* Called by a thread of a block that runs on fibers: its block is not run to the end. */
_Noreturn void rill__cpu_fibers_give_up(void);

/* Whether an address lies in the guard of one of the stacks. */
bool rill__cpu_fibers_guard(const struct cpu_fibers *fibers, uintptr_t address);

/* Services for the threads, and whether an address lies in the calling thread's stack or in what an exchange gave. */
bool rill__cpu_fibers_own(uintptr_t address);
void rill__cpu_fibers_barrier(void);
uint32_t rill__cpu_fibers_barrier_count(uint32_t predicate);
const rill_cpu_warp *rill__cpu_fibers_exchange(uint64_t value);
const rill_cpu_warp *rill__cpu_fibers_exchange_among(uint64_t value, uint64_t mask);
uint64_t rill__cpu_fibers_active(const void *place);
uint32_t rill__cpu_fibers_lane(void);

#endif
