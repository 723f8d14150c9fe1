/* rill/device/cuda_cub.h: CUB's block and warp operations compute the same as plain loops, on every device (C6.1). */
#include "support/testing.h"

#ifndef LOOPS
#define LOOPS 0
#include "dialect_cub.rill.h"
#endif

enum { MOST = 1024, SIZE = 24, WARP_THREADS = 96 };

struct affine {
  uint32_t a, b;
  unsigned char also[12];
};

#define NUMBERS(X)               \
  X(i32, int32_t, a < b ? b : a) \
  X(u64, uint64_t, a + b)        \
  X(f32, float, a + b)           \
  X(f64, double, a < b ? b : a)
#define OF_NUMBERS(NAME, TYPE, RESULT)                                    \
  static void NAME##_op(void *to, const void *left, const void *right) {  \
    TYPE a, b;                                                            \
    memcpy(&a, left, sizeof a);                                           \
    memcpy(&b, right, sizeof b);                                          \
    const TYPE result = RESULT;                                           \
    memcpy(to, &result, sizeof result);                                   \
  }                                                                       \
  static void NAME##_sum(void *to, const void *left, const void *right) { \
    TYPE a, b;                                                            \
    memcpy(&a, left, sizeof a);                                           \
    memcpy(&b, right, sizeof b);                                          \
    a += b;                                                               \
    memcpy(to, &a, sizeof a);                                             \
  }                                                                       \
  static void NAME##_make(void *to, uint32_t i) {                         \
    const TYPE made = (TYPE)(i * i % 1009);                               \
    memcpy(to, &made, sizeof made);                                       \
  }
NUMBERS(OF_NUMBERS)

static void affine_op(void *to, const void *left, const void *right) {
  struct affine f, g;
  memcpy(&f, left, sizeof f);
  memcpy(&g, right, sizeof g);
  g.b += g.a * f.b;
  g.a *= f.a;
  memcpy(to, &g, sizeof g);
}
static void affine_make(void *to, uint32_t i) {
  struct affine made = { 2 * i + 3, i * i + 1, { 0 } };
  for (uint32_t k = 0; k < sizeof made.also; k++) made.also[k] = (unsigned char)(i + k);
  memcpy(to, &made, sizeof made);
}

typedef void operation(void *to, const void *left, const void *right);
typedef struct kind {
  size_t size;
  operation *op, *sum; /* sum: NULL if the kernel computes none */
  void (*make)(void *to, uint32_t i);
  uint32_t x, y, items, lanes;
} kind;

typedef struct data {
  const kind *kind;
  unsigned char *initial, *in, *out;
} data;

static data data_of(const kind *k, size_t out_count) {
  data d = { k, NULL, NULL, NULL };
  void *p = NULL;
  const size_t in_count = MOST + 1;
  assert_ok(rill_alloc(dut.device, (in_count + out_count) * k->size, RILL_MEMORY_PINNED, &p));
  d.initial = p;
  d.in = d.initial + k->size;
  d.out = d.in + MOST * k->size;
  for (uint32_t i = 0; i < in_count; i++) k->make(d.initial + i * k->size, i + 5);
  memset(d.out, 0xee, out_count * k->size);
  return d;
}

/* Computes the operation on elements first, first + 1, ..., first + count - 1 of those that are `by` apart. */
static void model(const data *d, operation *op, const void *before, size_t first, size_t by, size_t count, void *to) {
  unsigned char all[SIZE];
  const size_t size = d->kind->size;
  size_t i = 0;
  if (before) memcpy(all, before, size);
  else memcpy(all, d->in + size * first, size), i = 1;
  for (; i < count; i++) op(all, all, d->in + size * (first + i * by));
  memcpy(to, all, size);
}

static void assert_is(const data *d, size_t section, size_t at, const void *expected) {
  const unsigned char *found = d->out + (section + at) * d->kind->size;
  if (memcmp(found, expected, d->kind->size) != 0) fail_msg("element %zu of section at %zu differs", at, section);
}

