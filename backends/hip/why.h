/* Explains why HIP finds no devices, or fewer than exist, from the kernel driver's list and from what this process may
 * open. */
#ifndef RILL_BACKENDS_HIP_WHY_H
#define RILL_BACKENDS_HIP_WHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Appends the first reason found to `why`, and then lines with everything that was checked.  Appends nothing if the
 * kernel lists no more GPUs than the runtime `counted`, unless that is 0, or if there is neither a runtime nor a GPU.
 * `root`: prefix of /dev and /sys; "" except in tests. */
void rill__hip_explain(const char *root, bool has_runtime, uint32_t counted, char *why, size_t size);

#pragma GCC visibility pop

#endif
