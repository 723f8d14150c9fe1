/* Memory of rill_alloc: allocating it from the driver and freeing it. */
#include "core/memory/memory.h"

#include "core/device/life.h"
#include "core/diagnose/inject.h"
#include "core/pool/blocks.h"
#include "core/pool/staging.h"
#include "core/sync/streams.h"
#include "core/tracking/frees.h"
#include "core/tracking/last_use.h"
#include "core/tracking/map.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* Fails with OUT_OF_MEMORY and a text that gives the requested size and the free memory. */
static rill_status fail_memory_of_device(struct rill__device *device, size_t size) {
  const struct rill__injected injected = rill__injected();
  uint64_t free_bytes = 0, total_bytes = 0;
  char deferred[96] = "";
  const uint64_t bytes = atomic_load(&rill__core(device)->deferred_bytes);
  if (RILL_DISPATCH(device, device, get_memory, device, &free_bytes, &total_bytes) != RILL_OK)
    free_bytes = total_bytes = 0;
  if (bytes != 0) {
    (void)snprintf(deferred, sizeof deferred, "; %llu freed bytes still wait for work of held streams",
                   (unsigned long long)bytes);
  }
  return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "%s%zu bytes requested; %s has %llu bytes free of %llu%s", injected.text,
                    size, device->name, (unsigned long long)free_bytes, (unsigned long long)total_bytes, deferred);
}

/* ---- guards ---- */

static void release_kept_memory(struct rill__guard *guard) {
  struct rill__allocation *allocation = guard->memory;
  struct rill__device *device = guard->device;
  if (atomic_load(&device->lost) == RILL_OK) {
    void *const native = (void *)allocation->native;
    (void)(device->backend->memory->free_unused != NULL
               ? RILL_DISPATCH(device, memory, free_unused, device, native, allocation->kind)
               : RILL_DISPATCH(device, memory, free, device, native, allocation->kind));
  }
  rill__object_defer(&allocation->base);
}

void rill__memory_guard(struct rill__guard *guard, struct rill__allocation *allocation) {
  guard->begin = allocation->begin;
  guard->size = allocation->size;
  guard->kind = allocation->kind;
  guard->imported = allocation->imported;
  guard->zoned = !allocation->imported && allocation->kind != RILL_MEMORY_REGISTERED;
  guard->memory = allocation;
  guard->release = release_kept_memory;
  allocation->guard = guard;
  rill__guard_enter(guard, NULL);
}

void rill__memory_unguard(struct rill__allocation *allocation) {
  if (RILL__LIKELY(allocation->guard == NULL)) return;
  rill__guard_drop(allocation->guard);
  allocation->guard = NULL;
  rill__guards_wait_for_turn(allocation->base.device);
}

/* Waits for everything that the driver's free would wait for, and compares the zones.  Returns true if the memory is
 * kept back.  Exported memory is not kept back, because other processes may use it. */
static bool retain_freed(struct rill__allocation *allocation) {
  struct rill__device *device = allocation->base.device;
  const rill_status status = allocation->kind == RILL_MEMORY_DEVICE ? RILL_DISPATCH(device, device, synchronize, device)
                                                                    : rill__backend_synchronize(device);
  return status == RILL_OK && rill__guard_end(allocation->guard, !allocation->exported);
}

/* ---- allocating ---- */

/* Allocates from the driver.  If the driver refuses, frees unused memory and tries again. */
static rill_status ask_driver(struct rill__device *device, size_t size, uint32_t kind, void **out) {
  rill_status status = RILL_DISPATCH(device, memory, alloc, device, size, kind, out);
  if (RILL__LIKELY(status != RILL_ERROR_OUT_OF_MEMORY)) return status;
  if (kind == RILL_MEMORY_DEVICE && size > device->info.memory_total) return status;
  if (rill__in_host_call) return status; /* reclaiming may block */
  for (bool more = true; more && status == RILL_ERROR_OUT_OF_MEMORY;) {
    more = rill__pools_reclaim(device);
    status = RILL_DISPATCH(device, memory, alloc, device, size, kind, out);
  }
  return status;
}

