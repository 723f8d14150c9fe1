#include "core/object/options.h"

#include <string.h>

rill_status rill__options_read(void *into, size_t size, const void *from, const char *what) {
  if (from == NULL) return RILL_OK;
  size_t given;
  memcpy(&given, from, sizeof given);
  RILL_REQUIRE(given >= sizeof given, RILL_ERROR_INVALID_ARGUMENT,
               "%s.struct_size is %zu" RILL_HINT "initialize the struct with its _INIT macro", what, given);
  const unsigned char *bytes = from;
  for (size_t i = size; i < given; i++) {
    RILL_REQUIRE(bytes[i] == 0, RILL_ERROR_INVALID_ARGUMENT,
                 "%s has a nonzero byte at offset %zu, but the struct of this library has only %zu bytes" RILL_HINT
                 "leave newer fields zero, or use a newer rill",
                 what, i, size);
  }
  memcpy(into, from, given < size ? given : size);
  memcpy(into, &size, sizeof size);
  return RILL_OK;
}

void rill__options_write(void *to, const void *from, size_t size) {
  size_t given;
  memcpy(&given, to, sizeof given);
  memcpy((char *)to + sizeof given, (const char *)from + sizeof given, (given < size ? given : size) - sizeof given);
}

rill_status rill__options_check_output(const void *to, const char *what) {
  RILL_REQUIRE(to != NULL, RILL_ERROR_INVALID_ARGUMENT, "%s is NULL", what);
  size_t given;
  memcpy(&given, to, sizeof given);
  RILL_REQUIRE(given >= sizeof given, RILL_ERROR_INVALID_ARGUMENT,
               "%s.struct_size is %zu" RILL_HINT "initialize the struct with its _INIT macro", what, given);
  return RILL_OK;
}

rill_status rill__import_options_read(rill_import_options *into, const rill_import_options *from, bool special) {
  RILL_TRY(rill__options_read(into, sizeof *into, from, "rill_import_options"));
  RILL_REQUIRE(into->ownership == RILL_IMPORT_BORROW || into->ownership == RILL_IMPORT_ADOPT,
               RILL_ERROR_INVALID_ARGUMENT, "ownership %u is neither RILL_IMPORT_BORROW nor RILL_IMPORT_ADOPT",
               into->ownership);
  RILL_REQUIRE(into->ownership == RILL_IMPORT_BORROW || into->release == NULL, RILL_ERROR_INVALID_ARGUMENT,
               "a release function is accepted only with RILL_IMPORT_BORROW");
  RILL_REQUIRE(into->ownership == RILL_IMPORT_BORROW || !special, RILL_ERROR_INVALID_ARGUMENT,
               "the vendor's default streams cannot be adopted: they must not be destroyed");
  return RILL_OK;
}
