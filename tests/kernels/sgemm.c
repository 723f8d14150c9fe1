/* kernels/sgemm.kernel.cu: the order of each sum is specified, so all kernels equal the same code in C bit for bit,
 * except for the sign of a zero. */
#include "arrays.h"

#include "sgemm.rill.h"

static const struct {
  size_t m, n, k;
} shapes[] = { { 1, 1, 1 },      { 2, 3, 4 },       { 5, 4, 7 },    { 16, 16, 16 },   { 31, 33, 32 },
               { 64, 65, 63 },   { 1, 200, 50 },    { 200, 1, 50 }, { 127, 129, 9 },  { 128, 128, 128 },
               { 257, 130, 67 }, { 33, 140, 1025 }, { 40, 24, 0 },  { 132, 260, 16 }, { 136, 260, 140 } };

/* A memory layout. */
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
    if (found[i] == c[i] || (isnan(c[i]) && isnan(found[i]))) continue; /* NaNs are only in gaps */
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

static void large_tiles_are_exact(void) { check_all(false); }
static void small_tiles_are_exact(void) { check_all(true); }

/* ---- transposed, batched, with a bias ---- */

static uint64_t round_up(uint64_t n, uint64_t unit) { return (n + unit - 1) / unit * unit; }

/* A random problem: matrices of odd sizes with gaps, in memory that begins at any element.  Of some all rows begin at
 * multiples of 16 bytes, for which the kernel has a way of its own. */
static rill_kernels_sgemm_problem random_problem(uint64_t *state) {
  static const uint64_t batches[] = { 1, 1, 3 }, lengths[] = { 1, 5, 16, 37, 128, 131, 150, 260 };
  const uint64_t unit = next_random(state) % 2 == 0 ? 4 : 1;
  rill_kernels_sgemm_problem p = { .batch = batches[next_random(state) % 3] };
  p.m = lengths[next_random(state) % 8];
  p.n = lengths[next_random(state) % 8];
  p.k = next_random(state) % 8 == 0 ? 0 : lengths[next_random(state) % 8];
  p.alpha = next_random(state) % 2 == 0 ? 1.0f : -0.75f;
  p.beta = next_random(state) % 2 == 0 ? 0.0f : 0.4f;
  p.transpose_a = next_random(state) % 2 == 0;
  p.transpose_b = next_random(state) % 2 == 0;
  p.lda = round_up((p.transpose_a ? p.m : p.k) + next_random(state) % 5, unit);
  p.ldb = round_up((p.transpose_b ? p.k : p.n) + next_random(state) % 5, unit);
  p.ldc = round_up(p.n + next_random(state) % 5, unit);
  const uint64_t size_a = (p.transpose_a ? p.k : p.m) * p.lda, size_b = (p.transpose_b ? p.n : p.k) * p.ldb;
  p.stride_a = next_random(state) % 4 == 0 ? 0 : round_up(size_a + next_random(state) % 7, unit);
  p.stride_b = next_random(state) % 4 == 0 ? 0 : round_up(size_b + next_random(state) % 7, unit);
  p.stride_c = round_up(p.m * p.ldc + next_random(state) % 7, unit);
  return p;
}

static void expect_products(const rill_kernels_sgemm_problem *p) {
  for (uint64_t at = 0; at < p->batch * p->m * p->n; at++) {
    const uint64_t product = at / (p->m * p->n), i = at / p->n % p->m, j = at % p->n;
    const float *const a = p->a + product * p->stride_a, *const b = p->b + product * p->stride_b;
    float sum = 0, *const place = &p->c[product * p->stride_c + i * p->ldc + j];
    for (uint64_t d = 0; d < p->k; d++)
      sum = fmaf(p->transpose_a ? a[d * p->lda + i] : a[i * p->lda + d],
                 p->transpose_b ? b[j * p->ldb + d] : b[d * p->ldb + j], sum);
    if (p->bias != NULL) *place = fmaf(p->alpha, sum, p->beta == 0 ? p->bias[j] : fmaf(p->beta, *place, p->bias[j]));
    else *place = p->beta == 0 ? p->alpha * sum : fmaf(p->alpha, sum, p->beta * *place);
  }
}

