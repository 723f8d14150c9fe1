/* Why HIP counts no device, or fewer than there are: what the kernel's driver lists, and what this process may open. */
#ifndef RILL_BACKENDS_HIP_WHY_H
#define RILL_BACKENDS_HIP_WHY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(hidden)

/* Adds to `why` the first reason that is found, and then lines with all that was looked at.  Adds nothing if the kernel
 * lists no more GPUs than the runtime `counted`, unless that is 0, or if there is neither a runtime nor a GPU.  `root`
 * stands before /dev and /sys: "" outside tests. */
void rill__hip_explain(const char *root, bool has_runtime, uint32_t counted, char *why, size_t size);

#pragma GCC visibility pop

#endif
