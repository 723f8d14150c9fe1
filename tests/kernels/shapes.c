/* kernels/rill_kernels.h: the shapes of launches, at the limits of sizes. */
#include "arrays.h"

static void expect(rill_launch launch, uint32_t blocks, uint32_t block_x, uint32_t block_y) {
  assert_int_equal(launch.struct_size, sizeof launch);
  assert_int_equal(launch.grid.x, blocks);
  assert_true(launch.grid.y <= 1 && launch.grid.z <= 1);
  assert_int_equal(launch.block.x, block_x);
  assert_true(launch.block.y == block_y || (launch.block.y == 0 && block_y == 1));
}

static void shapes_cover_everything(void) {
  expect(rill_kernels_wide(1, 4, 256), 1, 256, 1);
  expect(rill_kernels_wide(1024, 4, 256), 1, 256, 1);
  expect(rill_kernels_wide(1025, 4, 256), 2, 256, 1);
  expect(rill_kernels_wide(1025, 8, 256), 3, 256, 1);
  expect(rill_kernels_tiles(4096, 4), 1, 256, 1);
  expect(rill_kernels_tiles(4097, 4), 2, 256, 1);
  expect(rill_kernels_tiles(4097, 8), 3, 256, 1);
  assert_int_equal(rill_kernels_scan_state(4096, 4), 0);
  assert_int_equal(rill_kernels_scan_state(4097, 4), (16 + 2 + 2 + 1) * 8);
  assert_int_equal(rill_kernels_scan_state(33 * 2048, 8), (16 + (33 + 2 * 2 + 1) * 2) * 8);
  expect(rill_kernels_stencil5(257, 9, 4, 64, 4), 4, 64, 4);
  expect(rill_kernels_stencil5(257, 9, 8, 64, 4), 6, 64, 4);
  expect(rill_kernels_stencil7(257, 9, 10, 4, 64, 4), 18, 64, 4);
  expect(rill_kernels_copy2d(65, 17, 64, 4), 4, 64, 4);
  expect(rill_kernels_transpose(65, 64), 4, 32, 8);
  expect(rill_kernels_sgemm(129, 1), 2, 128, 1);
  expect(rill_kernels_sgemm_batched(129, 1, 3), 6, 128, 1);
  expect(rill_kernels_sgemm_batched_64(129, 1, 3), 9, 64, 1);
  expect(rill_kernels_sgemm_16x16(17, 33), 6, 16, 16);
  expect(rill_kernels_histogram(16385, 10, 100), 2, 256, 1);
  expect(rill_kernels_histogram(UINT64_MAX, 10, 100), 800, 256, 1);
  assert_int_equal(rill_kernels_histogram(1, 10, 100).shared_mem_bytes, 40);
}

/* Checks for 0 blocks, or more than any device has: a launch refuses both. */
static void empty_and_too_large_sizes_have_no_grid(void) {
  assert_int_equal(rill_kernels_wide(UINT64_MAX, 4, 32).grid.x, UINT32_MAX);
  expect(rill_kernels_tiles(UINT64_MAX, 8), 0, 256, 1);
  expect(rill_kernels_sgemm(UINT64_MAX, UINT64_MAX), 0, 128, 1);
  expect(rill_kernels_stencil7(UINT64_C(1) << 31, 2, 8, 8, 1, 1), 0, 1, 1);
  expect(rill_kernels_stencil7((UINT64_C(1) << 33) - 2, 1, 1, 8, 1, 1), UINT32_MAX, 1, 1);
  expect(rill_kernels_stencil5(5, 0, 4, 64, 4), 0, 64, 4);
  expect(rill_kernels_stencil5(5, 5, 4, 0, 4), 0, 0, 4);
  expect(rill_kernels_copy2d(0, 5, 64, 4), 0, 64, 4);
  assert_int_equal(rill_kernels_wide(5, 32, 256).grid.x, 0); /* an element larger than what a thread takes */
  assert_int_equal(rill_kernels_histogram(1, UINT32_MAX, 1).shared_mem_bytes, UINT32_MAX);
}

TESTS_ONCE("shapes of launches", TEST(shapes_cover_everything), TEST(empty_and_too_large_sizes_have_no_grid))
