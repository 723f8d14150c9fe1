/* kernels/stencil.kernel.cu: the order and the roundings are specified, so the result equals the same code in C bit for
 * bit. */
#include "arrays.h"

#include "stencil.rill.h"

#include <stdio.h>

static const struct {
  size_t width, height, depth;
} shapes[] = { { 1, 1, 1 },   { 2, 2, 2 },  { 3, 3, 3 },   { 31, 33, 5 },  { 32, 32, 2 },  { 33, 31, 7 },
               { 1, 65, 64 }, { 65, 1, 3 }, { 64, 63, 1 }, { 1025, 5, 3 }, { 4, 1023, 4 }, { 130, 67, 9 } };
static const rill_dim3 blocks[] = { { 64, 4, 1 }, { 32, 8, 1 }, { 5, 3, 1 } };

#define STENCIL_TESTS(SUFFIX, T, FMA, RANDOM)                                                                       \
  static void expect_##SUFFIX(bool space, size_t w, size_t h, size_t d, T center, T near, const T *x, T *y) {       \
    for (size_t k = 0; k < d; k++) {                                                                                \
      for (size_t j = 0; j < h; j++) {                                                                              \
        for (size_t i = 0; i < w; i++) {                                                                            \
          const size_t at = (k * h + j) * w + i;                                                                    \
          const bool edge = i == 0 || i == w - 1 || j == 0 || j == h - 1 || (space && (k == 0 || k == d - 1));      \
          if (edge) {                                                                                               \
            y[at] = x[at];                                                                                          \
            continue;                                                                                               \
          }                                                                                                         \
          T sum = (x[at - 1] + x[at + 1]) + (x[at - w] + x[at + w]);                                                \
          if (space) sum += x[at - w * h] + x[at + w * h];                                                          \
          y[at] = FMA(near, sum, center * x[at]);                                                                   \
        }                                                                                                           \
      }                                                                                                             \
    }                                                                                                               \
  }                                                                                                                 \
  static void check_##SUFFIX(rill_stream stream, bool space, size_t w, size_t h, size_t d, rill_dim3 block) {       \
    const size_t count = w * h * d;                                                                                 \
    const T center = (T)0.4, near = (T)0.1;                                                                         \
    T *const x = new_host(count * sizeof *x), *const y = new_host(count * sizeof *y);                               \
    RANDOM(count, count, x);                                                                                        \
    T *const from = new_array(stream, x, count * sizeof *x, 0);                                                     \
    T *const to = new_array(stream, NULL, count * sizeof *x, 0);                                                    \
    const rill_launch launch = space ? rill_kernels_stencil7(w, h, d, sizeof(T), block.x, block.y)                  \
                                     : rill_kernels_stencil5(w, h, sizeof(T), block.x, block.y);                    \
    assert_ok(space ? stencil7_##SUFFIX##_launch(stream, &launch, (int64_t)w, (int64_t)h, (int64_t)d, center, near, \
                                                 from, to)                                                          \
                    : stencil5_##SUFFIX##_launch(stream, &launch, (int64_t)w, (int64_t)h, center, near, from, to)); \
    expect_##SUFFIX(space, w, h, d, center, near, x, y);                                                            \
    char what[96];                                                                                                  \
    (void)snprintf(what, sizeof what, "%zu x %zu x %zu, blocks of %u x %u", w, h, d, block.x, block.y);             \
    expect_array(stream, to, y, count, sizeof *x, what);                                                            \
    free_array(from, 0);                                                                                            \
    free_array(to, 0);                                                                                              \
    free(x);                                                                                                        \
    free(y);                                                                                                        \
  }                                                                                                                 \
  static void check_all_##SUFFIX(bool space) {                                                                      \
    rill_stream stream = new_stream("stencil");                                                                     \
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {                                                   \
      for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {                                                 \
        check_##SUFFIX(stream, space, shapes[i].width, shapes[i].height, space ? shapes[i].depth : 1, blocks[b]);   \
      }                                                                                                             \
    }                                                                                                               \
  }                                                                                                                 \
  static void two_dimensions_##SUFFIX(void) { check_all_##SUFFIX(false); }                                          \
  static void three_dimensions_##SUFFIX(void) { check_all_##SUFFIX(true); }

STENCIL_TESTS(f32, float, fmaf, random_floats)
STENCIL_TESTS(f64, double, fma, random_doubles)

TESTS_ON_EACH_DEVICE("kernels stencil", TEST(two_dimensions_f32), TEST(two_dimensions_f64), TEST(three_dimensions_f32),
                     TEST(three_dimensions_f64))
