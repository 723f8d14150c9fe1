/* The map from addresses to allocations: asked on every copy and fill, without a lock and without the driver.
 *
 * A tree over 48 bits of address in grains of 256 bytes: four levels of 1024 entries.  An entry is empty, a lower
 * node, or an allocation that covers the entry's whole span (of the lowest level: that begins at or covers it), so
 * that large allocations take few entries.  Nodes are never freed.  Readers are inside an epoch; writers hold a
 * lock of their own; an allocation that was taken out is freed with rill__object_defer. */
#ifndef RILL_CORE_RANGES_H
#define RILL_CORE_RANGES_H

#include "core/handle.h"

struct rill__allocation {
  struct rill__object base; /* never published: no id */
  uintptr_t begin;          /* a multiple of 256 */
  size_t size;
  uint32_t kind; /* RILL_MEMORY_* */
  bool pooled;   /* it is a segment of a pool: core/pool_blocks.h knows what of it is allocated */
};

/* The allocation that `p` lies in, or NULL.  Only inside an epoch. */
struct rill__allocation *rill__ranges_find(const void *p);

/* Both under the writers' lock.  `insert` returns false if memory ran out, and has then changed nothing. */
bool rill__ranges_insert(struct rill__allocation *allocation);
void rill__ranges_remove(struct rill__allocation *allocation);

#endif
