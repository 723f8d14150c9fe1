/* Runs the threads of a block that may meet barriers, as fibers on one worker.
 *
 * Threads run in order.  One that ends without having met a barrier leaves its stack to the next one, so a kernel
 * whose barriers are not reached runs as a plain loop.  A thread that meets a barrier switches to the next thread
 * that has not begun; when all have, to the next one in the ring of threads that have not ended.  Once around the
 * ring every thread in it has come to the barrier, which is what a barrier waits for.
 */
#ifndef RILL_CPU_FIBER_H
#define RILL_CPU_FIBER_H

#include <rill/device/cpu_image.h>
#include <stdbool.h>

struct cpu_fibers;

extern const rill_cpu_services cpu_services;

/* The calling worker's fibers, made at the first use, with stacks for `threads` of them; NULL when memory for the
 * stacks ran out. */
struct cpu_fibers *cpu_fibers_for(struct cpu_fibers **own, uint32_t threads);

/* Runs all threads of a block of at most as many threads. */
void cpu_fibers_run(struct cpu_fibers *fibers, const rill_cpu_kernel *kernel, const rill_cpu_block *block);

void cpu_fibers_free(struct cpu_fibers *fibers);

#endif
