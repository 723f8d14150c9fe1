/* rill_memory_ipc_export. memory_ipc_import.c tests the use of the handle in another process. */
#include "ipc.h"

#include <pthread.h>

enum { BYTES = 3 * 4096 + 100 };

/* C1.1: on failure the handle is all zero. */
static rill_status export_memory(void *p, rill_ipc_handle *out) {
  static const rill_ipc_handle zero;
  memset(out, 0xa5, sizeof *out);
  const rill_status status = rill_memory_ipc_export(p, out);
  if (status != RILL_OK) assert_memory_equal(out, &zero, sizeof zero);
  return status;
}

#define EXPORT_FAILS(p, status) \
  assert_fails_in("rill_memory_ipc_export", export_memory((p), &(rill_ipc_handle){ { 0 } }), (status))

static void refuses_null(void) {
  EXPORT_FAILS(NULL, RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_memory_ipc_export(dut.memory, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* I2 */
static void refuses_pointers_that_are_not_allocations(void) {
  int local = 0;
  unsigned char *p;
  EXPORT_FAILS(&local, RILL_ERROR_NOT_FOUND);
  EXPORT_FAILS((void *)UINTPTR_MAX, RILL_ERROR_NOT_FOUND);
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, BYTES, &p));
  assert_ok(rill_free(p));
  EXPORT_FAILS(p, RILL_ERROR_NOT_FOUND);
  EXPORT_FAILS(p + 1, RILL_ERROR_NOT_FOUND);
}

/* C1.8 */
static void refuses_other_kinds(void) {
  const uint32_t kinds[] = { RILL_MEMORY_PINNED, RILL_MEMORY_MANAGED };
  const char *const names[] = { "RILL_MEMORY_PINNED", "RILL_MEMORY_MANAGED" };
  for (size_t i = 0; i < 2; i++) {
    void *p;
    if (rill_alloc(dut.device, 4096, kinds[i], &p) != RILL_OK) continue;
    EXPORT_FAILS(p, RILL_ERROR_UNSUPPORTED);
    assert_says(names[i]);
    assert_ok(rill_free(p));
  }
}

/* I7 */
static void refuses_memory_of_pools(void) {
  rill_stream stream = new_stream("stream");
  void *p;
  if (!shares_memory() || rill_alloc_async(stream, BYTES, &p) != RILL_OK) return;
  EXPORT_FAILS(p, RILL_ERROR_UNSUPPORTED);
  assert_says("pool");
  EXPORT_FAILS((char *)p + 1, RILL_ERROR_UNSUPPORTED);
  assert_ok(rill_free_async(stream, p));
  assert_completes(stream);
}

/* C1.8 */
static void says_why_it_is_unsupported(void) {
  const char *why = "";
  if (rill_device_supports(dut.device, RILL_FEATURE_IPC, &why)) return;
  EXPORT_FAILS(dut.memory, RILL_ERROR_UNSUPPORTED);
  assert_says(why);
}

/* I1, I2: each allocation has its own handle, also at a reused address; any address inside it may be passed. */
static void each_allocation_has_its_own_handle(void) {
  enum { SIZE = 4 << 20 }; /* large enough not to be part of a larger allocation of the driver */
  rill_ipc_handle handles[2], other;
  unsigned char *p, *q;
  if (!shares_memory()) return;
  for (int i = 0; i < 2; i++) {
    assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, SIZE, &p));
    assert_ok(export_memory(p, &handles[i]));
    assert_ok(export_memory(p + SIZE - 1, &other));
    assert_memory_not_equal(&other, &handles[i], sizeof other);
    if (i == 0) assert_ok(rill_free(p));
  }
  assert_memory_not_equal(&handles[0], &handles[1], sizeof handles[0]);
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, SIZE, &q));
  assert_ok(export_memory(q, &other));
  assert_memory_not_equal(&other, &handles[1], sizeof other);
  assert_ok(rill_free(q));
  assert_ok(rill_free(p));
}

