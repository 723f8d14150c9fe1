/* Watching calls of backends: RILL_TRACE prints a line for each call, and RILL_FAULT makes some calls fail. */
#include "core/device/trace.h"

#include "core/device/life.h"
#include "core/diagnose/inject.h"
#include "core/diagnose/observe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void rill__trace_start(void) {
  const char *const option = secure_getenv("RILL_TRACE");
  const bool traced = option != NULL && option[0] != '\0' && strcmp(option, "0") != 0;
  if (traced) rill__calls_watch(RILL__CALLS_TRACED, true);
}

void rill__trace(const struct rill__object *object, const char *slot, const struct rill__launch *launch) {
  RILL_WITHOUT_CANCEL();
  char line[640], launched[256] = "";
  const struct rill__thread *const self = rill__self;
  const char *const api = self != NULL && self->api != NULL ? self->api : "";
  const bool is_device = object == &object->device->base;
  if (launch != NULL) {
    const char *const label = launch->label;
    (void)snprintf(launched, sizeof launched, ": \"%.60s\"%s%.60s%s, %u x %u x %u blocks of %u x %u x %u threads",
                   launch->kernel->name, label != NULL ? " as \"" : "", label != NULL ? label : "",
                   label != NULL ? "\"" : "", launch->grid[0], launch->grid[1], launch->grid[2], launch->block[0],
                   launch->block[1], launch->block[2]);
  }
  const int length =
      snprintf(line, sizeof line, "rill: %s %s%s%.120s%s%s%s\n", object->device->name, slot, is_device ? "" : " of ",
               is_device ? "" : rill__name_of(object).text, api[0] != '\0' ? " in " : "", api, launched);
  /* Written at once, so that lines of several threads do not mix. */
  if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0) return; /* standard error is closed */
}

static const char *const call_slots[] = {
#define CALL_SLOT(table, slot, word) #table "." #slot,
  RILL__CALL_LIST(CALL_SLOT)
#undef CALL_SLOT
};
static const char *const call_words[] = {
#define CALL_WORD(table, slot, word) word,
  RILL__CALL_LIST(CALL_WORD)
#undef CALL_WORD
};

/* Treats the device as lost.  Memory that its work uses is then freed immediately, so a GPU that is only treated as
 * lost finishes its work first. */
static rill_status lose_device(struct rill__device *device, const char *text) {
  if (device->backend->gpu && atomic_load(&device->active) && atomic_load(&device->lost) == RILL_OK) {
    rill__errors_suspend();
    (void)RILL__SLOT(device, device, synchronize)(device);
    rill__errors_resume();
  }
  return rill__device_lost(device, 0, "", "%s", text);
}

static rill_status fail_call(struct rill__device *device, rill_status status, const char *text) {
  if (status == RILL_ERROR_DEVICE_LOST) return lose_device(device, text);
  rill__note_injected(text);
  return rill__fail(status, "%s", text);
}

rill_status rill__call_watched(const struct rill__object *object, enum rill__call call,
                               const struct rill__object *other, const struct rill__launch *launch) {
  const uint32_t watched = atomic_load(&rill__calls_watched);
  if ((watched & RILL__CALLS_TRACED) != 0) rill__trace(object, call_slots[call], launch);
  if ((watched & RILL__CALLS_FAULTED) == 0) return RILL_OK;
  RILL_WITHOUT_CANCEL();
  const char *const names[RILL__FAULT_NAMES] = {
    object->label,
    object->device->name,
    other != NULL ? other->label : NULL,
    launch != NULL ? launch->label : NULL,
    launch != NULL ? launch->kernel->name : NULL,
  };
  rill_status status = RILL_OK;
  int64_t value = 0;
  char text[RILL__FAULT_TEXT];
  if (!rill__fault_due(call_words[call], true, names, &status, &value, text)) return RILL_OK;
  return fail_call(object->device, status, text);
}
