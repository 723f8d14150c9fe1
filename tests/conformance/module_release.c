/* rill_module_release */
#include "support/testing.h"

static void refuses_invalid_handles(void) {
  const uint64_t none[] = { 1, UINT64_MAX, dut.device.id, new_stream("stream").id };
  for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
    assert_fails(rill_module_release((rill_module){ none[i] }), RILL_ERROR_INVALID_HANDLE);
  }
}

/* C1.3 */
static void does_nothing_for_zero(void) {
  spoil_last_error();
  assert_ok(rill_module_release(RILL_NULL_MODULE));
  assert_says("rill_device_count");
}

/* K5 */
static void leaves_a_stale_handle(void) {
  rill_module module;
  assert_ok(rill_module_load(dut.device, sample_bundle(), &module));
  assert_ok(rill_module_release(module));
  assert_fails(rill_module_release(module), RILL_ERROR_STALE_HANDLE);
}

/* C6.3, K5, L15: a kernel keeps its module. */
static void kernels_outlive_the_handle(void) {
  rill_module module;
  rill_kernel kernel;
  rill_stream stream = new_stream("stream");
  assert_ok(rill_module_load(dut.device, sample_bundle(), &module));
  assert_ok(rill_module_get_kernel(module, sample_kernel_name(), &kernel));
  assert_ok(rill_module_release(module));

  dut.host[0] = 1;
  const rill_launch launch = rill_launch_1d(1, 1);
  const unsigned *flag = dut.host;
  unsigned *timed_out = dut.host + 1;
  assert_ok(rill_stream_launch(stream, kernel, &launch, RILL_ARGS(flag, 1u, 1000000000ull, timed_out)));
  assert_completes(stream);
  assert_int_equal(dut.host[1], 0);
  assert_ok(rill_kernel_release(kernel));
}

/* K5: the module and its kernel may be released while the kernel runs. */
static void running_kernels_finish(void) {
  rill_module module;
  rill_kernel kernel;
  rill_stream stream = new_stream("stream");
  assert_ok(rill_module_load(dut.device, sample_bundle(), &module));
  assert_ok(rill_module_get_kernel(module, sample_kernel_name(), &kernel));
  const rill_launch launch = rill_launch_1d(1, 1);
  const unsigned *flag = dut.host;
  unsigned *timed_out = dut.host + 1;
  assert_ok(rill_stream_launch(stream, kernel, &launch, RILL_ARGS(flag, 1u, 20000000000ull, timed_out)));
  assert_ok(rill_kernel_release(kernel));
  assert_ok(rill_module_release(module));
  const bool complete = is_complete(stream);
  __atomic_store_n(dut.host, 1, __ATOMIC_SEQ_CST);
  assert_completes(stream);
  assert_false(complete);
  assert_int_equal(dut.host[1], 0);
}

TESTS_ON_EACH_DEVICE("rill_module_release", TEST(refuses_invalid_handles), TEST(does_nothing_for_zero),
                     TEST(leaves_a_stale_handle), TEST(kernels_outlive_the_handle), TEST(running_kernels_finish))
