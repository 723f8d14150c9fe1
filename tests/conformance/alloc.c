/* rill_alloc, and RILL_NEW */
#include "support/testing.h"

#include <stdio.h>

static const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED };

static rill_status call_with_device(uint64_t id) {
  void *out = &out;
  const rill_status status = rill_alloc((rill_device){ id }, 16, RILL_MEMORY_DEVICE, &out);
  assert_null(out);
  return status;
}

static void refuses_bad_handles(void) { refuses_bad_devices("rill_alloc", call_with_device); }

/* M3 */
static void refuses_null_out(void) {
  assert_fails(rill_alloc(dut.device, 16, RILL_MEMORY_DEVICE, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* R8: unknown kinds, and kinds that cannot be requested. */
static void refuses_unknown_kinds(void) {
  const uint32_t bad[] = { RILL_MEMORY_UNKNOWN, RILL_MEMORY_REGISTERED, 5, UINT32_MAX };
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    void *out = &out;
    assert_fails(rill_alloc(dut.device, 16, bad[i], &out), RILL_ERROR_INVALID_ARGUMENT);
    assert_null(out);
    assert_fails(rill_alloc(dut.device, 0, bad[i], &out), RILL_ERROR_INVALID_ARGUMENT);
  }
}

/* C1.8 */
static void managed_memory_works_if_supported(void) {
  void *out = &out;
  if (rill_device_supports(dut.device, RILL_FEATURE_MANAGED, NULL)) {
    assert_ok(rill_alloc(dut.device, 4096, RILL_MEMORY_MANAGED, &out));
    memset(out, 1, 4096);
    assert_ok(rill_free(out));
  } else {
    assert_fails(rill_alloc(dut.device, 4096, RILL_MEMORY_MANAGED, &out), RILL_ERROR_UNSUPPORTED);
    assert_null(out);
    assert_says(dut.name);
  }
}

/* C5.1, M1 */
static void returns_null_for_size_zero(void) {
  for (size_t i = 0; i < 2; i++) {
    void *out = &out;
    assert_ok(rill_alloc(dut.device, 0, kinds[i], &out));
    assert_null(out);
  }
}

/* C5.1, M2, R4: the text contains the requested, free and total bytes, and the device stays usable. */
static void too_large_sizes_are_out_of_memory(void) {
  uint64_t free_bytes, total_bytes;
  assert_ok(rill_device_get_memory(dut.device, &free_bytes, &total_bytes));
  const size_t sizes[] = { SIZE_MAX, SIZE_MAX - 1, SIZE_MAX / 2, (size_t)total_bytes + 1 };
  char total[32], asked[32];
  (void)snprintf(total, sizeof total, "%llu", (unsigned long long)total_bytes);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    void *out = &out;
    assert_fails(rill_alloc(dut.device, sizes[i], RILL_MEMORY_DEVICE, &out), RILL_ERROR_OUT_OF_MEMORY);
    assert_null(out);
    (void)snprintf(asked, sizeof asked, "%zu", sizes[i]);
    assert_says(asked);
    assert_says(total);
    assert_ok(rill_alloc(dut.device, 4096, RILL_MEMORY_DEVICE, &out));
    assert_ok(rill_free(out));
  }
  void *out = &out;
  assert_fails(rill_alloc(dut.device, SIZE_MAX, RILL_MEMORY_PINNED, &out), RILL_ERROR_OUT_OF_MEMORY);
  assert_null(out);
}

/* C5.1 */
static void the_host_can_use_pinned_memory(void) {
  unsigned char *pinned = NULL;
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, 100000, &pinned));
  memset(pinned, 0x5a, 100000);
  for (size_t i = 0; i < 100000; i++) assert_int_equal(pinned[i], 0x5a);
  assert_ok(rill_free(pinned));
}

/* Allocations of every size are aligned for the widest fill pattern. */
static void allocations_do_not_overlap(void) {
  const size_t sizes[] = { 1, 2, 3, 7, 16, 100, 4095, 4096, 4097, 65536, 1000003 };
  enum { COUNT = sizeof sizes / sizeof *sizes };
  unsigned char *pointers[2 * COUNT];
  for (size_t i = 0; i < 2 * COUNT; i++) {
    assert_ok(RILL_NEW(dut.device, kinds[i % 2], sizes[i / 2], &pointers[i]));
    assert_non_null(pointers[i]);
    assert_int_equal((uintptr_t)pointers[i] % 16, 0);
    for (size_t j = 0; j < i; j++) {
      assert_true(pointers[i] + sizes[i / 2] <= pointers[j] || pointers[j] + sizes[j / 2] <= pointers[i]);
    }
  }
  for (size_t i = 0; i < 2 * COUNT; i++) assert_ok(rill_free(pointers[i]));
}

/* RILL_NEW checks its product. */
static void new_refuses_products_that_overflow(void) {
  double *out = (double *)dut.host;
  assert_fails_in("rill_alloc", RILL_NEW(dut.device, RILL_MEMORY_DEVICE, SIZE_MAX / 8 + 2, &out),
                  RILL_ERROR_OUT_OF_MEMORY);
  assert_null(out);
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, 0, &out));
  assert_null(out);
}

/* M21 */
static void many_are_allocated_and_freed(void) {
  for (unsigned i = 0; i < scaled(1000); i++) {
    void *out;
    assert_ok(rill_alloc(dut.device, 1000 + i, kinds[i % 2], &out));
    assert_ok(rill_free(out));
  }
}

static const char *allocates_and_frees(unsigned index, void *shared) {
  (void)shared;
  for (unsigned i = 0; i < 50; i++) {
    void *pointers[4];
    for (unsigned j = 0; j < 4; j++) REQUIRE_OK(rill_alloc(dut.device, 64 + index + i, kinds[j % 2], &pointers[j]));
    for (unsigned j = 0; j < 4; j++) REQUIRE_OK(rill_free(pointers[j]));
  }
  return NULL;
}

/* M22 */
static void serves_many_threads(void) { run_threads(8, allocates_and_frees, NULL); }

/* C5.1: every device of the backend can access pinned memory. */
static void all_devices_can_use_pinned_memory(void) {
  needs_second_device();
  rill_stream there = new_stream_on(dut.second, "there");
  const uint32_t value = 12;
  assert_ok(rill_fill_async(there, dut.host, &value, sizeof value, 1));
  assert_completes(there);
  assert_int_equal(dut.host[0], value);
}

TESTS_ON_EACH_DEVICE("rill_alloc", TEST(refuses_bad_handles), TEST(refuses_null_out), TEST(refuses_unknown_kinds),
                     TEST(managed_memory_works_if_supported), TEST(returns_null_for_size_zero),
                     TEST(too_large_sizes_are_out_of_memory), TEST(the_host_can_use_pinned_memory),
                     TEST(allocations_do_not_overlap), TEST(new_refuses_products_that_overflow),
                     TEST(many_are_allocated_and_freed), TEST(serves_many_threads),
                     TEST(all_devices_can_use_pinned_memory))
