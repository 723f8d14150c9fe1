/* rill_alloc_aligned */
#include "support/testing.h"

#include <stdio.h>

static const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED, RILL_MEMORY_MANAGED };

static bool has_kind(uint32_t kind) {
  return kind != RILL_MEMORY_MANAGED || rill_device_supports(dut.device, RILL_FEATURE_MANAGED, NULL);
}

static rill_status call_with_device(uint64_t id) {
  void *out = &out;
  const rill_status status = rill_alloc_aligned((rill_device){ id }, 16, 4096, RILL_MEMORY_DEVICE, &out);
  assert_null(out);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_devices("rill_alloc_aligned", call_with_device); }

/* M3 */
static void refuses_null_out(void) {
  assert_fails(rill_alloc_aligned(dut.device, 16, 16, RILL_MEMORY_DEVICE, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

static void refuses_unknown_kinds(void) {
  void *out = &out;
  assert_fails(rill_alloc_aligned(dut.device, 16, 16, RILL_MEMORY_REGISTERED, &out), RILL_ERROR_INVALID_ARGUMENT);
  assert_null(out);
}

/* M4 */
static void refuses_alignments_that_are_not_powers_of_two(void) {
  const size_t bad[] = { 0, 3, 24, 4097, SIZE_MAX };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    void *out = &out;
    char number[32];
    (void)snprintf(number, sizeof number, "%zu", bad[i]);
    assert_fails(rill_alloc_aligned(dut.device, 16, bad[i], RILL_MEMORY_DEVICE, &out), RILL_ERROR_INVALID_ARGUMENT);
    assert_null(out);
    assert_says(number);
    assert_fails(rill_alloc_aligned(dut.device, 0, bad[i], RILL_MEMORY_DEVICE, &out), RILL_ERROR_INVALID_ARGUMENT);
  }
}

/* M1 */
static void returns_null_for_size_zero(void) {
  void *out = &out;
  assert_ok(rill_alloc_aligned(dut.device, 0, 1 << 20, RILL_MEMORY_DEVICE, &out));
  assert_null(out);
}

/* M2, including sizes that overflow only when they are aligned. */
static void too_large_sizes_are_out_of_memory(void) {
  const size_t alignments[] = { 1, 1 << 20, SIZE_MAX / 2 + 1 };
  for (size_t i = 0; i < 3; i++) {
    void *out = &out;
    assert_fails(rill_alloc_aligned(dut.device, SIZE_MAX, alignments[i], RILL_MEMORY_DEVICE, &out),
                 RILL_ERROR_OUT_OF_MEMORY);
    assert_null(out);
  }
  void *out = &out;
  assert_fails(rill_alloc_aligned(dut.device, 1, SIZE_MAX / 2 + 1, RILL_MEMORY_DEVICE, &out), RILL_ERROR_OUT_OF_MEMORY);
  assert_null(out);
  assert_ok(rill_alloc_aligned(dut.device, 1, 1 << 16, RILL_MEMORY_DEVICE, &out));
  assert_ok(rill_free(out));
}

/* M4, M8, M15: every alignment is honoured for every kind and size; the returned pointer is the base of the allocation
 * and can be freed. */
static void honours_every_alignment(void) {
  rill_stream stream = new_stream("stream");
  for (size_t i = 0; i < 3; i++) {
    if (!has_kind(kinds[i])) continue;
    for (size_t alignment = 1; alignment <= 1 << 22; alignment *= 4) {
      const size_t sizes[] = { 1, 1000, 65536 };
      for (size_t j = 0; j < 3; j++) {
        unsigned char *p = NULL;
        rill_memory_info info = RILL_MEMORY_INFO_INIT;
        const unsigned char value = (unsigned char)(j + 9);
        assert_ok(rill_alloc_aligned(dut.device, sizes[j], alignment, kinds[i], (void **)&p));
        assert_int_equal((uintptr_t)p % alignment, 0);
        assert_int_equal((uintptr_t)p % 256, 0);
        assert_ok(rill_memory_get_info(p + sizes[j] - 1, &info));
        assert_ptr_equal(info.base, p);
        assert_int_equal(info.size, sizes[j]);
        assert_int_equal(info.kind, kinds[i]);
        assert_ok(rill_fill_async(stream, p, &value, 1, sizes[j]));
        assert_ok(rill_copy_async(stream, dut.host, p + sizes[j] - 1, 1));
        assert_fails(rill_copy_async(stream, dut.host, p + sizes[j] - 1, 2), RILL_ERROR_OUT_OF_RANGE);
        assert_completes(stream);
        assert_int_equal(*(unsigned char *)dut.host, value);
        if (sizes[j] > 1) assert_fails(rill_free(p + 1), RILL_ERROR_INVALID_ARGUMENT);
        assert_ok(rill_free(p));
        assert_fails(rill_free(p), RILL_ERROR_NOT_FOUND);
      }
    }
  }
}

/* Many allocations that exist at the same time do not overlap. */
static void allocations_do_not_overlap(void) {
  enum { COUNT = 40 };
  char *pointers[COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    assert_ok(rill_alloc_aligned(dut.device, 700, (size_t)1 << i % 17, RILL_MEMORY_PINNED, (void **)&pointers[i]));
    memset(pointers[i], (int)i, 700);
    for (size_t j = 0; j < i; j++) assert_true(pointers[i] + 700 <= pointers[j] || pointers[j] + 700 <= pointers[i]);
  }
  for (size_t i = 0; i < COUNT; i++) {
    for (size_t j = 0; j < 700; j++) assert_int_equal(pointers[i][j], i);
    assert_ok(rill_free(pointers[i]));
  }
}

TESTS_ON_EACH_DEVICE("rill_alloc_aligned", TEST(refuses_bad_handles), TEST(refuses_null_out),
                     TEST(refuses_unknown_kinds), TEST(refuses_alignments_that_are_not_powers_of_two),
                     TEST(returns_null_for_size_zero), TEST(too_large_sizes_are_out_of_memory),
                     TEST(honours_every_alignment), TEST(allocations_do_not_overlap))
