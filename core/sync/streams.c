/* The streams of a device that may have work, and waiting until there is none. */
#include "core/sync/streams.h"

#include "core/device/backends.h"
#include "core/sync/submit.h"

#include <stdlib.h>

/* Add a stream to its device's list and remove it.  Call them under device->lock. */
static void link_stream(struct rill__stream *stream) {
  struct rill__device *device = stream->base.device;
  rill__core(stream)->next = rill__core(device)->streams;
  rill__core(stream)->link = &rill__core(device)->streams;
  if (rill__core(stream)->next != NULL) rill__core(rill__core(stream)->next)->link = &rill__core(stream)->next;
  rill__core(device)->streams = stream;
}

static void unlink_stream(struct rill__stream *stream) {
  *rill__core(stream)->link = rill__core(stream)->next;
  if (rill__core(stream)->next != NULL) rill__core(rill__core(stream)->next)->link = rill__core(stream)->link;
  rill__core(stream)->link = NULL;
}

void rill__stream_list(struct rill__stream *stream) {
  pthread_mutex_lock(&rill__core(stream->base.device)->lock);
  link_stream(stream);
  pthread_mutex_unlock(&rill__core(stream->base.device)->lock);
}

void rill__stream_unlist(struct rill__stream *stream) {
  pthread_mutex_lock(&rill__core(stream->base.device)->lock);
  if (rill__core(stream)->link != NULL) unlink_stream(stream);
  pthread_mutex_unlock(&rill__core(stream->base.device)->lock);
}

/* Moves the stream to the front of the list, so that it is queried first. */
static void stream_to_front(struct rill__stream *stream) {
  pthread_mutex_lock(&rill__core(stream->base.device)->lock);
  if (rill__core(stream)->link != NULL) {
    unlink_stream(stream);
    link_stream(stream);
  }
  pthread_mutex_unlock(&rill__core(stream->base.device)->lock);
}

bool rill__device_any_shared_stream(struct rill__device *device, bool (*test)(struct rill__stream *stream),
                                    struct rill__name *out) {
  pthread_mutex_lock(&rill__core(device)->lock);
  struct rill__stream *stream = rill__core(device)->streams;
  while (stream != NULL && !(atomic_load_explicit(&stream->foreign, memory_order_relaxed) && test(stream))) {
    stream = rill__core(stream)->next;
  }
  if (stream != NULL) *out = rill__name_of(&stream->base);
  pthread_mutex_unlock(&rill__core(device)->lock);
  return stream != NULL;
}

struct rill__stream **rill__device_visit_streams(struct rill__device *device, size_t *count) {
  size_t most = 1;
  pthread_mutex_lock(&rill__core(device)->lock);
  for (const struct rill__stream *stream = rill__core(device)->streams; stream != NULL;
       stream = rill__core(stream)->next)
    most++;
  struct rill__stream **streams = malloc(most * sizeof *streams);
  *count = 0;
  bool all = streams != NULL;
  for (struct rill__stream *stream = rill__core(device)->streams; stream != NULL && all;
       stream = rill__core(stream)->next) {
    all = rill__ref_if_alive(&stream->base);
    if (!all) break;
    atomic_fetch_add(&rill__core(stream)->visitors, 1);
    streams[(*count)++] = stream;
  }
  pthread_mutex_unlock(&rill__core(device)->lock);
  if (all) return streams;
  while (*count > 0) rill__stream_leave(streams[--*count]);
  free(streams);
  return NULL;
}

/* Stores a positive answer, so that a stream is queried again only after it has had more work. */
static bool is_idle(struct rill__stream *stream) {
  bool capturing = false, complete = false;
  if (rill__known_idle(stream)) return true;
  if (rill__self == NULL) return false; /* there is no host memory for a thread record */
  const struct rill__completion_query query = rill__query_completion(&rill__core(stream)->work);
  if (RILL_DISPATCH(stream, stream, is_capturing, stream, &capturing) != RILL_OK || capturing ||
      RILL_DISPATCH(stream, stream, is_complete, stream, &complete) != RILL_OK || !complete) {
    return false;
  }
  rill__completion_remember(&rill__core(stream)->work, &query);
  return true;
}

/* Queries the stream that had work the last time.  Returns true if it still has work, so that the other streams need no
 * query. */
static bool first_has_work(struct rill__device *device) {
  pthread_mutex_lock(&rill__core(device)->lock);
  struct rill__stream *stream = rill__core(device)->streams;
  const bool kept = stream != NULL && rill__ref_if_alive(&stream->base);
  if (kept) atomic_fetch_add(&rill__core(stream)->visitors, 1);
  pthread_mutex_unlock(&rill__core(device)->lock);
  if (!kept) return stream != NULL;
  const bool idle = is_idle(stream);
  rill__stream_leave(stream);
  return !idle;
}

bool rill__device_is_idle(struct rill__device *device) {
  if (atomic_load(&device->lost) != RILL_OK) return true;
  /* The driver does not know held work yet, so its answers would not include that work. */
  if (atomic_load(&rill__core(device)->held_streams) != 0) return false;
  rill__errors_suspend();
  size_t count = 0;
  struct rill__stream **streams = first_has_work(device) ? NULL : rill__device_visit_streams(device, &count);
  bool idle = streams != NULL;
  for (size_t i = 0; i < count; i++) {
    if (idle && !is_idle(streams[i])) {
      stream_to_front(streams[i]);
      idle = false;
    }
    rill__stream_leave(streams[i]);
  }
  free(streams);
  rill__errors_resume();
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

rill_status rill__backend_synchronize(const struct rill__device *like) {
  RILL_WITHOUT_CANCEL();
  RILL__FOR_EACH_ACTIVE(like, device) {
    const rill_status status = RILL_DISPATCH(device, device, synchronize, device);
    if (status != RILL_OK && atomic_load(&device->lost) == RILL_OK) return status;
  }
  return RILL_OK;
}
