/* Behaviour of rill without a GPU, a driver or a library (C1.9, T9, T10).
 *
 * The build runs this with different environments. If a GPU is reached nevertheless, rill reports it, and only
 * assertions that hold there are made. */
#include "support/testing.h"

#include <stdio.h>

static int32_t device_count(void) {
  int32_t count = 0;
  assert_ok(rill_device_count(&count));
  return count;
}

static bool has_gpu(void) { return device_count() > 1; }

/* Is the backend one that this build has? */
static bool is_built_in(const char *backend) {
  const char *list = getenv("RILL_TEST_BACKENDS");
  return list != NULL && strstr(list, backend) != NULL;
}

/* C1.9, T10 */
static void the_cpu_is_always_there(void) {
  rill_device device, last;
  assert_ok(rill_device_open("cpu", &device));
  assert_ok(rill_device_get(device_count() - 1, &last));
  assert_true(rill_device_equal(device, last));
}

static void the_default_device_is_the_cpu(void) {
  if (has_gpu()) return;
  rill_device device, cpu;
  assert_ok(rill_device_open(NULL, &device));
  assert_ok(rill_device_open("cpu", &cpu));
  assert_true(rill_device_equal(device, cpu));
}

/* C1.9: the reason: libraries tried, and the loader's words; or that the backend is not built in. */
static void says_why_a_device_is_absent(const char *backend, const char *const *libraries) {
  char name[32];
  rill_device device = { 1 };
  (void)snprintf(name, sizeof name, "%s:0", backend);
  spoil_last_error();
  if (rill_device_open(name, &device) == RILL_OK) {
    assert_true(has_gpu());
    return;
  }
  assert_int_equal(device.id, 0);
  assert_fails(rill_device_open(name, &device), RILL_ERROR_NO_DEVICE);
  assert_says(backend);
  if (!is_built_in(backend)) {
    assert_says("not built in");
    return;
  }
  const char *machine = getenv("LD_LIBRARY_PATH");
  if (getenv("RILL_TEST_BROKEN") != NULL) {
    for (int i = 0; libraries[i] != NULL; i++) assert_says(libraries[i]);
    assert_says("invalid ELF header");
  } else if (machine != NULL && strstr(machine, "nothing") != NULL &&
             strstr(rill_last_error_text(), "cannot open shared object file") != NULL) {
    for (int i = 0; libraries[i] != NULL; i++) assert_says(libraries[i]);
  }
}

static void says_why_there_is_no_cuda(void) {
  static const char *const libraries[] = { "libcuda.so.1", NULL };
  says_why_a_device_is_absent("cuda", libraries);
}

static void says_why_there_is_no_hip(void) {
  static const char *const libraries[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", NULL };
  says_why_a_device_is_absent("hip", libraries);
}

static void says_why_there_is_no_gpu(void) {
  if (has_gpu()) return;
  rill_device device = { 1 };
  assert_fails(rill_device_open("gpu", &device), RILL_ERROR_NO_DEVICE);
  assert_int_equal(device.id, 0);
  for (uint32_t backend = RILL_BACKEND_CPU + 1; backend < RILL_BACKEND_END_; backend++) {
    assert_says(backend_name(backend));
  }
}

/* The answer stays the same, and the search is not repeated. */
static void says_the_same_every_time(void) {
  const int32_t count = device_count();
  for (int i = 0; i < 100; i++) {
    rill_device device;
    assert_int_equal(device_count(), count);
    if (count == 1) assert_int_equal(rill_device_open("cuda:0", &device), RILL_ERROR_NO_DEVICE);
  }
}

/* RILL_DEVICE is asked for by NULL, and its failures name it. */
static void failures_name_the_environment(void) {
  rill_device device = { 1 };
  assert_int_equal(setenv("RILL_DEVICE", "nonsense", 1), 0);
  assert_fails(rill_device_open(NULL, &device), RILL_ERROR_NOT_FOUND);
  assert_int_equal(device.id, 0);
  assert_says("RILL_DEVICE");
  if (!has_gpu()) {
    assert_int_equal(setenv("RILL_DEVICE", "cuda:0", 1), 0);
    assert_fails(rill_device_open(NULL, &device), RILL_ERROR_NO_DEVICE);
    assert_says("RILL_DEVICE");
  }
  assert_int_equal(unsetenv("RILL_DEVICE"), 0);
}

/* C1.9: a complete program on the available devices. */
static void a_complete_program_runs(void) {
  rill_device device;
  rill_stream first, second;
  rill_event event;
  uint32_t *memory, *host, value = 5;
  assert_ok(rill_device_open(NULL, &device));
  assert_ok(rill_stream_create(device, NULL, &first));
  assert_ok(rill_stream_create(device, NULL, &second));
  assert_ok(RILL_NEW(device, RILL_MEMORY_DEVICE, 1, &memory));
  assert_ok(RILL_NEW(device, RILL_MEMORY_PINNED, 1, &host));
  assert_ok(rill_fill_async(first, memory, &value, sizeof value, 1));
  assert_ok(rill_stream_record_new_event(first, NULL, &event));
  assert_ok(rill_stream_wait_event(second, event, 0));
  assert_ok(rill_copy_async(second, host, memory, sizeof value));
  assert_ok(rill_stream_synchronize(second));
  assert_int_equal(*host, 5);
  assert_ok(rill_free(memory));
  assert_ok(rill_free(host));
  assert_ok(rill_event_release(event));
  assert_ok(rill_stream_release(first));
  assert_ok(rill_stream_release(second));
}

TESTS_ONCE("no GPU", TEST(the_cpu_is_always_there), TEST(the_default_device_is_the_cpu),
           TEST(says_why_there_is_no_cuda), TEST(says_why_there_is_no_hip), TEST(says_why_there_is_no_gpu),
           TEST(says_the_same_every_time), TEST(failures_name_the_environment), TEST(a_complete_program_runs))
