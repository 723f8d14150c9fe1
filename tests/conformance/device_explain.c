/* rill_device_explain */
#include "support/testing.h"

#include <stdio.h>

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

static void describes_each_stream(void) {
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

static const char *free_it(unsigned index, void *user) {
  (void)index;
  REQUIRE_OK(rill_free(user));
  return NULL;
}

/* The report also lists this wait, which the program did not make explicitly. */
static void lists_deferred_frees(void) {
  static char text[1 << 16];
  char expected[96];
  rill_stream stream = new_stream("uses it");
  const uint32_t pattern = 1;
  void *p = NULL;
  text[0] = '\0';
  assert_ok(rill_alloc(dut.device, 64, RILL_MEMORY_DEVICE, &p));
  struct gate *const gate = gate_close(stream);
  assert_ok(rill_fill_async(stream, p, &pattern, sizeof pattern, 16));
  (void)snprintf(expected, sizeof expected, "a thread has been in rill_free of 0x%llx for ",
                 (unsigned long long)(uintptr_t)p);
  struct background *const threads = start_threads(1, free_it, p);
  const uint64_t limit = now_ns() + TIMEOUT_NS;
  while (strstr(text, expected) == NULL && now_ns() < limit) {
    size_t size = sizeof text;
    assert_ok(rill_device_explain(dut.device, text, &size));
  }
  gate_open(gate);
  join_threads(threads);
  if (strstr(text, expected) == NULL) fail_msg("\"%s\" is not in:\n%s", expected, text);
  size_t size = sizeof text;
  assert_ok(rill_device_explain(dut.device, text, &size));
  assert_null(strstr(text, "a thread has been in rill_free"));
}

TESTS_ON_EACH_DEVICE("rill_device_explain", TEST(refuses_bad_handles), TEST(describes_each_stream),
                     TEST(lists_deferred_frees))
