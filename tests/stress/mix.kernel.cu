/* mix.kernel.cu: what the random programs of stress/mix launch; with one thread, but for mix_write. */
#include <rill/device/kernel.h>

/* Gives every word the value. */
RILL_KERNEL(mix_write, unsigned *words, unsigned value) { words[threadIdx.x] = value; }

/* Counts itself when it starts and when it ends.  The counters are one stream's, whose kernels take turns. */
RILL_KERNEL(mix_pass, unsigned *started, unsigned *ended, unsigned long long ns) {
  const unsigned long long start = rill_clock_ns();
  rill_store_release(started, rill_load_acquire(started) + 1);
  while (rill_clock_ns() - start < ns) rill_pause();
  rill_store_release(ended, rill_load_acquire(ended) + 1);
}

/* Every launch sets it to 1. */
__constant__ unsigned mix_step;

RILL_KERNEL(mix_add, unsigned *counter) { rill_store_release(counter, rill_load_acquire(counter) + mix_step); }

/* The kernel of a graph, whose launches take turns. */
RILL_KERNEL(mix_run, unsigned *ran, unsigned long long ns, unsigned anything) {
  const unsigned long long start = rill_clock_ns();
  const unsigned before = *ran;
  while (rill_clock_ns() - start < ns) rill_pause();
  *ran = before + 1 + 0 * anything;
}
