/* rill_stream_validate */
#include "support/native.h"

static rill_status call_with_stream(uint64_t id) { return rill_stream_validate((rill_stream){ id }); }

static void refuses_bad_handles(void) { refuses_bad_streams("rill_stream_validate", call_with_stream); }

/* C3.3: streams created by rill are always valid. */
static void own_streams_are_valid(void) {
  rill_stream stream = new_stream("stream"), standard;
  assert_ok(rill_device_default_stream(dut.device, &standard));
  assert_ok(rill_stream_validate(stream));
  assert_ok(rill_stream_validate(standard));
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_validate(stream));
  gate_open(gate);
}

static rill_stream import(uintptr_t native) {
  rill_stream stream;
  assert_ok(rill_stream_import(dut.device, native, NULL, &stream));
  keep_stream_until_end(stream);
  return stream;
}

/* C3.3 */
static void default_streams_of_the_vendor_are_valid(void) {
  if (!native_available()) return;
  for (uintptr_t native = 0; native <= 2; native++) assert_ok(rill_stream_validate(import(native)));
}

/* C3.3, C1.8: if the driver has no stream ids, the error says so. */
static void imported_streams_are_valid_while_they_live(void) {
  if (!native_available()) return;
  const uintptr_t native = native_stream_create(dut.device);
  rill_stream stream = import(native);
  if (rill_device_supports(dut.device, RILL_FEATURE_STREAM_ID, NULL)) {
    assert_ok(rill_stream_validate(stream));
  } else {
    assert_fails(rill_stream_validate(stream), RILL_ERROR_UNSUPPORTED);
    assert_says(dut.name);
  }
  assert_ok(rill_stream_release(stream));
  native_stream_destroy(native);
}

/* C3.3: detects a stream that was destroyed without rill and whose native handle was reused. The driver decides whether
 * it reuses a handle. */
static void detects_a_replaced_stream(void) {
  enum { TRIES = 64 };
  if (!native_available() || !rill_device_supports(dut.device, RILL_FEATURE_STREAM_ID, NULL)) return;
  uintptr_t others[TRIES], native = native_stream_create(dut.device);
  rill_stream stream = import(native);
  native_stream_destroy(native);
  unsigned made = 0;
  bool used_again = false;
  while (made < TRIES && !used_again) {
    others[made] = native_stream_create(dut.device);
    used_again = others[made++] == native;
  }
  if (used_again) assert_fails(rill_stream_validate(stream), RILL_ERROR_STALE_HANDLE);
  assert_ok(rill_stream_release(stream));
  while (made > 0) native_stream_destroy(others[--made]);
}

TESTS_ON_EACH_DEVICE("rill_stream_validate", TEST(refuses_bad_handles), TEST(own_streams_are_valid),
                     TEST(default_streams_of_the_vendor_are_valid), TEST(imported_streams_are_valid_while_they_live),
                     TEST(detects_a_replaced_stream))
