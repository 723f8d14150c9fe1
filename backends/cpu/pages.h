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
void *cpu_pages_take(size_t size);
void cpu_pages_give(void *pages, size_t size);

/* Whether `size` more bytes may be staged; and their end. */
bool cpu_staged_add(size_t size);
void cpu_staged_remove(size_t size);

/* In the child of a fork: nothing is on its way, and what was kept may have been half taken. */
void cpu_pages_reset(void);

#endif
