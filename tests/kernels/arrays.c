#include "arrays.h"

#include <stdio.h>

enum { GUARD = 0xa5 };

/* Steele, Lea and Flood's SplitMix64, from its definition. */
uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

void random_floats(uint64_t seed, size_t count, float *x) {
  for (size_t i = 0; i < count; i++) x[i] = (float)((int64_t)(next_random(&seed) >> 39) - (1 << 24)) * 0x1p-24f;
}

void random_doubles(uint64_t seed, size_t count, double *x) {
  for (size_t i = 0; i < count; i++) {
    x[i] = (double)((int64_t)(next_random(&seed) >> 10) - (INT64_C(1) << 53)) * 0x1p-53;
  }
}

void random_ints(uint64_t seed, size_t count, int32_t *x) {
  for (size_t i = 0; i < count; i++) x[i] = (int32_t)(uint32_t)(next_random(&seed) >> 32);
}

void *new_host(size_t bytes) {
  void *p = malloc(bytes == 0 ? 1 : bytes);
  assert_non_null(p);
  return p;
}

void *new_array(rill_stream stream, const void *host, size_t bytes, size_t skip) {
  void *p = NULL;
  const unsigned char guard = GUARD;
  assert_ok(rill_alloc(dut.device, skip + bytes + GUARD_BYTES, RILL_MEMORY_DEVICE, &p));
  assert_ok(rill_fill_async(stream, p, &guard, 1, skip + bytes + GUARD_BYTES));
  unsigned char *const array = (unsigned char *)p + skip;
  if (host != NULL) assert_ok(rill_copy_async(stream, array, host, bytes));
  assert_completes(stream);
  return array;
}

void free_array(void *array, size_t skip) { assert_ok(rill_free((unsigned char *)array - skip)); }

void read_array(rill_stream stream, void *host, const void *array, size_t bytes) {
  unsigned char guard[GUARD_BYTES];
  assert_ok(rill_copy_async(stream, host, array, bytes));
  assert_ok(rill_copy_async(stream, guard, (const unsigned char *)array + bytes, GUARD_BYTES));
  assert_completes(stream);
  for (size_t i = 0; i < GUARD_BYTES; i++) {
    if (guard[i] != GUARD) fail_msg("byte %zu after the %zu of the array was written: 0x%02x", i, bytes, guard[i]);
  }
}

void expect_array(rill_stream stream, const void *array, const void *expected, size_t count, size_t element_size,
                  const char *what) {
  unsigned char *const found = new_host(count * element_size);
  read_array(stream, found, array, count * element_size);
  for (size_t i = 0; i < count * element_size; i++) {
    if (found[i] == ((const unsigned char *)expected)[i]) continue;
    const size_t element = i / element_size;
    uint64_t is = 0, should = 0;
    memcpy(&is, found + element * element_size, element_size);
    memcpy(&should, (const unsigned char *)expected + element * element_size, element_size);
    fail_msg("%s: element %zu of %zu has the bits 0x%llx, not 0x%llx", what, element, count, (unsigned long long)is,
             (unsigned long long)should);
  }
  free(found);
}

const size_t sizes[] = { 1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 1023, 1024, 1025, 4095, 4096, 4097, 100003, 0 };

/* ---- kernels that compute each element by itself ---- */

static void check_size(rill_stream stream, const struct elementwise *kernel, size_t n, uint32_t block, size_t skip) {
  const size_t size = kernel->element_size, bytes = n * size;
  unsigned char *const a = new_host(bytes), *const b = new_host(bytes), *const expected = new_host(bytes);
  if (size == 4) {
    random_floats(n, n, (float *)(void *)a);
    random_floats(~n, n, (float *)(void *)b);
  } else {
    random_doubles(n, n, (double *)(void *)a);
    random_doubles(~n, n, (double *)(void *)b);
  }
  for (size_t i = 0; i < n; i++) kernel->expect(i, a, b, expected);
  void *const da = new_array(stream, a, bytes, 0), *const db = new_array(stream, b, bytes, skip);
  void *const out = new_array(stream, b, bytes, skip);
  const rill_launch launch = rill_kernels_wide(n, size, block);
  assert_ok(kernel->launch(stream, &launch, (int64_t)n, da, db, out));
  char what[128];
  (void)snprintf(what, sizeof what, "n %zu, blocks of %u, arrays %zu bytes off", n, block, skip);
  expect_array(stream, out, expected, n, size, what);
  free_array(da, 0);
  free_array(db, skip);
  free_array(out, skip);
  free(a);
  free(b);
  free(expected);
}

void check_elementwise(const struct elementwise *kernel) {
  static const uint32_t blocks[] = { 1024, 256, 33 };
  rill_stream stream = new_stream("elements");
  for (size_t i = 0; sizes[i] != 0; i++) {
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
      check_size(stream, kernel, sizes[i], blocks[b], 0);
      check_size(stream, kernel, sizes[i], blocks[b], kernel->element_size);
    }
  }
  const rill_launch nothing = rill_kernels_wide(0, kernel->element_size, 256);
  spoil_last_error();
  check_fails(kernel->launch(stream, &nothing, 0, NULL, NULL, dut.memory), RILL_ERROR_INVALID_ARGUMENT, NULL,
              kernel->call, __FILE__, __LINE__);
}
