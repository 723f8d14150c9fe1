/* rill_memory_get_info */
#include "support/testing.h"

static const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED, RILL_MEMORY_MANAGED };

static bool has_kind(uint32_t kind) {
  return kind != RILL_MEMORY_MANAGED || rill_device_supports(dut.device, RILL_FEATURE_MANAGED, NULL);
}

/* C1.6, M15: refuses a pointer that is not a rill allocation. C1.1: everything except struct_size is cleared. */
static void refuses_foreign_memory(void) {
  int local = 0;
  void *heap = malloc(64);
  const void *const pointers[] = { &local, heap, NULL, (void *)(uintptr_t)1, (void *)UINTPTR_MAX };
  for (size_t i = 0; i < sizeof pointers / sizeof *pointers; i++) {
    rill_memory_info info = { sizeof info, 7, { 7 }, &local, 7 };
    assert_fails(rill_memory_get_info(pointers[i], &info), RILL_ERROR_NOT_FOUND);
    assert_int_equal(info.struct_size, sizeof info);
    assert_int_equal(info.kind, RILL_MEMORY_UNKNOWN);
    assert_true(rill_device_equal(info.device, RILL_NULL_DEVICE));
    assert_null(info.base);
    assert_int_equal(info.size, 0);
  }
  free(heap);
}

static rill_status call_with_info(void *info) { return rill_memory_get_info(dut.host, info); }

/* C1.4 */
static void fills_older_and_newer_structs(void) {
  fills_grown_structs("rill_memory_get_info", call_with_info, sizeof(rill_memory_info));
}

/* C5.4, M15: at the start, inside, and at the last byte, but not outside. */
static void describes_each_kind(void) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (!has_kind(kinds[i])) continue;
    const size_t sizes[] = { 1, 255, 256, 4097, 1000003 };
    for (size_t j = 0; j < sizeof sizes / sizeof *sizes; j++) {
      unsigned char *p = NULL;
      assert_ok(rill_alloc(dut.device, sizes[j], kinds[i], (void **)&p));
      const size_t offsets[] = { 0, sizes[j] / 2, sizes[j] - 1 };
      for (size_t k = 0; k < sizeof offsets / sizeof *offsets; k++) {
        rill_memory_info info = RILL_MEMORY_INFO_INIT;
        assert_ok(rill_memory_get_info(p + offsets[k], &info));
        assert_int_equal(info.kind, kinds[i]);
        assert_true(rill_device_equal(info.device, dut.device));
        assert_ptr_equal(info.base, p);
        assert_int_equal(info.size, sizes[j]);
      }
      rill_memory_info info = RILL_MEMORY_INFO_INIT;
      const bool before = rill_memory_get_info(p - 1, &info) == RILL_OK;
      assert_true(!before || info.base != p);
      const bool later = rill_memory_get_info(p + sizes[j], &info) == RILL_OK;
      assert_true(!later || info.base != p);
      assert_ok(rill_free(p));
      assert_fails(rill_memory_get_info(p, &info), RILL_ERROR_NOT_FOUND);
    }
  }
}

/* C5.4: the device is the one for which the memory was allocated. */
static void distinguishes_devices(void) {
  needs_second_device();
  void *p = NULL;
  rill_memory_info info = RILL_MEMORY_INFO_INIT;
  assert_ok(rill_alloc(dut.second, 100, RILL_MEMORY_DEVICE, &p));
  assert_ok(rill_memory_get_info(p, &info));
  assert_true(rill_device_equal(info.device, dut.second));
  assert_ok(rill_memory_get_info(dut.memory, &info));
  assert_true(rill_device_equal(info.device, dut.device));
  assert_ok(rill_free(p));
}

static const char *asks(unsigned index, void *shared) {
  (void)shared;
  for (unsigned i = 0; i < scaled(2000); i++) {
    void *p = NULL;
    rill_memory_info info = RILL_MEMORY_INFO_INIT;
    REQUIRE_OK(rill_memory_get_info(dut.memory + (i + index) % CELLS, &info));
    REQUIRE(info.base == dut.memory && info.kind == RILL_MEMORY_DEVICE);
    if (i % 16 != 0) continue;
    REQUIRE_OK(rill_alloc(dut.device, 300 + i, RILL_MEMORY_PINNED, &p));
    REQUIRE_OK(rill_memory_get_info((char *)p + 299, &info));
    REQUIRE(info.base == p && info.size == 300 + i);
    REQUIRE_OK(rill_free(p));
  }
  return NULL;
}

/* C1.7: queries while other threads allocate and free. */
static void serves_many_threads(void) { run_threads(4, asks, NULL); }

TESTS_ON_EACH_DEVICE("rill_memory_get_info", TEST(refuses_foreign_memory), TEST(fills_older_and_newer_structs),
                     TEST(describes_each_kind), TEST(distinguishes_devices), TEST(serves_many_threads))
