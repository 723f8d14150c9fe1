/* limits.kernel.cu: what tests/tools/limits.c launches. */
#include <rill/device/kernel.h>

/* Sets `here` and waits until the host sets `go`, for at most `limit_ns`. */
RILL_KERNEL(meet, unsigned *here, const unsigned *go, unsigned long long limit_ns) {
  const unsigned long long start = rill_clock_ns();
  rill_store_release(here, 1u);
  while (rill_load_acquire(go) == 0 && rill_clock_ns() - start < limit_ns) rill_pause();
}

RILL_KERNEL(increment_all, int n, float *x) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += 1;
}
