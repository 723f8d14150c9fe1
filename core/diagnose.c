#include "core/diagnose/settings.h"

#include <rill/diagnose.h>
#include <string.h>

bool rill_check_is_on(const char *name) {
  return name != NULL && (rill__settings()->checks & rill__check_of(name, strlen(name))) != 0;
}
