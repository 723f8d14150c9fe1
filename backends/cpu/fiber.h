/* Runs the threads of a block that may wait for one another, as fibers on one worker.
 *
 * One thread runs at a time.  A thread that reaches a barrier or an exchange of its warp is queued there.  The thread
 * that completes this queue, by arriving last or by ending, moves the whole queue to the ready queue.  The first ready
 * thread runs next; if none is ready, the next thread of the block starts on a new stack.  A thread that ends without
 * having waited leaves its stack to the next thread, so a kernel that never reaches its barriers runs as a plain loop.
 *
 * A warp may have several exchanges open, each with a different mask of lanes.  A thread that asks which lanes are
 * active is queued with the threads that ask at the same place in the code; this queue is complete when nothing else
 * can run.
 *
 * Invariant: every thread that has started and not ended is running, ready, or in one queue, and a queue never holds
 * all the threads that it waits for.  If no thread is ready and all have started, the threads are therefore deadlocked,
 * some at a barrier and others in their warp.
 */
#ifndef RILL_CPU_FIBER_H
#define RILL_CPU_FIBER_H

#include <rill/device/cpu_image.h>
#include <stdbool.h>
#include <stddef.h>

enum { CPU_WARP_SIZE = 32 };

struct cpu_fibers;

/* Returns the calling worker's fibers with stacks for `threads` threads, created at the first use; each stack has room
 * for `stack` bytes of the kernel's frames.  Returns NULL if memory for the stacks ran out. */
struct cpu_fibers *rill__cpu_fibers_for(struct cpu_fibers **own, uint32_t threads, size_t stack);

/* Frees the fibers whose stacks are larger than `above`, and those that were given up. */
void rill__cpu_fibers_free(struct cpu_fibers **own, size_t above);

/* rill__cpu_fibers_trim frees the fibers with stacks larger than usual; rill__cpu_fibers_are_large returns true if
 * there are any. */
void rill__cpu_fibers_trim(struct cpu_fibers **own);
bool rill__cpu_fibers_are_large(const struct cpu_fibers *fibers);

/* How a block ended. */
struct cpu_fibers_end {
  bool given_up;                /* the block was abandoned; free the fibers with rill__cpu_fibers_free */
  uint32_t at_barrier, in_warp; /* number of threads deadlocked there; 0 after rill__cpu_fibers_abort */
};

/* Runs all threads of a block, which has at most as many threads as there are stacks. */
struct cpu_fibers_end rill__cpu_fibers_run(struct cpu_fibers *fibers, const rill_cpu_kernel *kernel,
                                           const rill_cpu_block *block);

/* Abandons the block.  Called by one of its threads, on a fiber. */
_Noreturn void rill__cpu_fibers_abort(void);

/* Returns true if the address lies in the guard of one of the stacks. */
bool rill__cpu_fibers_guard(const struct cpu_fibers *fibers, uintptr_t address);

/* Services for the threads.  rill__cpu_fibers_own returns true if the address lies in the calling thread's stack or in
 * the result of an exchange. */
bool rill__cpu_fibers_own(uintptr_t address);
void rill__cpu_fibers_barrier(void);
uint32_t rill__cpu_fibers_barrier_count(uint32_t predicate);
const rill_cpu_warp *rill__cpu_fibers_exchange(uint64_t value);
const rill_cpu_warp *rill__cpu_fibers_exchange_among(uint64_t value, uint64_t mask);
uint64_t rill__cpu_fibers_active(const void *place);
uint32_t rill__cpu_fibers_lane(void);

#endif
