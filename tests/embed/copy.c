#include "copy.h"

#include <rill/rill.h>
#include <stdatomic.h>
#include <stdio.h>

static void count(void *user, rill_status status) {
  if (status == RILL_OK) atomic_fetch_add((_Atomic unsigned *)user, 1);
}

static uint32_t fail(void) {
  (void)fprintf(stderr, "%s\n", rill_last_error_text());
  return 0;
}

__attribute__((visibility("default"))) uint32_t rill_copy_work(const char *name, uint32_t value, int keep) {
  static _Atomic unsigned called;
  const unsigned before = atomic_load(&called);
  rill_device device;
  rill_stream stream;
  uint32_t *memory = NULL, *host = NULL;
  if (rill_device_open(name, &device) != RILL_OK || rill_stream_create(device, NULL, &stream) != RILL_OK ||
      RILL_NEW(device, RILL_MEMORY_DEVICE, 1000, &memory) != RILL_OK ||
      RILL_NEW(device, RILL_MEMORY_PINNED, 1000, &host) != RILL_OK ||
      rill_fill_async(stream, memory, &value, sizeof value, 1000) != RILL_OK ||
      rill_copy_async(stream, host, memory, 1000 * sizeof *host) != RILL_OK ||
      rill_stream_host_call(stream, count, &called) != RILL_OK || rill_stream_synchronize(stream) != RILL_OK) {
    return fail();
  }
  const uint32_t result = atomic_load(&called) > before ? host[999] : 0;
  if (keep && rill_fill_async(stream, memory, &value, sizeof value, 1000) != RILL_OK) return fail();
  if (!keep && (rill_free(memory) != RILL_OK || rill_free(host) != RILL_OK || rill_stream_release(stream) != RILL_OK)) {
    return fail();
  }
  return result;
}
