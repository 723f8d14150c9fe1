/* rill_stream_context */
#include "support/testing.h"

GETTER_TESTS(stream, rill_stream_context, uintptr_t, new_stream("getter"))

static uintptr_t context_of(rill_stream stream) {
  uintptr_t context = 1;
  assert_ok(rill_stream_context(stream, &context));
  return context;
}

/* C3.4, S24: 0 if the backend has no contexts; otherwise the same for all streams of the device. */
static void is_the_context_of_the_device(void) {
  rill_stream first = new_stream("first"), second = new_stream("second"), standard;
  assert_ok(rill_device_default_stream(dut.device, &standard));
  assert_int_equal(context_of(first), context_of(second));
  assert_int_equal(context_of(first), context_of(standard));
  if (!dut.gpu) assert_int_equal(context_of(first), 0);
  if (dut.info.backend == RILL_BACKEND_CUDA) assert_true(context_of(first) != 0);
}

static const char *has_the_same(unsigned index, void *shared) {
  (void)index;
  const rill_stream stream = *(const rill_stream *)shared;
  uintptr_t context = 1;
  REQUIRE_OK(rill_stream_context(stream, &context));
  REQUIRE(context != 0 || dut.info.backend != RILL_BACKEND_CUDA);
  return NULL;
}

/* S24: queried on threads without a current device. */
static void does_not_depend_on_the_thread(void) {
  rill_stream stream = new_stream("stream");
  run_threads(4, has_the_same, &stream);
}

static void differs_between_devices(void) {
  needs_second_device();
  rill_stream here = new_stream("here"), there = new_stream_on(dut.second, "there");
  if (dut.info.backend == RILL_BACKEND_CUDA) assert_int_not_equal(context_of(here), context_of(there));
}

TESTS_ON_EACH_DEVICE("rill_stream_context", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(is_the_context_of_the_device), TEST(does_not_depend_on_the_thread),
                     TEST(differs_between_devices))
