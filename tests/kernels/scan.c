/* kernels/scan.kernel.cu, through rill_kernels_scan_i32 and the others.
 *
 * Integers are exact.  The order is given, so the results are what the same order in C gives, bit for bit; and they are
 * within r u / (1 - r u) of the sum of the magnitudes so far: r is EACH roundings in a thread for its sum and as many
 * for its running sum, 8 for the sums of threads, 32 each for those of tiles and groups, one for each row, and 3 where
 * these meet. */
#include "arrays.h"

#include <float.h>
#include <stdio.h>

enum { THREADS = 256, FAN = 32 };

#define SCANS(SUFFIX, T, SUM)                                                                                   \
  static SUM scan_tile_##SUFFIX(size_t n, bool exclusive, const T *x, SUM start, T *y) {                        \
    enum { EACH = RILL_KERNELS_TILE_BYTES / sizeof(T) / THREADS };                                              \
    SUM sums[2][THREADS];                                                                                       \
    for (size_t t = 0; t < THREADS; t++) {                                                                      \
      SUM sum = 0;                                                                                              \
      for (size_t i = t * EACH; i < (t + 1) * EACH; i++) sum += i < n ? (SUM)x[i] : 0;                          \
      sums[0][t] = sum;                                                                                         \
    }                                                                                                           \
    unsigned from = 0;                                                                                          \
    for (size_t step = 1; step < THREADS; step *= 2) {                                                          \
      for (size_t t = 0; t < THREADS; t++) {                                                                    \
        sums[1 - from][t] = t < step ? sums[from][t] : sums[from][t - step] + sums[from][t];                    \
      }                                                                                                         \
      from = 1 - from;                                                                                          \
    }                                                                                                           \
    for (size_t t = 0; t < THREADS; t++) {                                                                      \
      SUM running = start + (t == 0 ? 0 : sums[from][t - 1]);                                                   \
      for (size_t i = t * EACH; i < (t + 1) * EACH && i < n; i++) {                                             \
        const SUM before = running;                                                                             \
        running += (SUM)x[i];                                                                                   \
        y[i] = (T)(exclusive ? before : running);                                                               \
      }                                                                                                         \
    }                                                                                                           \
    return sums[from][THREADS - 1];                                                                             \
  }                                                                                                             \
  static void scan_##SUFFIX(size_t n, bool exclusive, const T *x, T *y) {                                       \
    const size_t tile = RILL_KERNELS_TILE_BYTES / sizeof(T);                                                    \
    SUM row = 0, groups = 0, tiles = 0;                                                                         \
    for (size_t i = 0; i * tile < n; i++) {                                                                     \
      const size_t first = i * tile;                                                                            \
      const SUM start = row + groups + tiles;                                                                   \
      tiles += scan_tile_##SUFFIX(n - first < tile ? n - first : tile, exclusive, x + first, start, y + first); \
      if ((i + 1) % FAN == 0) groups += tiles, tiles = 0;                                                       \
      if ((i + 1) % (FAN * FAN) == 0) row += groups, groups = 0;                                                \
    }                                                                                                           \
  }                                                                                                             \
  static void check_##SUFFIX(rill_stream stream, size_t n, bool exclusive, bool in_place) {                     \
    T *const x = new_host(n * sizeof *x), *const y = new_host(n * sizeof *y);                                   \
    RANDOM_##SUFFIX(n, n, x);                                                                                   \
    scan_##SUFFIX(n, exclusive, x, y);                                                                          \
    const size_t skip = in_place ? sizeof *x : 0;                                                               \
    T *const from = new_array(stream, x, n * sizeof *x, skip);                                                  \
    T *const to = in_place ? from : new_array(stream, NULL, n * sizeof *y, 0);                                  \
    assert_ok(rill_kernels_scan_##SUFFIX(stream, n, exclusive, from, to));                                      \
    char what[96];                                                                                              \
    (void)snprintf(what, sizeof what, "%s scan of %zu%s", exclusive ? "exclusive" : "inclusive", n,             \
                   in_place ? ", in place" : "");                                                               \
    expect_array(stream, to, y, n, sizeof *y, what);                                                            \
    BOUND_##SUFFIX(n, exclusive, x, y);                                                                         \
    free_array(from, skip);                                                                                     \
    if (!in_place) free_array(to, 0);                                                                           \
    free(x);                                                                                                    \
    free(y);                                                                                                    \
  }                                                                                                             \
  static void scans_##SUFFIX(void) {                                                                            \
    rill_stream stream = new_stream("scans");                                                                   \
    for (size_t i = 0; sizes[i] != 0; i++) {                                                                    \
      for (unsigned form = 0; form < 4; form++) check_##SUFFIX(stream, sizes[i], form & 1, form & 2);           \
    }                                                                                                           \
    uint64_t state = sizeof(SUM);                                                                               \
    for (int i = 0; i < 20; i++) {                                                                              \
      const size_t n = 1 + next_random(&state) % (100 * 4096);                                                  \
      check_##SUFFIX(stream, n, next_random(&state) % 2 == 0, next_random(&state) % 2 == 0);                    \
    }                                                                                                           \
    check_##SUFFIX(stream, scaled(MANY), true, false);                                                          \
  }

enum { MANY = 4096 * 1024 + 1 }; /* in two rows of floats, three of doubles */

