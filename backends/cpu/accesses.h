/* Which bytes a launch reads and writes, for RILL_CHECK=order:precise: kernels that check themselves tell of each
 * access (rill/device/host_check.h), and core compares them when the launch has ended. */
#ifndef RILL_CPU_ACCESSES_H
#define RILL_CPU_ACCESSES_H

#include "core/backend.h"

struct cpu_accesses;

/* `token`: of the launch.  NULL without host memory. */
struct cpu_accesses *rill__cpu_accesses_new(uint64_t token);

/* Notes an access of a block to `size` bytes at `p`; `how`: RILL__ACCESSED_*.  Any worker. */
void rill__cpu_accesses_note(struct cpu_accesses *accesses, uintptr_t p, size_t size, uint32_t how);

/* Gives core what was noted, and frees it.  After the last access. */
void rill__cpu_accesses_end(struct cpu_accesses *accesses);

#endif
