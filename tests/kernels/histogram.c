/* kernels/histogram.kernel.cu: counts are exact. */
#include "arrays.h"

#include "histogram.rill.h"

#include <stdio.h>

static const int bin_counts[] = { 1, 2, 7, 64, 256, 1000, 4096 };

/* The counts begin as 5, and are added to. */
static uint64_t *new_counts(int bins) {
  uint64_t *const counts = new_host((size_t)bins * sizeof *counts);
  for (int i = 0; i < bins; i++) counts[i] = 5;
  return counts;
}

static void check_counts(rill_stream stream, size_t n, int bins, uint64_t *found, uint64_t *expected) {
  char what[64];
  (void)snprintf(what, sizeof what, "%zu values in %d bins", n, bins);
  expect_array(stream, found, expected, (size_t)bins, sizeof *expected, what);
  free_array(found, 0);
  free(expected);
}

static void check_ints(rill_stream stream, size_t n, int bins, int32_t low, uint32_t range) {
  int32_t *const x = new_host(n * sizeof *x);
  random_ints(n, n, x);
  uint64_t *const counts = new_counts(bins);
  uint64_t *const out = new_array(stream, counts, (size_t)bins * sizeof *counts, 0);
  for (size_t i = 0; i < n; i++) {
    if (range != 0) x[i] = (int32_t)((int64_t)low - 3 + (int64_t)((uint32_t)x[i] % range));
    const int64_t bin = (int64_t)x[i] - low;
    if (bin >= 0 && bin < bins) counts[bin]++;
  }
  int32_t *const from = new_array(stream, x, n * sizeof *x, 0);
  const rill_launch launch = rill_kernels_histogram(n, (uint32_t)bins, dut.info.compute_units);
  assert_ok(histogram_i32_launch(stream, &launch, (int64_t)n, from, low, bins, out));
  check_counts(stream, n, bins, out, counts);
  free_array(from, 0);
  free(x);
}

/* Values around the bins, of which some are outside, and of all 32 bits, of which most are. */
static void counts_integers(void) {
  rill_stream stream = new_stream("integers");
  for (size_t s = 0; sizes[s] != 0; s++) {
    for (size_t b = 0; b < sizeof bin_counts / sizeof *bin_counts; b++) {
      check_ints(stream, sizes[s], bin_counts[b], -100, (uint32_t)bin_counts[b] + 6);
      check_ints(stream, sizes[s], bin_counts[b], INT32_MIN, 0);
    }
  }
  check_ints(stream, 3000001, 256, 0, 256);
}

/* All in one bin, the worst case for the kernel. */
static void counts_equal_values(void) {
  rill_stream stream = new_stream("same");
  check_ints(stream, 100003, 16, 3, 1); /* all 0, below the first bin */
  check_ints(stream, 100003, 16, -3, 4);
}

#define FLOATS(SUFFIX, T, RANDOM)                                                                     \
  static void check_##SUFFIX(rill_stream stream, size_t n, int bins) {                                \
    T *const x = new_host(n * sizeof *x);                                                             \
    const T low = (T)-0.9, scale = (T)bins / (T)1.8;                                                  \
    RANDOM(n, n, x);                                                                                  \
    if (n > 10) x[n - 1] = (T)NAN, x[n - 2] = (T)INFINITY, x[n - 3] = -(T)INFINITY, x[n - 4] = low;   \
    uint64_t *const counts = new_counts(bins);                                                        \
    uint64_t *const out = new_array(stream, counts, (size_t)bins * sizeof *counts, 0);                \
    for (size_t i = 0; i < n; i++) {                                                                  \
      const T bin = (x[i] - low) * scale;                                                             \
      if (bin >= 0 && bin < (T)bins) counts[(size_t)bin]++;                                           \
    }                                                                                                 \
    T *const from = new_array(stream, x, n * sizeof *x, sizeof *x);                                   \
    const rill_launch launch = rill_kernels_histogram(n, (uint32_t)bins, dut.info.compute_units);     \
    assert_ok(histogram_##SUFFIX##_launch(stream, &launch, (int64_t)n, from, low, scale, bins, out)); \
    check_counts(stream, n, bins, out, counts);                                                       \
    free_array(from, sizeof *x);                                                                      \
    free(x);                                                                                          \
  }                                                                                                   \
  static void counts_##SUFFIX(void) {                                                                 \
    rill_stream stream = new_stream("floats");                                                        \
    for (size_t s = 0; sizes[s] != 0; s++) {                                                          \
      for (size_t b = 0; b < sizeof bin_counts / sizeof *bin_counts; b++) {                           \
        check_##SUFFIX(stream, sizes[s], bin_counts[b]);                                              \
      }                                                                                               \
    }                                                                                                 \
  }
FLOATS(f32, float, random_floats)
FLOATS(f64, double, random_doubles)

/* Any grid and any block count all values. */
static void any_launch_shape_works(void) {
  enum { N = 5000, BINS = 10 };
  static const uint32_t shapes[][2] = { { 1, 1 }, { 1, 1000 }, { 77, 3 }, { 500, 32 } };
  rill_stream stream = new_stream("shapes");
  int32_t *const x = new_host(N * sizeof *x);
  for (size_t i = 0; i < N; i++) x[i] = (int32_t)(i % BINS);
  int32_t *const from = new_array(stream, x, N * sizeof *x, 0);
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    uint64_t *const counts = new_counts(BINS);
    uint64_t *const out = new_array(stream, counts, BINS * sizeof *counts, 0);
    rill_launch launch = rill_kernels_histogram(N, BINS, 1);
    launch.grid.x = shapes[s][0];
    launch.block.x = shapes[s][1];
    assert_ok(histogram_i32_launch(stream, &launch, N, from, 0, BINS, out));
    for (size_t i = 0; i < BINS; i++) counts[i] += N / BINS;
    check_counts(stream, N, BINS, out, counts);
  }
  free_array(from, 0);
  free(x);
}

/* More bins than a block has shared memory for. */
static void refuses_too_many_bins(void) {
  rill_stream stream = new_stream("bins");
  const uint32_t bins = (uint32_t)(dut.info.shared_per_block_optin / 4) + 1;
  const rill_launch launch = rill_kernels_histogram(1, bins, 1);
  assert_fails(histogram_i32_launch(stream, &launch, 1, NULL, 0, (int)bins, NULL), RILL_ERROR_OUT_OF_RANGE);
}

TESTS_ON_EACH_DEVICE("kernels histogram", TEST(counts_integers), TEST(counts_equal_values), TEST(counts_f32),
                     TEST(counts_f64), TEST(any_launch_shape_works), TEST(refuses_too_many_bins))
