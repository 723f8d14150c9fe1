#include "core/tracking/map.h"

#include "core/tracking/frees.h"
#include "core/tracking/last_use.h"
#include "core/tracking/ranges.h"

static pthread_mutex_t ranges_lock = PTHREAD_MUTEX_INITIALIZER; /* taken to change the map */

void rill__memory_lock(void) { pthread_mutex_lock(&ranges_lock); }
void rill__memory_unlock(void) { pthread_mutex_unlock(&ranges_lock); }

bool rill__memory_track(struct rill__allocation *allocation) {
  pthread_mutex_lock(&ranges_lock);
  const bool inserted = rill__ranges_insert(allocation);
  pthread_mutex_unlock(&ranges_lock);
  return inserted;
}

void rill__memory_untrack(struct rill__allocation *allocation) {
  pthread_mutex_lock(&ranges_lock);
  rill__ranges_remove(allocation);
  pthread_mutex_unlock(&ranges_lock);
}

void rill__allocation_destroy(struct rill__object *object) {
  rill__last_uses_clear(&((struct rill__allocation *)object)->last_uses);
  rill__object_free(object);
}

/* ---- several imports of one address ---- */

/* Removes the import that returned `p`, or returns NULL if there is none.  Call it under the lock. */
static struct rill__allocation *take_out_import(struct rill__allocation *first, const void *p) {
  struct rill__allocation **at = &first;
  while (*at != NULL && (*at)->pointer != (uintptr_t)p) at = &(*at)->same;
  struct rill__allocation *import = *at;
  if (import == NULL) return NULL;
  if (at != &first) {
    *at = import->same;
  } else if (import->same != NULL) {
    rill__ranges_replace(import, import->same);
  } else {
    rill__ranges_remove(import);
  }
  import->same = NULL;
  return import;
}

bool rill__import_insert(struct rill__allocation *import) {
  struct rill__allocation *first = rill__ranges_find((void *)import->begin);
  if (first == NULL) return rill__ranges_insert(import);
  import->same = first->same;
  first->same = import;
  return true;
}

/* ---- removing and restoring ---- */

/* Removes the allocation that begins at `p`, the import that returned `p`, or the registered range from the map.
 * Registered memory is not an allocation, and an allocation is not registered memory. */
rill_status rill__memory_take_out(void *p, bool registered, struct rill__allocation **out) {
  pthread_mutex_lock(&ranges_lock);
  struct rill__allocation *found = rill__ranges_find(p);
  const bool right = found != NULL && !found->variable && (found->kind == RILL_MEMORY_REGISTERED) == registered;
  const size_t offset = right ? (uintptr_t)p - found->begin : 0;
  *out = NULL;
  if (right && found->imported) {
    *out = take_out_import(found, p);
  } else if (right && offset == 0) {
    rill__ranges_remove(found);
    *out = found;
  }
  if (*out != NULL && RILL__UNLIKELY(rill__is_checked(found->base.device))) rill__frees_note(found->begin, found->size);
  pthread_mutex_unlock(&ranges_lock);
  if (*out != NULL) return RILL_OK;
  RILL_REQUIRE(found == NULL || !found->variable, RILL_ERROR_NOT_FOUND,
               "%p is not a rill allocation, but a variable of a module" RILL_HINT "it is freed with its module", p);
  if (registered) {
    RILL_REQUIRE(found == NULL || right, RILL_ERROR_NOT_FOUND,
                 "%p is not registered memory, but a rill allocation" RILL_HINT "free it with rill_free", p);
    RILL_REQUIRE(right, RILL_ERROR_NOT_FOUND, "%p is not registered, or has been unregistered", p);
    return rill__fail(RILL_ERROR_INVALID_ARGUMENT,
                      "%p lies inside a registered range, %zu bytes after its start" RILL_HINT "pass its first address",
                      p, offset);
  }
  RILL_REQUIRE(found == NULL || right, RILL_ERROR_NOT_FOUND,
               "%p is not a rill allocation, but registered memory" RILL_HINT "unregister it with rill_host_unregister",
               p);
  RILL_REQUIRE(right, RILL_ERROR_NOT_FOUND, "%p is not a rill allocation, or has been freed", p);
  return rill__fail(RILL_ERROR_INVALID_ARGUMENT,
                    "%p lies inside an allocation, %zu bytes after its start" RILL_HINT
                    "pass the address that rill_alloc or rill_memory_ipc_import returned",
                    p, offset);
}

void rill__memory_put_back(struct rill__allocation *allocation) {
  atomic_store(&allocation->holders, 0);
  pthread_mutex_lock(&ranges_lock);
  const bool inserted = allocation->imported ? rill__import_insert(allocation) : rill__ranges_insert(allocation);
  pthread_mutex_unlock(&ranges_lock);
  if (!inserted) rill__object_defer(&allocation->base); /* no memory for a node: rill no longer knows the allocation */
}

bool rill__memory_insert(struct rill__allocation *allocation, struct rill__allocation **overlapping) {
  pthread_mutex_lock(&ranges_lock);
  *overlapping = rill__ranges_overlapping(allocation->begin, allocation->size);
  const bool inserted = *overlapping == NULL && rill__ranges_insert(allocation);
  pthread_mutex_unlock(&ranges_lock);
  return inserted;
}

/* rill_free removes the allocation from the map first and reads its last uses afterwards, so a last use that is noted
 * while the allocation is in the map is not missed. */
rill_status rill__memory_note_last_use(struct rill__allocation *allocation, struct rill__last_use *last_use) {
  struct rill__last_use *dead = NULL;
  rill__memory_lock();
  const bool still = rill__ranges_find((void *)allocation->begin) == allocation;
  const bool noted = still && rill__last_use_note(&allocation->last_uses, last_use, &dead);
  rill__memory_unlock();
  rill__last_uses_free(noted ? dead : last_use);
  RILL_REQUIRE(still, RILL_ERROR_NOT_FOUND, "%p was freed during the call", (void *)allocation->begin);
  RILL_REQUIRE(noted, RILL_ERROR_OUT_OF_MEMORY, "no host memory to record a use of memory");
  return RILL_OK;
}
