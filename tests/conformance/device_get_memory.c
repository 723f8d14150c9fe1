/* rill_device_get_memory */
#include "support/testing.h"

static rill_status call_with_device(uint64_t id) {
  uint64_t free_bytes = 1, total_bytes = 1;
  const rill_status status = rill_device_get_memory((rill_device){ id }, &free_bytes, &total_bytes);
  assert_int_equal(free_bytes, 0);
  assert_int_equal(total_bytes, 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_devices("rill_device_get_memory", call_with_device); }

static void refuses_null_out(void) {
  uint64_t bytes = 1;
  assert_fails(rill_device_get_memory(dut.device, NULL, &bytes), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(bytes, 0);
  bytes = 1;
  assert_fails(rill_device_get_memory(dut.device, &bytes, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(bytes, 0);
}

/* C2.2, M20 */
static void free_is_at_most_total(void) {
  uint64_t free_bytes = 0, total_bytes = 0;
  assert_ok(rill_device_get_memory(dut.device, &free_bytes, &total_bytes));
  assert_true(total_bytes > 0);
  assert_true(free_bytes <= total_bytes);
}

static uint64_t free_now(void) {
  uint64_t free_bytes = 0, total_bytes = 0;
  assert_ok(rill_device_get_memory(dut.device, &free_bytes, &total_bytes));
  return free_bytes;
}

/* M20: only on a GPU, because the free memory of a CPU depends on the whole system. Other processes may allocate and
 * free at the same time, so the test repeats the measurement until one is undisturbed. */
static void an_allocation_reduces_free_memory(void) {
  enum { LOOKS = 1000 };
  const size_t bytes = (size_t)64 << 20;
  bool taken = !dut.gpu, given_back = !dut.gpu;
  for (int i = 0; i < LOOKS && !(taken && given_back); i++) {
    void *p = NULL;
    const uint64_t before = free_now();
    assert_ok(rill_alloc(dut.device, bytes, RILL_MEMORY_DEVICE, &p));
    const uint64_t during = free_now();
    assert_ok(rill_free(p));
    const uint64_t after = free_now();
    taken = taken || during + bytes <= before;
    given_back = given_back || after >= during + bytes;
  }
  assert_true(taken);
  assert_true(given_back);
}

TESTS_ON_EACH_DEVICE("rill_device_get_memory", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(free_is_at_most_total), TEST(an_allocation_reduces_free_memory))
