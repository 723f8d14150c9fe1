#include "core/pool/staging.h"

#include "core/pool/cache.h"
#include "core/pool/pool.h"

enum { HEADER = (sizeof(struct held_staging) + 63) / 64 * 64, KEPT_BYTES = 1 << 20 };

/* Finds memory for a buffer.  Searches first for buffers that the stream itself has used: they are in the processor's
 * caches, and in a pool with many caches the stream's turn would come late.  If few of them are complete, so that the
 * next call would have to search again, it allocates more memory instead. */
static rill_status find_memory(struct rill__pool *pool, struct rill__stream *stream,
                               const struct rill__request *request, struct rill__block **out) {
  enum { FEW_FREES = 16 };
  bool few = false;
  rill__pool_lock(pool);
  struct rill__pool_cache *own =
      stream == NULL || rill__is_captured(stream) ? NULL : rill__pool_cache_find(pool, stream);
  if (own != NULL && rill__stream_is_drained(stream)) rill__pool_cache_complete(pool, own, own->freed);
  *out = rill__pool_take(pool, NULL, request, false);
  if (*out == NULL && own != NULL) {
    const uint64_t before = own->complete;
    own->refs++;
    rill__pool_cache_update(pool, own);
    few = own->complete - before < FEW_FREES && !request->large && rill__pool_may_grow(pool, request);
    if (!few) *out = rill__pool_take(pool, NULL, request, false);
    rill__pool_cache_leave(pool, own);
  }
  rill__pool_unlock(pool);
  if (*out != NULL || (few && rill__pool_grow(pool, request, out) == RILL_OK)) return RILL_OK;
  return rill__pool_find_memory(pool, NULL, request, out);
}

static void finish_staging(struct rill__stream *stream, struct rill__payload *payload) {
  rill__staging_finish(stream, (struct held_staging *)payload);
}

static void drop_payload(struct rill__payload *payload) {
  rill__staging_cancel(((struct held_staging *)payload)->block);
}

rill_status rill__staging_take(struct rill__device *device, struct rill__stream *stream, size_t n,
                               struct held_staging **out) {
  struct rill__request request = { .size = n > SIZE_MAX - HEADER ? SIZE_MAX : HEADER + n, .alignment = 1 };
  struct rill__pool *pool = NULL;
  RILL_TRY(rill__pool_of_staging(device, &pool));
  struct rill__block *block = NULL;
  rill_status status = RILL_ERROR_OUT_OF_MEMORY;
  if (rill__request_round(&request)) status = find_memory(pool, stream, &request, &block);
  if (status == RILL_ERROR_OUT_OF_MEMORY) {
    return rill__fail(status, "no pinned memory for a staging buffer of %zu bytes on %s", n, device->name);
  }
  RILL_TRY(status);
  struct held_staging *staging = rill__block_address(block);
  staging->payload = (struct rill__payload){ finish_staging, drop_payload, n, NULL };
  staging->block = block;
  staging->memory = (char *)staging + HEADER;
  staging->to_host = false;
  *out = staging;
  return RILL_OK;
}

/* A stream without a cache records an event itself.  If that fails, the buffer is never reused, because it is unknown
 * when the driver has finished with it. */
void rill__staging_finish(struct rill__stream *stream, struct held_staging *staging) {
  struct rill__block *block = staging->block;
  struct rill__pool *pool = block->segment->pool;
  rill__pool_lock(pool);
  struct rill__pool_cache *cache = rill__pool_cache_get(pool, stream);
  if (cache != NULL) rill__block_name(pool, block, &cache->heap, ++cache->freed);
  if (cache != NULL) rill__pool_put(pool, block);
  rill__pool_unlock(pool);
  if (cache != NULL) return;
  rill__errors_suspend();
  struct rill__last_use *last_use = NULL;
  (void)rill__last_use_new(stream, &last_use);
  rill__errors_resume();
  if (last_use == NULL) return;
  rill__pool_lock(pool);
  const bool added = rill__block_add_use(pool, block, stream, last_use);
  if (added) rill__pool_put(pool, block);
  rill__pool_unlock(pool);
  if (!added) rill__last_uses_free(last_use);
}

void rill__staging_cancel(struct rill__block *block) {
  struct rill__pool *pool = block->segment->pool;
  rill__pool_lock(pool);
  rill__pool_put(pool, block);
  rill__pool_unlock(pool);
}

void rill__staging_release(struct rill__device *device, bool synchronized) {
  struct rill__pool *pool = atomic_load_explicit(&rill__core(device)->staging_pool, memory_order_acquire);
  if (RILL__LIKELY(pool == NULL) || atomic_load(&pool->reserved) <= KEPT_BYTES) return;
  rill__errors_suspend(); /* memory that cannot be released now does not fail the call */
  (void)(synchronized ? rill__pool_trim(pool, KEPT_BYTES) : rill__pool_shrink(pool, KEPT_BYTES));
  rill__errors_resume();
}
