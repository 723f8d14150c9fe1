/* kernels/sgemm.kernel.cu: the order of each sum is given, so both kernels give what the same in C gives, bit for bit,
 * but for the sign of a zero. */
#include "arrays.h"

#include "sgemm.rill.h"

static const struct {
  size_t m, n, k;
} shapes[] = { { 1, 1, 1 },      { 2, 3, 4 },       { 5, 4, 7 },    { 16, 16, 16 },  { 31, 33, 32 },
               { 64, 65, 63 },   { 1, 200, 50 },    { 200, 1, 50 }, { 127, 129, 9 }, { 128, 128, 128 },
               { 257, 130, 67 }, { 33, 140, 1025 }, { 40, 24, 0 },  { 132, 260, 16 } };

/* One way to lie in memory. */
struct layout {
  size_t gap, skip; /* elements after each row; bytes before the first */
  float alpha, beta;
};
static const struct layout layouts[] = { { 0, 0, 1.0f, 0.0f }, { 3, 4, -0.5f, 2.0f }, { 4, 0, 0.3f, 0.7f } };

static void expect_product(size_t m, size_t n, size_t k, const struct layout *l, const float *a, const float *b,
                           float *c) {
  for (size_t i = 0; i < m; i++) {
    for (size_t j = 0; j < n; j++) {
      float sum = 0, *const place = &c[i * (n + l->gap) + j];
      for (size_t d = 0; d < k; d++) sum = fmaf(a[i * (k + l->gap) + d], b[d * (n + l->gap) + j], sum);
      *place = l->beta == 0 ? l->alpha * sum : fmaf(l->alpha, sum, l->beta * *place);
    }
  }
}

static float *new_matrix(uint64_t seed, size_t count) {
  float *const x = new_host(count * sizeof *x);
  random_floats(seed, count, x);
  return x;
}

static void check(rill_stream stream, bool small, size_t m, size_t n, size_t k, const struct layout *l) {
  const size_t lda = k + l->gap, ldb = n + l->gap, ldc = n + l->gap;
  float *const a = new_matrix(1, m * lda), *const b = new_matrix(2, k * ldb), *const c = new_matrix(3, m * ldc);
  float *const found = new_host(m * ldc * sizeof *found);
  if (l->beta == 0) {
    for (size_t i = 0; i < m * ldc; i++) c[i] = NAN; /* not read */
  }
  float *const da = new_array(stream, a, m * lda * sizeof *a, l->skip);
  float *const db = new_array(stream, b, k * ldb * sizeof *b, l->skip);
  float *const dc = new_array(stream, c, m * ldc * sizeof *c, l->skip);
  const rill_launch launch = small ? rill_kernels_sgemm_16x16(m, n) : rill_kernels_sgemm(m, n);
  assert_ok((small ? sgemm_16x16_launch : sgemm_launch)(stream, &launch, (int64_t)m, (int64_t)n, (int64_t)k, l->alpha,
                                                        da, (int64_t)lda, db, (int64_t)ldb, l->beta, dc, (int64_t)ldc));
  expect_product(m, n, k, l, a, b, c);
  read_array(stream, found, dc, m * ldc * sizeof *found);
  for (size_t i = 0; i < m * ldc; i++) {
    if (found[i] == c[i] || (isnan(c[i]) && isnan(found[i]))) continue; /* NaNs are in gaps alone */
    fail_msg("%zu x %zu x %zu, gap %zu: row %zu, column %zu is %.9g, not %.9g", m, n, k, l->gap, i / ldc, i % ldc,
             (double)found[i], (double)c[i]);
  }
  free_array(da, l->skip);
  free_array(db, l->skip);
  free_array(dc, l->skip);
  free(a);
  free(b);
  free(c);
  free(found);
}

static void check_all(bool small) {
  rill_stream stream = new_stream("sgemm");
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    for (size_t l = 0; l < sizeof layouts / sizeof *layouts; l++) {
      check(stream, small, shapes[i].m, shapes[i].n, shapes[i].k, &layouts[l]);
    }
  }
}

static void large_tiles(void) { check_all(false); }
static void small_tiles(void) { check_all(true); }

static void refuses_nothing(void) {
  rill_stream stream = new_stream("nothing");
  const rill_launch launch = rill_kernels_sgemm(0, 5);
  assert_fails_in("rill_stream_launch_ref",
                  sgemm_launch(stream, &launch, 0, 5, 5, 1.0f, NULL, 5, NULL, 5, 0.0f, NULL, 5),
                  RILL_ERROR_INVALID_ARGUMENT);
}

TESTS_ON_EACH_DEVICE("kernels sgemm", TEST(large_tiles), TEST(small_tiles), TEST(refuses_nothing))