/* Sums modulo 2^32, one after the other. */
static void check_exact(size_t n, bool exclusive, const int32_t *x, const int32_t *y) {
  uint32_t sum = 0;
  for (size_t i = 0; i < n; i++) {
    const uint32_t before = sum;
    sum += (uint32_t)x[i];
    if ((uint32_t)y[i] != (exclusive ? before : sum)) fail_msg("element %zu of %zu: %d", i, n, y[i]);
  }
}

struct running {
  long double sum, magnitudes, unit, roundings;
};

static void check_running(const struct running *r, size_t i, long double y) {
  const long double factor = r->roundings * r->unit;
  const long double slack = (long double)(i + 1) * LDBL_EPSILON * r->magnitudes;
  if (fabsl(y - r->sum) > factor / (1 - factor) * r->magnitudes + slack) {
    fail_msg("element %zu: %.20Lg, %.20Lg expected", i, y, r->sum);
  }
}

#define BOUND(NAME, T, UNIT, ROUNDINGS)                                                                               \
  static void NAME(size_t n, bool exclusive, const T *x, const T *y) {                                                \
    struct running r = { 0, 0, UNIT, (ROUNDINGS) + (long double)(n / (1024 * RILL_KERNELS_TILE_BYTES / sizeof(T))) }; \
    for (size_t i = 0; i < n; i++) {                                                                                  \
      if (exclusive) check_running(&r, i, y[i]);                                                                      \
      r.sum += (long double)x[i];                                                                                     \
      r.magnitudes += fabsl((long double)x[i]);                                                                       \
      if (!exclusive) check_running(&r, i, y[i]);                                                                     \
    }                                                                                                                 \
  }
BOUND(check_bound_f32, float, 0x1p-24L, 16 + 16 + 8 + 2 * FAN + 3)
BOUND(check_bound_f64, double, 0x1p-53L, 8 + 8 + 8 + 2 * FAN + 3)

#define RANDOM_i32 random_ints
#define RANDOM_f32 random_floats
#define RANDOM_f64 random_doubles
#define BOUND_i32(n, exclusive, x, y) check_exact(n, exclusive, x, y)
#define BOUND_f32 check_bound_f32
#define BOUND_f64 check_bound_f64
SCANS(i32, int32_t, uint32_t)
SCANS(f32, float, float)
SCANS(f64, double, double)

/* Concurrent scans wait only for their own blocks. */
static void scans_on_several_streams(void) {
  enum { STREAMS = 4, N = 1500000 };
  int32_t *x[STREAMS], *const y = new_host(N * sizeof *y), *const expected = new_host(N * sizeof *expected);
  rill_stream streams[STREAMS];
  const int32_t one = 1;
  for (size_t s = 0; s < STREAMS; s++) {
    streams[s] = new_stream("several");
    x[s] = new_array(streams[s], NULL, N * sizeof **x, 0);
    assert_ok(rill_fill_async(streams[s], x[s], &one, sizeof one, N));
  }
  /* The second one scans 1, 2, 3 ... */
  for (size_t s = 0; s < STREAMS; s++) assert_ok(rill_kernels_scan_i32(streams[s], N, false, x[s], x[s]));
  for (size_t s = 0; s < STREAMS; s++) assert_ok(rill_kernels_scan_i32(streams[s], N, s % 2 == 0, x[s], x[s]));
  for (size_t s = 0; s < STREAMS; s++) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < N; i++) {
      const uint32_t before = sum;
      sum += i + 1;
      expected[i] = (int32_t)(s % 2 == 0 ? before : sum);
    }
    read_array(streams[s], y, x[s], N * sizeof *y);
    assert_memory_equal(y, expected, N * sizeof *y);
    free_array(x[s], 0);
  }
  free(expected);
  free(y);
}

/* Other work before and after shows that all passes run on the stream. */
static void passes_run_in_stream_order(void) {
  enum { N = 10000 };
  rill_stream stream = new_stream("order");
  int32_t *const x = new_array(stream, NULL, N * sizeof *x, 0), *const y = new_host(N * sizeof *y);
  const int32_t one = 1, two = 2;
  struct gate *gate = gate_close(stream);
  assert_ok(rill_fill_async(stream, x, &one, sizeof one, N));
  assert_ok(rill_kernels_scan_i32(stream, N, false, x, x));
  assert_ok(rill_copy_async(stream, dut.memory, x + N - 1, sizeof *x));
  assert_ok(rill_fill_async(stream, x, &two, sizeof two, N));
  gate_open(gate);
  read_cell(stream, 0);
  read_array(stream, y, x, N * sizeof *x);
  assert_int_equal(dut.host[0], N);
  for (size_t i = 0; i < N; i++) assert_int_equal(y[i], 2);
  free_array(x, 0);
  free(y);
}

static void refuses_empty_arrays(void) {
  rill_stream stream = new_stream("nothing");
  assert_fails_in("scan_f64_launch", rill_kernels_scan_f64(stream, 0, false, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

TESTS_ON_EACH_DEVICE("kernels scan", TEST(scans_i32), TEST(scans_f32), TEST(scans_f64), TEST(scans_on_several_streams),
                     TEST(passes_run_in_stream_order), TEST(refuses_empty_arrays))
