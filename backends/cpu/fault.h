/* Faults of kernels: a handler for the signals that a wild store or a division by zero raises.
 *
 * It is installed at the first launch, chained to whoever was there before, and runs on a stack of its own on workers.
 * A fault of a worker inside a kernel is noted, and the worker parked for ever: from there on it is the watcher's
 * business (workers.h).  The handler takes no lock and no memory, since the kernel may have stopped anywhere, inside
 * malloc too.  All other faults, those of host calls among them, and signals that somebody sent, go on to the handler
 * that was there before, or to what the system does without one.
 *
 * RILL_CPU_CATCH_FAULTS=0 leaves the signals alone.  So does a sanitizer in the process: it has handlers of its own,
 * and its report is what one wants to see.
 */
#ifndef RILL_CPU_FAULT_H
#define RILL_CPU_FAULT_H

#include "backends/cpu/workers.h"

enum { CPU_FAULT_STACK_BYTES = 65536 };

/* Before a launch: installs the handler and starts the watcher, unless that has been done. */
rill_status rill__cpu_faults_catch(void);

/* Gives the calling worker the stack that the handler runs on, of CPU_FAULT_STACK_BYTES. */
void rill__cpu_fault_stack(void *stack);

/* Marks the device of the kernel that a fallen worker was in as lost. */
void rill__cpu_fault_report(const struct cpu_worker *worker);

/* Whether a sanitizer is in the process. */
bool rill__cpu_is_sanitized(void);

/* The kernel, and the label of the launch if it has one, for texts. */
struct cpu_name {
  char text[160];
};
struct cpu_name rill__cpu_name_of(const struct cpu_inside *inside);

/* In the child of a fork: there is no watcher. */
void rill__cpu_faults_reset(void);

/* Around what is the kernel's own. */
static inline void cpu_enter_kernel(struct cpu_worker *worker, const struct cpu_inside *inside) {
  atomic_store_explicit(&worker->inside, inside, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
}
static inline void cpu_leave_kernel(struct cpu_worker *worker) {
  atomic_signal_fence(memory_order_seq_cst);
  atomic_store_explicit(&worker->inside, NULL, memory_order_relaxed);
}

#endif
