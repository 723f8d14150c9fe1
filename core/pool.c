/* Pools: their life.  core/pool_blocks.h cuts memory up, core/pool_lanes.h says who may take it when; pool_alloc.c,
 * pool_free.c and pool_segments.c are the allocator, pool_info.c is what a pool tells.
 *
 * Invariant.  A pool is kept by its handle, and while `used` is not 0; it is destroyed by a later call, when the device
 * has no work, since drivers wait for all work when they take memory back. */
#include "core/pool.h"

#include "core/options.h"
#include "core/pool_lanes.h"

#include <rill/memory.h>
#include <rill/pool.h>
#include <stdlib.h>

/* ---- the pools of a device ---- */

struct rill__pool **rill__pools_keep(struct rill__device *device, size_t *count) {
  size_t most = 1;
  *count = 0;
  pthread_mutex_lock(&device->pools_lock);
  for (const struct rill__pool *pool = device->pools; pool != NULL; pool = pool->next) most++;
  struct rill__pool **pools = malloc(most * sizeof *pools);
  for (struct rill__pool *pool = device->pools; pool != NULL && pools != NULL; pool = pool->next) {
    if (rill__keep_if_kept(&pool->base)) pools[(*count)++] = pool;
  }
  pthread_mutex_unlock(&device->pools_lock);
  return pools;
}

void rill__pools_drop(struct rill__pool **pools, size_t count) {
  for (size_t i = 0; i < count; i++) rill__drop(&pools[i]->base);
  free(pools);
}

void rill__pools_stream_end(struct rill__stream *stream) {
  struct rill__device *device = stream->base.device;
  atomic_store(&stream->pools_closed, true);
  if (!atomic_load(&stream->pooled)) return;
  size_t count = 0;
  struct rill__pool **pools = rill__pools_keep(device, &count);
  for (size_t i = 0; i < count; i++) rill__lane_end(pools[i], stream);
  rill__pools_drop(pools, count);
}

#define FOR_EACH_LOCK(device, pool, lane)                                          \
  for (struct rill__pool *pool = (device)->pools; pool != NULL; pool = pool->next) \
    for (unsigned bucket_ = 0; bucket_ < RILL__LANE_BUCKETS; bucket_++)            \
      for (struct rill__lane *lane = atomic_load(&pool->lanes[bucket_]); lane != NULL; lane = lane->next)

void rill__pools_lock(struct rill__device *device) {
  pthread_mutex_lock(&device->pools_lock);
  for (struct rill__pool *pool = device->pools; pool != NULL; pool = pool->next) pthread_mutex_lock(&pool->lock);
  FOR_EACH_LOCK(device, pool, lane) rill__lane_lock(lane);
}

void rill__pools_unlock(struct rill__device *device) {
  FOR_EACH_LOCK(device, pool, lane) rill__lane_unlock(lane);
  for (struct rill__pool *pool = device->pools; pool != NULL; pool = pool->next) pthread_mutex_unlock(&pool->lock);
  pthread_mutex_unlock(&device->pools_lock);
}

/* ---- life ---- */

static void destroy_pool(struct rill__object *object) {
  struct rill__pool *pool = (struct rill__pool *)object;
  struct rill__device *device = object->device;
  if (atomic_load(&pool->reserved) != 0) {
    if (rill__device_is_idle(device)) (void)rill__pool_give_back(pool, 0);
    if (atomic_load(&pool->reserved) != 0) {
      rill__object_postpone(object);
      return;
    }
  }
  pthread_mutex_lock(&device->pools_lock);
  *pool->link = pool->next;
  if (pool->next != NULL) pool->next->link = pool->link;
  pthread_mutex_unlock(&device->pools_lock);
  rill__lanes_free(pool);
  (void)pthread_mutex_destroy(&pool->lock);
  rill__object_free(object);
}

