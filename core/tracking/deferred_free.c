#include "core/tracking/deferred_free.h"

#include "core/held/queue.h"
#include "core/sync/streams.h"

bool rill__free_defer(struct rill__device *device, struct rill__deferred_free *deferred, uint64_t bytes,
                      rill__end_free_fn *end) {
  if (atomic_load(&rill__held_count) == 0) return false;
  rill__held_lock();
  const bool used = rill__held_oldest() != UINT64_MAX;
  if (used) {
    *deferred = (struct rill__deferred_free){ .serial = rill__held_serial, .bytes = bytes, .end = end };
    struct rill__deferred_free **const link = rill__core(device)->last_deferred != NULL
                                                  ? &rill__core(device)->last_deferred->next
                                                  : &rill__core(device)->first_deferred;
    *link = rill__core(device)->last_deferred = deferred;
    atomic_fetch_add(&rill__core(device)->deferred_bytes, bytes);
  }
  rill__held_unlock();
  return used;
}

/* Returns true if no held operation precedes the free any more.  Call it under the lock. */
static bool is_due(const struct rill__deferred_free *deferred) {
  return deferred != NULL && rill__held_oldest() > deferred->serial;
}

static struct rill__deferred_free *take_due(struct rill__device *device) {
  struct rill__deferred_free *list = NULL, **last = &list;
  rill__held_lock();
  while (is_due(rill__core(device)->first_deferred)) {
    *last = rill__core(device)->first_deferred;
    last = &(*last)->next;
    rill__core(device)->first_deferred = *last;
  }
  *last = NULL;
  if (rill__core(device)->first_deferred == NULL) rill__core(device)->last_deferred = NULL;
  rill__held_unlock();
  return list;
}

/* Returns deferred frees to the front of the list: those added meanwhile are younger or of the same age. */
static void put_deferred_back(struct rill__device *device, struct rill__deferred_free *list) {
  struct rill__deferred_free *last = list;
  while (last->next != NULL) last = last->next;
  rill__held_lock();
  last->next = rill__core(device)->first_deferred;
  if (last->next == NULL) rill__core(device)->last_deferred = last;
  rill__core(device)->first_deferred = list;
  rill__held_unlock();
}

void rill__deferred_frees_end(struct rill__device *device, bool may_block) {
  if (RILL__LIKELY(!rill__frees_are_deferred(device))) return;
  rill__held_lock();
  const bool due = is_due(rill__core(device)->first_deferred);
  rill__held_unlock();
  if (!due) return;
  /* Queried without the lock, because the query calls the driver. */
  if (!may_block && !rill__backend_is_idle(device)) return;
  struct rill__deferred_free *list = take_due(device);
  rill__errors_suspend(); /* memory that cannot be freed now does not fail the call */
  /* streams of other devices may also have used the memory */
  bool ended = rill__backend_synchronize(device) == RILL_OK;
  while (list != NULL && ended) {
    struct rill__deferred_free *const next = list->next;
    const uint64_t bytes = list->bytes;
    ended = list->end(list);
    if (!ended) break;
    atomic_fetch_sub(&rill__core(device)->deferred_bytes, bytes);
    list = next;
  }
  if (list != NULL) put_deferred_back(device, list);
  rill__errors_resume();
}

/* The limit is much more than a program usually frees while work is held, but low enough that deferred frees cannot
 * exhaust the memory of the device. */
rill_status rill__deferred_frees_check(struct rill__device *device, size_t size) {
  const uint64_t limit = device->info.memory_total / 2;
  uint64_t bytes = atomic_load_explicit(&rill__core(device)->deferred_bytes, memory_order_relaxed);
  if (RILL__LIKELY(bytes == 0)) return RILL_OK;
  if (bytes <= limit && size <= limit - bytes) return RILL_OK;
  rill__deferred_frees_end(device, true);
  bytes = atomic_load(&rill__core(device)->deferred_bytes);
  RILL_REQUIRE(bytes == 0 || (bytes <= limit && size <= limit - bytes), RILL_ERROR_OUT_OF_MEMORY,
               "%zu bytes requested; %llu freed bytes of %s still wait for work of held streams, and this memory "
               "together with a new allocation is limited to %llu of %llu bytes" RILL_HINT
               "record the events that the streams wait for",
               size, (unsigned long long)bytes, device->name, (unsigned long long)limit,
               (unsigned long long)device->info.memory_total);
  return RILL_OK;
}
