#include "core/tracking/last_use.h"

#include "core/held/held.h"
#include "core/held/record.h"
#include "core/sync/events.h"
#include "core/sync/streams.h"
#include "core/tracking/ranges.h"

#include <stdlib.h>

rill_status rill__pool_check_capture(struct rill__stream *stream) {
  if (rill__is_captured(stream)) return rill__capture_refuse(stream);
  if (RILL__LIKELY(!atomic_load_explicit(&stream->foreign, memory_order_relaxed))) return RILL_OK;
  bool capturing = false;
  RILL_TRY(RILL_DISPATCH(stream, stream, is_capturing, stream, &capturing));
  RILL_REQUIRE(!capturing, RILL_ERROR_CAPTURE_ACTIVE,
               "%s is capturing: a graph that is launched later would use memory that the pool has reused" RILL_HINT
               "allocate before the capture",
               rill__name_of(&stream->base).text);
  return RILL_OK;
}

rill_status rill__last_use_new(struct rill__stream *stream, struct rill__last_use **out) {
  static _Atomic uint64_t now;
  *out = NULL;
  struct rill__event *event = NULL;
  RILL_TRY(rill__pool_check_capture(stream));
  RILL_TRY(rill__event_create(stream->base.device, NULL, &event));
  struct rill__last_use *last_use = &rill__core(event)->last_use;
  *last_use = (struct rill__last_use){ .event = event, .stream = stream->number, .started = atomic_fetch_add(&now, 1) };
  const rill_status status = rill__stream_record(stream, event, 0);
  if (status != RILL_OK) {
    rill__last_uses_free(last_use);
    return status;
  }
  last_use->recorded = atomic_fetch_add(&now, 1);
  *out = last_use;
  return RILL_OK;
}

void rill__last_uses_free(struct rill__last_use *list) {
  while (list != NULL) {
    struct rill__last_use *last_use = list;
    list = last_use->next;
    rill__object_retire(&last_use->event->base);
  }
}

static struct rill__last_use **last_use_list(const struct rill__last_uses *uses, uint64_t stream) {
  return &uses->by_stream[(uint32_t)(stream * 0x9e3779b97f4a7c15 >> 32) & (uses->room - 1)];
}

static bool make_room_for_use(struct rill__last_uses *uses) {
  struct rill__last_uses larger = { .count = uses->count, .room = uses->room == 0 ? 4 : 2 * uses->room };
  if (uses->count < uses->room) return true;
  larger.by_stream = calloc(larger.room, sizeof(struct rill__last_use *));
  if (larger.by_stream == NULL) return uses->room != 0;
  for (uint32_t i = 0; i < uses->room; i++) {
    struct rill__last_use *next;
    for (struct rill__last_use *last_use = uses->by_stream[i]; last_use != NULL; last_use = next) {
      struct rill__last_use **const list = last_use_list(&larger, last_use->stream);
      next = last_use->next;
      last_use->next = *list;
      *list = last_use;
    }
  }
  free(uses->by_stream);
  *uses = larger;
  return true;
}

bool rill__last_use_note(struct rill__last_uses *uses, struct rill__last_use *last_use, struct rill__last_use **dead) {
  *dead = NULL;
  if (!make_room_for_use(uses)) return false;
  struct rill__last_use **const list = last_use_list(uses, last_use->stream), **link = list;
  /* Only an earlier use whose record had returned before this record started is replaced. */
  while (*link != NULL && ((*link)->stream != last_use->stream || (*link)->recorded > last_use->started))
    link = &(*link)->next;
  if (*link != NULL) {
    *dead = *link;
    *link = (*dead)->next;
    (*dead)->next = NULL;
    uses->count--;
  }
  last_use->next = *list;
  *list = last_use;
  uses->count++;
  return true;
}

void rill__last_uses_clear(struct rill__last_uses *uses) {
  for (uint32_t i = 0; i < uses->room; i++) rill__last_uses_free(uses->by_stream[i]);
  free(uses->by_stream);
  *uses = (struct rill__last_uses){ NULL, 0, 0 };
}

bool rill__last_use_is_complete(struct rill__event *event) {
  bool ready = false;
  struct rill__device *device = event->base.device;
  if (atomic_load(&device->lost) != RILL_OK) return true;
  struct rill__event *point = NULL;
  /* A record that failed because held work before it failed marks nothing, not even the work that the driver had before
   * it. */
  if (rill__event_meaning(event, &point) == RILL__RECORD_FAILED) return rill__device_is_idle(device);
  rill__errors_suspend();
  const bool known = rill__self != NULL && rill__event_is_ready(event, &ready) == RILL_OK;
  rill__errors_resume();
  return known && ready;
}

bool rill__last_use_order(struct rill__stream *stream, struct rill__event *event) {
  struct rill__event *point = NULL;
  if (rill__event_meaning(event, &point) != RILL__RECORD_ISSUED) return false;
  rill__errors_suspend();
  const bool ordered = rill__stream_wait(stream, event) == RILL_OK;
  rill__errors_resume();
  return ordered;
}

/* Skips lost devices: their work is over. */
rill_status rill__last_uses_wait(const struct rill__last_uses *uses) {
  RILL_WITHOUT_CANCEL();
  RILL__FOR_EACH_LAST_USE(uses, last_use) {
    struct rill__event *point = NULL;
    struct rill__device *device = last_use->event->base.device;
    if (atomic_load(&device->lost) != RILL_OK) continue;
    const rill_status status = rill__event_meaning(last_use->event, &point) == RILL__RECORD_FAILED
                                   ? RILL_DISPATCH(device, device, synchronize, device)
                                   : RILL_DISPATCH(point, event, synchronize, point, RILL__FOREVER);
    if (status != RILL_OK && atomic_load(&device->lost) == RILL_OK) return status;
  }
  return RILL_OK;
}
