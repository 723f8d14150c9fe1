#include "core/device/ipc.h"
#include "core/device/life.h"
#include "core/diagnose/waits.h"
#include "core/held/held.h"
#include "core/held/record.h"
#include "core/held/watch.h"
#include "core/memory/memory.h"
#include "core/object/options.h"
#include "core/object/origin.h"
#include "core/sync/events.h"
#include "core/sync/submit.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- life ---- */

rill_status rill_event_create(rill_device device, const rill_event_options *options, rill_event *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_EVENT;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  struct rill__event *event = NULL;
  RILL_TRY(rill__event_create(d, options, &event));
  rill__core(event)->given = true;
  out->id = event->base.id;
  rill__origin_note(&event->base);
  return RILL_OK;
}

rill_status rill_event_import(rill_device device, uintptr_t native, const rill_import_options *options,
                              rill_event *out) {
  RILL_ENTER();
  if (out != NULL) *out = RILL_NULL_EVENT;
  struct rill__device *d;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  rill_import_options o = RILL_IMPORT_OPTIONS_INIT;
  RILL_TRY(rill__import_options_read(&o, options, false));
  RILL_REQUIRE(d->backend->event->import != NULL, RILL_ERROR_UNSUPPORTED, "%s has no native events to import", d->name);
  RILL_REQUIRE(native != 0, RILL_ERROR_INVALID_ARGUMENT, "native is 0");
  RILL_TRY(rill__device_activate(d));
  struct rill__event *event = NULL;
  RILL_TRY(rill__event_new(d, o.label, &event));
  event->native = native;
  event->imported = true;
  event->timing = true; /* only the driver knows whether the event has timing; it is queried when that matters */
  rill_status status = RILL_DISPATCH(event, event, import, event);
  if (status == RILL_OK) status = rill__object_publish(&event->base, RILL__EVENT);
  if (status != RILL_OK) {
    rill__unref(&event->base);
    return status;
  }
  event->owned = o.ownership == RILL_IMPORT_ADOPT;
  rill__core(event)->release = o.release;
  rill__core(event)->release_user = o.user;
  atomic_store(&rill__is_shared, true);
  atomic_store(&event->foreign, true);
  atomic_store(&rill__core(event)->state, RILL__EVENT_RECORDED);
  rill__core(event)->given = true;
  out->id = event->base.id;
  rill__origin_note(&event->base);
  return RILL_OK;
}

rill_status rill_event_retain(rill_event event) {
  RILL_ENTER();
  return rill__object_retain(event.id, RILL__EVENT);
}

rill_status rill_event_release(rill_event event) {
  RILL_ENTER();
  struct rill__object *last = NULL;
  const rill_status status = rill__object_release(event.id, RILL__EVENT, &last);
  if (last != NULL) {
    struct rill__event *e = (struct rill__event *)last;
    void (*const release)(void *, uintptr_t) = rill__core(e)->release;
    void *const user = rill__core(e)->release_user;
    const uintptr_t native = e->native;
    rill__event_abandon(e);
    if (atomic_load(&e->foreign)) last->recycle = NULL; /* events that other code may have are not reused */
    rill__object_retire(last);
    rill__leave(&self);
    if (release != NULL) {
      rill__wait_for_users(event.id); /* another thread's call may still be using the native event */
      release(user, native);
    }
  }
  return status;
}

/* ---- queries ---- */

#define RILL_ENTER_EVENT(out_value)              \
  RILL_ENTER();                                  \
  if (out != NULL) *out = (out_value);           \
  struct rill__event *e;                         \
  RILL_RESOLVE(RILL__EVENT, event, "event", &e); \
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL")

rill_status rill_event_native(rill_event event, uintptr_t *out) {
  RILL_ENTER_EVENT(0);
  const uintptr_t native = RILL_ASK(e, event, native, e);
  RILL_REQUIRE(native == 0 || atomic_load(&e->foreign) || rill__event_share(e), RILL_ERROR_NOT_READY,
               "%s was recorded again while held streams waited for its previous record; its native event does not "
               "have the last record" RILL_HINT "record it again first",
               rill__name_of(&e->base).text);
  *out = native;
  return RILL_OK;
}

rill_status rill_event_device(rill_event event, rill_device *out) {
  RILL_ENTER_EVENT(RILL_NULL_DEVICE);
  out->id = e->base.device->base.id;
  return RILL_OK;
}