static void check_block(const data *d, uint32_t valid) {
  const kind *k = d->kind;
  const size_t threads = (size_t)k->x * k->y, items = k->items, n = threads * items, size = k->size;
  unsigned char e[SIZE], before[SIZE];
  model(d, k->op, NULL, 0, items, threads, e);
  assert_is(d, 0, 0, e);
  assert_is(d, n, threads, e);
  model(d, k->op, NULL, 0, items, valid, e);
  assert_is(d, 0, 2, e);
  model(d, k->op, NULL, 0, 1, n, e);
  assert_is(d, 0, 1, e);
  for (size_t t = 0; t < threads; t++) assert_is(d, 5 * n, t, e);
  k->op(before, d->initial, e); /* of the first block */
  for (size_t t = 0; t < threads; t++) {
    model(d, k->op, NULL, 0, items, t + 1, e);
    assert_is(d, n, t, e);
    model(d, k->op, d->initial, 0, items, t, e);
    assert_is(d, 2 * n, t, e);
    if (t > 0) model(d, k->op, NULL, 0, items, t, e);
    assert_is(d, 7 * n, t, t > 0 ? e : d->initial);
  }
  for (size_t i = 0; i < n; i++) {
    model(d, k->op, NULL, 0, 1, i + 1, e);
    assert_is(d, 3 * n, i, e);
    model(d, k->op, d->initial, 0, 1, i, e);
    assert_is(d, 4 * n, i, e);
    model(d, k->op, before, 0, 1, i + 1, e);
    assert_is(d, 6 * n, i, e);
    assert_is(d, 8 * n, i, d->in + size * (i % items * threads + i / items));
    assert_is(d, 9 * n, i, i >= n - 2 ? d->initial : i < valid ? d->in + size * i : d->in);
    assert_is(d, 10 * n, i, d->in + size * (i % threads * items + i / threads));
    if (!k->sum) continue;
    memset(e, 0, sizeof e);
    model(d, k->sum, i > 1 ? e : NULL, 0, 1, i > 1 ? i : n, e);
    assert_is(d, 11 * n, i, e);
  }
}

static const kind kinds[] = {
  { sizeof(int32_t), i32_op, i32_sum, i32_make, 256, 1, 4, 32 },
  { sizeof(uint64_t), u64_op, u64_sum, u64_make, 50, 2, 3, 2 },
  { sizeof(float), f32_op, f32_sum, f32_make, 50, 2, 3, 16 },
  { sizeof(double), f64_op, f64_sum, f64_make, 32, 1, 3, 32 },
  { sizeof(struct affine), affine_op, NULL, affine_make, 50, 2, 3, 8 },
};
enum { KINDS = sizeof kinds / sizeof *kinds };
#ifdef FEW_INSTANCES
static bool is_left_out(int number) { return number == 2 || number == 3; }
#else
static bool is_left_out(int number) { return (void)number, false; }
#endif

static void needs_kernels(void) {
  if (LOOPS && dut.gpu) skip_because("loops over threads are compiled for the cpu device alone");
}

static void blocks_compute_what_the_host_computes(void) {
  needs_kernels();
  rill_stream stream = new_stream("stream");
  for (int i = 0; i < KINDS; i++) {
    const kind *k = &kinds[i];
    if (is_left_out(i)) continue;
    const uint32_t threads = k->x * k->y, valids[] = { 1, 31, 32, threads / 2 + 1, threads };
    rill_launch launch = RILL_LAUNCH_INIT;
    launch.grid = (rill_dim3){ 1, 1, 1 };
    launch.block = (rill_dim3){ k->x, k->y, 1 };
    for (size_t v = 0; v < sizeof valids / sizeof *valids; v++) {
      const data d = data_of(k, (size_t)12 * threads * k->items);
      const int valid = (int)valids[v];
      switch (i) {
        case 0:
          assert_ok(cub_block_int_launch(stream, &launch, valid, (void *)d.initial, (void *)d.in, (void *)d.out));
          break;
        case 1:
          assert_ok(cub_block_long_launch(stream, &launch, valid, (void *)d.initial, (void *)d.in, (void *)d.out));
          break;
#ifndef FEW_INSTANCES
        case 2:
          assert_ok(cub_block_float_launch(stream, &launch, valid, (void *)d.initial, (void *)d.in, (void *)d.out));
          break;
        case 3:
          assert_ok(cub_block_double_launch(stream, &launch, valid, (void *)d.initial, (void *)d.in, (void *)d.out));
          break;
#endif
        default:
          assert_ok(cub_block_affine_launch(stream, &launch, valid, (void *)d.initial, (void *)d.in, (void *)d.out));
      }
      assert_completes(stream);
      check_block(&d, valids[v]);
      assert_ok(rill_free(d.initial));
    }
  }
}

