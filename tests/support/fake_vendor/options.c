/* The environment: RILL_FAKE_NAME, or RILL_FAKE_CUDA_NAME and RILL_FAKE_HIP_NAME for one library alone. */
#include "options.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct fake_options options;
static pthread_once_t once = PTHREAD_ONCE_INIT;

const char *fake_environment(const char *name) {
  char key[64], vendor[8] = "";
  for (size_t i = 0; i + 1 < sizeof vendor && fake_vendor.backend[i] != '\0'; i++)
    vendor[i] = (char)toupper((unsigned char)fake_vendor.backend[i]);
  (void)snprintf(key, sizeof key, "RILL_FAKE_%s_%s", vendor, name);
  const char *value = getenv(key);
  if (value != NULL) return value;
  (void)snprintf(key, sizeof key, "RILL_FAKE_%s", name);
  return getenv(key);
}

static long number(const char *name, long otherwise, long least, long most) {
  const char *text = fake_environment(name);
  if (text == NULL) return otherwise;
  char *end;
  const long value = strtol(text, &end, 10);
  if (end == text || *end != '\0' || value < least || value > most)
    fake_die("RILL_FAKE_%s=%s: expected a number from %ld to %ld", name, text, least, most);
  return value;
}

/* Returns the number of devices that a mask leaves: up to the first number without a device. */
static int count_masked(const char *mask, int devices) {
  int count = 0;
  if (mask == NULL || *mask == '\0') return devices;
  while (*mask != '\0') {
    char *end;
    const long ordinal = strtol(mask, &end, 10);
    if (end == mask || ordinal < 0 || ordinal >= devices) return count;
    count++;
    mask = end + (*end == ',');
  }
  return count;
}

static void read_all(void) {
  options.devices = (int)number("DEVICES", 2, 0, FAKE_MAX_DEVICES);
  options.devices = count_masked(fake_device_mask(), options.devices);
  options.version = (int)number("VERSION", fake_vendor.default_version, 1, 999999999);
  options.init_code = (int)number("INIT", FAKE_OK, 0, 9999);
  options.memory = (uint64_t)number("MEMORY", 1024, 1, 1 << 20) << 20;
  options.reuse_handles = number("REUSE", 0, 0, 1) != 0;
  options.summary = number("SUMMARY", 0, 0, 1) != 0;
  options.yields = number("YIELD", 0, 0, 1) != 0;
  options.peers = number("PEERS", 1, 0, 1) != 0;
  options.query_ns = (uint64_t)number("QUERY_NS", 0, 0, 1000000000);
  const char *target = fake_environment("TARGET");
  (void)snprintf(options.target, sizeof options.target, "%s", target != NULL ? target : fake_vendor.default_target);
  if (strpbrk(options.target, "0123456789") == NULL) fake_die("RILL_FAKE_TARGET=%s: expected sm_NN or gfxNNN", target);
}

const struct fake_options *fake_options(void) {
  (void)pthread_once(&once, read_all);
  return &options;
}
