/* What a pool tells, and the pool of a pointer. */
#include "core/memory/ranges.h"
#include "core/object/options.h"
#include "core/pool/cache.h"
#include "core/pool/pool.h"

#include <rill/pool.h>

rill_status rill_pool_get_info(rill_pool pool, rill_pool_info *info) {
  RILL_ENTER();
  rill_pool_info now = RILL_POOL_INFO_INIT;
  if (info != NULL && info->struct_size >= sizeof(size_t)) rill__options_write(info, &now, sizeof now);
  struct rill__pool *p;
  RILL_RESOLVE(RILL__POOL, pool, "pool", &p);
  RILL_TRY(rill__options_check_output(info, "info"));
  rill__pool_lock(p);
  now.used = p->used;
  now.reserved = atomic_load(&p->reserved);
  now.used_peak = p->used_peak;
  now.reserved_peak = p->reserved_peak;
  rill__pool_unlock(p);
  rill__options_write(info, &now, sizeof now);
  return RILL_OK;
}

#define RILL_ENTER_POOL()                     \
  RILL_ENTER();                               \
  if (out != NULL) *out = 0;                  \
  struct rill__pool *p;                       \
  RILL_RESOLVE(RILL__POOL, pool, "pool", &p); \
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL")

rill_status rill_pool_max_size(rill_pool pool, uint64_t *out) {
  RILL_ENTER_POOL();
  *out = p->max_size;
  return RILL_OK;
}

rill_status rill_pool_release_threshold(rill_pool pool, uint64_t *out) {
  RILL_ENTER_POOL();
  *out = atomic_load(&p->threshold);
  return RILL_OK;
}

rill_status rill_pool_kind(rill_pool pool, uint32_t *out) {
  RILL_ENTER_POOL();
  *out = p->kind;
  return RILL_OK;
}

rill_status rill_pool_set_release_threshold(rill_pool pool, uint64_t bytes) {
  RILL_ENTER();
  struct rill__pool *p;
  RILL_RESOLVE(RILL__POOL, pool, "pool", &p);
  atomic_store(&p->threshold, bytes);
  if (bytes != 0) atomic_store(&p->base.device->pool_thresholds, true);
  return RILL_OK;
}

rill_status rill_memory_pool(const void *p, rill_pool *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_POOL;
  RILL_REQUIRE(p != NULL && out != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL", p == NULL ? "p" : "out");
  const struct rill__allocation *allocation = rill__ranges_find(p);
  uintptr_t begins = 0;
  size_t size = 0;
  RILL_REQUIRE(allocation != NULL && (!allocation->pooled || rill__pool_find(allocation, p, &begins, &size)),
               RILL_ERROR_NOT_FOUND, "%p is no allocation of rill, or has been freed", p);
  if (!allocation->pooled) return RILL_OK;
  out->id = ((const struct rill__segment *)allocation)->pool->base.id;
  return RILL_OK;
}
