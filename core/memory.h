/* Memory that calls go on with, or that goes when the host waits. */
#ifndef RILL_CORE_MEMORY_H
#define RILL_CORE_MEMORY_H

#include "core/backend.h"
#include "core/memory/deferred_free.h"
#include "core/memory/ranges.h"
#include "core/pool/pool.h"

/* For a call that goes on with an allocation outside its epoch: the memory stays until rill__memory_let_go, whoever
 * frees it meanwhile.  hold: false if it is being freed.  let_go: true if it was freed meanwhile, and is gone if nobody
 * else holds it. */
bool rill__memory_hold(struct rill__allocation *allocation);
bool rill__memory_let_go(struct rill__allocation *allocation);

/* Whether memory goes back when the host synchronizes, for want of something else in use or because its free is
 * deferred; and that, after it has, outside epochs. */
static inline bool rill__memory_awaits_host(const struct rill__device *device) {
  return atomic_load_explicit(&device->pool_thresholds, memory_order_relaxed) || rill__frees_are_deferred(device);
}
static inline void rill__memory_synchronized(struct rill__device *device) {
  rill__deferred_frees_end_idle(device);
  rill__pools_synchronized(device);
}

#endif
