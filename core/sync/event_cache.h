/* Events that were released and can be used again: a native event costs a driver call, one of these a few stores. */
#ifndef RILL_CORE_SYNC_EVENT_CACHE_H
#define RILL_CORE_SYNC_EVENT_CACHE_H

#include "core/object/core.h"

/* A spare event of these options, unpublished and as just created, or NULL. */
struct rill__event *rill__event_cache_take(struct rill__device *device, bool timing, bool blocking_sync);

/* rill__object.recycle of events: takes a retired event that no call can be using; false if it must be destroyed. */
bool rill__event_cache_put(struct rill__object *object);

/* What fork must not happen in the middle of. */
void rill__event_cache_lock(struct rill__device *device);
void rill__event_cache_unlock(struct rill__device *device);

#endif