static void check_warps(const data *d, uint32_t valid) {
  const kind *k = d->kind;
  unsigned char e[SIZE];
  for (size_t t = 0; t < WARP_THREADS; t++) {
    const size_t lane = t % k->lanes, first = t - lane;
    model(d, k->op, NULL, first, 1, k->lanes, e);
    assert_is(d, 0, t, lane == 0 ? e : d->initial);
    assert_is(d, 3 * WARP_THREADS, t, e);
    model(d, k->op, NULL, first, 1, valid, e);
    assert_is(d, 1 * WARP_THREADS, t, lane == 0 ? e : d->initial);
    model(d, k->op, NULL, first, 1, lane + 1, e);
    assert_is(d, 2 * WARP_THREADS, t, e);
    assert_is(d, 5 * WARP_THREADS, t, e);
    model(d, k->op, d->initial, first, 1, lane, e);
    assert_is(d, 4 * WARP_THREADS, t, e);
    if (lane > 0) model(d, k->op, NULL, first, 1, lane, e);
    assert_is(d, 6 * WARP_THREADS, t, lane > 0 ? e : d->initial);
    assert_is(d, 7 * WARP_THREADS, t, d->in + k->size * (first + k->lanes / 2));
  }
}

static void warps_compute_what_the_host_computes(void) {
  needs_kernels();
  rill_stream stream = new_stream("stream");
  const rill_launch launch = rill_launch_1d(1, WARP_THREADS);
  for (int i = 0; i < KINDS; i++) {
    const kind *k = &kinds[i];
    if (is_left_out(i)) continue;
    for (uint32_t valid = 1; valid <= k->lanes; valid += valid < 3 ? 1 : k->lanes / 4) {
      const data d = data_of(k, (size_t)8 * WARP_THREADS);
      const int v = (int)valid;
      switch (i) {
        case 0:
          assert_ok(cub_warp_int_launch(stream, &launch, v, (void *)d.initial, (void *)d.in, (void *)d.out));
          break;
        case 1:
          assert_ok(cub_warp_long_launch(stream, &launch, v, (void *)d.initial, (void *)d.in, (void *)d.out));
          break;
#ifndef FEW_INSTANCES
        case 2:
          assert_ok(cub_warp_float_launch(stream, &launch, v, (void *)d.initial, (void *)d.in, (void *)d.out));
          break;
        case 3:
          assert_ok(cub_warp_double_launch(stream, &launch, v, (void *)d.initial, (void *)d.in, (void *)d.out));
          break;
#endif
        default: assert_ok(cub_warp_affine_launch(stream, &launch, v, (void *)d.initial, (void *)d.in, (void *)d.out));
      }
      assert_completes(stream);
      check_warps(&d, valid);
      assert_ok(rill_free(d.initial));
    }
  }
}

static void operations_compute_what_the_host_computes(void) {
  enum { THREADS = 64 };
  needs_kernels();
  rill_stream stream = new_stream("stream");
  void *p = NULL;
  assert_ok(rill_alloc(dut.device, (THREADS + 6) * sizeof(int), RILL_MEMORY_PINNED, &p));
  int *const x = p, *const y = x + THREADS;
  int sums[2] = { 0, 0 }, highest = 0, lowest = 0, most = 0, least = 0;
  for (int i = 0; i < THREADS; i++) {
    x[i] = (i * 37 + 11) % 101;
    if (i % 32 < 16) sums[i / 32] += x[i];
    if (x[i] % 7 > x[highest] % 7) highest = i;
    if (x[i] % 7 < x[lowest] % 7) lowest = i;
    if (x[i] > x[most]) most = i;
    if (x[i] < x[least]) least = i;
  }
  for (int i = 0; i < 6; i++) y[i] = -1;
  const rill_launch launch = rill_launch_1d(1, THREADS);
  assert_ok(cub_operations_launch(stream, &launch, x, y));
  assert_completes(stream);
  assert_int_equal(y[0], sums[0]);
  assert_int_equal(y[1], sums[1]);
  if (y[2] != -1) { /* with every compiler except nvcc */
    assert_int_equal(y[2], highest);
    assert_int_equal(y[3], lowest);
    assert_int_equal(y[4], x[most]);
    assert_int_equal(y[5], x[least]);
  }
  assert_ok(rill_free(p));
}

int main(void) {
  const struct test tests[] = { TEST(blocks_compute_what_the_host_computes), TEST(warps_compute_what_the_host_computes),
                                TEST(operations_compute_what_the_host_computes) };
  return RUN_ON_EACH_DEVICE("CUB's names", tests);
}
