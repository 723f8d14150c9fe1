/* kernels/copy2d.kernel.cu */
#include "arrays.h"

#include "copy2d.rill.h"

#include <stdio.h>

static const struct {
  size_t width, height;
} shapes[] = { { 1, 1 },   { 1, 33 },    { 33, 1 },   { 31, 5 },    { 64, 16 },
               { 65, 17 }, { 63, 1023 }, { 1025, 9 }, { 257, 129 }, { 4, 70000 } };
static const rill_dim3 blocks[] = { { 64, 4, 1 }, { 32, 8, 1 }, { 7, 3, 1 }, { 256, 1, 1 } };

/* Rows have gaps between them, which stay unchanged. */
static void check(rill_stream stream, size_t element_size, size_t width, size_t height, rill_dim3 block) {
  const size_t src_pitch = width + 3, dst_pitch = width + 5;
  const size_t src_count = src_pitch * height, dst_count = dst_pitch * height;
  unsigned char *const src = new_host(src_count * element_size), *const dst = new_host(dst_count * element_size);
  uint64_t seed = width * height;
  for (size_t i = 0; i < src_count * element_size; i++) src[i] = (unsigned char)next_random(&seed);
  memset(dst, 0x11, dst_count * element_size);
  void *const from = new_array(stream, src, src_count * element_size, element_size);
  void *const to = new_array(stream, dst, dst_count * element_size, 0);
  const rill_launch launch = rill_kernels_copy2d(width, height, block.x, block.y);
  const int64_t w = (int64_t)width, h = (int64_t)height, sp = (int64_t)src_pitch, dp = (int64_t)dst_pitch;
  assert_ok(element_size == 4 ? copy2d_f32_launch(stream, &launch, w, h, from, sp, to, dp)
                              : copy2d_f64_launch(stream, &launch, w, h, from, sp, to, dp));
  for (size_t row = 0; row < height; row++) {
    memcpy(dst + row * dst_pitch * element_size, src + row * src_pitch * element_size, width * element_size);
  }
  char what[96];
  (void)snprintf(what, sizeof what, "%zu x %zu, blocks of %u x %u", width, height, block.x, block.y);
  expect_array(stream, to, dst, dst_count, element_size, what);
  free_array(from, element_size);
  free_array(to, 0);
  free(src);
  free(dst);
}

static void check_all(size_t element_size) {
  rill_stream stream = new_stream("copy");
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
      check(stream, element_size, shapes[i].width, shapes[i].height, blocks[b]);
    }
  }
}

static void copies_elements_of_4_bytes(void) { check_all(4); }
static void copies_elements_of_8_bytes(void) { check_all(8); }

static void refuses_empty_arrays(void) {
  rill_stream stream = new_stream("copy");
  const rill_launch launch = rill_kernels_copy2d(5, 0, 64, 4);
  assert_fails(copy2d_f32_launch(stream, &launch, 5, 0, NULL, 5, NULL, 5), RILL_ERROR_INVALID_ARGUMENT);
}

TESTS_ON_EACH_DEVICE("kernel copy2d", TEST(copies_elements_of_4_bytes), TEST(copies_elements_of_8_bytes),
                     TEST(refuses_empty_arrays))
