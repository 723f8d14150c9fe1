/* rill_launch_1d */
#include "support/testing.h"

static void divides_rounding_up(void) {
  const struct {
    uint64_t threads;
    uint32_t block, grid;
  } cases[] = {
    { 1, 1, 1 },
    { 1, 256, 1 },
    { 255, 256, 1 },
    { 256, 256, 1 },
    { 257, 256, 2 },
    { 1000000, 256, 3907 },
    { UINT64_C(256) * UINT32_MAX, 256, UINT32_MAX },
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const rill_launch launch = rill_launch_1d(cases[i].threads, cases[i].block);
    assert_int_equal(launch.struct_size, sizeof launch);
    assert_int_equal(launch.grid.x, cases[i].grid);
    assert_int_equal(launch.block.x, cases[i].block);
    assert_true(launch.grid.y <= 1 && launch.grid.z <= 1 && launch.block.y <= 1 && launch.block.z <= 1);
    assert_true(launch.cluster.x == 0 && launch.shared_mem_bytes == 0 && launch.reserved == 0);
    assert_true(launch.attribute_count == 0 && launch.constant_count == 0 && launch.label == NULL);
  }
}

/* Invalid shapes are refused by the launch. */
static void leaves_invalid_shapes_to_the_launch(void) {
  assert_int_equal(rill_launch_1d(0, 256).grid.x, 0);
  assert_int_equal(rill_launch_1d(100, 0).grid.x, 0);
  assert_int_equal(rill_launch_1d(UINT64_MAX, 1).grid.x, UINT32_MAX);
  assert_int_equal(rill_launch_1d(UINT64_MAX, 256).grid.x, UINT32_MAX);
}

TESTS_ONCE("rill_launch_1d", TEST(divides_rounding_up), TEST(leaves_invalid_shapes_to_the_launch))
