/* rill_warp_sum, rill_block_sum and related functions: every statement of rill/device/reduce.h (C6.1). */
#include "support/testing.h"

#include "dialect_reduce.rill.h"

#include <math.h>

enum { MOST = 1024, ROUNDS = 4, REDUCTIONS = 6 };

static const rill_dim3 blocks[] = {
  { 1, 1, 1 }, { 7, 1, 1 },   { 32, 1, 1 },   { 33, 1, 1 },  { 64, 1, 1 },   { 67, 1, 1 },   { 5, 3, 2 },
  { 9, 4, 5 }, { 256, 1, 1 }, { 1000, 1, 1 }, { 16, 16, 4 }, { 1023, 1, 1 }, { 1024, 1, 1 },
};
/* Threads whose number is a multiple of this number return early; with 0 no thread does. With 97 most threads remain.
 */
static const unsigned drops[] = { 0, 2, 3, 33, 97 };

/* Returns values whose sums depend on the order of additions. */
static uint64_t hash(uint64_t x) {
  x = (x + 1) * UINT64_C(0x9e3779b97f4a7c15);
  x ^= x >> 29;
  return x * UINT64_C(0xbf58476d1ce4e5b9);
}
static double fraction(uint64_t i) { return ldexp((double)(int64_t)hash(i), (int)(i % 9) - 70); }

/* Computes the tree over `size` threads (a power of two) from `first` on; returns false if none of them is active. */
#define MODEL(NAME, TYPE, NUMBER, SUM)                                                                              \
  static TYPE combine_##NAME(unsigned which, TYPE a, TYPE b) {                                                      \
    if (which % 3 == 0) return SUM;                                                                                 \
    if (which % 3 == 1) return b < a || a != a ? b : a;                                                             \
    return a < b || a != a ? b : a;                                                                                 \
  }                                                                                                                 \
  static bool tree_##NAME(unsigned which, const TYPE *v, uint32_t threads, unsigned drop, uint32_t first,           \
                          uint32_t size, TYPE *result) {                                                            \
    if (size == 1) {                                                                                                \
      if (first >= threads || (drop != 0 && first % drop == 0)) return false;                                       \
      *result = v[first];                                                                                           \
      return true;                                                                                                  \
    }                                                                                                               \
    TYPE left = 0, right = 0;                                                                                       \
    const bool any = tree_##NAME(which, v, threads, drop, first, size / 2, &left);                                  \
    const bool more = tree_##NAME(which, v, threads, drop, first + size / 2, size / 2, &right);                     \
    *result = any && more ? combine_##NAME(which, left, right) : any ? left : right;                                \
    return any || more;                                                                                             \
  }                                                                                                                 \
  static void check_##NAME(uint32_t threads, unsigned drop, const TYPE *values, const TYPE *results) {              \
    for (unsigned r = 0; r < ROUNDS * REDUCTIONS; r++) {                                                            \
      const TYPE *const v = values + r / REDUCTIONS * threads;                                                      \
      const uint32_t size = r % REDUCTIONS < 3 ? dut.info.warp_size : MOST;                                         \
      TYPE expected = 0;                                                                                            \
      for (uint32_t t = 0; t < threads; t++) {                                                                      \
        if (t % size == 0) (void)tree_##NAME(r % REDUCTIONS, v, threads, drop, t, size, &expected);                 \
        if (drop != 0 && t % drop == 0) continue;                                                                   \
        const TYPE *const got = &results[r * threads + t];                                                          \
        if (memcmp(got, &expected, sizeof expected) == 0 || (expected != expected && *got != *got)) continue;       \
        print_error("reduction %u, %u threads, drop %u: thread %u has %.17g, not %.17g\n", r, threads, drop, t,     \
                    (double)*got, (double)expected);                                                                \
        fail();                                                                                                     \
      }                                                                                                             \
    }                                                                                                               \
  }                                                                                                                 \
  static void reduces_##NAME(void) {                                                                                \
    rill_stream stream = new_stream("stream");                                                                      \
    TYPE *values = NULL, *results = NULL;                                                                           \
    assert_ok(rill_alloc(dut.device, ROUNDS *MOST * sizeof *values, RILL_MEMORY_PINNED, (void **)&values));         \
    assert_ok(                                                                                                      \
        rill_alloc(dut.device, REDUCTIONS *ROUNDS *MOST * sizeof *results, RILL_MEMORY_PINNED, (void **)&results)); \
    for (uint64_t i = 0; i < ROUNDS * MOST; i++) values[i] = NUMBER;                                                \
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {                                                   \
      const uint32_t threads = blocks[b].x * blocks[b].y * blocks[b].z;                                             \
      for (size_t d = 0; d < sizeof drops / sizeof *drops; d++) {                                                   \
        rill_launch launch = RILL_LAUNCH_INIT;                                                                      \
        launch.grid = (rill_dim3){ 1, 1, 1 };                                                                       \
        launch.block = blocks[b];                                                                                   \
        memset(results, 0xee, REDUCTIONS *ROUNDS *MOST * sizeof *results);                                          \
        assert_ok(reduce_##NAME##_launch(stream, &launch, drops[d], ROUNDS, values, results));                      \
        assert_completes(stream);                                                                                   \
        check_##NAME(threads, drops[d], values, results);                                                           \
      }                                                                                                             \
    }                                                                                                               \
    assert_ok(rill_free(values));                                                                                   \
    assert_ok(rill_free(results));                                                                                  \
  }
MODEL(int, int, (int)hash(i), (int)((unsigned)a + (unsigned)b))
MODEL(unsigned, unsigned, (unsigned)hash(i), a + b)
MODEL(long_long, long long, (long long)hash(i), (long long)((unsigned long long)a + (unsigned long long)b))
MODEL(unsigned_long, unsigned long, hash(i), a + b)
MODEL(float, float, i % 101 == 50 ? NAN : i % 7 == 3 ? -0.0f : (float)fraction(i), a + b)
MODEL(double, double, i % 1013 == 50 ? (double)NAN : fraction(i), a + b)

TESTS_ON_EACH_DEVICE("reductions in kernels", TEST(reduces_int), TEST(reduces_unsigned), TEST(reduces_long_long),
                     TEST(reduces_unsigned_long), TEST(reduces_float), TEST(reduces_double))
