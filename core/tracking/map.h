/* The map of allocations with the lock of those who change it. */
#ifndef RILL_CORE_TRACKING_MAP_H
#define RILL_CORE_TRACKING_MAP_H

#include "core/object/core.h"
#include "core/tracking/ranges.h"

/* Puts memory into the map, and takes it out; false if host memory ran out. */
bool rill__memory_know(struct rill__allocation *allocation);
void rill__memory_forget(struct rill__allocation *allocation);

/* Puts an allocation into the map, unless it overlaps another one, which it then gives, or memory ran out. */
bool rill__memory_insert(struct rill__allocation *allocation, struct rill__allocation **overlapping);

/* Takes the allocation, or the registered range, that begins at `p` out of the map: from then on it is the caller's
 * alone.  put_back: it is as it was. */
rill_status rill__memory_take_out(void *p, bool registered, struct rill__allocation **out);
void rill__memory_put_back(struct rill__allocation *allocation);

/* Puts one of the imports of an address in, which are linked there.  Under the lock; false if there is no host memory
 * for that. */
bool rill__import_put_in(struct rill__allocation *import);

/* Adds a last use to an allocation, which must not have been freed meanwhile, and owns it from then on. */
struct rill__last_use;
rill_status rill__memory_note_last_use(struct rill__allocation *allocation, struct rill__last_use *last_use);

/* rill__object.destroy of an allocation. */
void rill__allocation_destroy(struct rill__object *object);

/* The lock, for several steps in one, and for fork. */
void rill__memory_lock(void);
void rill__memory_unlock(void);

/* Fails unless it is a power of two. */
static inline rill_status rill__check_alignment(size_t alignment) {
  RILL_REQUIRE(alignment != 0 && (alignment & (alignment - 1)) == 0, RILL_ERROR_INVALID_ARGUMENT,
               "alignment %zu is not a power of two", alignment);
  return RILL_OK;
}

#endif
