/* Running tests, for each device. */
#include "testing_internal.h"

#include "gate.rill.h"

#include <rill/bundle.h>

#include <stdio.h>

struct device_under_test dut;

static unsigned skipped;

const char *backend_name(uint32_t backend) {
#define NAME(constant, number, name) \
  if (backend == (number)) return name;
  RILL_BACKEND_LIST(NAME)
#undef NAME
  return "no backend";
}

static bool describe(int32_t index, rill_device *device, rill_device_info *info) {
  *info = (rill_device_info)RILL_DEVICE_INFO_INIT;
  return rill_device_get(index, device) == RILL_OK && rill_device_get_info(*device, info) == RILL_OK;
}

/* Returns whether the device is in the comma-separated list RILL_TEST_DEVICE. Unset or empty: all are. */
static bool is_wanted(const char *name) {
  const char *list = getenv("RILL_TEST_DEVICE");
  if (list == NULL || list[0] == '\0') return true;
  const size_t length = strlen(name);
  while (*list != '\0') {
    const size_t item = strcspn(list, ",");
    if (item == length && strncmp(list, name, length) == 0) return true;
    list += item + (list[item] == ',');
  }
  return false;
}

/* Another GPU of the same backend; the CPU for a GPU, and for the CPU the first GPU that is wanted. */
static void find_companions(int32_t count) {
  for (int32_t i = 0; i < count; i++) {
    rill_device other;
    rill_device_info info;
    char name[32];
    if (!describe(i, &other, &info) || rill_device_equal(other, dut.device)) continue;
    name_device(&info, name, sizeof name);
    const bool same = info.backend == dut.info.backend;
    if (same && dut.second.id == 0) dut.second = other;
    if (!same && dut.foreign.id == 0 && (info.backend == RILL_BACKEND_CPU || (!dut.gpu && is_wanted(name)))) {
      dut.foreign = other;
    }
  }
}

static void run_one(void **state) { ((const struct test *)*state)->run(); }

static int begin_test(void **state) {
  (void)state;
  objects_reset();
  return 0;
}

static int end_test(void **state) {
  (void)state;
  return objects_finish() ? 0 : -1;
}

static int begin_device(void **state) {
  (void)state;
  return objects_begin();
}

static int end_device(void **state) {
  (void)state;
  objects_end();
  return 0;
}

/* Does the same as cmocka_run_group_tests_name for an array whose length the compiler does not know. */
static size_t run_group(const char *group, const struct test *tests, size_t count, bool on_device) {
  struct CMUnitTest *list = calloc(count, sizeof *list);
  if (list == NULL) return count;
  for (size_t i = 0; i < count; i++) {
    list[i].name = tests[i].name;
    list[i].test_func = run_one;
    list[i].setup_func = on_device ? begin_test : NULL;
    list[i].teardown_func = on_device ? end_test : NULL;
    list[i].initial_state = (void *)(uintptr_t)&tests[i];
  }
  const int failed =
      _cmocka_run_group_tests(group, list, count, on_device ? begin_device : NULL, on_device ? end_device : NULL);
  free(list);
  return failed < 0 || (size_t)failed > count ? count : (size_t)failed;
}

static int report(size_t total, size_t failed) {
  const size_t passed = total - failed > skipped ? total - failed - skipped : 0;
  (void)printf("rill-tests: %zu passed, %zu failed, %u skipped\n", passed, failed, skipped);
  if (failed != 0) return 1;
  return passed == 0 && total > 0 ? 77 : 0; /* 77: meson counts it as skipped */
}

/* Whether the tests' kernels were compiled for devices like this one: there may have been no compiler. */
static bool has_kernels(const rill_device_info *info) {
#define NAME(constant, number, name) [constant] = name,
  static const char *const names[] = { RILL_BACKEND_LIST(NAME) };
#undef NAME
  for (size_t i = 0; i < gate_bundle.image_count; i++) {
    if (strcmp(gate_bundle.images[i].backend, names[info->backend]) == 0) return true;
  }
  return false;
}

int run_on_each_device(const char *subject, const struct test *tests, size_t count) {
  int32_t devices = 0;
  if (rill_device_count(&devices) != RILL_OK) {
    (void)fprintf(stderr, "%s\n", rill_last_error_text());
    return 1;
  }
  size_t total = 0, failed = 0;
  for (int32_t i = 0; i < devices; i++) {
    dut = (struct device_under_test){ .gpu = false };
    if (!describe(i, &dut.device, &dut.info)) {
      (void)fprintf(stderr, "device %d: %s\n", (int)i, rill_last_error_text());
      return 1;
    }
    dut.gpu = dut.info.backend != RILL_BACKEND_CPU;
    name_device(&dut.info, dut.name, sizeof dut.name);
    if (!is_wanted(dut.name)) continue;
    if (!has_kernels(&dut.info)) {
      (void)printf("%s is left out: no compiler for its kernels was found when the tests were built\n", dut.name);
      total++;
      skipped++;
      continue;
    }
    find_companions(devices);
    char group[128];
    (void)snprintf(group, sizeof group, "%s on %s", subject, dut.name);
    failed += run_group(group, tests, count, true);
    total += count;
  }
  if (total == 0) {
    (void)fprintf(stderr, "RILL_TEST_DEVICE=%s names none of the %d devices here\n", getenv("RILL_TEST_DEVICE"),
                  (int)devices);
    return 1;
  }
  return report(total, failed);
}

int run_once(const char *subject, const struct test *tests, size_t count) {
  return report(count, run_group(subject, tests, count, false));
}

void skip_because(const char *reason) {
  print_message("%s: %s\n", dut.name, reason);
  skipped++;
  skip();
}

void needs_plain_memory(void) {
  if (rill_check_is_on("memory")) skip_because("RILL_CHECK=memory keeps freed memory back, and zones take room");
}

void needs_second_device(void) {
  if (dut.second.id == 0) skip_because("there is no second device of this backend");
}

void needs_foreign_device(void) {
  if (dut.foreign.id == 0) skip_because("there is no device of another backend");
  note_device(dut.foreign);
}
