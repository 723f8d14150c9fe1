/* Pinned memory that stands in for pageable memory in copies of held streams.
 *
 * Giving pinned memory back waits for the device, and records, waits and copies must not.  So what is not needed any
 * more is kept, used again, and given back by calls that may block. */
#include "core/call.h"
#include "core/held/queue.h"

#include <stdlib.h>

static struct held_staging *kept; /* guarded by the lock */

static bool is_unused(const struct held_staging *staging) {
  if (staging->state != STAGING_MARKED) return staging->state == STAGING_UNUSED;
  bool done = false;
  return RILL_DOOR(staging->done, event, is_ready, staging->done, &done) == RILL_OK && done;
}

static struct held_staging *take_all(void) {
  rill__held_lock();
  struct held_staging *list = kept;
  kept = NULL;
  rill__held_unlock();
  return list;
}

void rill__staging_keep(struct held_staging *staging) {
  rill__held_lock();
  staging->next = kept;
  kept = staging;
  rill__held_unlock();
}

static struct held_staging *find_unused(struct rill__device *device, size_t n) {
  struct held_staging *found = NULL;
  for (struct held_staging *list = take_all(); list != NULL;) {
    struct held_staging *staging = list;
    list = staging->next;
    if (found == NULL && staging->device == device && staging->capacity >= n && is_unused(staging)) {
      found = staging;
    } else {
      rill__staging_keep(staging);
    }
  }
  return found;
}

static rill_status new_staging(struct rill__device *device, size_t n, struct held_staging **out) {
  struct held_staging *staging = calloc(1, sizeof *staging);
  RILL_REQUIRE(staging != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a held copy");
  rill_status status = rill__event_create(device, NULL, &staging->done);
  if (status == RILL_OK) {
    status = RILL_DOOR(device, memory, alloc, device, n, RILL_MEMORY_PINNED, &staging->memory);
    if (status == RILL_OK) {
      staging->device = device;
      staging->capacity = n;
      *out = staging;
      return RILL_OK;
    }
    rill__object_retire(&staging->done->base);
  }
  free(staging);
  return status == RILL_ERROR_OUT_OF_MEMORY ? rill__fail(status, "no pinned memory for %zu bytes of a held copy", n)
                                            : status;
}

rill_status rill__staging_take(struct rill__device *device, size_t n, struct held_staging **out) {
  *out = find_unused(device, n);
  if (*out == NULL) RILL_TRY(new_staging(device, n, out));
  (*out)->state = STAGING_UNUSED;
  (*out)->down = false;
  return RILL_OK;
}

void rill__staging_give_back(void) {
  rill__errors_aside(); /* what cannot be freed now is no failure of the call */
  for (struct held_staging *list = take_all(); list != NULL;) {
    struct held_staging *staging = list;
    list = staging->next;
    struct rill__device *device = staging->device;
    bool freed = atomic_load(&device->lost) != RILL_OK; /* its memory has gone with it */
    if (!freed && (staging->state == STAGING_UNMARKED || is_unused(staging))) {
      freed = RILL_DOOR(device, memory, free, device, staging->memory, RILL_MEMORY_PINNED) == RILL_OK;
    }
    if (!freed) {
      rill__staging_keep(staging);
      continue;
    }
    rill__object_retire(&staging->done->base);
    free(staging);
  }
  rill__errors_back();
}
