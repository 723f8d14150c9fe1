/* Vendor calls that fail while devices are looked for, and at the first use of one (C1.9). */
#include "children.h"
#include "tour.h"

#include <stdio.h>

enum { CODE = 999, CLEAN = 3, MOST_CALLS = 100 };

/* ---- looking for devices: once in a process ---- */

/* Unknown values are then 0 or "". */
static bool may_be_silent(const char *field) {
  static const char *const fields[] = { "device_attribute", "device_uuid", "device_pci_bus_id", "driver_version",
                                        "runtime_version" };
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    if (strcmp(fields[i], field) == 0) return true;
  }
  return false;
}

/* A device that cannot be set up: the reason is reported, and the cpu works. */
static bool opens(const char *name, const char *function) {
  rill_device device;
  spoil_last_error();
  if (rill_device_open(name, &device) == RILL_OK) return true;
  assert_true(rill_device_equal(device, RILL_NULL_DEVICE));
  rill_error error = RILL_ERROR_INIT;
  assert_ok(rill_last_error(&error));
  assert_int_equal(error.status, RILL_ERROR_NO_DEVICE);
  assert_says(function);
  assert_says("999");
  assert_says(vendor.unknown);
  return false;
}

/* RILL_FAKE_FAIL has one call of RILL_TEST_FUNCTION fail, the RILL_TEST_NTH.  CLEAN: there were not as many. */
static void looks_for_devices(void) {
  const char *field = getenv("RILL_TEST_FIELD");
  const unsigned long nth = strtoul(getenv("RILL_TEST_NTH"), NULL, 10);
  vendor_names();
  const char *function = vendor_name(field);
  char name[16];
  bool all = true;
  for (int i = 0; i < 2; i++) {
    (void)snprintf(name, sizeof name, "%s:%d", vendor.backend, i);
    all = opens(name, function) && all;
  }
  rill_device cpu;
  assert_ok(rill_device_open("cpu", &cpu));
  assert_ok(rill_device_synchronize(cpu));
  const struct rill_fake *fake = NULL;
  static const char *const libraries[] = { "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5" };
  for (int i = 0; i < 3 && fake == NULL; i++) fake = rill_fake_find(vendor.cuda ? "libcuda.so.1" : libraries[i]);
  assert_non_null(fake);
  const bool struck = fake->calls(function) >= nth;
  assert_true(struck || all);
  if (!struck) exit(CLEAN);
  if (all && !may_be_silent(field)) fail_msg("call %lu of %s: no device is missing", nth, function);
}

static void every_call_of_the_search_can_fail(void) {
  unsigned failed = 0, functions = 0;
  for (size_t i = 0; i < vendor_function_count; i++) {
    static struct child child;
    const struct vendor_function *f = &vendor_functions[i];
    unsigned nth = 0;
    child.exit_code = f->name == NULL ? CLEAN : 0;
    while (child.exit_code == 0 && nth < MOST_CALLS) {
      char fail[128], field[64], number[64];
      nth++;
      (void)snprintf(fail, sizeof fail, "RILL_FAKE_FAIL=%s:%u:%d", f->name, nth, CODE);
      (void)snprintf(field, sizeof field, "RILL_TEST_FIELD=%s", f->field);
      (void)snprintf(number, sizeof number, "RILL_TEST_NTH=%u", nth);
      const char *const variables[] = { fail, field, number };
      run_child("looks_for_devices", variables, 3, &child);
    }
    functions += nth > 1;
    if (child.exit_code == CLEAN) continue;
    print_error("%s, call %u: %s\n%s\n", f->name, nth, child_end(&child), child.output);
    failed++;
  }
  assert_int_equal(failed, 0);
  assert_true(functions >= 6);
}

/* ---- the first use of a device: tried again after a failure, so each failure has a device of its own ---- */

static rill_device nth_device(int index) {
  char name[16];
  rill_device device;
  (void)snprintf(name, sizeof name, "%s:%d", vendor.backend, index);
  assert_ok(rill_device_open(name, &device));
  return device;
}

static void first_use_is_tried_again(void) {
  enum { DEVICES = 16 };
  int next = 2;
  vendor_begin();
  for (size_t i = 0; i < vendor_function_count; i++) {
    const struct vendor_function *f = &vendor_functions[i];
    const bool of_interest = strcmp(f->field, "primary_context_retain") == 0 || strcmp(f->field, "context_push") == 0 ||
                             strcmp(f->field, "get_device") == 0 || strcmp(f->field, "set_device") == 0 ||
                             strcmp(f->field, "context_priority_range") == 0 || strcmp(f->field, "stream_create") == 0;
    if (f->name == NULL || !of_interest) continue;
    for (unsigned nth = 1; nth <= 2; nth++) {
      assert_true(next < DEVICES);
      const rill_device device = nth_device(next++);
      const struct native_state before = native_state();
      rill_stream stream = { 1 };
      const uint64_t calls = vendor.fake->calls(f->name);
      vendor.fake->fail_call(f->name, nth, CODE);
      const rill_status status = rill_device_default_stream(device, &stream);
      const bool struck = vendor.fake->calls(f->name) - calls >= nth;
      vendor.fake->clear();
      if (strcmp(f->field, "set_device") == 0) native_put_back(before);
      if (status != RILL_OK) {
        assert_int_equal(status, RILL_ERROR_BACKEND);
        assert_true(rill_stream_equal(stream, RILL_NULL_STREAM));
        assert_says(f->name);
        assert_says("999");
        assert_says(vendor.unknown);
      } else if (struck && strcmp(f->field, "set_device") != 0) {
        fail_msg("call %u of %s is passed over in silence", nth, f->name);
      }
      assert_int_equal(native_state().current, before.current);
      assert_int_equal(native_state().last_error, 0);
      assert_ok(rill_device_default_stream(device, &stream));
      assert_ok(rill_stream_synchronize(stream));
    }
  }
  assert_true(next > 5);
}

int main(int argc, char **argv) {
  static const struct mode modes[] = { MODE_WITH(first_use_is_tried_again, "RILL_FAKE_DEVICES=16") };
  static const struct test one[] = { TEST(looks_for_devices) };
  static const struct test each[] = { TEST(every_call_of_the_search_can_fail) };
  if (argc > 1 && strcmp(argv[1], one[0].name) == 0) return RUN_ONCE("the search for devices", one);
  const int failed = RUN_MODES("the first use of a device", argc, argv, modes);
  vendor_names();
  return argc > 1 ? failed : failed | RUN_ONCE("the search for devices", each);
}
