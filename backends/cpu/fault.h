/* Faults in kernels: a handler for the signals that an invalid access or a division by zero raises.
 *
 * The handler is installed at the first launch and chained to the previous handler; on workers it runs on an alternate
 * stack.  A fault of a worker inside a kernel is recorded and the worker is parked for good; the watcher does the rest
 * (workers.h).  The handler takes no lock and allocates nothing, because the kernel may have been interrupted anywhere,
 * including inside malloc.  All other faults, including those of host calls, and signals sent by a process are passed
 * to the previous handler, or get the default action if there is none.
 *
 * RILL_CPU_CATCH_FAULTS=0 disables the handler.  A sanitizer in the process also disables it, because the sanitizer's
 * own handlers print a better report. */
#ifndef RILL_CPU_FAULT_H
#define RILL_CPU_FAULT_H

#include "backends/cpu/workers.h"

enum { CPU_FAULT_STACK_BYTES = 65536 };

/* Installs the handler and starts the watcher, unless that has been done.  Called before a launch. */
rill_status rill__cpu_faults_catch(void);

/* Sets the calling worker's alternate signal stack, of CPU_FAULT_STACK_BYTES. */
void rill__cpu_fault_stack(void *stack);

/* Marks the device as lost because of the kernel in which the worker faulted. */
void rill__cpu_fault_report(const struct cpu_worker *worker);

/* Returns true if a sanitizer is linked into the process. */
bool rill__cpu_is_sanitized(void);

/* The kernel's name, and the launch's label if it has one, for messages. */
struct cpu_name {
  char text[160];
};
struct cpu_name rill__cpu_name_of(const struct cpu_inside *inside);

/* Resets the state in the child of a fork, where there is no watcher. */
void rill__cpu_faults_reset(void);

/* Mark the worker as inside a kernel, and as outside.  Called immediately before and after the kernel's own code. */
static inline void cpu_enter_kernel(struct cpu_worker *worker, const struct cpu_inside *inside) {
  atomic_store_explicit(&worker->inside, inside, memory_order_relaxed);
  atomic_signal_fence(memory_order_seq_cst);
}
static inline void cpu_leave_kernel(struct cpu_worker *worker) {
  atomic_signal_fence(memory_order_seq_cst);
  atomic_store_explicit(&worker->inside, NULL, memory_order_relaxed);
}

#endif
