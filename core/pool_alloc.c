/* Allocation from pools: from the stream's own lane, then from what others have, then from the driver. */
#include "core/memory.h"
#include "core/pool.h"
#include "core/pool_lanes.h"
#include "core/put_off.h"

#include <rill/memory.h>
#include <rill/pool.h>
#include <stdio.h>

static rill_status fail_memory(struct rill__pool *pool, size_t size) {
  struct rill__device *device = pool->base.device;
  uint64_t free_bytes = 0, total_bytes = 0;
  if (RILL_DOOR(device, device, get_memory, device, &free_bytes, &total_bytes) != RILL_OK) free_bytes = total_bytes = 0;
  char limit[48] = "no limit";
  if (pool->max_size != 0) {
    (void)snprintf(limit, sizeof limit, "a limit of %llu", (unsigned long long)pool->max_size);
  }
  return rill__fail(RILL_ERROR_OUT_OF_MEMORY,
                    "%zu bytes asked for; %s has %llu bytes free of %llu; %s has %s, %llu reserved and %llu of them "
                    "in use" RILL_HINT "free memory, or synchronize with the streams that still use what was freed",
                    size, device->name, (unsigned long long)free_bytes, (unsigned long long)total_bytes,
                    rill__name_of(&pool->base).text, limit, (unsigned long long)atomic_load(&pool->reserved),
                    (unsigned long long)atomic_load(&pool->used));
}

/* The lane may be another stream's by now, if this one is being released. */
static bool is_lane_of(const struct rill__lane *lane, const struct rill__stream *stream) {
  return RILL__LIKELY(atomic_load_explicit(&lane->number, memory_order_relaxed) == stream->number);
}

static struct rill__block *take_own(struct rill__lane *lane, const struct rill__stream *stream,
                                    const struct rill__wish *wish) {
  rill__lane_lock(lane);
  struct rill__block *block = is_lane_of(lane, stream) ? rill__heap_take(&lane->heap, wish, UINT64_MAX) : NULL;
  rill__lane_unlock(lane);
  return block;
}

/* What the limit or the driver refuses: what others have, complete; then what can be waited for in the device.  Only
 * then memory goes back to the driver, since drivers wait for all work meanwhile: the pool's own if its limit is in the
 * way, else that of all the device's pools of the kind. */
static rill_status take_under_pressure(struct rill__pool *pool, struct rill__stream *stream, struct rill__lane *lane,
                                       const struct rill__wish *wish, struct rill__block **out) {
  struct rill__device *device = pool->base.device;
  atomic_store(&pool->marks_frees, true);
  *out = rill__lanes_take_complete(pool, lane, wish, true);
  if (*out == NULL) *out = rill__lanes_take_and_wait(pool, stream, wish);
  if (*out != NULL) return RILL_OK;
  const size_t rounded = wish->rounded;
  if (pool->kind == RILL_MEMORY_DEVICE && rounded > device->info.memory_total) return RILL_ERROR_OUT_OF_MEMORY;
  const uint64_t before = atomic_load(&pool->reserved), put_off = atomic_load(&device->put_off_bytes);
  if (pool->max_size != 0 && rounded > pool->max_size - before) {
    if (rounded > pool->max_size) return RILL_ERROR_OUT_OF_MEMORY;
    rill__errors_aside();
    (void)rill__pool_give_back(pool, 0);
    rill__errors_back();
    if (atomic_load(&pool->reserved) >= before) return RILL_ERROR_OUT_OF_MEMORY;
  } else {
    rill__put_off_free(device, true);
    const bool any = rill__pools_give_back(device, pool->kind);
    if (!any && atomic_load(&device->put_off_bytes) == put_off) return RILL_ERROR_OUT_OF_MEMORY;
  }
  return rill__pool_grow(pool, lane, wish, out);
}

