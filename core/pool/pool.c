/* Creation and destruction of pools. core/pool/blocks.h splits memory, core/pool/cache.h decides which stream may take
 * memory, and when; alloc.c, free.c and segments.c are the allocator, core/pool.c has the public functions.
 *
 * Invariant: a pool whose handle was released is destroyed by a later call, once nothing is allocated from it.  A
 * thread that has an allocation of the pool, or has found one of its segments in this epoch, may use the pool. */
#include "core/pool/pool.h"

#include "core/device/life.h"
#include "core/object/options.h"
#include "core/pool/cache.h"
#include "core/stream/stream.h"
#include "core/sync/streams.h"
#include "core/tracking/deferred_free.h"
#include "core/tracking/guards.h"

#include <rill/memory.h>
#include <rill/pool.h>
#include <stdlib.h>

/* ---- the pools of a device ---- */

struct rill__pool **rill__pools_ref(struct rill__device *device, size_t *count) {
  size_t most = 1;
  *count = 0;
  pthread_mutex_lock(&rill__core(device)->pools_lock);
  for (const struct rill__pool *pool = rill__core(device)->pools; pool != NULL; pool = pool->next) most++;
  struct rill__pool **pools = malloc(most * sizeof *pools);
  for (struct rill__pool *pool = rill__core(device)->pools; pool != NULL && pools != NULL; pool = pool->next) {
    if (rill__ref_if_alive(&pool->base)) pools[(*count)++] = pool;
  }
  pthread_mutex_unlock(&rill__core(device)->pools_lock);
  return pools;
}

void rill__pools_unref(struct rill__pool **pools, size_t count) {
  for (size_t i = 0; i < count; i++) rill__unref(&pools[i]->base);
  free(pools);
}

/* Returns the pool after `pool` in the list, or the first pool if `pool` is NULL.  All calls are made in one epoch: a
 * pool that has left the list meanwhile still exists, and its `next` leads back to the list. */
static struct rill__pool *next_pool(struct rill__device *device, const struct rill__pool *pool) {
  pthread_mutex_lock(&rill__core(device)->pools_lock);
  struct rill__pool *const next = pool == NULL ? rill__core(device)->pools : pool->next;
  pthread_mutex_unlock(&rill__core(device)->pools_lock);
  return next;
}

/* Ends the stream's caches in all pools of its device.  Call it inside an epoch. */
static void end_caches(struct rill__stream *stream) {
  struct rill__pool *pool = NULL;
  while (atomic_load(&rill__core(stream)->caches) != 0 && (pool = next_pool(stream->base.device, pool)) != NULL) {
    rill__pool_cache_end(pool, stream);
  }
}

void rill__pools_lock(struct rill__device *device) {
  pthread_mutex_lock(&rill__core(device)->pools_lock);
  for (struct rill__pool *pool = rill__core(device)->pools; pool != NULL; pool = pool->next) rill__pool_lock(pool);
}

void rill__pools_unlock(struct rill__device *device) {
  for (struct rill__pool *pool = rill__core(device)->pools; pool != NULL; pool = pool->next) rill__pool_unlock(pool);
  pthread_mutex_unlock(&rill__core(device)->pools_lock);
}

/* ---- life ---- */

static void free_pool(struct rill__object *object) {
  struct rill__pool *pool = (struct rill__pool *)object;
  rill__pool_caches_free(pool);
  rill__uses_free(&pool->uses);
  rill__spares_free(&pool->spares);
  (void)pthread_mutex_destroy(&pool->lock);
  rill__object_free(object);
}

/* Returns true if no memory of the pool is in use.  Unused memory is then released, but only when the device has no
 * work, since drivers wait for all work when they free memory. */
static bool release_all(struct rill__pool *pool) {
  rill__pool_lock(pool);
  const bool used = pool->used != 0;
  rill__pool_unlock(pool);
  if (used || atomic_load(&pool->reserved) == 0 || !rill__device_is_idle(pool->base.device)) return !used;
  rill__deferred_frees_end_idle(pool->base.device);
  if (rill__is_guarded(pool->base.device))
    (void)rill__guards_flush(pool->base.device, &pool->base, RILL__WAITS_FOR_NOTHING);
  rill__pool_lock(pool);
  rill__pool_drain(pool);
  rill__pool_unlock(pool);
  (void)rill__pool_shrink(pool, 0);
  return true;
}