rill_status rill_event_is_recorded(rill_event event, bool *out) {
  RILL_ENTER_EVENT(false);
  struct rill__event *point = NULL;
  const enum rill__meaning meaning = rill__event_meaning(e, &point);
  if (meaning == RILL__RECORD_FAILED) return rill__fail_failed_record(e);
  *out = e->signaled || (meaning != RILL__NO_RECORD && meaning != RILL__RECORD_CAPTURED);
  return RILL_OK;
}

rill_status rill_event_is_ready(rill_event event, bool *out) {
  RILL_ENTER_EVENT(false);
  struct rill__event *point = NULL;
  RILL_TRY(rill__query_event(e, &point, out));
  if (*out) RILL__NOTE_ORDER(seen_event, point);
  return RILL_OK;
}

/* ---- waits of the host ---- */

static rill_status synchronize_event(struct rill__thread *self, struct rill__event *event, uint64_t ns) {
  RILL_TRY(rill__check_usable(event->base.device));
  struct rill__device *device = event->base.device;
  struct rill__event *point = NULL;
  const enum rill__meaning meaning = rill__event_meaning(event, &point);
  if (meaning == RILL__RECORD_FAILED) return rill__fail_failed_record(event);
  if (meaning == RILL__RECORD_CAPTURED) return rill__fail_captured_record(event);
  const bool done = meaning == RILL__NO_RECORD || (meaning == RILL__RECORD_ISSUED && rill__known_complete(point));
  if (done) RILL__NOTE_ORDER(seen_event, point);
  if (done && RILL__LIKELY(!rill__memory_awaits_host(device))) return RILL_OK;
  if (meaning == RILL__RECORD_ISSUED) rill__ref(&point->base);
  rill__ref_and_leave(self, &event->base);
  struct rill__observed wait;
  rill_status status = rill__host_wait_begin(&wait, RILL__OBSERVED_EVENT_WAIT, &event->base);
  if (status == RILL_OK && meaning == RILL__RECORD_HELD) status = rill__held_wait_for_event(event, &ns, &point);
  if (status == RILL_OK && !done && point != NULL) {
    const struct rill__completion_query query = rill__query_completion(&rill__core(point)->work);
    const struct rill__recorded where = rill__event_recorded(point);
    status = RILL_DISPATCH(point, event, synchronize, point, ns);
    if (status == RILL_OK) rill__event_seen(point, &query, &where);
  }
  status = rill__host_wait_end(&wait, status);
  if (status == RILL_OK && point != NULL) RILL__NOTE_ORDER(seen_event, point);
  if (status == RILL_OK) status = rill__memory_synchronized(device, false);
  if (meaning != RILL__NO_RECORD && point != NULL) rill__unref(&point->base);
  rill__unref(&event->base);
  return status;
}

rill_status rill_event_synchronize(rill_event event) {
  RILL_ENTER_TO_BLOCK();
  struct rill__event *e;
  RILL_RESOLVE(RILL__EVENT, event, "event", &e);
  return synchronize_event(self, e, RILL__FOREVER);
}

rill_status rill_event_synchronize_for(rill_event event, uint64_t ns) {
  RILL_ENTER_TO_BLOCK();
  struct rill__event *e;
  RILL_RESOLVE(RILL__EVENT, event, "event", &e);
  return synchronize_event(self, e, ns);
}

/* ---- notifications of the host ---- */

/* Checks that the file is an eventfd, by the name that the kernel gives it.  If /proc is not mounted, any open file is
 * accepted. */
