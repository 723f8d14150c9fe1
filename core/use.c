#include "core/use.h"

#include "core/held/held.h"

#include <stdlib.h>

rill_status rill__pool_check_capture(struct rill__stream *stream) {
  if (RILL__LIKELY(!atomic_load_explicit(&stream->foreign, memory_order_relaxed))) return RILL_OK;
  bool capturing = false;
  RILL_TRY(RILL_DOOR(stream, stream, is_capturing, stream, &capturing));
  RILL_REQUIRE(
      !capturing, RILL_ERROR_CAPTURE_ACTIVE,
      "%s is capturing: a graph that is launched later would use memory that the pool has given to others" RILL_HINT
      "allocate before the capture",
      rill__name_of(&stream->base).text);
  return RILL_OK;
}

rill_status rill__use_new(struct rill__stream *stream, struct rill__use **out) {
  static _Atomic uint64_t now;
  *out = NULL;
  struct rill__use *use = calloc(1, sizeof *use);
  RILL_REQUIRE(use != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory to note where memory is used");
  use->stream = stream->number;
  use->begun = atomic_fetch_add(&now, 1);
  rill_status status = rill__pool_check_capture(stream);
  if (status == RILL_OK) status = rill__event_create(stream->base.device, NULL, &use->event);
  if (status == RILL_OK) status = rill__stream_record(stream, use->event, 0);
  if (status != RILL_OK) {
    rill__uses_free(use);
    return status;
  }
  use->recorded = atomic_fetch_add(&now, 1);
  *out = use;
  return RILL_OK;
}

void rill__uses_free(struct rill__use *list) {
  while (list != NULL) {
    struct rill__use *use = list;
    list = use->next;
    if (use->event != NULL) rill__object_retire(&use->event->base);
    free(use);
  }
}

rill_status rill__use_everywhere(struct rill__device *device, struct rill__use **list) {
  size_t count = 0;
  rill_status status = RILL_OK;
  struct rill__stream **streams = rill__device_keep_streams(device, &count);
  RILL_REQUIRE(streams != NULL, RILL_ERROR_OUT_OF_MEMORY, "no host memory for a list of streams");
  for (size_t i = 0; i < count; i++) {
    struct rill__use *use = NULL;
    const bool idle = rill__known_idle(streams[i]) && !rill__is_held(streams[i]);
    if (status == RILL_OK && !idle) status = rill__use_new(streams[i], &use);
    if (use != NULL) {
      use->next = *list;
      *list = use;
    }
    rill__drop(&streams[i]->base);
  }
  free(streams);
  return status;
}

struct rill__use *rill__use_note(struct rill__use **list, struct rill__use *use) {
  struct rill__use **link = list;
  while (*link != NULL && ((*link)->inherited || (*link)->stream != use->stream || (*link)->recorded > use->begun)) {
    link = &(*link)->next;
  }
  struct rill__use *before = *link;
  if (before != NULL) {
    *link = before->next;
    before->next = NULL;
  }
  use->next = *list;
  *list = use;
  return before;
}

/* A record that failed, as what was held before it did, marks nothing: not even what the driver had before. */
static bool is_failed(struct rill__event *event) {
  struct rill__event *point = NULL;
  return rill__event_meaning(event, &point) == RILL__RECORD_FAILED;
}

bool rill__use_is_complete(const struct rill__use *use) {
  bool ready = false;
  struct rill__device *device = use->event->base.device;
  if (atomic_load(&device->lost) != RILL_OK) return true;
  if (is_failed(use->event)) return rill__device_is_idle(device);
  rill__errors_aside();
  const bool known = rill__event_is_ready(use->event, &ready) == RILL_OK;
  rill__errors_back();
  return known && ready;
}

bool rill__uses_are_complete(const struct rill__use *list) {
  for (; list != NULL; list = list->next) {
    if (!rill__use_is_complete(list)) return false;
  }
  return true;
}

/* Work of a lost device is over. */
rill_status rill__uses_wait(const struct rill__use *list) {
  for (; list != NULL; list = list->next) {
    struct rill__event *point = NULL;
    struct rill__device *device = list->event->base.device;
    if (atomic_load(&device->lost) != RILL_OK) continue;
    const rill_status status = rill__event_meaning(list->event, &point) == RILL__RECORD_FAILED
                                   ? RILL_DOOR(device, device, synchronize, device)
                                   : RILL_DOOR(point, event, synchronize, point, RILL__FOREVER);
    if (status != RILL_OK && atomic_load(&device->lost) == RILL_OK) return status;
  }
  return RILL_OK;
}
