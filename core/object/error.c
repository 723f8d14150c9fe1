#include "core/object/error.h"

#include "core/object/handle.h"
#include "core/object/options.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void set_error(rill_status status, int32_t code, const char *name, const char *format, va_list list) {
  struct rill__thread *self = rill__self != NULL ? rill__self : rill__thread_attach();
  if (self == NULL) return;
  /* Formatted aside: an argument may be a string of the last error. */
  char text[sizeof self->error.message + sizeof self->error.hint];
  (void)vsnprintf(text, sizeof text, format, list);
  char *hint = strchr(text, RILL_HINT[0]);
  if (hint != NULL) *hint++ = '\0';

  struct rill__error_record *error = self->aside_depth == 0 ? &self->error : &self->aside;
  error->status = status;
  error->native_code = code;
  error->api = self->api;
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

rill_status rill__fail_in_host_call(void) {
  return rill__fail(RILL_ERROR_INVALID_ARGUMENT,
                    "called inside a host call: it may wait for work that comes after that one, for ever" RILL_HINT
                    "let another thread call it");
}

void rill__errors_aside(void) {
  struct rill__thread *self = rill__self != NULL ? rill__self : rill__thread_attach();
  if (self != NULL) self->aside_depth++;
}

void rill__errors_back(void) {
  struct rill__thread *self = rill__self;
  if (self != NULL) self->aside_depth--;
}

rill_status rill_last_error(rill_error *out) {
  if (out == NULL || out->struct_size < sizeof(size_t)) return RILL_ERROR_INVALID_ARGUMENT;
  rill_error error = { sizeof error, RILL_OK, 0, "", "", "", "", "" };
  const struct rill__thread *self = rill__self;
  if (self != NULL && self->error.status != RILL_OK) {
    error.status = self->error.status;
    error.native_code = self->error.native_code;
    error.api = self->error.api;
    error.object = self->error.object;
    error.native_name = self->error.native_name;
    error.message = self->error.message;
    error.hint = self->error.hint;
  }
  rill__options_write(out, &error, sizeof error);
  return RILL_OK;
}

const char *rill_last_error_text(void) {
  struct rill__thread *self = rill__self;
  if (self == NULL || self->error.status == RILL_OK) return "";
  struct rill__error_record *error = &self->error;
  if (error->line[0] != '\0') return error->line;
  char native[112] = "";
  if (error->native_name[0] != '\0') {
    (void)snprintf(native, sizeof native, " [%d %s]", (int)error->native_code, error->native_name);
  }
  const bool named = error->object[0] != '\0' && strstr(error->message, error->object) == NULL;
  (void)snprintf(error->line, sizeof error->line, "%s: %s%s%s%s%s%s (%s)", error->api, named ? error->object : "",
                 named ? ": " : "", error->message, native, error->hint[0] != '\0' ? "; " : "", error->hint,
                 rill_status_name(error->status));
  return error->line;
}

const char *rill_status_name(rill_status status) {
  switch (status) {
#define CASE(name, number, text) \
  case number: return "RILL_" #name;
    RILL_STATUS_LIST(CASE)
#undef CASE
    default: return "RILL_ERROR_?";
  }
}

const char *rill_status_message(rill_status status) {
  switch (status) {
#define CASE(name, number, text) \
  case number: return text;
    RILL_STATUS_LIST(CASE)
#undef CASE
    default: return "unknown status";
  }
}
