/* rill_device_of_native_stream */
#include "support/native.h"

static const uintptr_t some_value = 0x1000;

static rill_status ask(uint32_t backend, uintptr_t native) {
  rill_device out = { 1 };
  const rill_status status = rill_device_of_native_stream(backend, native, &out);
  if (status != RILL_OK) assert_int_equal(out.id, 0);
  return status;
}

/* R8 */
static void refuses_unknown_backends(void) {
  const uint32_t none[] = { 0, RILL_BACKEND_END_, UINT32_MAX };
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    assert_fails_in("rill_device_of_native_stream", ask(none[i], some_value), RILL_ERROR_INVALID_ARGUMENT);
  }
}

/* The vendor's default streams belong to whichever device is current. */
static void refuses_default_streams(void) {
  for (uintptr_t native = 0; native <= 2; native++) {
    assert_fails_in("rill_device_of_native_stream", ask(dut.info.backend, native), RILL_ERROR_INVALID_ARGUMENT);
  }
}

static void refuses_null_out(void) {
  assert_fails(rill_device_of_native_stream(dut.info.backend, some_value, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* C1.8 */
static void is_unsupported_on_the_cpu(void) {
  assert_fails_in("rill_device_of_native_stream", ask(RILL_BACKEND_CPU, some_value), RILL_ERROR_UNSUPPORTED);
  assert_says("cpu");
}

/* C1.9: the error has the reason. */
static void an_absent_backend_has_no_device(void) {
  for (uint32_t backend = RILL_BACKEND_CPU + 1; backend < RILL_BACKEND_END_; backend++) {
    rill_device device;
    if (rill_device_open(backend_name(backend), &device) == RILL_OK) continue;
    assert_fails_in("rill_device_of_native_stream", ask(backend, some_value), RILL_ERROR_NO_DEVICE);
  }
}

static void check_stream_of(rill_device device) {
  const uintptr_t native = native_stream_create(device);
  rill_device found = { 0 };
  const rill_status status = rill_device_of_native_stream(dut.info.backend, native, &found);
  if (status == RILL_ERROR_UNSUPPORTED) {
    assert_says("rill_device_of_native_stream"); /* an old driver cannot determine the device */
  } else {
    assert_ok(status);
    assert_true(rill_device_equal(found, device));
  }
  native_stream_destroy(native);
}

static void finds_the_device(void) {
  if (!native_available()) return;
  check_stream_of(dut.device);
}

static void distinguishes_devices(void) {
  needs_second_device();
  if (!native_available()) return;
  check_stream_of(dut.second);
  check_stream_of(dut.device);
}

TESTS_ON_EACH_DEVICE("rill_device_of_native_stream", TEST(refuses_unknown_backends), TEST(refuses_default_streams),
                     TEST(refuses_null_out), TEST(is_unsupported_on_the_cpu), TEST(an_absent_backend_has_no_device),
                     TEST(finds_the_device), TEST(distinguishes_devices))
