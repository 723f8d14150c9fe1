/* rill_free */
#include "support/testing.h"

/* C5.1, M5 */
static void does_nothing_for_null(void) {
  spoil_last_error();
  assert_ok(rill_free(NULL));
  assert_says("rill_device_count");
}

/* C1.6, M7: a pointer that is no allocation of rill. */
static void refuses_foreign_pointers(void) {
  int local = 0;
  void *heap = malloc(64);
  assert_fails(rill_free(&local), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_free(heap), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_free((void *)(uintptr_t)1), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_free((void *)UINTPTR_MAX), RILL_ERROR_NOT_FOUND);
  free(heap);
}

/* C1.6, M8: a pointer inside an allocation; and its end, which is outside. */
static void refuses_pointers_inside(void) {
  const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED };
  for (size_t i = 0; i < 2; i++) {
    unsigned char *p;
    assert_ok(RILL_NEW(dut.device, kinds[i], 4096, &p));
    assert_fails(rill_free(p + 1), RILL_ERROR_INVALID_ARGUMENT);
    assert_fails(rill_free(p + 4095), RILL_ERROR_INVALID_ARGUMENT);
    assert_ok(rill_free(p));
  }
}

/* M6 */
static void refuses_a_second_time(void) {
  void *p;
  assert_ok(rill_alloc(dut.device, 4096, RILL_MEMORY_DEVICE, &p));
  assert_ok(rill_free(p));
  assert_fails(rill_free(p), RILL_ERROR_NOT_FOUND);
}

static const char *opens_after_a_while(unsigned index, void *shared) {
  (void)index;
  let_pass_ns(10 * MILLISECOND);
  gate_open(shared);
  return NULL;
}

/* C5.1, M9: the memory does not go before the work that uses it; the call may block for that. */
static void waits_for_submitted_work(void) {
  const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED };
  enum { BYTES = 1 << 20 };
  for (uint32_t i = 0; i < 2; i++) {
    rill_stream stream = new_stream("stream");
    const uint32_t value = 60 + i;
    uint32_t *p;
    assert_ok(RILL_NEW(dut.device, kinds[i], BYTES / sizeof *p, &p));
    /* A driver may load its own code at the first fill of a size, and wait for running kernels to do so. */
    assert_ok(rill_fill_async(stream, p, &value, sizeof value, BYTES / sizeof *p));
    assert_completes(stream);
    struct gate *gate = gate_close(stream);
    assert_ok(rill_fill_async(stream, p, &value, sizeof value, BYTES / sizeof *p));
    assert_ok(rill_copy_async(stream, dut.host, p + BYTES / sizeof *p - 1, sizeof *p));
    struct background *opener = start_threads(1, opens_after_a_while, gate);
    assert_ok(rill_free(p));
    assert_completes(stream);
    assert_int_equal(dut.host[0], value);
    join_threads(opener);
  }
}

static const char *frees(unsigned index, void *shared) {
  void **pointers = shared;
  REQUIRE_OK(rill_free(pointers[index]));
  return NULL;
}

/* C5.1: any thread; and each pointer once, whoever is first. */
static void serves_threads_that_did_not_allocate(void) {
  void *pointers[8];
  for (unsigned i = 0; i < 8; i++) assert_ok(rill_alloc(dut.device, 4096, RILL_MEMORY_DEVICE, &pointers[i]));
  run_threads(8, frees, pointers);
  for (unsigned i = 0; i < 8; i++) assert_fails(rill_free(pointers[i]), RILL_ERROR_NOT_FOUND);
}

struct race {
  void *pointer;
  unsigned freed;
};

static const char *tries_to_free(unsigned index, void *shared) {
  (void)index;
  struct race *race = shared;
  const rill_status status = rill_free(race->pointer);
  REQUIRE(status == RILL_OK || status == RILL_ERROR_NOT_FOUND);
  if (status == RILL_OK) (void)__atomic_add_fetch(&race->freed, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static void one_of_many_threads_frees(void) {
  for (int i = 0; i < 20; i++) {
    struct race race = { NULL, 0 };
    assert_ok(rill_alloc(dut.device, 4096, RILL_MEMORY_PINNED, &race.pointer));
    run_threads(4, tries_to_free, &race);
    assert_int_equal(race.freed, 1);
  }
}

int main(void) {
  static const struct test tests[] = {
    TEST(does_nothing_for_null),     TEST(refuses_foreign_pointers), TEST(refuses_pointers_inside),
    TEST(refuses_a_second_time),     TEST(waits_for_submitted_work), TEST(serves_threads_that_did_not_allocate),
    TEST(one_of_many_threads_frees),
  };
  return RUN_ON_EACH_DEVICE("rill_free", tests);
}
