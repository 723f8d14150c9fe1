/* Released events that can be recycled: creating a native event costs a driver call, recycling one costs a few
 * stores. */
#ifndef RILL_CORE_SYNC_EVENT_CACHE_H
#define RILL_CORE_SYNC_EVENT_CACHE_H

#include "core/object/core.h"

/* Returns a spare event with these options, unpublished and in the state of a new event, or NULL. */
struct rill__event *rill__event_cache_take(struct rill__device *device, bool timing, bool blocking_sync);

/* Implements rill__object.recycle for events: takes a retired event that no call can be using; returns false if the
 * event must be destroyed. */
bool rill__event_cache_put(struct rill__object *object);

/* Lock and unlock the caches, around a fork. */
void rill__event_cache_lock(struct rill__device *device);
void rill__event_cache_unlock(struct rill__device *device);

#endif
