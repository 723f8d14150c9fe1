/* rill_kernel_suggest_block */
#include "support/testing.h"

#include "launch.rill.h"

static rill_status call_with_kernel(uint64_t id) {
  uint32_t threads = 1, blocks = 1;
  const rill_status status = rill_kernel_suggest_block((rill_kernel){ id }, 0, 0, &threads, &blocks);
  assert_true(threads == 0 && blocks == 0);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_kernels("rill_kernel_suggest_block", call_with_kernel); }

/* L20 */
static void refuses_impossible_requests(void) {
  rill_kernel kernel = new_kernel(&launch_bundle, "store");
  uint32_t threads = 1, blocks = 1;
  assert_fails(rill_kernel_suggest_block(kernel, 0, 0, NULL, &blocks), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(blocks, 0);
  assert_fails(rill_kernel_suggest_block(kernel, 0, 0, &threads, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_int_equal(threads, 0);
  threads = blocks = 1;
  assert_fails(rill_kernel_suggest_block(kernel, (size_t)dut.info.shared_per_block_optin + 1, 0, &threads, &blocks),
               RILL_ERROR_OUT_OF_RANGE);
  assert_true(threads == 0 && blocks == 0);
}

/* C6.3: the suggested block can be launched, and its occupancy fills the device. */
static void suggests_a_block_that_works(void) {
  rill_kernel kernel = new_kernel(&launch_bundle, "count_threads");
  rill_kernel_info info = RILL_KERNEL_INFO_INIT;
  rill_stream stream = new_stream("stream");
  assert_ok(rill_kernel_get_info(kernel, &info));
  const uint32_t limits[] = { 0, 1, 32, 100, info.max_threads, UINT32_MAX };
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    const uint32_t most = limits[i] == 0 || limits[i] > info.max_threads ? info.max_threads : limits[i];
    uint32_t threads = 0, blocks = 0, per_unit = 0;
    assert_ok(rill_kernel_suggest_block(kernel, 0, limits[i], &threads, &blocks));
    assert_true(threads >= 1 && threads <= most);
    assert_ok(rill_kernel_occupancy(kernel, threads, 0, &per_unit));
    assert_int_equal(blocks, per_unit * dut.info.compute_units);
  }
  uint32_t threads = 0, blocks = 0;
  assert_ok(rill_kernel_suggest_block(kernel, 0, CELLS, &threads, &blocks));
  const rill_launch launch = rill_launch_1d(threads, threads);
  unsigned *count = dut.memory;
  assert_ok(rill_stream_launch(stream, kernel, &launch, RILL_ARGS(count)));
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 1);
}

TESTS_ON_EACH_DEVICE("rill_kernel_suggest_block", TEST(refuses_bad_handles), TEST(refuses_impossible_requests),
                     TEST(suggests_a_block_that_works))