static void destroy_pool(struct rill__object *object) {
  struct rill__pool *pool = (struct rill__pool *)object;
  struct rill__device *device = object->device;
  if (!release_all(pool) || atomic_load(&pool->reserved) != 0) {
    rill__object_postpone(object);
    return;
  }
  pthread_mutex_lock(&rill__core(device)->pools_lock);
  *pool->link = pool->next;
  if (pool->next != NULL) pool->next->link = pool->link;
  pthread_mutex_unlock(&rill__core(device)->pools_lock);
  /* Freed only when current epochs have ended: a call that has found one of the pool's segments may still use the pool,
   * to see that nothing is allocated there. */
  object->destroy = free_pool;
  atomic_store(&object->refs, 1);
  rill__object_defer(object);
}

static void list_pool(struct rill__pool *pool) {
  struct rill__device *device = pool->base.device;
  pthread_mutex_lock(&rill__core(device)->pools_lock);
  pool->next = rill__core(device)->pools;
  pool->link = &rill__core(device)->pools;
  if (pool->next != NULL) pool->next->link = &pool->next;
  rill__core(device)->pools = pool;
  pthread_mutex_unlock(&rill__core(device)->pools_lock);
}

/* Returns the requested kind, or device memory for 0, if the device supports it. */
static rill_status choose_kind(struct rill__device *device, uint32_t requested, uint32_t *out) {
  const char *why = "";
  *out = requested == RILL_MEMORY_UNKNOWN ? (uint32_t)RILL_MEMORY_DEVICE : requested;
  RILL_REQUIRE(*out <= RILL_MEMORY_MANAGED, RILL_ERROR_INVALID_ARGUMENT,
               "kind is %u, but must be RILL_MEMORY_DEVICE, _PINNED, _MANAGED or 0", requested);
  RILL_REQUIRE(*out != RILL_MEMORY_MANAGED || RILL_ASK(device, device, supports, device, RILL_FEATURE_MANAGED, &why),
               RILL_ERROR_UNSUPPORTED, "kind RILL_MEMORY_MANAGED on %s: %s", device->name, why);
  return RILL_OK;
}

enum { LEAST_SEGMENT = 2 << 20, LEAST_STAGING_SEGMENT = 64 << 10 };

rill_status rill__pool_create(struct rill__device *device, const rill_pool_options *options, struct rill__pool **out) {
  rill_pool_options o = RILL_POOL_OPTIONS_INIT;
  RILL_TRY(rill__options_read(&o, sizeof o, options, "rill_pool_options"));
  uint32_t kind = 0;
  RILL_TRY(rill__device_activate(device));
  RILL_TRY(choose_kind(device, o.kind, &kind));
  struct rill__pool *pool = NULL;
  RILL_TRY(rill__object_new(sizeof *pool, device, o.label, destroy_pool, &pool));
  (void)pthread_mutex_init(&pool->lock, NULL);
  pool->max_size = o.max_size;
  pool->kind = kind;
  pool->least_segment = LEAST_SEGMENT;
  pool->complete.spares = &pool->spares;
  pool->last_waiting = &pool->waiting;
  atomic_init(&pool->threshold, o.release_threshold);
  atomic_init(&pool->batches_frees, o.max_size != 0);
  atomic_store(&rill__stream_end_caches, end_caches);
  list_pool(pool);
  const rill_status status = rill__object_publish(&pool->base, RILL__POOL);
  if (status != RILL_OK) {
    rill__unref(&pool->base);
    return status;
  }
  if (o.release_threshold != 0) atomic_store(&rill__core(device)->pool_thresholds, true);
  *out = pool;
  return RILL_OK;
}

/* Returns a pool that the device owns, and creates it at the first use. */
static rill_status make_once(struct rill__device *device, _Atomic(struct rill__pool *) *place, uint32_t kind,
                             size_t least_segment, struct rill__pool **out) {
  *out = atomic_load_explicit(place, memory_order_acquire);
  if (RILL__LIKELY(*out != NULL)) return RILL_OK;
  struct rill__pool *pool = NULL, *none = NULL;
  RILL_TRY(rill__pool_create(device, RILL_POOL_OPTIONS(.kind = kind), &pool));
  pool->base.borrowed = true; /* no user has the handle yet */
  pool->least_segment = least_segment;
  if (atomic_compare_exchange_strong(place, &none, pool)) {
    *out = pool;
  } else { /* another thread has created the pool first */
    rill__object_retire(&pool->base);
    *out = none;
  }
  return RILL_OK;
}

rill_status rill__pool_default(struct rill__device *device, struct rill__pool **out) {
  return make_once(device, &rill__core(device)->default_pool, RILL_MEMORY_DEVICE, LEAST_SEGMENT, out);
}

rill_status rill__pool_of_staging(struct rill__device *device, struct rill__pool **out) {
  return make_once(device, &rill__core(device)->staging_pool, RILL_MEMORY_PINNED, LEAST_STAGING_SEGMENT, out);
}
