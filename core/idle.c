/* Whether devices have work, and waiting until they have none. */
#include "core/call.h"
#include "core/held/held.h"
#include "core/registry.h"

#include <stdlib.h>

struct rill__stream **rill__device_keep_streams(struct rill__device *device, size_t *count) {
  size_t most = 1;
  pthread_mutex_lock(&device->lock);
  for (const struct rill__stream *stream = device->streams; stream != NULL; stream = stream->next) most++;
  struct rill__stream **streams = malloc(most * sizeof *streams);
  *count = 0;
  for (struct rill__stream *stream = device->streams; stream != NULL && streams != NULL; stream = stream->next) {
    if (rill__keep_if_kept(&stream->base)) streams[(*count)++] = stream;
  }
  pthread_mutex_unlock(&device->lock);
  return streams;
}

bool rill__device_is_idle(struct rill__device *device) {
  if (atomic_load(&device->lost) != RILL_OK) return true;
  if (atomic_load(&device->held_streams) != 0) return false;
  size_t count = 0;
  struct rill__stream **streams = rill__device_keep_streams(device, &count);
  bool idle = streams != NULL;
  rill__errors_aside();
  for (size_t i = 0; i < count; i++) {
    bool capturing = false, complete = rill__known_idle(streams[i]);
    if (idle && !complete &&
        (RILL_DOOR(streams[i], stream, is_capturing, streams[i], &capturing) != RILL_OK || capturing ||
         RILL_DOOR(streams[i], stream, is_complete, streams[i], &complete) != RILL_OK)) {
      complete = false;
    }
    idle = idle && complete;
    rill__drop(&streams[i]->base);
  }
  rill__errors_back();
  free(streams);
  return idle;
}

struct rill__device *rill__next_active(const struct rill__device *like, const struct rill__device *after) {
  uint32_t ordinal = after == NULL ? 0 : (uint32_t)after->info.ordinal + 1;
  for (struct rill__device *device; (device = rill__device_at(like->backend, ordinal)) != NULL; ordinal++) {
    if (atomic_load(&device->active) && atomic_load(&device->lost) == RILL_OK) return device;
  }
  return NULL;
}

bool rill__backend_is_idle(const struct rill__device *like) {
  RILL__FOR_EACH_ACTIVE(like, device) {
    if (!rill__device_is_idle(device)) return false;
  }
  return true;
}

bool rill__backend_holds(const struct rill__device *like) {
  RILL__FOR_EACH_ACTIVE(like, device) {
    if (atomic_load(&device->held_streams) != 0) return true;
  }
  return false;
}

rill_status rill__backend_synchronize(const struct rill__device *like) {
  RILL__FOR_EACH_ACTIVE(like, device) {
    const rill_status status = RILL_DOOR(device, device, synchronize, device);
    if (status != RILL_OK && atomic_load(&device->lost) == RILL_OK) return status;
  }
  return RILL_OK;
}
