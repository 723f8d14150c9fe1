/* First use from many threads at once (C1.7): nothing of rill has been called in this process before. */
#include "support/testing.h"

#include "gate.rill.h"

#include <stdio.h>

enum { THREADS = 64 };

/* Returns the device that a thread uses: the one of RILL_TEST_DEVICE, else each device in turn. */
static const char *pick_device(unsigned index, rill_device *device) {
  const char *list = getenv("RILL_TEST_DEVICE");
  if (list != NULL && list[0] != '\0') {
    char name[64];
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(list, ","), list);
    REQUIRE_OK(rill_device_open(name, device));
    return NULL;
  }
  int32_t count = 0;
  REQUIRE_OK(rill_device_count(&count));
  REQUIRE_OK(rill_device_get((int32_t)index % count, device));
  return NULL;
}

struct got {
  rill_device device;
  rill_stream standard;
};

static const char *uses(unsigned index, void *shared) {
  struct got *got = (struct got *)shared + index;
  const char *failure = pick_device(index, &got->device);
  if (failure != NULL) return failure;
  rill_stream own;
  unsigned *counter = NULL;
  const unsigned zero = 0;
  const rill_launch launch = rill_launch_1d(256, 64);
  REQUIRE_OK(rill_device_default_stream(got->device, &got->standard));
  REQUIRE_OK(rill_stream_create(got->device, NULL, &own));
  REQUIRE_OK(RILL_NEW(got->device, RILL_MEMORY_PINNED, 1, &counter));
  REQUIRE_OK(rill_fill_async(own, counter, &zero, sizeof zero, 1));
  REQUIRE_OK(increment_launch(own, &launch, counter));
  REQUIRE_OK(rill_stream_wait_stream(got->standard, own));
  REQUIRE_OK(rill_stream_synchronize(got->standard));
  REQUIRE(*counter == 256);
  REQUIRE_OK(rill_free(counter));
  REQUIRE_OK(rill_stream_release(own));
  return NULL;
}

static void every_thread_gets_the_same_devices(void) {
  static struct got got[THREADS];
  run_threads(THREADS, uses, got);
  for (unsigned i = 0; i < THREADS; i++) {
    for (unsigned j = 0; j < i; j++) {
      assert_int_equal(rill_stream_equal(got[i].standard, got[j].standard),
                       rill_device_equal(got[i].device, got[j].device));
    }
  }
}

TESTS_ONCE("stress: first use", TEST(every_thread_gets_the_same_devices))
