/* Whether an access of a kernel that checks itself (rillcc --check) is to memory that it may use. */
#ifndef RILL_CPU_CHECK_H
#define RILL_CPU_CHECK_H

#include "backends/cpu/image.h"

struct cpu_bytes {
  uintptr_t begin;
  size_t size;
};

/* What a thread of a block may use beside the memory that core knows. */
struct cpu_reach {
  struct rill__device *device;
  const struct cpu_objects *objects;
  uint64_t frees;   /* of the launch */
  uintptr_t locals; /* where this worker's block of the image's thread-local variables begins */
  uintptr_t shared; /* the worker's dynamic shared memory, and how much of it the block has */
  size_t shared_bytes;
  struct cpu_bytes own[2]; /* the operation with the arguments, the services */
};

/* What is wrong with `size` bytes at `p`, in words that stay until the thread's next call, or NULL; `global` is then
 * whether other launches find the same memory there.  `of`: an address in the variable that the access is to, or 0. */
const char *rill__cpu_find_fault(const struct cpu_reach *reach, uintptr_t p, size_t size, uintptr_t of, bool *global);

#endif
