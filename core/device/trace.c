/* RILL_TRACE: a line on standard error for each call of a backend. */
#include "core/device/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool rill__is_traced;

void rill__trace_start(void) {
  const char *const option = getenv("RILL_TRACE");
  rill__is_traced = option != NULL && option[0] != '\0' && strcmp(option, "0") != 0;
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
  /* In one piece, so that lines of several threads do not mix. */
  if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0) return; /* there is nobody to say it to */
}
