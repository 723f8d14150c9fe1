/* gate.kernel.cu: kernels that hold a stream until somebody opens it, for tests and examples of ordering.
 *
 * A flag lies in memory that host and device share while the kernel runs: pinned host memory.  All but
 * `increment` are launched with one thread.
 *
 *   wait_for_flag  waits until *flag == value; after limit_ns without it, gives up and writes 1 to *timed_out.
 *                  Work before the store that set the flag (a release store) is seen by what follows.
 *   set_flag       *flag = value, after all that the stream has done before
 *   spin           keeps the stream busy for about `ns`
 *   increment      adds 1 to *counter from every thread
 *
 * Times are of rill_clock_ns: on some AMD GPUs up to four times longer than asked for.
 */
#include <rill/device/kernel.h>

RILL_KERNEL(wait_for_flag, const unsigned *flag, unsigned value, unsigned long long limit_ns, unsigned *timed_out) {
  const unsigned long long start = rill_clock_ns();
  while (rill_load_acquire(flag) != value) {
    if (rill_clock_ns() - start >= limit_ns) {
      rill_store_release(timed_out, 1u);
      return;
    }
    rill_pause();
  }
}

RILL_KERNEL(set_flag, unsigned *flag, unsigned value) {
  __threadfence_system();
  rill_store_release(flag, value);
}

RILL_KERNEL(spin, unsigned long long ns) {
  const unsigned long long start = rill_clock_ns();
  while (rill_clock_ns() - start < ns) rill_pause();
}

RILL_KERNEL(increment, unsigned *counter) { atomicAdd(counter, 1u); }

/* Adds what the host says. */
__constant__ unsigned gate_step;

RILL_KERNEL(add_step, unsigned *counter) { atomicAdd(counter, gate_step); }
