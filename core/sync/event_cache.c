#include "core/sync/event_cache.h"

#include "core/sync/events.h"

#include <stdlib.h>

enum { POOL_MAX = 256 };

static struct rill__event_cache *pool_of(struct rill__device *device, bool timing, bool blocking_sync) {
  return &rill__core(device)->spare_events[(timing ? 1 : 0) + (blocking_sync ? 2 : 0)];
}

void rill__event_cache_lock(struct rill__device *device) {
  for (int i = 0; i < RILL__EVENT_CACHES; i++) pthread_mutex_lock(&rill__core(device)->spare_events[i].lock);
}

void rill__event_cache_unlock(struct rill__device *device) {
  for (int i = RILL__EVENT_CACHES; i-- > 0;) pthread_mutex_unlock(&rill__core(device)->spare_events[i].lock);
}

/* Changes the list under the lock, so a load and a store of the count are enough. */
static void set_head(struct rill__event_cache *pool, struct rill__event *head, int more) {
  const uint32_t count = atomic_load_explicit(&pool->count, memory_order_relaxed);
  atomic_store_explicit(&pool->count, count + (uint32_t)more, memory_order_relaxed);
  pool->head = head;
}

struct rill__event *rill__event_cache_take(struct rill__device *device, bool timing, bool blocking_sync) {
  struct rill__event_cache *pool = pool_of(device, timing, blocking_sync);
  pthread_mutex_lock(&pool->lock);
  struct rill__event *event = pool->head;
  if (event != NULL) set_head(pool, rill__core(event)->next_spare, -1);
  pthread_mutex_unlock(&pool->lock);
  return event;
}

bool rill__event_cache_put(struct rill__object *object) {
  struct rill__event *event = (struct rill__event *)object;
  struct rill__device *device = object->device;
  struct rill__event_cache *pool = pool_of(device, event->timing, event->blocking_sync);
  if (atomic_load(&object->refs) != 1) return false; /* a call that blocks still uses it */
  if (atomic_load(&event->foreign) || atomic_load(&device->lost) != RILL_OK) return false;
  if ((uint32_t)object->id >= UINT32_MAX - 1) return false; /* all generations of its slot are used up */
  if (atomic_load_explicit(&pool->count, memory_order_relaxed) >= POOL_MAX) return false;
  RILL_ASK(event, event, recycle, event);
  free(object->label);
  object->label = NULL;
  object->borrowed = false;
  event->signaled = false;
  rill__core(event)->cached = false;
  rill__core(event)->given = false;
  rill__event_reset(event);
  rill__completion_forget(&rill__core(event)->work);
  pthread_mutex_lock(&pool->lock);
  rill__core(event)->next_spare = pool->head;
  set_head(pool, event, 1);
  pthread_mutex_unlock(&pool->lock);
  return true;
}
