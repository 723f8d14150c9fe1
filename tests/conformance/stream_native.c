/* rill_stream_native */
#include "support/testing.h"

GETTER_TESTS(stream, rill_stream_native, uintptr_t, new_stream("getter"))

static uintptr_t native_of(rill_stream stream) {
  uintptr_t native = 1;
  assert_ok(rill_stream_native(stream, &native));
  return native;
}

/* C3.4, S17, S20: 0 on the CPU; on a GPU each stream has its own handle, always the same. */
static void each_stream_has_its_own(void) {
  rill_stream first = new_stream("first"), second = new_stream("second");
  if (!dut.gpu) {
    assert_int_equal(native_of(first), 0);
    return;
  }
  assert_true(native_of(first) != 0);
  assert_int_equal(native_of(first), native_of(first));
  assert_int_not_equal(native_of(first), native_of(second));
}

static void works_while_the_stream_is_busy(void) {
  rill_stream stream = new_stream("busy");
  const uintptr_t before = native_of(stream);
  struct gate *gate = gate_close(stream);
  assert_int_equal(native_of(stream), before);
  gate_open(gate);
  assert_completes(stream);
  assert_int_equal(native_of(stream), before);
}

TESTS_ON_EACH_DEVICE("rill_stream_native", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(each_stream_has_its_own), TEST(works_while_the_stream_is_busy))
