/* Runs the checks on each device, or on that of RILL_TEST_DEVICE, in the modes that the program was built of. */
#include "conformance.hpp"

#include <rill/rill.h>

#include <cstdio>
#include <cstdlib>

static int run_on(rill_device device) {
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  if (rill_device_get_info(device, &info) != RILL_OK) return 1;
  int failures = 0;
#ifdef WITH_THROWING
  failures += run_throwing(&device);
#endif
#ifdef WITH_RETURNING
  failures += run_returning(&device);
#endif
  std::printf("%s: %d failures\n", info.name, failures);
  return failures;
}

int main() {
  rill_device device = RILL_NULL_DEVICE;
  const char *const name = std::getenv("RILL_TEST_DEVICE");
  int32_t count = 0;
  int failures = 0;
  if (name != nullptr && name[0] != 0) {
    if (rill_device_open(name, &device) != RILL_OK) {
      std::printf("%s\n", rill_last_error_text());
      return 1;
    }
    return run_on(device) != 0;
  }
  if (rill_device_count(&count) != RILL_OK || count == 0) return 1;
  for (int32_t i = 0; i < count; i++) failures += rill_device_get(i, &device) == RILL_OK ? run_on(device) : 1;
  return failures != 0;
}