/* Computes with one of the two kernels, or with the one that rill_kernels_sgemm_many chooses. */
static rill_status multiply(rill_stream stream, const rill_kernels_sgemm_problem *p, uint64_t way) {
  if (way == 0) return rill_kernels_sgemm_many(stream, p);
  const rill_launch launch =
      (way == 1 ? rill_kernels_sgemm_batched : rill_kernels_sgemm_batched_64)(p->m, p->n, p->batch);
  return (way == 1 ? sgemm_batched_launch : sgemm_batched_64_launch)(
      stream, &launch, (int64_t)p->m, (int64_t)p->n, (int64_t)p->k, p->alpha, p->a, (int64_t)p->lda,
      (int64_t)p->stride_a, p->transpose_a, p->b, (int64_t)p->ldb, (int64_t)p->stride_b, p->transpose_b, p->beta, p->c,
      (int64_t)p->ldc, (int64_t)p->stride_c, p->bias);
}

static void check_random_problem(rill_stream stream, uint64_t *state) {
  rill_kernels_sgemm_problem p = random_problem(state);
  const size_t skip = next_random(state) % 2 * sizeof(float), last = (size_t)p.batch - 1;
  const size_t counts[] = { (p.transpose_a ? p.k : p.m) * p.lda + last * p.stride_a,
                            (p.transpose_b ? p.n : p.k) * p.ldb + last * p.stride_b, p.m * p.ldc + last * p.stride_c,
                            p.n };
  float *host[4], *device[4];
  for (size_t i = 0; i < 4; i++) {
    host[i] = new_matrix(i + 1, counts[i] + 1); /* k may be 0 */
    device[i] = new_array(stream, host[i], (counts[i] + 1) * sizeof(float), skip);
  }
  const bool bias = next_random(state) % 2 == 0;
  rill_kernels_sgemm_problem on_host = p;
  p.a = device[0], p.b = device[1], p.c = device[2], p.bias = bias ? device[3] : NULL;
  on_host.a = host[0], on_host.b = host[1], on_host.c = host[2], on_host.bias = bias ? host[3] : NULL;
  assert_ok(multiply(stream, &p, next_random(state) % 3));
  expect_products(&on_host);
  float *const found = new_host((counts[2] + 1) * sizeof *found);
  read_array(stream, found, device[2], (counts[2] + 1) * sizeof *found);
  for (size_t i = 0; i <= counts[2]; i++) {
    if (found[i] != host[2][i])
      fail_msg("%ju of %ju x %ju x %ju, transposed %d %d, bias %d: element %zu is %.9g, not %.9g", (uintmax_t)p.batch,
               (uintmax_t)p.m, (uintmax_t)p.n, (uintmax_t)p.k, p.transpose_a, p.transpose_b, bias, i, (double)found[i],
               (double)host[2][i]);
  }
  for (size_t i = 0; i < 4; i++) {
    free_array(device[i], skip);
    free(host[i]);
  }
  free(found);
}

static void random_problems_are_exact(void) {
  rill_stream stream = new_stream("sgemm_many");
  uint64_t state = 13;
  for (int i = 0; i < 200; i++) check_random_problem(stream, &state);
}

static void refuses_empty_matrices(void) {
  rill_stream stream = new_stream("nothing");
  const rill_launch launch = rill_kernels_sgemm(0, 5);
  assert_fails(sgemm_launch(stream, &launch, 0, 5, 5, 1.0f, NULL, 5, NULL, 5, 0.0f, NULL, 5),
               RILL_ERROR_INVALID_ARGUMENT);
  const rill_kernels_sgemm_problem empty = { .m = 5, .n = 5, .k = 5, .batch = 0, .lda = 5, .ldb = 5, .ldc = 5 };
  assert_fails_in("sgemm_batched_launch", rill_kernels_sgemm_many(stream, &empty), RILL_ERROR_INVALID_ARGUMENT);
}

TESTS_ON_EACH_DEVICE("kernels sgemm", TEST(large_tiles_are_exact), TEST(small_tiles_are_exact),
                     TEST(random_problems_are_exact), TEST(refuses_empty_matrices))