/* C5.4: the call does not change the memory, at both ends and for work that was already submitted. */
static void leaves_the_memory_unchanged(void) {
  static uint32_t back[BYTES / 4];
  rill_ipc_handle handle;
  uint32_t *p;
  const uint32_t value = 77, later = 78;
  if (!shares_memory()) return;
  rill_stream stream = new_stream("stream");
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, BYTES / 4, &p));
  assert_ok(rill_fill_async(stream, p, &value, sizeof value, BYTES / 4));
  assert_ok(export_memory(p + 5, &handle));
  assert_ok(rill_copy_async(stream, back, p, BYTES));
  assert_completes(stream);
  for (size_t i = 0; i < BYTES / 4; i++) assert_int_equal(back[i], value);
  assert_ok(rill_fill_async(stream, p, &later, sizeof later, BYTES / 4));
  assert_ok(rill_copy_async(stream, back, p, BYTES));
  assert_completes(stream);
  for (size_t i = 0; i < BYTES / 4; i++) assert_int_equal(back[i], later);
  assert_fails(rill_copy_async(stream, back, p, BYTES + 4), RILL_ERROR_OUT_OF_RANGE);
  assert_ok(rill_free(p));
}

/* Shared memory is reused like any other memory once it is freed. */
static void frees_and_allocates_again(void) {
  if (!shares_memory()) return;
  for (unsigned i = 0; i < scaled(200); i++) {
    rill_ipc_handle handle;
    unsigned char *p;
    assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, i % 2 == 0 ? 1 : BYTES, &p));
    assert_ok(export_memory(p, &handle));
    assert_ok(rill_free(p));
    EXPORT_FAILS(p, RILL_ERROR_NOT_FOUND);
    void *heap = malloc(BYTES);
    assert_non_null(heap);
    memset(heap, 1, BYTES);
    free(heap);
  }
}

static const char *exports(unsigned index, void *shared) {
  rill_ipc_handle *handles = shared;
  REQUIRE_OK(rill_memory_ipc_export(dut.memory + index, &handles[index]));
  return NULL;
}

/* T: several threads export one allocation concurrently. */
static void serves_threads_at_once(void) {
  rill_ipc_handle handles[8], own;
  if (!shares_memory()) return;
  run_threads(8, exports, handles);
  for (unsigned i = 0; i < 8; i++) {
    assert_ok(export_memory(dut.memory + i, &own));
    assert_memory_equal(&own, &handles[i], sizeof own);
  }
}

/* I2, I10: one thread frees memory while another exports it: it is either exported first or not found. */
struct race {
  pthread_barrier_t barrier;
  unsigned rounds;
  unsigned char *p;
};

static const char *frees_or_exports(unsigned index, void *shared) {
  struct race *race = shared;
  for (unsigned i = 0; i < race->rounds; i++) {
    rill_ipc_handle handle;
    if (index == 0) REQUIRE_OK(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, BYTES, &race->p));
    (void)pthread_barrier_wait(&race->barrier);
    unsigned char *const p = race->p;
    (void)pthread_barrier_wait(&race->barrier);
    if (index == 0) {
      REQUIRE_OK(rill_free(p));
    } else {
      const rill_status status = rill_memory_ipc_export(p + index, &handle);
      REQUIRE(status == RILL_OK || status == RILL_ERROR_NOT_FOUND);
    }
    (void)pthread_barrier_wait(&race->barrier);
    REQUIRE(index != 0 || rill_memory_ipc_export(p, &handle) == RILL_ERROR_NOT_FOUND);
  }
  return NULL;
}

static void survives_frees_by_other_threads(void) {
  struct race race = { .rounds = scaled(300) };
  if (!shares_memory()) return;
  assert_int_equal(pthread_barrier_init(&race.barrier, NULL, 3), 0);
  run_threads(3, frees_or_exports, &race);
  const struct holdings before = holdings();
  run_threads(3, frees_or_exports, &race);
  assert_true(holdings().files <= before.files + race.rounds / 10);
  (void)pthread_barrier_destroy(&race.barrier);
}

TESTS_ON_EACH_DEVICE("rill_memory_ipc_export", TEST(refuses_null), TEST(refuses_pointers_that_are_not_allocations),
                     TEST(refuses_other_kinds), TEST(refuses_memory_of_pools), TEST(says_why_it_is_unsupported),
                     TEST(each_allocation_has_its_own_handle), TEST(leaves_the_memory_unchanged),
                     TEST(frees_and_allocates_again), TEST(serves_threads_at_once),
                     TEST(survives_frees_by_other_threads))
