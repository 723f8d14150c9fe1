/* rill_host_register */
#include "support/testing.h"

enum { BYTES = 100000, PAGE = 4096 };

static rill_status call_with_device(uint64_t id) {
  static char memory[16];
  return rill_host_register((rill_device){ id }, memory, sizeof memory);
}

static void refuses_bad_handles(void) { refuses_bad_devices("rill_host_register", call_with_device); }

/* M16 */
static void refuses_null_and_empty_ranges(void) {
  char byte;
  assert_fails(rill_host_register(dut.device, NULL, 100), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_host_register(dut.device, NULL, 0), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_host_register(dut.device, &byte, 0), RILL_ERROR_INVALID_ARGUMENT);
}

/* C1.6: refuses sizes that overflow. */
static void refuses_ranges_past_the_end_of_memory(void) {
  char byte;
  assert_fails(rill_host_register(dut.device, &byte, SIZE_MAX), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_host_register(dut.device, (void *)UINTPTR_MAX, 2), RILL_ERROR_OUT_OF_RANGE);
}

static unsigned char *pages(size_t size) {
  unsigned char *p = aligned_alloc(PAGE, (size + PAGE - 1) / PAGE * PAGE);
  assert_non_null(p);
  return p;
}

/* M16: refuses the same range, and ranges that overlap it in part. */
static void refuses_ranges_that_overlap_registered_memory(void) {
  unsigned char *p = pages(BYTES);
  assert_ok(rill_host_register(dut.device, p + 1000, 5001));
  assert_fails(rill_host_register(dut.device, p + 1000, 5001), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("registered already");
  assert_says("5001");
  assert_fails(rill_host_register(dut.device, p + 6000, 1), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_host_register(dut.device, p + 6000, 10000), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_host_register(dut.device, p, 1001), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_host_register(dut.device, p, BYTES), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_host_unregister(p + 1000));
  assert_ok(rill_host_register(dut.device, p, BYTES));
  assert_ok(rill_host_unregister(p));
  free(p);
}

/* M16: refuses memory that rill allocated, of each kind: ranges at its start, inside it and around it. */
static void refuses_ranges_that_overlap_an_allocation(void) {
  const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED };
  for (size_t i = 0; i < 2; i++) {
    unsigned char *p = NULL;
    assert_ok(rill_alloc(dut.device, BYTES, kinds[i], (void **)&p));
    assert_fails(rill_host_register(dut.device, p, BYTES), RILL_ERROR_INVALID_ARGUMENT);
    assert_says("allocated");
    assert_fails(rill_host_register(dut.device, p + BYTES - 1, 1), RILL_ERROR_INVALID_ARGUMENT);
    assert_fails(rill_host_register(dut.device, p - 1, 2), RILL_ERROR_INVALID_ARGUMENT);
    assert_ok(rill_free(p));
  }
}

/* C5.4: checks the results of rill_memory_get_info around both ends of the range. */
static void is_known_after_the_call(void) {
  unsigned char *p = pages(BYTES);
  rill_memory_info info = RILL_MEMORY_INFO_INIT;
  assert_ok(rill_host_register(dut.device, p + 77, 999));
  const size_t inside[] = { 77, 78, 600, 77 + 998 };
  for (size_t i = 0; i < sizeof inside / sizeof *inside; i++) {
    assert_ok(rill_memory_get_info(p + inside[i], &info));
    assert_int_equal(info.kind, RILL_MEMORY_REGISTERED);
    assert_true(rill_device_equal(info.device, dut.device));
    assert_ptr_equal(info.base, p + 77);
    assert_int_equal(info.size, 999);
  }
  assert_fails(rill_memory_get_info(p + 76, &info), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_memory_get_info(p + 77 + 999, &info), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_host_unregister(p + 77));
  assert_fails(rill_memory_get_info(p + 77, &info), RILL_ERROR_NOT_FOUND);
  free(p);
}

/* C5.4: two ranges, each with its own pages; registration does not change their contents. */
static void ranges_do_not_affect_each_other(void) {
  unsigned char *p = pages(8 * PAGE);
  for (size_t i = 0; i < 8 * PAGE; i++) p[i] = (unsigned char)(i * 5);
  assert_ok(rill_host_register(dut.device, p + 1, 2 * PAGE - 1));
  assert_ok(rill_host_register(dut.device, p + 4 * PAGE, PAGE + 3));
  rill_memory_info info = RILL_MEMORY_INFO_INIT;
  assert_ok(rill_memory_get_info(p + 2 * PAGE - 1, &info));
  assert_ptr_equal(info.base, p + 1);
  assert_fails(rill_memory_get_info(p + 2 * PAGE, &info), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_memory_get_info(p + 4 * PAGE, &info));
  assert_ptr_equal(info.base, p + 4 * PAGE);
  assert_ok(rill_host_unregister(p + 1));
  assert_ok(rill_memory_get_info(p + 4 * PAGE, &info));
  assert_ok(rill_host_unregister(p + 4 * PAGE));
  for (size_t i = 0; i < 8 * PAGE; i++) assert_int_equal(p[i], (unsigned char)(i * 5));
  free(p);
}

