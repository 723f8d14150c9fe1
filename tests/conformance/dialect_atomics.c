/* Atomic functions: every function for every type and scope, with all threads updating the same cells (C6.1). */
#include "support/testing.h"

#include <math.h>
#include <stdio.h>

#include "dialect_atomics.rill.h"

enum { BLOCKS = 5, BLOCK = 96, THREADS = BLOCKS * BLOCK, CELLS_OF_A_BLOCK = 16 };

static const rill_launch all_threads = {
  sizeof all_threads, { BLOCKS, 1, 1 }, { BLOCK, 1, 1 }, { 0, 0, 0 }, 0, 0, NULL, 0, NULL, 0, NULL
};

/* Returns zeroed pinned memory, which kernels and the host can access. */
static void *pinned(size_t bytes) {
  void *p = NULL;
  assert_ok(rill_alloc(dut.device, bytes, RILL_MEMORY_PINNED, &p));
  memset(p, 0, bytes);
  return p;
}

/* Copies host memory to the device, because functions with device or block scope need not work on host memory. */
static void *on_device(rill_stream stream, const void *from, size_t bytes) {
  void *p = NULL;
  assert_ok(rill_alloc(dut.device, bytes, RILL_MEMORY_DEVICE, &p));
  assert_ok(rill_copy_async(stream, p, from, bytes));
  return p;
}

static void take_back(rill_stream stream, void *to, void *copy, size_t bytes) {
  assert_ok(rill_copy_async(stream, to, copy, bytes));
  assert_completes(stream);
  assert_ok(rill_free(copy));
}

/* Launches a kernel on device memory that starts with the contents of `cells`, and reads it back, together with the
 * values that the threads saw, if the kernel stores them. */
static void run(rill_stream stream, const char *name, bool of_a_block, void *cells, size_t bytes, unsigned *seen) {
  rill_kernel kernel = new_kernel(&dialect_atomics_bundle, name);
  const unsigned first_cell = of_a_block ? CELLS_OF_A_BLOCK : 0;
  void *copy = on_device(stream, cells, bytes);
  if (seen != NULL) {
    void *copy_seen = on_device(stream, seen, THREADS * sizeof *seen);
    assert_ok(rill_stream_launch(stream, kernel, &all_threads, RILL_ARGS(first_cell, copy, copy_seen)));
    take_back(stream, seen, copy_seen, THREADS * sizeof *seen);
  } else {
    assert_ok(rill_stream_launch(stream, kernel, &all_threads, RILL_ARGS(first_cell, copy)));
  }
  take_back(stream, cells, copy, bytes);
}

static uint64_t bits_of(uint32_t i) {
  uint64_t x = (i + UINT64_C(1)) * UINT64_C(0x9e3779b97f4a7c15);
  x ^= x >> 29;
  return x * UINT64_C(0xbf58476d1ce4e5b9);
}

