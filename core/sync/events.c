/* Creating and destroying events. */
#include "core/sync/events.h"

#include "core/device/life.h"
#include "core/object/options.h"
#include "core/sync/event_cache.h"

bool (*_Atomic rill__event_leave_fence)(struct rill__event *event);
void (*_Atomic rill__event_leave_capture)(struct rill__event *event, enum rill__event_state after);

static void destroy_event(struct rill__object *object) {
  struct rill__event *event = (struct rill__event *)object;
  rill__event_reset(event);
  if (event->owned) RILL_ASK(event, event, destroy, event);
  rill__object_free(object);
}

rill_status rill__event_new(struct rill__device *device, const char *label, struct rill__event **out) {
  const size_t size = RILL__PART_OFFSET(struct rill__event) + device->backend->event_size;
  return rill__object_new(size, device, label, destroy_event, out);
}

rill_status rill__event_publish(struct rill__event *event, rill_status status) {
  event->owned = status == RILL_OK;
  if (status == RILL_OK) status = rill__object_publish(&event->base, RILL__EVENT);
  if (status != RILL_OK) rill__unref(&event->base);
  return status;
}

rill_status rill__event_create(struct rill__device *device, const rill_event_options *options,
                               struct rill__event **out) {
  rill_event_options o = RILL_EVENT_OPTIONS_INIT;
  RILL_TRY(rill__options_read(&o, sizeof o, options, "rill_event_options"));
  RILL_REQUIRE(!(o.interprocess && o.timing), RILL_ERROR_INVALID_ARGUMENT,
               "interprocess and timing are both set: no driver shares timing events");
  RILL_TRY(rill__device_activate(device));
  struct rill__event *event = NULL;
  const bool poolable = !o.interprocess && device->backend->event->recycle != NULL;
  /* a signaled event is not recycled, because `create` may note the time of its creation */
  if (poolable && !o.signaled && (o.label == NULL || o.label[0] == '\0')) {
    event = rill__event_cache_take(device, o.timing, o.blocking_sync);
    if (event != NULL) {
      atomic_store_explicit(&rill__core(event)->work.owner, rill__self, memory_order_relaxed);
      rill__object_republish(&event->base);
      *out = event;
      return RILL_OK;
    }
  }
  RILL_TRY(rill__event_new(device, o.label, &event));
  if (poolable) event->base.recycle = rill__event_cache_put;
  event->timing = o.timing;
  event->blocking_sync = o.blocking_sync;
  event->interprocess = o.interprocess;
  event->signaled = o.signaled;
  atomic_init(&rill__core(event)->work.owner, rill__self);
  RILL_TRY(rill__event_publish(event, RILL_DISPATCH(event, event, create, event)));
  *out = event;
  return RILL_OK;
}