/* C5.4: adjacent ranges, even of one byte, may share a page. If a driver refuses to register the second one, rill does
 * not. */
static void neighbours_may_share_a_page(void) {
  unsigned char *p = pages(PAGE);
  assert_ok(rill_host_register(dut.device, p + 100, 50));
  const rill_status status = rill_host_register(dut.device, p + 150, 1);
  assert_true(status == RILL_OK || status == RILL_ERROR_BACKEND);
  rill_memory_info info = RILL_MEMORY_INFO_INIT;
  assert_ok(rill_memory_get_info(p + 149, &info));
  assert_ptr_equal(info.base, p + 100);
  if (status == RILL_OK) {
    assert_ok(rill_memory_get_info(p + 150, &info));
    assert_ptr_equal(info.base, p + 150);
    assert_ok(rill_host_unregister(p + 150));
  } else {
    assert_fails(rill_memory_get_info(p + 150, &info), RILL_ERROR_NOT_FOUND);
  }
  assert_ok(rill_host_unregister(p + 100));
  free(p);
}

/* C5.3, C5.4; M16, M17: it is treated as pinned: copies do not block, the source is read when the copy runs, and ranges
 * are checked. */
static void counts_as_pinned(void) {
  rill_stream stream = new_stream("stream");
  unsigned char *p = pages(BYTES), *seen = pages(BYTES), *there = NULL;
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, BYTES, &there));
  memset(p, 1, BYTES);
  memset(seen, 0, BYTES);
  assert_ok(rill_host_register(dut.device, p + 3, BYTES - 3));
  assert_ok(rill_host_register(dut.device, seen, BYTES));
  struct gate *gate = gate_close(stream);
  assert_ok(rill_copy_async(stream, there + 1, p + 3, BYTES - 3));
  assert_ok(rill_copy_async(stream, seen + 7, there + 1, BYTES - 9));
  assert_int_equal(__atomic_load_n(seen + 7, __ATOMIC_SEQ_CST), 0);
  for (size_t i = 0; i < BYTES; i++) __atomic_store_n(p + i, 2, __ATOMIC_SEQ_CST);
  gate_open(gate);
  assert_completes(stream);
  for (size_t i = 0; i < BYTES; i++) assert_int_equal(seen[i], i >= 7 && i < BYTES - 2 ? 2 : 0);
  assert_fails(rill_copy_async(stream, there, p + 3, BYTES - 2), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_copy_async(stream, seen + 1, there, BYTES), RILL_ERROR_OUT_OF_RANGE);
  assert_ok(rill_host_unregister(p + 3));
  assert_ok(rill_host_unregister(seen));
  assert_ok(rill_free(there));
  free(p);
  free(seen);
}

static const char *registers(unsigned index, void *shared) {
  unsigned char *p = (unsigned char *)shared + index * 4 * (size_t)PAGE;
  for (unsigned i = 0; i < 30; i++) {
    REQUIRE_OK(rill_host_register(dut.device, p + i, PAGE));
    REQUIRE_OK(rill_host_unregister(p + i));
  }
  return NULL;
}

/* C1.7 */
static void serves_many_threads(void) {
  unsigned char *p = pages(8 * 4 * (size_t)PAGE);
  run_threads(8, registers, p);
  free(p);
}

struct race {
  unsigned char *p;
  unsigned registered;
};

static const char *tries_to_register(unsigned index, void *shared) {
  struct race *race = shared;
  const rill_status status = rill_host_register(dut.device, race->p + index, PAGE);
  REQUIRE(status == RILL_OK || status == RILL_ERROR_INVALID_ARGUMENT);
  if (status == RILL_OK) {
    (void)__atomic_add_fetch(&race->registered, 1, __ATOMIC_SEQ_CST);
    race->p[PAGE * 2 + index] = 1;
  }
  return NULL;
}

/* Of several overlapping ranges, only the first is registered. */
static void only_one_of_many_threads_registers(void) {
  for (int round = 0; round < 10; round++) {
    struct race race = { pages(3 * PAGE), 0 };
    memset(race.p, 0, 3 * PAGE);
    run_threads(4, tries_to_register, &race);
    assert_int_equal(race.registered, 1);
    for (size_t i = 0; i < 4; i++) {
      if (race.p[PAGE * 2 + i] == 1) assert_ok(rill_host_unregister(race.p + i));
    }
    free(race.p);
  }
}

TESTS_ON_EACH_DEVICE("rill_host_register", TEST(refuses_bad_handles), TEST(refuses_null_and_empty_ranges),
                     TEST(refuses_ranges_past_the_end_of_memory), TEST(refuses_ranges_that_overlap_registered_memory),
                     TEST(refuses_ranges_that_overlap_an_allocation), TEST(is_known_after_the_call),
                     TEST(ranges_do_not_affect_each_other), TEST(neighbours_may_share_a_page), TEST(counts_as_pinned),
                     TEST(serves_many_threads), TEST(only_one_of_many_threads_registers))
