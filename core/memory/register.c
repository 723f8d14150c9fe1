/* Host memory that was allocated by other code and is registered as pinned. */
#include "core/memory/memory.h"

#include "core/device/life.h"
#include "core/held/held.h"
#include "core/tracking/last_use.h"
#include "core/tracking/map.h"

static struct rill__held_range find_range(const void *p) {
  RILL_ASSERT(!rill__is_outside_epochs(), "memory is looked up inside an epoch");
  struct rill__allocation *range = rill__ranges_find(p);
  if (range == NULL || range->kind != RILL_MEMORY_REGISTERED) return (struct rill__held_range){ NULL, NULL };
  rill__ref(&range->base);
  return (struct rill__held_range){ &range->base, &range->held_uses };
}

/* Inserts the range into the map first, so that if two threads register the same memory, one is refused here.  No work
 * can use the memory as pinned before the driver knows it, unless the caller's own threads race. */
static rill_status register_range(struct rill__device *device, void *p, size_t size, struct rill__allocation **out) {
  struct rill__allocation *range = NULL, *other = NULL;
  RILL_TRY(rill__object_new(sizeof *range, device, NULL, rill__allocation_destroy, &range));
  range->begin = (uintptr_t)p;
  range->size = size;
  range->kind = RILL_MEMORY_REGISTERED;
  atomic_store(&rill__held_find_range, find_range);
  if (!rill__memory_insert(range, &other)) {
    rill__unref(&range->base);
    RILL_REQUIRE(other == NULL, RILL_ERROR_INVALID_ARGUMENT, /* inside the epoch, so `other` stays valid */
                 "%zu bytes at %p overlap %zu bytes at %p, %s", size, p, other->size, (void *)other->begin,
                 other->kind == RILL_MEMORY_REGISTERED ? "which are registered already"
                                                       : "which rill has allocated itself");
    return rill__fail(RILL_ERROR_OUT_OF_MEMORY, "no host memory to keep track of %zu bytes at %p", size, p);
  }
  const rill_status status = RILL_DISPATCH(device, memory, host_register, device, p, size);
  if (status == RILL_OK) {
    *out = range;
    return RILL_OK;
  }
  rill__errors_suspend();
  const bool mine = rill__memory_take_out(p, true, &range) == RILL_OK;
  rill__errors_resume();
  if (mine) rill__object_defer(&range->base);
  return status;
}

rill_status rill__memory_register(struct rill__device *device, void *p, size_t size) {
  struct rill__allocation *range = NULL;
  struct rill__guard *guard = NULL;
  if (rill__is_guarded(device)) RILL_TRY(rill__guard_new(device, &guard));
  const rill_status status = register_range(device, p, size, &range);
  if (guard == NULL) return status;
  if (status == RILL_OK) rill__memory_guard(guard, range);
  if (status != RILL_OK) rill__guard_free(guard);
  return status;
}

/* Returns true if the record of a last use is held (rill_memory_record_use). */
static bool is_used(const void *user) {
  const struct rill__allocation *range = user;
  RILL__FOR_EACH_LAST_USE(&range->last_uses, last_use) {
    if (rill__record_is_held(last_use->event)) return true;
  }
  return false;
}

rill_status rill__memory_unregister(struct rill__allocation *range) {
  struct rill__device *device = range->base.device;
  void *const p = (void *)range->begin;
  /* the driver itself waits for work that it already has */
  rill__held_wait_for_range(&range->held_uses, is_used, range);
  rill_status status = rill__check_usable(device);
  if (status == RILL_OK) status = RILL_DISPATCH(device, memory, host_unregister, device, p);
  if (status != RILL_OK && atomic_load(&device->lost) == RILL_OK) {
    rill__memory_put_back(range);
  } else { /* a lost device has already lost the registration */
    rill__memory_unguard(range);
    rill__object_defer(&range->base);
  }
  return status;
}
