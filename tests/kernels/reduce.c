/* kernels/reduce.kernel.cu: sums, minima, maxima and dot products, through rill_kernels_sum_f32 and the others.
 *
 * Integers are exact.  The shape of a sum is given, so it is what the same shape in C gives, bit for bit; and that
 * shape is as good as is said: an element goes through at most 14 (float) or 12 (double) roundings in a pass, so
 *     |sum - exact| <= r u / (1 - r u) * (|x[0]| + |x[1]| + ...)     with u = 2^-24, 2^-53
 * where r is that number times the passes.  A product fused into its sum is one rounding with it.
 */
#include "arrays.h"

#include <float.h>
#include <stdio.h>

enum { THREADS = 256, ROUNDS = 4 };

#define TILES(n, tile) (((n) + (tile)-1) / (tile))

/* One pass of a sum or a dot product (y not NULL), in the order that the kernels promise. */
#define SUMS(SUFFIX, T, FMA)                                                                                \
  static T tile_##SUFFIX(size_t n, const T *x, const T *y) {                                                \
    enum { COUNT = 16 / sizeof(T) };                                                                        \
    T part[THREADS];                                                                                        \
    for (size_t t = 0; t < THREADS; t++) {                                                                  \
      T results[COUNT] = { 0 };                                                                             \
      for (size_t r = 0; r < ROUNDS; r++) {                                                                 \
        for (size_t k = 0; k < COUNT; k++) {                                                                \
          const size_t i = (r * THREADS + t) * COUNT + k;                                                   \
          if (i < n) results[k] = y != NULL ? FMA(x[i], y[i], results[k]) : results[k] + x[i];              \
        }                                                                                                   \
      }                                                                                                     \
      part[t] = results[0];                                                                                 \
      for (size_t k = 1; k < COUNT; k++) part[t] += results[k];                                             \
    }                                                                                                       \
    for (size_t half = THREADS / 2; half > 0; half /= 2) {                                                  \
      for (size_t t = 0; t < half; t++) part[t] += part[t + half];                                          \
    }                                                                                                       \
    return part[0];                                                                                         \
  }                                                                                                         \
  static T sum_##SUFFIX(size_t n, const T *x, const T *y, unsigned *passes) {                               \
    const size_t tile = RILL_KERNELS_TILE_BYTES / sizeof(T), tiles = TILES(n, tile);                        \
    ++*passes;                                                                                              \
    if (tiles == 1) return tile_##SUFFIX(n, x, y);                                                          \
    T *const sums = new_host(tiles * sizeof *sums);                                                         \
    for (size_t i = 0; i < tiles; i++) {                                                                    \
      const size_t first = i * tile, count = n - first < tile ? n - first : tile;                           \
      sums[i] = tile_##SUFFIX(count, x + first, y != NULL ? y + first : NULL);                              \
    }                                                                                                       \
    const T sum = sum_##SUFFIX(tiles, sums, NULL, passes);                                                  \
    free(sums);                                                                                             \
    return sum;                                                                                             \
  }                                                                                                         \
  /* The found sum against one of more precision, whose own error is far below. */                          \
  static void check_bound_##SUFFIX(size_t n, const T *x, const T *y, T found, unsigned passes) {            \
    const long double u = sizeof(T) == 4 ? 0x1p-24L : 0x1p-53L;                                             \
    const long double roundings = (sizeof(T) == 4 ? 14 : 12) * (long double)passes;                         \
    long double exact = 0, size = 0;                                                                        \
    for (size_t i = 0; i < n; i++) {                                                                        \
      const long double term = y != NULL ? (long double)x[i] * (long double)y[i] : (long double)x[i];       \
      exact += term;                                                                                        \
      size += fabsl(term);                                                                                  \
    }                                                                                                       \
    const long double bound = roundings * u / (1 - roundings * u) * size;                                   \
    const long double slack = (long double)n * LDBL_EPSILON * size; /* of `exact` itself */                 \
    if (fabsl((long double)found - exact) > bound + slack) {                                                \
      fail_msg("sum of %zu: %.20Lg, %.20Lg expected, %.3Lg allowed", n, (long double)found, exact, bound);  \
    }                                                                                                       \
  }                                                                                                         \
  static void check_##SUFFIX(rill_stream stream, size_t n, bool product, size_t skip) {                     \
    T *const x = new_host(n * sizeof *x), *const y = product ? new_host(n * sizeof *y) : NULL;              \
    RANDOM_##SUFFIX(n, n, x);                                                                               \
    if (product) RANDOM_##SUFFIX(~n, n, y);                                                                 \
    T *const dx = new_array(stream, x, n * sizeof *x, skip);                                                \
    T *const dy = new_array(stream, y, product ? n * sizeof *y : 0, 0);                                     \
    T *const out = new_array(stream, NULL, sizeof *out, 0);                                                 \
    unsigned passes = 0;                                                                                    \
    const T expected = sum_##SUFFIX(n, x, y, &passes);                                                      \
    assert_ok(product ? rill_kernels_dot_##SUFFIX(stream, n, dx, dy, out)                                   \
                      : rill_kernels_sum_##SUFFIX(stream, n, dx, out));                                     \
    T found = 0;                                                                                            \
    read_array(stream, &found, out, sizeof found);                                                          \
    if (memcmp(&found, &expected, sizeof found) != 0) {                                                     \
      fail_msg("%s of %zu: %.17g, not %.17g", product ? "dot" : "sum", n, (double)found, (double)expected); \
    }                                                                                                       \
    check_bound_##SUFFIX(n, x, y, found, passes);                                                           \
    free_array(dx, skip);                                                                                   \
    free_array(dy, 0);                                                                                      \
    free_array(out, 0);                                                                                     \
    free(x);                                                                                                \
    free(y);                                                                                                \
  }                                                                                                         \
  static void sums_##SUFFIX(void) {                                                                         \
    rill_stream stream = new_stream("sums");                                                                \
    for (size_t i = 0; sizes[i] != 0; i++) {                                                                \
      check_##SUFFIX(stream, sizes[i], false, 0);                                                           \
      check_##SUFFIX(stream, sizes[i], false, sizeof(T));                                                   \
    }                                                                                                       \
    check_##SUFFIX(stream, scaled(MANY), false, 0);                                                         \
  }                                                                                                         \
  static void dots_##SUFFIX(void) {                                                                         \
    rill_stream stream = new_stream("dots");                                                                \
    for (size_t i = 0; sizes[i] != 0; i++) {                                                                \
      check_##SUFFIX(stream, sizes[i], true, 0);                                                            \
      check_##SUFFIX(stream, sizes[i], true, sizeof(T));                                                    \
    }                                                                                                       \
    check_##SUFFIX(stream, scaled(MANY), true, 0);                                                          \
  }

