/* graph_orders.kernel.cu: what the graphs of stress/graph_orders launch, with one thread. */
#include <rill/device/kernel.h>

/* Launches with constants set it; others see what is there. */
__constant__ unsigned shared_part;

/* Writes `part` and the constant to the end of a log, whose first word is how many entries it has.  Only one after
 * another do launches leave a right one. */
RILL_KERNEL(append, unsigned *log, unsigned part, unsigned room) {
  const unsigned end = rill_load_acquire(log);
  if (end < room) log[1 + end] = part + shared_part;
  rill_store_release(log, end + 1);
}
