/* rill_device_open */
#include "support/testing.h"

#include <stdio.h>

static rill_device open_device(const char *name) {
  rill_device device;
  assert_ok(rill_device_open(name, &device));
  return device;
}

static bool has_gpu(void) {
  int32_t count = 0;
  assert_ok(rill_device_count(&count));
  return count > 1;
}

/* Returns the number of devices of a backend. */
static int32_t count_of(uint32_t backend) {
  int32_t count = 0, found = 0;
  assert_ok(rill_device_count(&count));
  for (int32_t i = 0; i < count; i++) {
    rill_device device;
    rill_device_info info = RILL_DEVICE_INFO_INIT;
    assert_ok(rill_device_get(i, &device));
    assert_ok(rill_device_get_info(device, &info));
    found += info.backend == backend;
  }
  return found;
}

static void set_default_name(const char *name) {
  if (name == NULL) {
    assert_int_equal(unsetenv("RILL_DEVICE"), 0);
  } else {
    assert_int_equal(setenv("RILL_DEVICE", name, 1), 0);
  }
}

static void refuses_null_out(void) {
  assert_fails(rill_device_open("cpu", NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_device_open(NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* C1.6: an unknown name of a device is NOT_FOUND. */
static void refuses_unknown_names(void) {
  const char *const none[] = {
    "",        " ",      "CPU",   "cpu ", "cpu:",   "cpu:1",  "cpu:x",  "cpu:0x0",
    "cuda:0x", "hip:-1", "cuda:", "gpux", "tpu:0",  "gpu:0:", "cud",    "cudax",
    "hipp",    ":",      ":0",    "0",    "cpu:-1", "cpu:+0", "cpu: 0", "cpu:00000000000000000000000000000000000001"
  };
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    rill_device device = { 1 };
    assert_fails(rill_device_open(none[i], &device), RILL_ERROR_NOT_FOUND);
    assert_int_equal(device.id, 0);
    assert_says(none[i]);
  }
}

static void says_how_many_devices_exist(void) {
  rill_device device;
  assert_fails(rill_device_open("cpu:1", &device), RILL_ERROR_NOT_FOUND);
  assert_says("\"cpu:1\": there is 1 such device, cpu:0");
  uint32_t gpus = 0;
  for (uint32_t backend = RILL_BACKEND_CPU + 1; backend < RILL_BACKEND_END_; backend++) {
    gpus += (uint32_t)count_of(backend);
  }
  if (gpus == 0) return;
  assert_fails(rill_device_open("gpu:4096", &device), RILL_ERROR_NOT_FOUND);
  assert_says(gpus == 1 ? "there is 1 GPU, gpu:0" : "GPUs, starting with gpu:0");
}

/* C1.6: an index past the last device of a backend is NOT_FOUND; any index of a backend without devices is NO_DEVICE.
 */
static void refuses_unknown_gpu_numbers(void) {
  for (uint32_t backend = RILL_BACKEND_CPU + 1; backend < RILL_BACKEND_END_; backend++) {
    const char *prefix = backend_name(backend);
    const int32_t there = count_of(backend);
    const rill_status expected = there == 0 ? RILL_ERROR_NO_DEVICE : RILL_ERROR_NOT_FOUND;
    char name[64];
    rill_device device = { 1 };
    (void)snprintf(name, sizeof name, "%s:%d", prefix, (int)there);
    assert_fails(rill_device_open(name, &device), expected);
    assert_int_equal(device.id, 0);
    assert_says(prefix);
    if (there > 0) { /* 0, if truncated to 32 bits */
      (void)snprintf(name, sizeof name, "%s:4294967296", prefix);
      assert_fails(rill_device_open(name, &device), RILL_ERROR_NOT_FOUND);
    }
  }
}

/* C2.1 */
static void opens_by_name(void) {
  int32_t count = 0;
  assert_ok(rill_device_count(&count));
  rill_device last;
  assert_ok(rill_device_get(count - 1, &last));
  assert_true(rill_device_equal(open_device("cpu"), last));
  assert_true(rill_device_equal(open_device("cpu:0"), last));
  for (int32_t i = 0; i < count - 1; i++) {
    rill_device device;
    rill_device_info info = RILL_DEVICE_INFO_INIT;
    assert_ok(rill_device_get(i, &device));
    assert_ok(rill_device_get_info(device, &info));
    const char *backend = backend_name(info.backend);
    char name[64];
    (void)snprintf(name, sizeof name, "%s:%d", backend, (int)info.ordinal);
    assert_true(rill_device_equal(open_device(name), device));
    if (info.ordinal == 0) assert_true(rill_device_equal(open_device(backend), device));
  }
}

/* C2.1 */
static void gpu_opens_the_first_gpu(void) {
  rill_device device = { 1 };
  if (has_gpu()) {
    rill_device first;
    assert_ok(rill_device_get(0, &first));
    assert_true(rill_device_equal(open_device("gpu"), first));
  } else {
    assert_fails(rill_device_open("gpu", &device), RILL_ERROR_NO_DEVICE);
    assert_int_equal(device.id, 0);
  }
}

/* C2.1 */
static void null_reads_the_environment(void) {
  const char *before = getenv("RILL_DEVICE");
  char *kept = before != NULL ? strdup(before) : NULL;
  rill_device first, device = { 1 };
  assert_ok(rill_device_get(0, &first)); /* the first GPU, or else the CPU */

  set_default_name(NULL);
  assert_true(rill_device_equal(open_device(NULL), first));
  set_default_name("");
  assert_true(rill_device_equal(open_device(NULL), first));
  set_default_name("cpu");
  assert_true(rill_device_equal(open_device(NULL), open_device("cpu")));
  set_default_name("nonsense");
  assert_fails(rill_device_open(NULL, &device), RILL_ERROR_NOT_FOUND);
  assert_int_equal(device.id, 0);
  assert_says("RILL_DEVICE");
  assert_says("nonsense");
  assert_true(rill_device_equal(open_device("cpu"), open_device("cpu"))); /* a call with a name ignores the variable */

  set_default_name(kept);
  free(kept);
}

static const char *opens_the_same(unsigned index, void *shared) {
  (void)index;
  const rill_device *expected = shared;
  rill_device device;
  REQUIRE_OK(rill_device_open("cpu", &device));
  REQUIRE(rill_device_equal(device, *expected));
  return NULL;
}

/* C1.7, C2.1 */
static void every_thread_opens_the_same_device(void) {
  rill_device device = open_device("cpu");
  run_threads(8, opens_the_same, &device);
}

TESTS_ONCE("rill_device_open", TEST(refuses_null_out), TEST(refuses_unknown_names), TEST(says_how_many_devices_exist),
           TEST(refuses_unknown_gpu_numbers), TEST(opens_by_name), TEST(gpu_opens_the_first_gpu),
           TEST(null_reads_the_environment), TEST(every_thread_opens_the_same_device))
