/* gate.kernel.cu: kernels that block a stream until a flag is set, for tests and examples of ordering.
 *
 * The flag must be in memory that host and device can both access while the kernel runs: pinned host memory. Launch
 * wait_for_flag, set_flag and spin with one thread.
 *
 *   wait_for_flag  waits until *flag == value; if limit_ns pass first, writes 1 to *timed_out and returns. If the flag
 *                  was set by a release store, work after this kernel sees all writes before that store.
 *   set_flag       sets *flag to value, after all earlier work of the stream
 *   spin           keeps the stream busy for about `ns` nanoseconds
 *   increment      adds 1 to *counter from every thread
 *   add_step       adds gate_step to *counter from every thread
 *
 * Times are measured with rill_clock_ns. On some AMD GPUs they are up to four times longer than requested.
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

/* Set by the host. */
__constant__ unsigned gate_step;

RILL_KERNEL(add_step, unsigned *counter) { atomicAdd(counter, gate_step); }
