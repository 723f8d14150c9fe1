/* Indices in blocks and grids of many shapes (C6.1).  The cpu device divides some grids into blocks of another shape.
 */
#include "support/testing.h"

#include <stdio.h>

#include "dialect_shapes.h"
#include "dialect_shapes.rill.h"

enum { MOST_THREADS = 1 << 17, ROUNDS = 24 };

struct position {
  unsigned x, y, z;
};
static struct position thread, block, block_dim, grid_dim;
static unsigned nx, ny;
#define T(AXIS) thread.AXIS
#define B(AXIS) block.AXIS
#define D(AXIS) block_dim.AXIS
#define G(AXIS) grid_dim.AXIS

/* ---- what the kernels must have stored ---- */

#define VALUE_OF(NAME, VALUE) \
  static unsigned value_of_##NAME(void) { return (unsigned)(VALUE); }
SHAPES(VALUE_OF)
static unsigned value_of_wide(void) { return INDEX(x) * 3 + INDEX(y); }
static unsigned value_of_shared(void) {
  const unsigned next = (T(x) + D(x) * (T(y) + D(y) * T(z)) + 1) % (D(x) * D(y) * D(z));
  const struct position before = thread;
  thread = (struct position){ next % D(x), next / D(x) % D(y), next / D(x) / D(y) };
  const unsigned place = PLACE;
  thread = before;
  return place;
}

#define ENTRY(NAME, VALUE) { "shape_" #NAME, shape_##NAME##_launch, value_of_##NAME },
static const struct shape {
  const char *name;
  rill_status (*launch)(rill_stream stream, const rill_launch *launch, unsigned nx, unsigned ny, unsigned *values,
                        unsigned *visits);
  unsigned (*value)(void);
} shapes[] = { SHAPES(ENTRY) ENTRY(wide, ) ENTRY(shared, ) };

static bool step(struct position *at, const struct position *size) {
  if (++at->x < size->x) return true;
  at->x = 0;
  if (++at->y < size->y) return true;
  at->y = 0;
  return ++at->z < size->z;
}

static void check(const struct shape *shape, const unsigned *values, const unsigned *visits) {
  block = (struct position){ 0 };
  do {
    thread = (struct position){ 0 };
    do {
      const unsigned expected = shape->value(), place = PLACE;
      if (values[place] == expected && visits[place] == 1) continue;
      fail_msg("%s, grid (%u, %u, %u) of blocks (%u, %u, %u): thread (%u, %u, %u) of block (%u, %u, %u) stored %u, not "
               "%u, in %u visits",
               shape->name, G(x), G(y), G(z), D(x), D(y), D(z), T(x), T(y), T(z), B(x), B(y), B(z), values[place],
               expected, visits[place]);
    } while (step(&thread, &block_dim));
  } while (step(&block, &grid_dim));
}

/* ---- shapes ---- */

static uint64_t seed;
static unsigned below(unsigned count) {
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (unsigned)((seed >> 33) % count);
}

static unsigned random_size(unsigned most) {
  static const unsigned usual[] = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512 };
  const unsigned size = below(3) == 0 ? 1 + below(most < 40 ? most : 40) : usual[below(10)];
  return size <= most ? size : most;
}

static void choose_shape(void) {
  D(x) = random_size(1024);
  D(y) = below(2) == 0 ? 1 : random_size(1024 / D(x));
  D(z) = below(3) != 0 ? 1 : random_size(1024 / D(x) / D(y) < 64 ? 1024 / D(x) / D(y) : 64);
  unsigned left = MOST_THREADS / (D(x) * D(y) * D(z));
  G(x) = random_size(left);
  G(y) = below(2) == 0 ? 1 : random_size(left /= G(x));
  G(z) = below(3) != 0 ? 1 : random_size(left / G(y) > 0 ? left / G(y) : 1);
  if ((uint64_t)G(x) * G(y) * G(z) * D(x) * D(y) * D(z) > MOST_THREADS) G(y) = G(z) = 1;
}

static void run(rill_stream stream, const struct shape *shape, unsigned *device, unsigned *host) {
  nx = TOTAL(x);
  ny = TOTAL(y);
  const size_t count = (size_t)nx * ny * TOTAL(z), bytes = 2 * count * sizeof *host;
  const rill_launch launch = { .struct_size = sizeof launch,
                               .grid = { G(x), G(y), G(z) },
                               .block = { D(x), D(y), D(z) } };
  assert_ok(rill_fill_async(stream, device, &(uint32_t){ 0 }, 4, 2 * count));
  assert_ok(shape->launch(stream, &launch, nx, ny, device, device + count));
  assert_ok(rill_copy_async(stream, host, device, bytes));
  assert_completes(stream);
  check(shape, host, host + count);
}

static void values_do_not_depend_on_how_blocks_are_divided(void) {
  rill_stream stream = new_stream("shapes");
  unsigned *device = NULL, *host = malloc(2 * MOST_THREADS * sizeof *host);
  assert_non_null(host);
  assert_ok(rill_alloc(dut.device, 2 * MOST_THREADS * sizeof *device, RILL_MEMORY_DEVICE, (void **)&device));
  for (unsigned round = 0; round < ROUNDS; round++) {
    seed = round;
    choose_shape();
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) run(stream, &shapes[i], device, host);
  }
  /* shapes that have the most to gain */
  static const struct position grids[] = { { 512, 1, 1 }, { 8, 64, 1 }, { 8, 8, 8 }, { 33, 7, 3 } };
  static const struct position blocks[] = { { 256, 1, 1 }, { 32, 8, 1 }, { 32, 2, 4 }, { 16, 4, 2 } };
  for (size_t k = 0; k < sizeof grids / sizeof *grids; k++) {
    grid_dim = grids[k];
    block_dim = blocks[k];
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) run(stream, &shapes[i], device, host);
  }
  assert_ok(rill_free(device));
  free(host);
}

TESTS_ON_EACH_DEVICE("shapes of blocks", TEST(values_do_not_depend_on_how_blocks_are_divided))
