/* What rill is told of uses of memory. */
#include "core/device/life.h"
#include "core/held/held.h"
#include "core/memory/last_use.h"
#include "core/memory/map.h"
#include "core/memory/ranges.h"
#include "core/pool/pool.h"

#include <rill/pool.h>

/* Memory of rill_alloc: rill_free waits for its own device, and looks at what is held; the rest is noted.  Host memory
 * is all devices' own. */
static bool has_to_note(const struct rill__allocation *allocation, struct rill__stream *stream) {
  return rill__is_held(stream) ||
         (allocation->kind == RILL_MEMORY_DEVICE && allocation->base.device != stream->base.device);
}

/* rill_free takes the allocation out of the map first, and then looks at its uses. */
static rill_status note_use(struct rill__allocation *allocation, struct rill__last_use *use) {
  struct rill__last_use *dead = use;
  rill__memory_lock();
  const bool still = rill__ranges_find((void *)allocation->begin) == allocation;
  if (still) dead = rill__last_use_note(&allocation->uses, use);
  rill__memory_unlock();
  rill__last_uses_free(dead);
  RILL_REQUIRE(still, RILL_ERROR_NOT_FOUND, "%p was freed during the call", (void *)allocation->begin);
  return RILL_OK;
}

rill_status rill_memory_record_use(void *p, rill_stream stream) {
  RILL_ENTER();
  struct rill__stream *s;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  RILL_REQUIRE(p != NULL, RILL_ERROR_INVALID_ARGUMENT, "p is NULL");
  RILL_TRY(rill__check_usable(s->base.device));
  struct rill__allocation *allocation = rill__ranges_find(p);
  RILL_REQUIRE(allocation != NULL, RILL_ERROR_NOT_FOUND, "%p is no allocation of rill, or has been freed", p);
  RILL_TRY(rill__check_same_backend(&allocation->base, &s->base));
  uintptr_t begins = allocation->imported ? (uintptr_t)p : allocation->begin;
  size_t size = 0;
  const bool live = !allocation->pooled || rill__pool_find(allocation, p, &begins, &size);
  RILL_REQUIRE(live, RILL_ERROR_NOT_FOUND, "%p lies in memory of a pool that is not allocated, or has been freed", p);
  RILL_REQUIRE(begins == (uintptr_t)p, RILL_ERROR_INVALID_ARGUMENT,
               "%p lies inside an allocation, %zu bytes after its start" RILL_HINT "name it by its first address", p,
               (size_t)((uintptr_t)p - begins));
  if (!allocation->pooled && !has_to_note(allocation, s)) return RILL_OK;
  struct rill__last_use *use = NULL;
  RILL_TRY(rill__last_use_new(s, &use));
  return allocation->pooled ? rill__pool_note_use(allocation, begins, use) : note_use(allocation, use);
}