rill_status rill__memory_alloc(struct rill__device *device, size_t size, size_t alignment, uint32_t kind, void **out) {
  const size_t front = rill__front_zone(device);
  const size_t before = front + (alignment > RILL__LEAST_ALIGNMENT ? alignment - RILL__LEAST_ALIGNMENT : 0);
  const size_t extra = before + rill__red_zone(device);
  if (size > SIZE_MAX - extra) return fail_memory_of_device(device, size);
  rill__deferred_frees_end_idle(device);
  RILL_TRY(rill__deferred_frees_check(device, size + extra));
  struct rill__allocation *allocation = calloc(1, sizeof *allocation);
  RILL_REQUIRE(allocation != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to keep track of %zu bytes", size);
  rill__object_init(&allocation->base, device, rill__allocation_destroy);
  allocation->base.host_only = true;
  struct rill__guard *guard = NULL;
  void *p = NULL;
  rill_status status = front != 0 ? rill__guard_new(device, &guard) : RILL_OK;
  if (status != RILL_OK) {
    rill__unref(&allocation->base);
    return status;
  }
  status = ask_driver(device, size + extra, kind, &p);
  if (status == RILL_OK) {
    allocation->native = (uintptr_t)p;
    allocation->native_size = size + before;
    allocation->begin = ((uintptr_t)p + front + alignment - 1) & ~(uintptr_t)(alignment - 1);
    allocation->size = size;
    allocation->kind = kind;
    if (RILL__UNLIKELY(guard != NULL)) rill__memory_guard(guard, allocation);
    if (rill__memory_track(allocation)) {
      *out = (void *)allocation->begin;
      return RILL_OK;
    }
    if (guard != NULL) rill__memory_unguard(allocation);
    guard = NULL;
    (void)RILL_DISPATCH(device, memory, free, device, p, kind);
    status = rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory to keep track of %zu bytes at %p", size, p);
  } else if (status == RILL_ERROR_OUT_OF_MEMORY) {
    status = fail_memory_of_device(device, size);
  }
  if (guard != NULL) rill__guard_free(guard);
  rill__unref(&allocation->base);
  return status;
}

/* Frees an allocation that was removed from the map, or closes an import, when all its uses are complete.  Call it
 * outside epochs, since it may block for the device's work.  Sets the pointer to NULL, unless the driver refuses; the
 * caller then still owns the allocation. */
static rill_status end_allocation(struct rill__allocation **ended) {
  struct rill__allocation *allocation = *ended;
  struct rill__device *device = allocation->base.device;
  rill_status status = rill__check_usable(device);
  void *const native = (void *)allocation->native;
  if (status == RILL_OK) status = rill__last_uses_wait(&allocation->last_uses);
  if (status == RILL_OK && RILL__UNLIKELY(allocation->guard != NULL) && allocation->guard->zoned &&
      retain_freed(allocation)) {
    *ended = NULL;
    return RILL_OK;
  }
  rill__memory_unguard(allocation);
  if (status == RILL_OK) {
    status = allocation->imported ? RILL_DISPATCH(device, memory, ipc_close, device, native, allocation->native_size)
                                  : RILL_DISPATCH(device, memory, free, device, native, allocation->kind);
  }
  if (status != RILL_OK && atomic_load(&device->lost) == RILL_OK) return status;
  *ended = NULL;
  rill__object_defer(&allocation->base); /* a lost device has already lost the memory */
  return status;
}

static bool end_deferred_free(struct rill__deferred_free *deferred) {
  struct rill__allocation *allocation =
      (struct rill__allocation *)((char *)deferred - offsetof(struct rill__allocation, deferred));
  (void)end_allocation(&allocation);
  return allocation == NULL;
}

static rill_status end_free(struct rill__allocation *allocation) {
  struct rill__device *device = allocation->base.device;
  rill__deferred_frees_end(device, true);
  rill__staging_release(device, false);
  if (atomic_load(&device->lost) == RILL_OK &&
      rill__free_defer(device, &allocation->deferred, allocation->native_size, end_deferred_free)) {
    return RILL_OK;
  }
  const rill_status status = end_allocation(&allocation);
  if (allocation != NULL) rill__memory_put_back(allocation);
  return status;
}

/* The word contains the number of holders and whether the allocation has been freed.  Once it has been freed no holder
 * is added, so exactly one call sees it freed without holders, and that call finishes the free: rill_free, or the last
 * rill__memory_drop. */
enum { FREED = 1, HOLDER = 2 };

bool rill__memory_hold(struct rill__allocation *allocation) {
  uint32_t word = atomic_load(&allocation->holders);
  while ((word & FREED) == 0) {
    if (atomic_compare_exchange_weak(&allocation->holders, &word, word + HOLDER)) return true;
  }
  return false;
}

bool rill__memory_drop(struct rill__allocation *allocation) {
  const uint32_t word = atomic_fetch_sub(&allocation->holders, HOLDER) - HOLDER;
  if (word == FREED) {
    rill__errors_suspend();
    (void)end_free(allocation); /* on failure the allocation is in the map again */
    rill__errors_resume();
  }
  return (word & FREED) != 0;
}

rill_status rill__memory_free(struct rill__allocation *allocation) {
  return atomic_fetch_or(&allocation->holders, FREED) >= HOLDER ? RILL_OK : end_free(allocation);
}