/* Computes, in unsigned numbers, what threads `first` to `first` + `count` - 1 must have left in their cells. */
#define INTEGER_TEST(name, type, unsigned_type)                                                                      \
  static void check_##name(const type *cells, uint32_t first, uint32_t count) {                                      \
    const uint32_t bits = 8 * (uint32_t)sizeof(type);                                                                \
    unsigned_type sum = 0, parity = 0, kept = (unsigned_type)-1, set = 0;                                            \
    type least = 0, greatest = 0;                                                                                    \
    for (uint32_t i = first; i < first + count; i++) {                                                               \
      const unsigned_type word = (unsigned_type)bits_of(i);                                                          \
      const type v = (type)word;                                                                                     \
      sum = (unsigned_type)(sum + word);                                                                             \
      parity ^= word;                                                                                                \
      if (i == first || v < least) least = v;                                                                        \
      if (i == first || v > greatest) greatest = v;                                                                  \
      kept &= (unsigned_type) ~((unsigned_type)1 << (i % (bits - 5)));                                               \
      set |= (unsigned_type)((unsigned_type)1 << (i % (bits - 3)));                                                  \
    }                                                                                                                \
    assert_true(cells[0] == (type)count);                                                                            \
    assert_true((unsigned_type)((unsigned_type)cells[1] + sum) == 0);                                                \
    assert_true((unsigned_type)((unsigned_type)cells[2] + (unsigned_type)cells[3]) == sum);                          \
    assert_true((unsigned_type)cells[4] == sum);                                                                     \
    assert_true(cells[5] == least);                                                                                  \
    assert_true(cells[6] == greatest);                                                                               \
    assert_true((unsigned_type)cells[7] == kept);                                                                    \
    assert_true((unsigned_type)cells[8] == set);                                                                     \
    assert_true((unsigned_type)cells[9] == parity);                                                                  \
  }                                                                                                                  \
  static void name(void) {                                                                                           \
    static const char *const suffixes[] = { "", "_block", "_system" };                                               \
    rill_stream stream = new_stream("stream");                                                                       \
    type *cells = pinned(BLOCKS * CELLS_OF_A_BLOCK * sizeof *cells);                                                 \
    unsigned *seen = pinned(THREADS * sizeof *seen);                                                                 \
    for (int scope = 0; scope < 3; scope++) {                                                                        \
      const bool of_a_block = scope == 1;                                                                            \
      const uint32_t groups = of_a_block ? BLOCKS : 1;                                                               \
      char kernel[64];                                                                                               \
      (void)snprintf(kernel, sizeof kernel, "%s%s", #name, suffixes[scope]);                                         \
      memset(cells, 0, BLOCKS *CELLS_OF_A_BLOCK * sizeof *cells);                                                    \
      memset(seen, 0, THREADS * sizeof *seen);                                                                       \
      for (uint32_t g = 0; g < groups; g++) {                                                                        \
        type *const own = cells + g * CELLS_OF_A_BLOCK;                                                              \
        own[5] = (type)bits_of(g * BLOCK);                                                                           \
        own[6] = (type)bits_of(g * BLOCK);                                                                           \
        own[7] = (type)(unsigned_type)-1;                                                                            \
      }                                                                                                              \
      run(stream, kernel, of_a_block, cells, BLOCKS *CELLS_OF_A_BLOCK * sizeof *cells, seen);                        \
      for (uint32_t g = 0; g < groups; g++) check_##name(cells + g * CELLS_OF_A_BLOCK, g * BLOCK, THREADS / groups); \
      for (uint32_t i = 0; i < THREADS; i++) assert_int_equal(seen[i], 1);                                           \
    }                                                                                                                \
    assert_ok(rill_free(cells));                                                                                     \
    assert_ok(rill_free(seen));                                                                                      \
  }
INTEGER_TEST(atomics_int, int, unsigned)
INTEGER_TEST(atomics_unsigned, unsigned, unsigned)
INTEGER_TEST(atomics_long_long, long long, unsigned long long)
INTEGER_TEST(atomics_unsigned_long_long, unsigned long long, unsigned long long)
INTEGER_TEST(atomics_int64, int64_t, uint64_t)
INTEGER_TEST(atomics_uint64, uint64_t, uint64_t)

static void counters_wrap_around(void) {
  rill_stream stream = new_stream("stream");
  uint32_t *cells = pinned(BLOCKS * CELLS_OF_A_BLOCK * sizeof *cells);
  const size_t bytes = BLOCKS * CELLS_OF_A_BLOCK * sizeof *cells;
  static const char *const names[] = { "counters", "counters_block", "counters_system" };
  for (int scope = 0; scope < 3; scope++) {
    const uint32_t groups = scope == 1 ? BLOCKS : 1, count = THREADS / groups;
    memset(cells, 0, bytes);
    run(stream, names[scope], scope == 1, cells, bytes, NULL);
    for (uint32_t g = 0; g < groups; g++) {
      assert_int_equal(cells[g * CELLS_OF_A_BLOCK], count % 10);
      assert_int_equal(cells[g * CELLS_OF_A_BLOCK + 1], (13 - count % 13) % 13);
      assert_int_equal(cells[g * CELLS_OF_A_BLOCK + 2], 0);
    }
    /* above the limit both functions wrap around immediately */
    memset(cells, 0xff, bytes);
    for (uint32_t g = 0; g < groups; g++) cells[g * CELLS_OF_A_BLOCK + 2] = 0;
    run(stream, names[scope], scope == 1, cells, bytes, NULL);
    for (uint32_t g = 0; g < groups; g++) {
      assert_int_equal(cells[g * CELLS_OF_A_BLOCK], (count - 1) % 10);
      assert_int_equal(cells[g * CELLS_OF_A_BLOCK + 1], 12 - (count - 1) % 13);
      assert_int_equal(cells[g * CELLS_OF_A_BLOCK + 2], 2); /* the first thread saw the old value */
    }
  }
  assert_ok(rill_free(cells));
}

#define FLOAT_TEST(name, type)                                                                \
  static void name(void) {                                                                    \
    static const char *const names[] = { #name, #name "_block", #name "_system" };            \
    rill_stream stream = new_stream("stream");                                                \
    const size_t bytes = BLOCKS * CELLS_OF_A_BLOCK * sizeof(type);                            \
    type *cells = pinned(bytes);                                                              \
    for (int scope = 0; scope < 3; scope++) {                                                 \
      const uint32_t groups = scope == 1 ? BLOCKS : 1, count = THREADS / groups;              \
      memset(cells, 0, bytes);                                                                \
      run(stream, names[scope], scope == 1, cells, bytes, NULL);                              \
      for (uint32_t g = 0; g < groups; g++) {                                                 \
        type sum = 0;                                                                         \
        for (uint32_t i = g * count; i < (g + 1) * count; i++) sum += (type)(i % 64) / 4 - 4; \
        const type *own = cells + g * CELLS_OF_A_BLOCK;                                       \
        assert_true(own[0] == sum);                                                           \
        assert_true(own[1] + own[2] == sum);                                                  \
      }                                                                                       \
    }                                                                                         \
    assert_ok(rill_free(cells));                                                              \
  }
FLOAT_TEST(atomics_float, float)
FLOAT_TEST(atomics_double, double)

#define EXTREMES_TEST(name, type)                                    \
  static void name(void) {                                           \
    rill_stream stream = new_stream("stream");                       \
    type least = 0, greatest = 0;                                    \
    for (uint32_t i = 0; i < THREADS; i++) {                         \
      if (i % 7 == 3) continue;                                      \
      const type v = (type)(int)bits_of(i);                          \
      if (v < least) least = v;                                      \
      if (v > greatest) greatest = v;                                \
    }                                                                \
    type *cells = pinned(4 * sizeof *cells);                         \
    cells[2] = cells[3] = (type)NAN;                                 \
    type *copy = on_device(stream, cells, 4 * sizeof *cells);        \
    assert_ok(name##_launch(stream, &all_threads, copy, (type)NAN)); \
    take_back(stream, cells, copy, 4 * sizeof *cells);               \
    assert_true(cells[0] == least && cells[2] == least);             \
    assert_true(cells[1] == greatest && cells[3] == greatest);       \
    assert_ok(rill_free(cells));                                     \
  }
EXTREMES_TEST(extremes_float, float)
EXTREMES_TEST(extremes_double, double)

static void shared_memory(void) {
  rill_stream stream = new_stream("stream");
  int *ints = pinned(3 * BLOCKS * sizeof *ints);
  float *floats = pinned(BLOCKS * sizeof *floats);
  assert_ok(atomics_shared_launch(stream, &all_threads, ints, floats));
  assert_completes(stream);
  for (int b = 0; b < BLOCKS; b++) {
    assert_int_equal(ints[3 * b], 2 * BLOCK);
    assert_int_equal(ints[3 * b + 1], 500 - (BLOCK - 1));
    assert_int_equal(ints[3 * b + 2], 1);
    assert_true(floats[b] == 0.5f * (float)BLOCK);
  }
  assert_ok(rill_free(ints));
  assert_ok(rill_free(floats));
}

TESTS_ON_EACH_DEVICE("atomic functions in kernels", TEST(atomics_int), TEST(atomics_unsigned), TEST(atomics_long_long),
                     TEST(atomics_unsigned_long_long), TEST(atomics_int64), TEST(atomics_uint64),
                     TEST(counters_wrap_around), TEST(atomics_float), TEST(atomics_double), TEST(extremes_float),
                     TEST(extremes_double), TEST(shared_memory))
