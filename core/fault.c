#include "core/diagnose/inject.h"

#include <rill/fault.h>

rill_status rill_fault_set(const char *rules) {
  RILL_ENTER();
  struct rill__fault_rules read;
  char why[1200];
  RILL_REQUIRE(rules != NULL, RILL_ERROR_INVALID_ARGUMENT, "rules is NULL" RILL_HINT "pass \"\" to remove all rules");
  RILL_REQUIRE(rill__fault_parse(rules, &read, why, sizeof why), RILL_ERROR_INVALID_ARGUMENT, "%s", why);
  rill__fault_replace(&read);
  return RILL_OK;
}

void rill_fault_clear(void) { rill__fault_remove(); }

uint64_t rill_fault_count(void) { return rill__fault_injected(); }

bool rill_fault_is_due(const char *word, const char *label, int64_t *value) {
  const char *const names[RILL__FAULT_NAMES] = { label };
  rill_status status = RILL_OK;
  int64_t found = 0;
  char text[RILL__FAULT_TEXT];
  rill__fault_start();
  const bool due =
      word != NULL && rill__fault_is_word(word) && rill__fault_due(word, false, names, &status, &found, text);
  if (value != NULL) *value = found;
  return due;
}
