/* Memory for queued operations and staged data, mapped directly, so that it is returned to the system: malloc would
 * keep it after a peak.
 *
 * Staged bytes are counted.  They are copies of pageable sources that wait in a queue; there are at most
 * CPU_STAGED_MAX.
 */
#ifndef RILL_CPU_PAGES_H
#define RILL_CPU_PAGES_H

#include <stdbool.h>
#include <stddef.h>

enum { CPU_STAGED_MAX = 256 << 20 };

/* Allocate and free pages for `size` > 0 bytes; the first returns NULL if memory ran out.  A few blocks of CPU_PAGES
 * bytes are cached. */
enum { CPU_PAGES = 65536 };
void *rill__cpu_pages_take(size_t size);
void rill__cpu_pages_free(void *pages, size_t size);

/* Returns true if `size` bytes may be staged, and counts them.  Allocates pages if `size` exceeds `inside`, the room
 * that the caller has itself.  rill__cpu_unstage undoes both. */
struct cpu_staged {
  void *pages; /* may be NULL */
  size_t size; /* 0 if nothing is staged */
};
bool rill__cpu_stage(struct cpu_staged *staged, size_t size, size_t inside);
void rill__cpu_unstage(const struct cpu_staged *staged);

/* Resets the state in the child of a fork: nothing is staged, and the cached blocks may be in an inconsistent state. */
void rill__cpu_pages_reset(void);

#endif
