/* The last error of a thread, like rill's own. */
#include "backends/comm/engine.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

_Thread_local struct comm_error rill__comm_last_error;
static _Thread_local const char *running = "rill_comm"; /* the current public function */
static _Thread_local char subject[96];                  /* the object that it is called for */
static _Thread_local char line[sizeof(struct comm_error) + 256];

void rill__comm_enter(const char *api) {
  running = api;
  subject[0] = '\0';
}

void rill__comm_about(const char *object) { (void)snprintf(subject, sizeof subject, "%s", object); }

static void set(rill_status status, int32_t code, const char *name, const char *format, va_list list) {
  struct comm_error error = { .status = status, .native_code = code, .api = running };
  char text[sizeof error.message + sizeof error.hint];
  (void)vsnprintf(text, sizeof text, format, list);
  char *hint = strchr(text, COMM_HINT[0]);
  if (hint != NULL) *hint++ = '\0';
  (void)snprintf(error.object, sizeof error.object, "%s", subject);
  (void)snprintf(error.native_name, sizeof error.native_name, "%s", name);
  (void)snprintf(error.message, sizeof error.message, "%.*s", (int)sizeof error.message - 1, text);
  (void)snprintf(error.hint, sizeof error.hint, "%.*s", (int)sizeof error.hint - 1, hint != NULL ? hint : "");
  rill__comm_last_error = error;
}

rill_status rill__comm_fail(rill_status status, const char *format, ...) {
  va_list list;
  va_start(list, format);
  set(status, 0, "", format, list);
  va_end(list);
  return status;
}

rill_status rill__comm_fail_native(rill_status status, int32_t code, const char *name, const char *format, ...) {
  va_list list;
  va_start(list, format);
  set(status, code, name, format, list);
  va_end(list);
  return status;
}

rill_status rill__comm_fail_rill(rill_status status, const char *what) {
  rill_error error = RILL_ERROR_INIT;
  if (rill_last_error(&error) != RILL_OK || error.status != status) return rill__comm_fail(status, "%s", what);
  const bool hints = error.hint[0] != '\0';
  return rill__comm_fail_native(status, error.native_code, error.native_name, "%s: %s%s%s", what, error.message,
                                hints ? COMM_HINT : "", error.hint);
}

rill_status rill__comm_fail_as(const struct comm_error *error) {
  rill__comm_last_error = *error;
  rill__comm_last_error.api = running;
  (void)snprintf(rill__comm_last_error.object, sizeof rill__comm_last_error.object, "%s", subject);
  return error->status;
}

rill_status rill_comm_last_error(rill_error *out) {
  if (out == NULL || out->struct_size < sizeof(size_t)) return RILL_ERROR_INVALID_ARGUMENT;
  const struct comm_error *last = &rill__comm_last_error;
  const bool any = last->status != RILL_OK;
  const rill_error error = { out->struct_size, last->status,      last->native_code, any ? last->api : "",
                             last->object,     last->native_name, last->message,     last->hint };
  const size_t size = out->struct_size < sizeof error ? out->struct_size : sizeof error;
  memcpy(out, &error, size);
  return RILL_OK;
}

const char *rill_comm_last_error_text(void) {
  const struct comm_error *last = &rill__comm_last_error;
  if (last->status == RILL_OK) return "";
  char native[sizeof last->native_name + 20] = "";
  if (last->native_name[0] != '\0') {
    (void)snprintf(native, sizeof native, " [%d %.47s]", (int)last->native_code, last->native_name);
  }
  const bool named = last->object[0] != '\0' && strstr(last->message, last->object) == NULL;
  (void)snprintf(line, sizeof line, "%s: %.95s%s%.639s%s%s%.255s (%s)", last->api, named ? last->object : "",
                 named ? ": " : "", last->message, native, last->hint[0] != '\0' ? "; " : "", last->hint,
                 rill_status_name(last->status));
  return line;
}
