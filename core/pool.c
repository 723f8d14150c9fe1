#include "core/pool/pool.h"

#include "core/device/life.h"
#include "core/held/held.h"
#include "core/memory/memory.h"
#include "core/object/options.h"
#include "core/object/origin.h"
#include "core/pool/cache.h"
#include "core/pool/check.h"
#include "core/tracking/deferred_free.h"
#include "core/tracking/last_use.h"
#include "core/tracking/map.h"

#include <rill/pool.h>

/* ---- life ---- */

rill_status rill_pool_create(rill_device device, const rill_pool_options *options, rill_pool *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_POOL;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  struct rill__pool *pool = NULL;
  RILL_TRY(rill__pool_create(d, options, &pool));
  out->id = pool->base.id;
  rill__origin_note(&pool->base);
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
  return status;
}

rill_status rill_pool_trim(rill_pool pool, uint64_t keep) {
  RILL_ENTER_TO_BLOCK();
  struct rill__pool *p;
  RILL_RESOLVE(RILL__POOL, pool, "pool", &p);
  RILL_TRY(rill__check_usable(p->base.device));
  rill__ref_and_leave(self, &p->base);
  rill__deferred_frees_end_idle(p->base.device);
  const rill_status status = rill__pool_trim(p, keep);
  rill__unref(&p->base);
  return status;
}

/* ---- queries ---- */

/* Returns the state of the pool.  Completed work is processed first, so `waiting` counts what the driver reports as
 * pending. */
rill_status rill_pool_get_info(rill_pool pool, rill_pool_info *info) {
  RILL_ENTER();
  rill_pool_info now = RILL_POOL_INFO_INIT;
  if (info != NULL && info->struct_size >= sizeof(size_t)) rill__options_write(info, &now, sizeof now);
  struct rill__pool *p;
  RILL_RESOLVE(RILL__POOL, pool, "pool", &p);
  RILL_TRY(rill__options_check_output(info, "info"));
  rill__ref_and_leave(self, &p->base);
  rill__pool_lock(p);
  (void)rill__pool_search(p, NULL, NULL, RILL__ALL_SEARCHES);
#if RILL_CHECKS
  rill__pool_check(p);
#endif
  now.used = p->used;
  now.reserved = atomic_load(&p->reserved);
  now.used_peak = p->shown_used_peak;
  now.reserved_peak = p->shown_reserved_peak;
  now.cached = p->complete.bytes;
  now.waiting = now.reserved - now.used - now.cached;
  rill__pool_unlock(p);
  rill__unref(&p->base);
  rill__options_write(info, &now, sizeof now);
  return RILL_OK;
}

rill_status rill_pool_reset_peaks(rill_pool pool) {
  RILL_ENTER();
  struct rill__pool *p;
  RILL_RESOLVE(RILL__POOL, pool, "pool", &p);
  rill__ref_and_leave(self, &p->base);
  rill__pool_lock(p);
  p->shown_used_peak = p->used;
  p->shown_reserved_peak = atomic_load(&p->reserved);
  rill__pool_unlock(p);
  rill__unref(&p->base);
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
  if (bytes != 0) atomic_store(&rill__core(p->base.device)->pool_thresholds, true);
  return RILL_OK;
}

/* ---- allocations ---- */

/* Notifies the observers of an allocation.  In a capture an allocation or free becomes a node of the graph, which is
 * not observed. */
static rill_status observe_alloc(struct rill__thread *self, struct rill__pool *pool, struct rill__stream *stream,
                                 struct rill__request *request, void **out) {
  if (!rill__is_observed() || rill__is_captured(stream)) return rill__pool_alloc(self, pool, stream, request, out);
  struct rill__observed what = { .kind = RILL__OBSERVED_ALLOC,
                                 .device = stream->base.device,
                                 .stream = stream,
                                 .memory = { NULL, request->size, pool->kind } };
  rill__ref(&stream->base); /* the allocation may leave the epoch */
  rill_status status = rill__observe_before(&what);
  if (status == RILL_OK) {
    status = rill__pool_alloc(self, pool, stream, request, out);
    what.memory.p = *out;
    what.sequence = rill__submission_count(&rill__core(stream)->work);
    status = rill__observe_end(&what, status);
  }
  rill__unref(&stream->base);
  return status;
}

static rill_status observe_free(struct rill__thread *self, struct rill__stream *stream, void *p) {
  if (!rill__is_observed() || rill__is_captured(stream)) return rill__pool_free_async(self, stream, p);
  struct rill__observed what = { .kind = RILL__OBSERVED_FREE, .device = stream->base.device, .stream = stream };
  rill__memory_observe(p, &what);
  what.sequence = rill__submission_count(&rill__core(stream)->work);
  rill__ref(&stream->base);
  rill_status status = rill__observe_before(&what);
  if (status == RILL_OK) status = rill__observe_end(&what, rill__pool_free_async(self, stream, p));
  rill__unref(&stream->base);
  return status;
}