static void list_pool(struct rill__pool *pool) {
  struct rill__device *device = pool->base.device;
  pthread_mutex_lock(&device->pools_lock);
  pool->next = device->pools;
  pool->link = &device->pools;
  if (pool->next != NULL) pool->next->link = &pool->next;
  device->pools = pool;
  pthread_mutex_unlock(&device->pools_lock);
}

/* Of the kind asked for, 0 for device memory, if the device has it. */
static rill_status choose_kind(struct rill__device *device, uint32_t asked, uint32_t *out) {
  const char *why = "";
  *out = asked == RILL_MEMORY_UNKNOWN ? (uint32_t)RILL_MEMORY_DEVICE : asked;
  RILL_REQUIRE(*out <= RILL_MEMORY_MANAGED, RILL_ERROR_INVALID_ARGUMENT,
               "kind %u is none of RILL_MEMORY_DEVICE, _PINNED and _MANAGED, nor 0", asked);
  RILL_REQUIRE(*out != RILL_MEMORY_MANAGED || RILL_DOOR(device, device, supports, device, RILL_FEATURE_MANAGED, &why),
               RILL_ERROR_UNSUPPORTED, "kind RILL_MEMORY_MANAGED on %s: %s", device->name, why);
  return RILL_OK;
}

static rill_status create_pool(struct rill__device *device, const rill_pool_options *options, struct rill__pool **out) {
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
  atomic_init(&pool->threshold, o.release_threshold);
  atomic_init(&pool->marks_frees, o.max_size != 0);
  list_pool(pool);
  const rill_status status = rill__object_publish(&pool->base, RILL__POOL);
  if (status != RILL_OK) {
    rill__drop(&pool->base);
    return status;
  }
  if (o.release_threshold != 0) atomic_store(&device->pool_thresholds, true);
  *out = pool;
  return RILL_OK;
}

rill_status rill__pool_default(struct rill__device *device, struct rill__pool **out) {
  *out = atomic_load_explicit(&device->default_pool, memory_order_acquire);
  if (RILL__LIKELY(*out != NULL)) return RILL_OK;
  struct rill__pool *pool = NULL, *none = NULL;
  RILL_TRY(create_pool(device, NULL, &pool));
  pool->base.borrowed = true; /* nobody has the handle yet */
  if (atomic_compare_exchange_strong(&device->default_pool, &none, pool)) {
    *out = pool;
  } else { /* another thread was first */
    rill__object_retire(&pool->base);
    *out = none;
  }
  return RILL_OK;
}

rill_status rill_pool_create(rill_device device, const rill_pool_options *options, rill_pool *out) {
  rill__reclaim();
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_POOL;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  struct rill__pool *pool = NULL;
  RILL_TRY(create_pool(d, options, &pool));
  out->id = pool->base.id;
  return RILL_OK;
}

rill_status rill_pool_default(rill_device device, rill_pool *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_POOL;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  RILL_TRY(rill__check_usable(d));
  struct rill__pool *pool = NULL;
  RILL_TRY(rill__pool_default(d, &pool));
  out->id = pool->base.id;
  return RILL_OK;
}

rill_status rill_pool_retain(rill_pool pool) {
  RILL_ENTER();
  return rill__object_retain(pool.id, RILL__POOL);
}

rill_status rill_pool_release(rill_pool pool) {
  RILL_ENTER();
  struct rill__object *last = NULL;
  const rill_status status = rill__object_release(pool.id, RILL__POOL, &last);
  if (last != NULL) rill__object_retire(last);
  rill__leave(&self);
  rill__reclaim();
  return status;
}

rill_status rill_pool_trim(rill_pool pool, uint64_t keep) {
  rill__reclaim();
  RILL_ENTER_TO_BLOCK();
  struct rill__pool *p;
  RILL_RESOLVE(RILL__POOL, pool, "pool", &p);
  RILL_TRY(rill__check_usable(p->base.device));
  rill__keep_and_leave(self, &p->base);
  const rill_status status = rill__pool_give_back(p, keep);
  rill__drop(&p->base);
  return status;
}
