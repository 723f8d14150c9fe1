/* rill_device_get */
#include "support/testing.h"

static int32_t device_count(void) {
  int32_t count = 0;
  assert_ok(rill_device_count(&count));
  return count;
}

static rill_device_info info_of(int32_t index) {
  rill_device device;
  rill_device_info info = RILL_DEVICE_INFO_INIT;
  assert_ok(rill_device_get(index, &device));
  assert_ok(rill_device_get_info(device, &info));
  return info;
}

static void refuses_null(void) { assert_fails(rill_device_get(0, NULL), RILL_ERROR_INVALID_ARGUMENT); }

/* C1.6: an unknown index is NOT_FOUND. */
static void refuses_unknown_indices(void) {
  const int32_t none[] = { -1, device_count(), INT32_MIN, INT32_MAX };
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    rill_device device = { 1 };
    assert_fails(rill_device_get(none[i], &device), RILL_ERROR_NOT_FOUND);
    assert_int_equal(device.id, 0); /* C1.1 */
  }
}

/* C2.1: GPUs first, by the number of their backend and in the vendor's order; the CPU last. */
static void numbers_gpus_first_and_the_cpu_last(void) {
  const int32_t count = device_count();
  for (int32_t i = 0; i + 1 < count; i++) {
    const rill_device_info info = info_of(i), next = info_of(i + 1);
    assert_int_not_equal(info.backend, RILL_BACKEND_CPU);
    if (next.backend == info.backend) {
      assert_int_equal(next.ordinal, info.ordinal + 1);
    } else {
      assert_int_equal(next.ordinal, 0);
      assert_true(next.backend == RILL_BACKEND_CPU || next.backend > info.backend);
    }
  }
  assert_int_equal(info_of(count - 1).backend, RILL_BACKEND_CPU);
}

/* C2.1 */
static void returns_the_same_handle_every_time(void) {
  const int32_t count = device_count();
  for (int32_t i = 0; i < count; i++) {
    rill_device first, again, neighbour;
    assert_ok(rill_device_get(i, &first));
    assert_ok(rill_device_get(i, &again));
    assert_ok(rill_device_get((i + 1) % count, &neighbour));
    assert_true(rill_device_equal(first, again));
    assert_int_equal(rill_device_equal(first, neighbour), count == 1);
  }
}

TESTS_ONCE("rill_device_get", TEST(refuses_null), TEST(refuses_unknown_indices),
           TEST(numbers_gpus_first_and_the_cpu_last), TEST(returns_the_same_handle_every_time))
