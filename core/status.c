#include "core/object/options.h"
#include "core/object/thread.h"

#include <stdio.h>
#include <string.h>

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
  (void)snprintf(error->line, sizeof error->line, "%s: %s%s%.*s%s%s%s (%s)", error->api, named ? error->object : "",
                 named ? ": " : "", (int)strcspn(error->message, "\n"), error->message, native,
                 error->hint[0] != '\0' ? "; " : "", error->hint, rill_status_name(error->status));
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
