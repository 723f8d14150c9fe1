/* kernels/transpose.kernel.cu */
#include "arrays.h"

#include "transpose.rill.h"

#include <stdio.h>

static const struct {
  size_t rows, columns;
} shapes[] = { { 1, 1 },    { 1, 2 },   { 2, 1 },    { 31, 33 },   { 32, 32 },   { 33, 31 },   { 1, 1025 },
               { 1025, 1 }, { 63, 65 }, { 64, 128 }, { 257, 129 }, { 1023, 70 }, { 3, 40000 }, { 40000, 3 } };

static void check(rill_stream stream, size_t element_size, size_t rows, size_t columns, size_t gap) {
  const size_t x_pitch = columns + gap, y_pitch = rows + 2 * gap;
  const size_t x_count = rows * x_pitch, y_count = columns * y_pitch;
  unsigned char *const x = new_host(x_count * element_size), *const y = new_host(y_count * element_size);
  uint64_t seed = rows * columns;
  for (size_t i = 0; i < x_count * element_size; i++) x[i] = (unsigned char)next_random(&seed);
  memset(y, 0x22, y_count * element_size);
  void *const from = new_array(stream, x, x_count * element_size, 0);
  void *const to = new_array(stream, y, y_count * element_size, element_size);
  const rill_launch launch = rill_kernels_transpose(rows, columns);
  const int64_t r = (int64_t)rows, c = (int64_t)columns, xp = (int64_t)x_pitch, yp = (int64_t)y_pitch;
  assert_ok(element_size == 4 ? transpose_f32_launch(stream, &launch, r, c, from, xp, to, yp)
                              : transpose_f64_launch(stream, &launch, r, c, from, xp, to, yp));
  for (size_t i = 0; i < rows; i++) {
    for (size_t j = 0; j < columns; j++) {
      memcpy(y + (j * y_pitch + i) * element_size, x + (i * x_pitch + j) * element_size, element_size);
    }
  }
  char what[96];
  (void)snprintf(what, sizeof what, "%zu x %zu, pitches %zu and %zu", rows, columns, x_pitch, y_pitch);
  expect_array(stream, to, y, y_count, element_size, what);
  free_array(from, 0);
  free_array(to, element_size);
  free(x);
  free(y);
}

static void check_all(size_t element_size) {
  rill_stream stream = new_stream("transpose");
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    check(stream, element_size, shapes[i].rows, shapes[i].columns, 0);
    check(stream, element_size, shapes[i].rows, shapes[i].columns, 3);
  }
}

static void transposes_elements_of_4_bytes(void) { check_all(4); }
static void transposes_elements_of_8_bytes(void) { check_all(8); }

TESTS_ON_EACH_DEVICE("kernel transpose", TEST(transposes_elements_of_4_bytes), TEST(transposes_elements_of_8_bytes))
