/* Events shared between processes. */
#include "core/device/life.h"
#include "core/held/held.h"
#include "core/ipc.h"
#include "core/sync/events.h"

#include <string.h>

rill_status rill_event_ipc_export(rill_event event, rill_ipc_handle *out) {
  RILL_ENTER();
  if (out != NULL) memset(out, 0, sizeof *out);
  struct rill__event *e;
  RILL_RESOLVE(RILL__EVENT, event, "event", &e);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  struct rill__device *device = e->base.device;
  RILL_TRY(rill__ipc_check_able(device, RILL_FEATURE_EVENT_IPC));
  RILL_REQUIRE(!e->imported, RILL_ERROR_INVALID_ARGUMENT,
               "%s is imported" RILL_HINT "export it where it was created; its handle serves any number of processes",
               rill__name_of(&e->base).text);
  RILL_REQUIRE(e->interprocess, RILL_ERROR_INVALID_ARGUMENT,
               "%s was created without interprocess" RILL_HINT "create it with .interprocess = true",
               rill__name_of(&e->base).text);
  struct rill__ipc_bytes content = { .kind = RILL__IPC_EVENT };
  RILL_TRY(RILL_DOOR(e, event, ipc_export, e, &content.native));
  rill__event_export(e);
  rill__ipc_write(&content, device, out);
  return RILL_OK;
}

rill_status rill_event_ipc_import(rill_device device, const rill_ipc_handle *handle, rill_event *out) {
  rill__reclaim();
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_EVENT;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL && handle != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               out == NULL ? "out" : "handle");
  RILL_TRY(rill__ipc_check_able(d, RILL_FEATURE_EVENT_IPC));
  struct rill__ipc_bytes content;
  RILL_TRY(rill__ipc_read(handle, d, RILL__IPC_EVENT, &content));
  RILL_TRY(rill__device_activate(d));
  struct rill__event *event = NULL;
  RILL_TRY(rill__event_new(d, NULL, &event));
  event->imported = true;
  event->interprocess = true;
  atomic_store(&event->foreign, true);
  atomic_store(&event->state, RILL__EVENT_RECORDED);
  rill_status status = RILL_DOOR(event, event, ipc_import, event, &content.native);
  if (status == RILL_OK) {
    event->owned = true;
    status = rill__object_publish(&event->base, RILL__EVENT);
  }
  if (status != RILL_OK) {
    rill__drop(&event->base);
    return status;
  }
  out->id = event->base.id;
  return RILL_OK;
}
