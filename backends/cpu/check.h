/* Checks that a kernel built with `rillcc --check` accesses only memory that it may use. */
#ifndef RILL_CPU_CHECK_H
#define RILL_CPU_CHECK_H

#include "backends/cpu/image.h"

struct cpu_bytes {
  uintptr_t begin;
  size_t size;
};

/* Memory that a thread of a block may use in addition to the memory that core knows. */
struct cpu_accessible {
  struct rill__device *device;
  const struct cpu_objects *objects;
  uint64_t frees;   /* count of frees at the launch */
  uintptr_t locals; /* start of the image's thread-local variables on this worker */
  uintptr_t shared; /* start of the worker's dynamic shared memory; shared_bytes: size of the block's part */
  size_t shared_bytes;
  struct cpu_bytes own[2]; /* the operation with the arguments, and the services */
};

/* Checks an access to `size` bytes at `p`.  Returns a message that is valid until the thread's next call, or NULL if
 * the access is valid; `global` is then set to whether other launches see the same memory at this address.  `of`: an
 * address in the variable that is accessed, or 0. */
const char *rill__cpu_find_fault(const struct cpu_accessible *accessible, uintptr_t p, size_t size, uintptr_t of,
                                 bool *global);

#endif
