/* rill_device_explain */
#include "support/testing.h"

static rill_status explain(uint64_t id) {
  size_t size = 0;
  return rill_device_explain((rill_device){ id }, NULL, &size);
}

static void refuses_bad_handles(void) {
  refuses_bad_devices("rill_device_explain", explain);
  char text[4];
  size_t size = sizeof text;
  assert_fails(rill_device_explain(dut.device, text, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_device_explain(dut.device, NULL, &size), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(size, 0);
}

static void tells_of_each_stream(void) {
  static char text[1 << 16];
  size_t size = sizeof text;
  rill_stream first = new_stream("first"), second = new_stream("second");
  rill_event event = new_event("missing");
  struct gate *const gate = gate_close(first);
  write_cell(first, 0, 1);
  assert_ok(rill_stream_wait_event(second, event, 0));
  assert_ok(rill_device_explain(dut.device, text, &size));
  assert_int_equal(size, strlen(text) + 1);
  assert_memory_equal(text, dut.name, strlen(dut.name));
  assert_non_null(strstr(text, "\nstream \"first\": "));
  assert_non_null(strstr(text, "\nstream \"second\": "));
  assert_non_null(strstr(text, "waits for event \"missing\", which has never been recorded"));
  gate_open(gate);
  assert_ok(rill_stream_record_event(first, event, 0));
  assert_completes(second);
}

TESTS_ON_EACH_DEVICE("rill_device_explain", TEST(refuses_bad_handles), TEST(tells_of_each_stream))
