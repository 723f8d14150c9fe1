/* For callers.c: adds n to each value. */
#include <rill/device/kernel.h>

RILL_KERNEL(one, int n, uint32_t *values) { values[threadIdx.x] += (uint32_t)n; }
