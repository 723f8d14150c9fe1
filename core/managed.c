/* Where managed memory is to be. */
#include "core/device/life.h"
#include "core/held/held.h"
#include "core/memory/ranges.h"
#include "core/pool/pool.h"
#include "core/sync/submit.h"

/* Looks for `size` bytes at `p` inside managed memory. */
static rill_status find_managed(const void *p, size_t size, struct rill__device **owner) {
  const struct rill__allocation *allocation = rill__ranges_find(p);
  RILL_REQUIRE(allocation != NULL, RILL_ERROR_NOT_FOUND, "%p is no allocation of rill, or has been freed", p);
  RILL_REQUIRE(allocation->kind == RILL_MEMORY_MANAGED, RILL_ERROR_INVALID_ARGUMENT,
               "%p is memory of kind %u, not managed" RILL_HINT "allocate it with RILL_MEMORY_MANAGED", p,
               allocation->kind);
  uintptr_t begins = allocation->begin;
  size_t all = allocation->size;
  RILL_REQUIRE(!allocation->pooled || rill__pool_find(allocation, p, &begins, &all), RILL_ERROR_NOT_FOUND,
               "%p lies in memory of a pool that is not allocated, or has been freed", p);
  const size_t offset = (uintptr_t)p - begins;
  RILL_REQUIRE(size <= all - offset, RILL_ERROR_OUT_OF_RANGE,
               "%zu bytes at offset %zu pass the end of an allocation of %zu bytes", size, offset, all);
  *owner = allocation->base.device;
  return RILL_OK;
}

rill_status rill_memory_prefetch_async(rill_stream stream, const void *p, size_t size) {
  RILL_ENTER();
  struct rill__stream *s;
  struct rill__device *owner = NULL;
  RILL_RESOLVE(RILL__STREAM, stream, "stream", &s);
  if (size == 0) return RILL_OK;
  RILL_TRY(find_managed(p, size, &owner));
  RILL_TRY(rill__check_same_backend(&s->base, &owner->base));
  RILL_TRY(rill__check_usable(s->base.device));
  RILL_REQUIRE(s->base.device->backend->memory->prefetch != NULL, RILL_ERROR_UNSUPPORTED,
               "%s has no prefetch, in any version", s->base.device->name);
  if (rill__is_held(s)) {
    struct rill__device *device = s->base.device;
    bool taken = false;
    if (device->backend->memory->may_prefetch != NULL) RILL_TRY(RILL_DOOR(device, memory, may_prefetch, device));
    RILL_TRY(rill__held_prefetch(s, p, size, &taken));
    if (taken) return RILL_OK;
  }
  rill_status status = RILL_OK;
  RILL_SUBMIT(status, s, memory, prefetch, s, p, size);
  return status;
}

rill_status rill_memory_advise(const void *p, size_t size, rill_device device, uint32_t advice) {
  RILL_ENTER();
  struct rill__device *d, *owner = NULL;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(advice >= RILL_ADVICE_READ_MOSTLY && advice <= RILL_ADVICE_NOT_ACCESSED_BY, RILL_ERROR_INVALID_ARGUMENT,
               "advice %u is none of RILL_ADVICE_*", advice);
  if (size == 0) return RILL_OK;
  RILL_TRY(find_managed(p, size, &owner));
  if (d->backend->gpu) RILL_TRY(rill__check_same_backend(&d->base, &owner->base));
  RILL_TRY(rill__check_usable(owner));
  RILL_REQUIRE(owner->backend->memory->advise != NULL, RILL_ERROR_UNSUPPORTED, "%s takes no advice, in any version",
               owner->name);
  struct rill__device *at = d->backend == owner->backend ? d : NULL; /* the CPU stands for the host */
  if (at != NULL) RILL_TRY(rill__device_activate(at));
  return RILL_DOOR(owner, memory, advise, owner, p, size, at, advice);
}