rill_status rill_alloc_async(rill_stream stream, size_t size, void **out) {
  RILL_ENTER_TO_SUBMIT();
  if (out != NULL) *out = NULL;
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  struct rill__pool *pool = NULL;
  RILL_TRY(rill__pool_default(s->base.device, &pool));
  return observe_alloc(self, pool, s, &(struct rill__request){ .size = size, .alignment = 1 }, out);
}

#define RILL_ENTER_POOL_AND_STREAM()                                     \
  RILL_ENTER_TO_SUBMIT();                                                \
  if (out != NULL) *out = NULL;                                          \
  struct rill__pool *p;                                                  \
  struct rill__stream *s;                                                \
  RILL_RESOLVE(RILL__POOL, pool, "pool", &p);                            \
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);                      \
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL"); \
  RILL_TRY(rill__check_same_device(&p->base, &s->base))

rill_status rill_pool_alloc_async(rill_pool pool, rill_stream stream, size_t size, void **out) {
  RILL_ENTER_POOL_AND_STREAM();
  return observe_alloc(self, p, s, &(struct rill__request){ .size = size, .alignment = 1 }, out);
}

rill_status rill_pool_alloc_aligned_async(rill_pool pool, rill_stream stream, size_t size, size_t alignment,
                                          void **out) {
  RILL_ENTER_POOL_AND_STREAM();
  RILL_TRY(rill__check_alignment(alignment));
  return observe_alloc(self, p, s, &(struct rill__request){ .size = size, .alignment = alignment }, out);
}

rill_status rill_free_async(rill_stream stream, void *p) {
  RILL_ENTER_TO_SUBMIT();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  return p == NULL ? RILL_OK : observe_free(self, s, p);
}

rill_status rill_memory_pool(const void *p, rill_pool *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_POOL;
  RILL_REQUIRE(p != NULL && out != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL", p == NULL ? "p" : "out");
  const struct rill__allocation *allocation = rill__ranges_find(p);
  uintptr_t begins = 0;
  size_t size = 0;
  RILL_REQUIRE(allocation != NULL && (!allocation->pooled || rill__pool_find(allocation, p, &begins, &size)),
               RILL_ERROR_NOT_FOUND, "%p is not a rill allocation, or has been freed", p);
  if (!allocation->pooled) return RILL_OK;
  out->id = ((const struct rill__segment *)allocation)->pool->base.id;
  return RILL_OK;
}

/* Returns whether a use of memory of rill_alloc has to be recorded.  Without a record, rill_free waits only for the
 * submitted work of the memory's own device, so uses by held streams and by other devices are recorded.  Host memory
 * belongs to all devices. */
static bool needs_last_use(const struct rill__allocation *allocation, struct rill__stream *stream) {
  return rill__is_held(stream) ||
         (allocation->kind == RILL_MEMORY_DEVICE && allocation->base.device != stream->base.device);
}

/* This is not RILL_ENTER_TO_SUBMIT, because the event of an earlier use may be ready for recycling. */
rill_status rill_memory_record_use(void *p, rill_stream stream) {
  RILL_ENTER();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(p != NULL, RILL_ERROR_INVALID_ARGUMENT, "p is NULL");
  RILL_TRY(rill__check_usable(s->base.device));
  struct rill__allocation *allocation = rill__ranges_find(p);
  RILL_REQUIRE(allocation != NULL, RILL_ERROR_NOT_FOUND, "%p is not a rill allocation, or has been freed", p);
  RILL_TRY(rill__check_same_backend(&allocation->base, &s->base));
  uintptr_t begins = allocation->imported ? (uintptr_t)p : allocation->begin;
  size_t size = 0;
  const bool live = !allocation->pooled || rill__pool_find(allocation, p, &begins, &size);
  RILL_REQUIRE(live, RILL_ERROR_NOT_FOUND, "%p lies in the memory of a pool, but is not allocated or has been freed",
               p);
  RILL_REQUIRE(begins == (uintptr_t)p, RILL_ERROR_INVALID_ARGUMENT,
               "%p lies inside an allocation, %zu bytes after its start" RILL_HINT "pass its first address", p,
               (size_t)((uintptr_t)p - begins));
  RILL__NOTE_ORDER(kept, s, begins, allocation->pooled ? size : allocation->size);
  if (!allocation->pooled && !needs_last_use(allocation, s)) return RILL_OK;
  struct rill__last_use *last_use = NULL;
  RILL_TRY(rill__last_use_new(s, &last_use));
  return allocation->pooled ? rill__pool_note_last_use(allocation, begins, s, last_use)
                            : rill__memory_note_last_use(allocation, last_use);
}