static rill_status check_eventfd(int fd) {
  char path[64], name[128];
  RILL_REQUIRE(fcntl(fd, F_GETFD) >= 0, RILL_ERROR_INVALID_ARGUMENT, "fd %d is not open", fd);
  (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(path, name, sizeof name - 1);
  name[length > 0 ? length : 0] = '\0';
  RILL_REQUIRE(length < 0 || strcmp(name, "anon_inode:[eventfd]") == 0, RILL_ERROR_INVALID_ARGUMENT,
               "fd %d is %s, not an eventfd" RILL_HINT "create one with eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)", fd,
               name);
  return RILL_OK;
}

rill_status rill_event_notify_fd(rill_event event, int fd) {
  RILL_WITHOUT_CANCEL();
  RILL_ENTER();
  struct rill__event *e;
  RILL_RESOLVE(RILL__EVENT, event, "event", &e);
  RILL_TRY(check_eventfd(fd));
  return rill__event_watch(e, &(struct rill__listener){ .fd = fd });
}

rill_status rill_event_then(rill_event event, rill_host_fn fn, void *user) {
  RILL_WITHOUT_CANCEL();
  RILL_ENTER();
  struct rill__event *e;
  RILL_RESOLVE(RILL__EVENT, event, "event", &e);
  RILL_REQUIRE(fn != NULL, RILL_ERROR_INVALID_ARGUMENT, "fn is NULL");
  return rill__event_watch(e, &(struct rill__listener){ .fd = -1, .fn = fn, .user = user });
}

rill_status rill_event_elapsed_time(rill_event start, rill_event end, float *ms) {
  RILL_ENTER();
  if (ms != NULL) *ms = 0;
  struct rill__event *pair[2];
  RILL_RESOLVE(RILL__EVENT, start, "start", &pair[0]);
  RILL_RESOLVE(RILL__EVENT, end, "end", &pair[1]);
  RILL_REQUIRE(ms != NULL, RILL_ERROR_INVALID_ARGUMENT, "ms is NULL");
  static const char *const which[] = { "start", "end" };
  for (int i = 0; i < 2; i++) {
    RILL_REQUIRE(pair[i]->timing, RILL_ERROR_TIMING_DISABLED,
                 "%s, %s, was created without timing" RILL_HINT "create it with .timing = true", which[i],
                 rill__name_of(&pair[i]->base).text);
  }
  struct rill__event *points[2];
  for (int i = 0; i < 2; i++) {
    const enum rill__meaning meaning = rill__event_meaning(pair[i], &points[i]);
    if (meaning == RILL__RECORD_CAPTURED) return rill__fail_captured_record(pair[i]);
    RILL_REQUIRE(meaning != RILL__NO_RECORD, RILL_ERROR_NOT_RECORDED, "%s, %s, has not been recorded", which[i],
                 rill__name_of(&pair[i]->base).text);
  }
  for (int i = 0; i < 2; i++) {
    bool ready = false;
    RILL_TRY(rill__query_event(pair[i], &points[i], &ready)); /* the record may have been held until now */
    RILL_REQUIRE(ready, RILL_ERROR_NOT_READY,
                 "%s, %s, is not complete" RILL_HINT "call rill_event_synchronize on it first", which[i],
                 rill__name_of(&pair[i]->base).text);
    RILL__NOTE_ORDER(seen_event, points[i]);
  }
  RILL_TRY(rill__check_same_device(&pair[0]->base, &pair[1]->base));
  if (pair[0] == pair[1]) return RILL_OK;
  return RILL_DISPATCH(points[0], event, elapsed, points[0], points[1], ms);
}

/* ---- other processes ---- */

rill_status rill_event_ipc_export(rill_event event, rill_ipc_handle *out) {
  RILL_ENTER();
  if (out != NULL) memset(out, 0, sizeof *out);
  struct rill__event *e;
  RILL_RESOLVE(RILL__EVENT, event, "event", &e);
  RILL_REQUIRE(out != NULL, RILL_ERROR_INVALID_ARGUMENT, "out is NULL");
  struct rill__device *device = e->base.device;
  RILL_TRY(rill__ipc_check_able(device, RILL_FEATURE_EVENT_IPC));
  RILL_REQUIRE(!e->imported, RILL_ERROR_INVALID_ARGUMENT,
               "%s is imported" RILL_HINT
               "export it in the process that created it; one handle serves any number of processes",
               rill__name_of(&e->base).text);
  RILL_REQUIRE(e->interprocess, RILL_ERROR_INVALID_ARGUMENT,
               "%s was created without interprocess" RILL_HINT "create it with .interprocess = true",
               rill__name_of(&e->base).text);
  struct rill__ipc_bytes content = { .kind = RILL__IPC_EVENT };
  RILL_TRY(RILL_DISPATCH(e, event, ipc_export, e, &content.native));
  rill__event_export(e);
  rill__ipc_write(&content, device, out);
  return RILL_OK;
}

rill_status rill_event_ipc_import(rill_device device, const rill_ipc_handle *handle, rill_event *out) {
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
  atomic_store(&rill__core(event)->state, RILL__EVENT_RECORDED);
  rill__core(event)->given = true;
  RILL_TRY(rill__event_publish(event, RILL_DISPATCH(event, event, ipc_import, event, &content.native)));
  out->id = event->base.id;
  rill__origin_note(&event->base);
  return RILL_OK;
}
