#include "core/put_off.h"

#include "core/held/queue.h"
#include "core/last_use.h"
#include "core/memory.h"

/* Linked by base.next_retired; guarded by the lock. */
static struct rill__object *waiting, *ready;
static uint64_t seen; /* rill__held_progress when `waiting` was last looked through */
_Atomic bool rill__any_put_off;

/* ---- what held work may use ---- */

static bool overlaps(const struct rill__allocation *allocation, const void *p, size_t n) {
  const uintptr_t begin = (uintptr_t)p;
  return begin < allocation->begin + allocation->size && begin + n > allocation->begin;
}

static bool is_use_of(const struct rill__event *event, const struct rill__allocation *allocation) {
  const struct rill__last_use *use = allocation->uses;
  while (use != NULL && use->event != event) use = use->next;
  return use != NULL;
}

/* A kernel and a function of the host may use anything.  Under the lock. */
static bool may_use(const struct held_op *op, const struct rill__allocation *allocation) {
  switch (op->kind) {
    case HELD_LAUNCH:
    case HELD_HOST_CALL: return true;
    case HELD_COPY: /* a range that begins inside an allocation ends inside it */
      return overlaps(allocation, op->copy.ends.dst, 1) || overlaps(allocation, op->copy.ends.src, 1);
    case HELD_PREFETCH: return overlaps(allocation, op->prefetch.p, op->prefetch.size);
    case HELD_FILL: return overlaps(allocation, op->fill.rows.dst, 1);
    case HELD_RECORD: return is_use_of(op->record.event, allocation);
    case HELD_WAIT: break;
  }
  return false;
}

/* The operation that is being handed over is in no list.  Under the lock. */
static bool queue_may_use(const struct rill__queue *queue, const struct rill__allocation *allocation) {
  if (queue->giving != 0 && queue->giving <= allocation->serial) return true;
  for (const struct held_op *op = queue->first; op != NULL && op->serial <= allocation->serial; op = op->next) {
    if (may_use(op, allocation)) return true;
  }
  return false;
}

/* Streams of other devices may use it too: pinned and managed memory as their own, device memory as a peer's. */
static bool held_work_may_use(struct rill__allocation *allocation) {
  bool used = false;
  for (const struct rill__queue *queue = rill__held_queues; queue != NULL; queue = queue->next_held) {
    const struct rill__device *device = queue->stream->base.device;
    if (device->backend != allocation->base.device->backend || !queue_may_use(queue, allocation)) continue;
    if (device != allocation->base.device) allocation->used_elsewhere = true;
    used = true;
  }
  return used;
}

void rill__held_wait_for_memory(struct rill__object *object) {
  struct rill__allocation *allocation = (struct rill__allocation *)object;
  if (atomic_load(&rill__held_count) == 0) return;
  rill__held_lock();
  allocation->serial = rill__held_serial;
  while (held_work_may_use(allocation)) rill__held_await_change();
  rill__held_unlock();
}

/* ---- putting off ---- */

bool rill__put_off(struct rill__allocation *allocation) {
  struct rill__object *object = &allocation->base;
  if (atomic_load(&rill__held_count) == 0) return false;
  rill__held_lock();
  allocation->serial = rill__held_serial;
  const bool used = held_work_may_use(allocation);
  if (used) {
    object->next_retired = waiting;
    waiting = object;
    atomic_fetch_add(&object->device->put_off_bytes, allocation->native_size);
    atomic_store(&rill__any_put_off, true);
  }
  rill__held_unlock();
  return used;
}

/* ---- freeing ---- */

/* Under the lock. */
static void find_ready(void) {
  if (seen == rill__held_progress) return;
  seen = rill__held_progress;
  for (struct rill__object **link = &waiting; *link != NULL;) {
    struct rill__object *object = *link;
    if (held_work_may_use((struct rill__allocation *)object)) {
      link = &object->next_retired;
    } else {
      *link = object->next_retired;
      object->next_retired = ready;
      ready = object;
    }
  }
}

static void keep_ready(struct rill__object *object) {
  rill__held_lock();
  object->next_retired = ready;
  ready = object;
  atomic_store(&rill__any_put_off, true);
  rill__held_unlock();
}

/* Those of the device that can go, out of the lists. */
static struct rill__object *take_ready(const struct rill__device *device) {
  struct rill__object *list = NULL;
  rill__held_lock();
  find_ready();
  for (struct rill__object **link = &ready; *link != NULL;) {
    struct rill__object *object = *link;
    if (object->device != device) {
      link = &object->next_retired;
      continue;
    }
    *link = object->next_retired;
    object->next_retired = list;
    list = object;
  }
  atomic_store(&rill__any_put_off, waiting != NULL || ready != NULL);
  rill__held_unlock();
  return list;
}

void rill__put_off_free(struct rill__device *device, bool may_block) {
  if (RILL__LIKELY(!atomic_load(&rill__any_put_off))) return;
  struct rill__object *list = take_ready(device);
  const bool now = list != NULL && (may_block || rill__backend_is_idle(device));
  rill__errors_aside(); /* what cannot be freed now is no failure of the call */
  while (list != NULL) {
    struct rill__object *object = list;
    list = object->next_retired;
    struct rill__allocation *allocation = (struct rill__allocation *)object;
    const uint64_t bytes = allocation->native_size;
    if (now) (void)rill__memory_end(&allocation);
    if (allocation == NULL) {
      atomic_fetch_sub(&device->put_off_bytes, bytes);
    } else {
      keep_ready(object);
    }
  }
  rill__errors_back();
}

/* The limit is far from what a program frees in one go, and near enough that it cannot take the machine down. */
rill_status rill__put_off_check(struct rill__device *device, size_t size) {
  const uint64_t limit = device->info.memory_total / 2;
  uint64_t bytes = atomic_load_explicit(&device->put_off_bytes, memory_order_relaxed);
  if (RILL__LIKELY(bytes == 0)) return RILL_OK;
  if (bytes <= limit && size <= limit - bytes) return RILL_OK;
  rill__put_off_free(device, true);
  bytes = atomic_load(&device->put_off_bytes);
  RILL_REQUIRE(
      bytes == 0 || (bytes <= limit && size <= limit - bytes), RILL_ERROR_OUT_OF_MEMORY,
      "%zu bytes asked for; %llu of %s have been freed and wait for work of held streams, and with them no more "
      "than %llu of %llu are given" RILL_HINT "record the events that the streams wait for",
      size, (unsigned long long)bytes, device->name, (unsigned long long)limit,
      (unsigned long long)device->info.memory_total);
  return RILL_OK;
}
