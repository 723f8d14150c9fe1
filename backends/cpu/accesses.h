/* Records which bytes a launch reads and writes, for RILL_CHECK=order:precise.  Kernels that check themselves report
 * each access (rill/device/host_check.h), and core compares the accesses after the launch. */
#ifndef RILL_CPU_ACCESSES_H
#define RILL_CPU_ACCESSES_H

#include "core/backend.h"

struct cpu_accesses;

/* Creates the record of a launch.  `token`: identifies the launch.  Returns NULL if host memory ran out. */
struct cpu_accesses *rill__cpu_accesses_new(uint64_t token);

/* Notes that a block accessed `size` bytes at `p`.  `how`: RILL__ACCESSED_*.  Any worker may call it. */
void rill__cpu_accesses_note(struct cpu_accesses *accesses, uintptr_t p, size_t size, uint32_t how);

/* Passes the noted accesses to core and frees them.  Call it after the last access. */
void rill__cpu_accesses_end(struct cpu_accesses *accesses);

#endif
