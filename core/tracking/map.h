/* The map of allocations, with the lock for changing it. */
#ifndef RILL_CORE_TRACKING_MAP_H
#define RILL_CORE_TRACKING_MAP_H

#include "core/object/core.h"
#include "core/tracking/ranges.h"

/* Add memory to the map and remove it; the first returns false if host memory ran out. */
bool rill__memory_track(struct rill__allocation *allocation);
void rill__memory_untrack(struct rill__allocation *allocation);

/* Adds an allocation to the map.  Returns false if it overlaps another allocation, which is then stored in
 * `overlapping`, or if memory ran out. */
bool rill__memory_insert(struct rill__allocation *allocation, struct rill__allocation **overlapping);

/* Remove the allocation or registered range that begins at `p` from the map, so that only the caller has it, and
 * restore it. */
rill_status rill__memory_take_out(void *p, bool registered, struct rill__allocation **out);
void rill__memory_put_back(struct rill__allocation *allocation);

/* Adds an import of an address that may have been imported before; imports of one address are linked.  Call it under
 * the lock.  Returns false if there is no host memory. */
bool rill__import_insert(struct rill__allocation *import);

/* Adds a last use to an allocation and takes it over.  Fails if the allocation was freed meanwhile. */
struct rill__last_use;
rill_status rill__memory_note_last_use(struct rill__allocation *allocation, struct rill__last_use *last_use);

/* Implements rill__object.destroy for allocations. */
void rill__allocation_destroy(struct rill__object *object);

/* Take and release the lock, for several steps at once and around a fork. */
void rill__memory_lock(void);
void rill__memory_unlock(void);

/* Fails unless the alignment is a power of two. */
static inline rill_status rill__check_alignment(size_t alignment) {
  RILL_REQUIRE(alignment != 0 && (alignment & (alignment - 1)) == 0, RILL_ERROR_INVALID_ARGUMENT,
               "alignment %zu is not a power of two", alignment);
  return RILL_OK;
}

#endif