enum { MANY = 2048 * 2048 + 1 }; /* three passes of doubles */
#define RANDOM_f32 random_floats
#define RANDOM_f64 random_doubles
SUMS(f32, float, fmaf)
SUMS(f64, double, fma)

static void sums_i32(void) {
  rill_stream stream = new_stream("sums");
  for (size_t s = 0; sizes[s] != 0; s++) {
    const size_t n = sizes[s];
    int32_t *const x = new_host(n * sizeof *x);
    uint32_t expected = 0, found = 0;
    random_ints(n, n, x);
    for (size_t i = 0; i < n; i++) expected += (uint32_t)x[i];
    int32_t *const dx = new_array(stream, x, n * sizeof *x, 0), *const out = new_array(stream, NULL, 4, 0);
    assert_ok(rill_kernels_sum_i32(stream, n, dx, out));
    read_array(stream, &found, out, 4);
    assert_int_equal(found, expected);
    free_array(dx, 0);
    free_array(out, 0);
    free(x);
  }
}

/* Minimum and maximum are each at one place: first, last, or between. */
#define EXTREMES(SUFFIX, T, RANDOM, LOW, HIGH)                                                                    \
  static void check_extremes_##SUFFIX(rill_stream stream, size_t n, size_t low, size_t high) {                    \
    T *const x = new_host(n * sizeof *x);                                                                         \
    RANDOM(n, n, x);                                                                                              \
    x[high] = HIGH;                                                                                               \
    x[low] = LOW;                                                                                                 \
    T *const dx = new_array(stream, x, n * sizeof *x, 0), *const out = new_array(stream, NULL, 2 * sizeof *x, 0); \
    T found[2];                                                                                                   \
    assert_ok(rill_kernels_min_##SUFFIX(stream, n, dx, out));                                                     \
    assert_ok(rill_kernels_max_##SUFFIX(stream, n, dx, out + 1));                                                 \
    read_array(stream, found, out, sizeof found);                                                                 \
    assert_true(found[0] == LOW);                                                                                 \
    assert_true(found[1] == (low == high ? LOW : HIGH));                                                          \
    free_array(dx, 0);                                                                                            \
    free_array(out, 0);                                                                                           \
    free(x);                                                                                                      \
  }                                                                                                               \
  static void extremes_##SUFFIX(void) {                                                                           \
    rill_stream stream = new_stream("extremes");                                                                  \
    for (size_t s = 0; sizes[s] != 0; s++) {                                                                      \
      check_extremes_##SUFFIX(stream, sizes[s], 0, sizes[s] - 1);                                                 \
      check_extremes_##SUFFIX(stream, sizes[s], sizes[s] - 1, 0);                                                 \
      check_extremes_##SUFFIX(stream, sizes[s], sizes[s] / 2, (sizes[s] - 1) / 3);                                \
    }                                                                                                             \
  }

