#include "core/device/life.h"
#include "core/diagnose/settings.h"
#include "core/memory/memory.h"

#include <rill/diagnose.h>
#include <string.h>

bool rill_check_is_on(const char *name) {
  return name != NULL && (rill__settings()->checks & rill__check_of(name, strlen(name))) != 0;
}

rill_status rill_device_get_leaks(rill_device device, rill_leak *leaks, size_t *count) {
  RILL_ENTER();
  struct rill__device *d;
  const size_t room = count != NULL ? *count : 0;
  if (count != NULL) *count = 0;
  RILL_RESOLVE(RILL__DEVICE, device, "device", &d);
  RILL_REQUIRE(count != NULL && (leaks != NULL || room == 0), RILL_ERROR_INVALID_ARGUMENT, "%s is NULL",
               count == NULL ? "count" : "leaks");
  RILL_REQUIRE(rill__checks(RILL__CHECK_MEMORY), RILL_ERROR_UNSUPPORTED,
               "what is alive is not noted" RILL_HINT "run the program with RILL_CHECK=memory in its environment");
  RILL_TRY(rill__device_activate(d));
  size_t all = room;
  RILL_REQUIRE(rill__leaks_list(d, leaks, &all), RILL_ERROR_OUT_OF_MEMORY,
               "no host memory for a list of what is alive");
  *count = all;
  return RILL_OK;
}
