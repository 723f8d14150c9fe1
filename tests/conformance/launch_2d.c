/* rill_launch_2d, rill_launch_3d */
#include "support/testing.h"

static void divides_each_dimension_rounding_up(void) {
  const rill_launch plane = rill_launch_2d(1000, 17, 32, 8);
  assert_int_equal(plane.struct_size, sizeof plane);
  assert_true(plane.grid.x == 32 && plane.grid.y == 3 && plane.grid.z == 1);
  assert_true(plane.block.x == 32 && plane.block.y == 8 && plane.block.z == 1);
  const rill_launch room = rill_launch_3d(7, 8, 9, 4, 4, 4);
  assert_true(room.grid.x == 2 && room.grid.y == 2 && room.grid.z == 3);
  assert_true(room.block.x == 4 && room.block.y == 4 && room.block.z == 4);
  assert_true(room.cluster.x == 0 && room.shared_mem_bytes == 0 && room.attribute_count == 0 && room.label == NULL);
  assert_int_equal(rill_launch_3d(1, UINT64_MAX, UINT64_MAX, 1, 1, 2).grid.y, UINT32_MAX);
  assert_int_equal(rill_launch_3d(1, UINT64_MAX, UINT64_MAX, 1, 1, 2).grid.z, UINT32_MAX);
}

/* Invalid shapes are refused by the launch, which checks grid.x. */
static void leaves_invalid_shapes_to_the_launch(void) {
  for (unsigned zero = 0; zero < 6; zero++) {
    uint32_t n[6] = { 5, 5, 5, 2, 2, 2 };
    n[zero] = 0;
    assert_int_equal(rill_launch_3d(n[0], n[1], n[2], n[3], n[4], n[5]).grid.x, 0);
    if (zero != 2 && zero != 5) assert_int_equal(rill_launch_2d(n[0], n[1], n[3], n[4]).grid.x, 0);
  }
}

TESTS_ONCE("rill_launch_2d", TEST(divides_each_dimension_rounding_up), TEST(leaves_invalid_shapes_to_the_launch))
