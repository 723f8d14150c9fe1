/* rill_event_native */
#include "support/testing.h"

GETTER_TESTS(event, rill_event_native, uintptr_t, new_event("getter"))

static uintptr_t native_of(rill_event event) {
  uintptr_t native = 1;
  assert_ok(rill_event_native(event, &native));
  return native;
}

/* C4.5: 0 on the CPU; on a GPU each event has its own handle, always the same. */
static void each_event_has_its_own(void) {
  rill_event first = new_event("first"), second = new_event("second");
  if (!dut.gpu) {
    assert_int_equal(native_of(first), 0);
    return;
  }
  assert_true(native_of(first) != 0);
  assert_int_equal(native_of(first), native_of(first));
  assert_int_not_equal(native_of(first), native_of(second));
}

TESTS_ON_EACH_DEVICE("rill_event_native", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(each_event_has_its_own))
