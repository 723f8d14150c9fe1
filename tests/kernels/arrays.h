/* Shared by the tests of kernels: fixed random numbers, arrays in device memory with a guard after them, and kernels
 * that compute each element by itself. */
#ifndef RILL_TESTS_KERNELS_ARRAYS_H
#define RILL_TESTS_KERNELS_ARRAYS_H

#include "support/testing.h"

#include "rill_kernels.h"

#include <math.h>

/* ---- numbers ---- */

uint64_t next_random(uint64_t *state); /* the state is any number */

/* Below 1 in magnitude: 24 bits for 4 bytes, 53 for 8. */
void random_floats(uint64_t seed, size_t count, float *x);
void random_doubles(uint64_t seed, size_t count, double *x);
void random_ints(uint64_t seed, size_t count, int32_t *x); /* of all 32 bits */

/* Allocates memory for a test, or fails the test. */
void *new_host(size_t bytes);

/* ---- arrays in device memory ---- */

enum { GUARD_BYTES = 64 };

/* Room for `skip + bytes` bytes and a guard; returns the address after the first `skip`, where `host` is copied to,
 * unless it is NULL. The copy is done when this returns. */
void *new_array(rill_stream stream, const void *host, size_t bytes, size_t skip);
void free_array(void *array, size_t skip);

/* Waits for the stream, copies the array back, and checks the guard. */
void read_array(rill_stream stream, void *host, const void *array, size_t bytes);

/* The array has these bytes.  A failure names the first element that differs. */
void expect_array(rill_stream stream, const void *array, const void *expected, size_t count, size_t element_size,
                  const char *what);

/* ---- sizes ---- */

extern const size_t sizes[]; /* 1, and around the powers of two that matter; the last is 0 */

/* ---- kernels that compute each element by itself ---- */

struct elementwise {
  size_t element_size; /* 4: float, 8: double */
  /* `out` begins as b; a, b and out have n elements. */
  rill_status (*launch)(rill_stream stream, const rill_launch *launch, int64_t n, const void *a, const void *b,
                        void *out);
  const char *call; /* by `launch`: "fill_f32_launch(stream, ..." */
  void (*expect)(size_t i, const void *a, const void *b, void *out);
};

/* Checks that the kernel equals `expect` to the last bit, for every size, several blocks, and misaligned arrays. */
void check_elementwise(const struct elementwise *kernel);

/* A test of the name: LAUNCH and EXPECTED speak of stream, launch, n and of a, b and out; EXPECTED of i. */
#define ELEMENTWISE_TEST(NAME, T, LAUNCH, EXPECTED)                                                      \
  static rill_status NAME##_go(rill_stream stream, const rill_launch *launch, int64_t n, const void *a_, \
                               const void *b_, void *out_) {                                             \
    const T *const a = a_, *const b = b_;                                                                \
    T *const out = out_;                                                                                 \
    (void)a, (void)b;                                                                                    \
    return LAUNCH;                                                                                       \
  }                                                                                                      \
  static void NAME##_expect(size_t i, const void *a_, const void *b_, void *out_) {                      \
    const T *const a = a_, *const b = b_;                                                                \
    (void)a, (void)b;                                                                                    \
    ((T *)out_)[i] = EXPECTED;                                                                           \
  }                                                                                                      \
  static void NAME(void) {                                                                               \
    const struct elementwise kernel = { sizeof(T), NAME##_go, #LAUNCH, NAME##_expect };                  \
    check_elementwise(&kernel);                                                                          \
  }

#endif
