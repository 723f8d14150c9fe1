#include "core/object/error.h"

#include "core/object/handle.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void set_error(rill_status status, int32_t code, const char *name, const char *format, va_list list) {
  struct rill__thread *self = rill__self != NULL ? rill__self : rill__thread_attach();
  if (self == NULL) return;
  /* Formatted into a separate buffer, because an argument may be a string of the last error. */
  char text[sizeof self->error.message + sizeof self->error.hint];
  (void)vsnprintf(text, sizeof text, format, list);
  char *hint = strchr(text, RILL_HINT[0]);
  if (hint != NULL) *hint++ = '\0';

  struct rill__error_record *error = self->suspend_depth == 0 ? &self->error : &self->suspended_error;
  error->status = status;
  error->native_code = code;
  (void)snprintf(error->api, sizeof error->api, "%s", self->api != NULL ? self->api : "");
  error->line[0] = '\0';
  (void)snprintf(error->native_name, sizeof error->native_name, "%s", name != NULL ? name : "");
  (void)snprintf(error->message, sizeof error->message, "%.*s", (int)sizeof error->message - 1, text);
  (void)snprintf(error->hint, sizeof error->hint, "%.*s", (int)sizeof error->hint - 1, hint != NULL ? hint : "");
  error->object[0] = '\0';
  if (self->subject != NULL) {
    (void)snprintf(error->object, sizeof error->object, "%s", rill__name_of(self->subject).text);
  }
}

rill_status rill__fail(rill_status status, const char *format, ...) {
  va_list list;
  va_start(list, format);
  set_error(status, 0, NULL, format, list);
  va_end(list);
  return status;
}

rill_status rill__fail_native(rill_status status, int32_t code, const char *name, const char *format, ...) {
  va_list list;
  va_start(list, format);
  set_error(status, code, name, format, list);
  va_end(list);
  return status;
}

void rill__error_of_launch(const char *label) {
  struct rill__thread *self = rill__self;
  if (self == NULL) return;
  struct rill__error_record *error = self->suspend_depth == 0 ? &self->error : &self->suspended_error;
  char text[sizeof error->message];
  (void)snprintf(text, sizeof text, "launch \"%.60s\": %.*s", label, (int)sizeof text - 80, error->message);
  memcpy(error->message, text, sizeof text);
  error->line[0] = '\0';
}

rill_status rill__fail_in_host_call(void) {
  return rill__fail(RILL_ERROR_INVALID_ARGUMENT,
                    "called inside a host call, where it could deadlock: it may wait for work that is queued after "
                    "that host call" RILL_HINT "let another thread call it");
}

void rill__errors_suspend(void) {
  struct rill__thread *self = rill__self != NULL ? rill__self : rill__thread_attach();
  if (self != NULL) self->suspend_depth++;
}

void rill__errors_resume(void) {
  struct rill__thread *self = rill__self;
  if (self != NULL) self->suspend_depth--;
}