/* Outside epochs. */
static rill_status take_slowly(struct rill__pool *pool, struct rill__stream *stream, struct rill__lane *lane,
                               const struct rill__wish *wish, struct rill__block **out) {
  rill__lane_poll(lane);
  *out = take_own(lane, stream, wish);
  if (*out == NULL) *out = rill__lanes_take_own_free(pool, stream, wish);
  if (*out == NULL) *out = rill__lanes_take_complete(pool, lane, wish, false);
  if (*out != NULL) return RILL_OK;
  const rill_status status = rill__pool_grow(pool, lane, wish, out);
  if (status != RILL_ERROR_OUT_OF_MEMORY) return status;
  return take_under_pressure(pool, stream, lane, wish, out);
}

static void *begin(struct rill__pool *pool, const struct rill__stream *stream, struct rill__block *block,
                   const struct rill__wish *wish) {
  block->user = stream->number;
  rill__pool_note_used(pool, rill__block_size(block));
  return rill__block_begin(block, wish);
}

static rill_status allocate(struct rill__thread *self, struct rill__pool *pool, struct rill__stream *stream,
                            struct rill__wish *wish, void **out) {
  RILL_TRY(rill__check_usable(stream->base.device));
  RILL_TRY(rill__pool_check_capture(stream));
  if (wish->size == 0) return RILL_OK;
  if (!rill__wish_round(wish)) return fail_memory(pool, wish->size);
  struct rill__lane *lane = rill__lane_find(pool, stream);
  if (RILL__UNLIKELY(lane == NULL)) {
    atomic_store(&stream->pooled, true);
    RILL_TRY(rill__lane_get(pool, stream, &lane));
  }
  rill__lane_lock(lane);
  struct rill__block *block = is_lane_of(lane, stream) ? rill__heap_take(&lane->heap, wish, UINT64_MAX) : NULL;
  if (RILL__LIKELY(block != NULL)) *out = begin(pool, stream, block, wish);
  rill__lane_unlock(lane);
  if (RILL__LIKELY(block != NULL)) return RILL_OK;
  rill__keep(&pool->base);
  rill__keep_and_leave(self, &stream->base);
  rill_status status = take_slowly(pool, stream, lane, wish, &block);
  if (status == RILL_OK) {
    struct rill__lane *from = rill__lane_of(block);
    rill__lane_lock(from);
    *out = begin(pool, stream, block, wish);
    rill__lane_unlock(from);
  } else if (status == RILL_ERROR_OUT_OF_MEMORY) {
    status = fail_memory(pool, wish->size);
  }
  rill__drop(&stream->base);
  rill__drop(&pool->base);
  return status;
}

/* ---- the calls ---- */

rill_status rill_alloc_async(rill_stream stream, size_t size, void **out) {
  RILL_ENTER();
  if (out != NULL) *out = NULL;
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  struct rill__pool *pool = NULL;
  RILL_TRY(rill__pool_default(s->base.device, &pool));
  return allocate(self, pool, s, &(struct rill__wish){ .size = size, .alignment = 1 }, out);
}

#define RILL_ENTER_POOL_AND_STREAM()                                     \
  RILL_ENTER();                                                          \
  if (out != NULL) *out = NULL;                                          \
  struct rill__pool *p;                                                  \
  struct rill__stream *s;                                                \
  RILL_RESOLVE(RILL__POOL, pool, "pool", &p);                            \
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);                      \
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL"); \
  RILL_TRY(rill__check_same_device(&p->base, &s->base))

rill_status rill_pool_alloc_async(rill_pool pool, rill_stream stream, size_t size, void **out) {
  RILL_ENTER_POOL_AND_STREAM();
  return allocate(self, p, s, &(struct rill__wish){ .size = size, .alignment = 1 }, out);
}

rill_status rill_pool_alloc_aligned_async(rill_pool pool, rill_stream stream, size_t size, size_t alignment,
                                          void **out) {
  RILL_ENTER_POOL_AND_STREAM();
  RILL_TRY(rill__check_alignment(alignment));
  return allocate(self, p, s, &(struct rill__wish){ .size = size, .alignment = alignment }, out);
}
