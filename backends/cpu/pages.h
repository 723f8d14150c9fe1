/* Memory for what is on its way, straight from the system, so that it goes back there: what malloc keeps after a peak,
 * a program never sees again.
 *
 * Staged bytes, copies of pageable sources that wait for their turn, are counted: there are at most CPU_STAGED_MOST.
 */
#ifndef RILL_CPU_PAGES_H
#define RILL_CPU_PAGES_H

#include <stdbool.h>
#include <stddef.h>

enum { CPU_STAGED_MOST = 256 << 20 };

/* Pages for `size` > 0 bytes, NULL when memory ran out; and their end.  A few of CPU_PAGES bytes are kept. */
enum { CPU_PAGES = 65536 };
void *rill__cpu_pages_take(size_t size);
void rill__cpu_pages_free(void *pages, size_t size);

/* Whether `size` bytes may be staged: then they are counted, and there are pages for them if they are more than
 * `inside`, which the caller has room for.  And their end. */
struct cpu_staged {
  void *pages; /* or NULL */
  size_t size; /* 0: nothing is staged */
};
bool rill__cpu_stage(struct cpu_staged *staged, size_t size, size_t inside);
void rill__cpu_unstage(const struct cpu_staged *staged);

/* In the child of a fork: nothing is on its way, and what was kept may have been half taken. */
void rill__cpu_pages_reset(void);

#endif