EXTREMES(i32, int32_t, random_ints, INT32_MIN, INT32_MAX)
EXTREMES(f32, float, random_floats, -2.5f, 3.5f)
EXTREMES(f64, double, random_doubles, -2.5, 3.5)

static void nans_count_only_if_all_values_are_nan(void) {
  enum { N = 5000 };
  rill_stream stream = new_stream("NaNs");
  float *const x = new_host(N * sizeof *x), found[2];
  for (size_t i = 0; i < N; i++) x[i] = NAN;
  float *out = new_array(stream, NULL, sizeof found, 0);
  for (size_t numbers = 0; numbers < 3; numbers++) {
    if (numbers == 1) x[4999] = INFINITY;
    if (numbers == 2) x[77] = -8.0f;
    float *const dx = new_array(stream, x, N * sizeof *x, 0);
    assert_ok(rill_kernels_min_f32(stream, N, dx, out));
    assert_ok(rill_kernels_max_f32(stream, N, dx, out + 1));
    read_array(stream, found, out, sizeof found);
    assert_true(numbers == 0 ? isnan(found[0]) && isnan(found[1])
                             : found[0] == (numbers == 1 ? INFINITY : -8.0f) && found[1] == INFINITY);
    free_array(dx, 0);
  }
  free_array(out, 0);
  free(x);
}

/* The scratch memory of the passes returns to the pool. */
static void scratch_memory_returns_to_the_pool(void) {
  rill_stream stream = new_stream("scratch");
  rill_pool pool;
  rill_pool_info before = RILL_POOL_INFO_INIT, after = RILL_POOL_INFO_INIT;
  float *const x = new_array(stream, NULL, 100003 * sizeof *x, 0), *const out = new_array(stream, NULL, sizeof *out, 0);
  assert_ok(rill_pool_default(dut.device, &pool));
  assert_ok(rill_pool_get_info(pool, &before));
  for (int i = 0; i < 3; i++) assert_ok(rill_kernels_max_f32(stream, 100003, x, out));
  assert_completes(stream);
  assert_ok(rill_pool_get_info(pool, &after));
  assert_int_equal(after.used, before.used);
  free_array(x, 0);
  free_array(out, 0);
}

static void refuses_empty_arrays(void) {
  rill_stream stream = new_stream("nothing");
  assert_fails_in("sum_f32_launch", rill_kernels_sum_f32(stream, 0, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

TESTS_ON_EACH_DEVICE("kernels reduce", TEST(sums_i32), TEST(sums_f32), TEST(sums_f64), TEST(dots_f32), TEST(dots_f64),
                     TEST(extremes_i32), TEST(extremes_f32), TEST(extremes_f64),
                     TEST(nans_count_only_if_all_values_are_nan), TEST(scratch_memory_returns_to_the_pool),
                     TEST(refuses_empty_arrays))
