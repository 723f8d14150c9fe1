/* rill_device_get_workers */
#include "fault/children.h"

#include <stdio.h>

GETTER_TESTS(device, rill_device_get_workers, uint32_t, dut.device)

/* C1.8 */
static void is_unsupported_on_gpus(void) {
  if (!dut.gpu) return;
  uint32_t workers = 1;
  assert_fails(rill_device_get_workers(dut.device, &workers), RILL_ERROR_UNSUPPORTED);
  assert_int_equal(workers, 0);
}

/* It equals the number of compute units, which are the processors that this process may use. */
static void equals_the_number_of_compute_units(void) {
  if (dut.gpu) return;
  uint32_t workers = 0;
  assert_ok(rill_device_get_workers(dut.device, &workers));
  assert_true(workers >= 1);
  assert_int_equal(workers, dut.info.compute_units);
}

/* ---- RILL_CPU_WORKERS, which is read once ---- */

static int check_environment(void) {
  rill_device device;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  uint32_t workers = 0;
  const rill_status status = rill_device_open("cpu", &device);
  if (status != RILL_OK) {
    (void)printf("%s\n", rill_last_error_text());
    return 0;
  }
  if (rill_device_get_workers(device, &workers) != RILL_OK || rill_device_get_info(device, &info) != RILL_OK) return 1;
  (void)printf("%u workers, %u units\n", workers, info.compute_units);
  return 0;
}

static void check_variable(const char *variable, const char *expected) {
  static struct child child;
  run_child("environment", &variable, 1, &child);
  assert_int_equal(child.exit_code, 0);
  if (strstr(child.output, expected) == NULL)
    fail_msg("%s: \"%s\" expected, not: %s", variable, expected, child.output);
}

static void the_environment_sets_the_number(void) {
  if (dut.gpu) return;
  check_variable("RILL_CPU_WORKERS=1", "1 workers, 1 units");
  check_variable("RILL_CPU_WORKERS=13", "13 workers, 13 units");
  check_variable("RILL_CPU_WORKERS=1024", "1024 workers");
  check_variable("RILL_CPU_WORKERS=", "workers");
  check_variable("RILL_CPU_WORKERS=0", "RILL_CPU_WORKERS=0 is not a number from 1 to 1024");
  check_variable("RILL_CPU_WORKERS=1025", "RILL_CPU_WORKERS=1025 is not a number from 1 to 1024");
  check_variable("RILL_CPU_WORKERS=two", "RILL_CPU_WORKERS=two is not a number");
  check_variable("RILL_CPU_WORKERS=4x", "RILL_CPU_WORKERS=4x is not a number");
  char usual[64];
  (void)snprintf(usual, sizeof usual, "%u workers, %u units", dut.info.compute_units, dut.info.compute_units);
  check_variable("RILL_CPU_WORKERS=abc", usual); /* the device can still be opened */
  check_variable("RILL_CPU_WORKERS=-1", "RILL_CPU_WORKERS=-1 is not a number");
}

int main(int argc, char **argv) {
  (void)argv;
  if (argc > 1) return check_environment();
  static const struct test tests[] = { TEST(refuses_bad_handles), TEST(refuses_null_out), TEST(is_unsupported_on_gpus),
                                       TEST(equals_the_number_of_compute_units),
                                       TEST(the_environment_sets_the_number) };
  return RUN_ON_EACH_DEVICE("rill_device_get_workers", tests);
}
