#include "core/event_pool.h"

#include <stdlib.h>

enum { POOL_MAX = 256, POOLS = 4 };

/* Givers push without a lock, takers pop under one: with a single taker at a time the head it reads cannot go and come
 * back, so its exchange is right. */
struct rill__event_pool {
  pthread_mutex_t lock; /* of takers */
  _Atomic(struct rill__event *) head;
  _Atomic uint32_t count;
};

static struct rill__event_pool *pool_of(struct rill__device *device, bool timing, bool blocking_sync) {
  return &device->spare_events[(timing ? 1 : 0) + (blocking_sync ? 2 : 0)];
}

bool rill__event_pool_init(struct rill__device *device) {
  device->spare_events = calloc(POOLS, sizeof *device->spare_events);
  for (int i = 0; i < POOLS && device->spare_events != NULL; i++) {
    (void)pthread_mutex_init(&device->spare_events[i].lock, NULL);
  }
  return device->spare_events != NULL;
}

void rill__event_pool_lock(struct rill__device *device) {
  for (int i = 0; i < POOLS; i++) pthread_mutex_lock(&device->spare_events[i].lock);
}

void rill__event_pool_unlock(struct rill__device *device) {
  for (int i = POOLS; i-- > 0;) pthread_mutex_unlock(&device->spare_events[i].lock);
}

struct rill__event *rill__event_pool_take(struct rill__device *device, bool timing, bool blocking_sync) {
  struct rill__event_pool *pool = pool_of(device, timing, blocking_sync);
  if (atomic_load_explicit(&pool->head, memory_order_relaxed) == NULL) return NULL;
  pthread_mutex_lock(&pool->lock);
  struct rill__event *event = atomic_load(&pool->head);
  while (event != NULL && !atomic_compare_exchange_weak(&pool->head, &event, event->next_spare)) {
  }
  pthread_mutex_unlock(&pool->lock);
  if (event != NULL) atomic_fetch_sub_explicit(&pool->count, 1, memory_order_relaxed);
  return event;
}

bool rill__event_pool_give(struct rill__object *object) {
  struct rill__event *event = (struct rill__event *)object;
  struct rill__device *device = object->device;
  struct rill__event_pool *pool = pool_of(device, event->timing, event->blocking_sync);
  if (atomic_load(&object->keeps) != 1) return false; /* a call that blocks still uses it */
  if (atomic_load(&event->foreign) || atomic_load(&device->lost) != RILL_OK) return false;
  if ((uint32_t)object->id >= UINT32_MAX - 1) return false; /* its slot's generations are used up */
  if (atomic_load_explicit(&pool->count, memory_order_relaxed) >= POOL_MAX) return false;
  RILL_DOOR(event, event, recycle, event);
  free(object->label);
  object->label = NULL;
  object->borrowed = false;
  event->signaled = false;
  event->cached = false;
  atomic_store_explicit(&event->recorded, false, memory_order_relaxed);
  atomic_store_explicit(&event->watched, false, memory_order_relaxed);
  rill__memo_changed(&event->memo);
  atomic_fetch_add_explicit(&pool->count, 1, memory_order_relaxed);
  event->next_spare = atomic_load(&pool->head);
  while (!atomic_compare_exchange_weak(&pool->head, &event->next_spare, event)) {
  }
  return true;
}
