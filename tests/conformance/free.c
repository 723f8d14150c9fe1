/* rill_free */
#include "support/testing.h"

#include <malloc.h>

/* C5.1, M5 */
static void does_nothing_for_null(void) {
  spoil_last_error();
  assert_ok(rill_free(NULL));
  assert_says("rill_device_count");
}

/* C1.6, M7: refuses a pointer that is not a rill allocation. */
static void refuses_foreign_pointers(void) {
  int local = 0;
  void *heap = malloc(64);
  assert_fails(rill_free(&local), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_free(heap), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_free((void *)(uintptr_t)1), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_free((void *)UINTPTR_MAX), RILL_ERROR_NOT_FOUND);
  free(heap);
}

/* C1.6, M8: refuses a pointer inside an allocation, and a pointer to its end, which is outside. */
static void refuses_interior_pointers(void) {
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
static void refuses_a_second_free(void) {
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

/* C5.1, M9: memory is not freed before the work that uses it has finished; the call may block. */
static void waits_for_submitted_work(void) {
  const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED };
  enum { BYTES = 1 << 20 };
  for (uint32_t i = 0; i < 2; i++) {
    rill_stream stream = new_stream("stream");
    const uint32_t value = 60 + i;
    uint32_t *p;
    assert_ok(RILL_NEW(dut.device, kinds[i], BYTES / sizeof *p, &p));
    /* a driver may load its own code at the first fill of a size, and wait for running kernels to do so */
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

/* C5.1: memory of a pool is not reused before that. */
static void pool_memory_waits_for_submitted_work(void) {
  enum { BYTES = 1 << 20 };
  rill_stream stream = new_stream("stream"), other = new_stream("other");
  const uint32_t value = 61, none = 0;
  uint32_t *p = NULL, *next = NULL;
  assert_ok(rill_alloc_async(stream, BYTES, (void **)&p));
  assert_ok(rill_fill_async(stream, p, &value, sizeof value, BYTES / sizeof *p));
  assert_completes(stream);
  struct gate *gate = gate_close(stream);
  assert_ok(rill_copy_async(stream, dut.host, p, sizeof *p));
  struct background *opener = start_threads(1, opens_after_a_while, gate);
  assert_ok(rill_free(p));
  assert_ok(rill_alloc_async(other, BYTES, (void **)&next));
  assert_ok(rill_fill_async(other, next, &none, sizeof none, BYTES / sizeof *next));
  assert_completes(other);
  join_threads(opener);
  assert_completes(stream);
  assert_int_equal(dut.host[0], value);
  assert_ok(rill_free(next));
}

/* C3.8, C5.1: rill_free cannot wait for held work, so it defers the free of memory that the work may use. For each kind
 * of work that names the memory, the memory stays unchanged. */
static void memory_of_held_work_is_deferred(void) {
  const uint32_t value = 21;
  for (uint32_t kind = RILL_MEMORY_DEVICE; kind <= RILL_MEMORY_PINNED; kind++) {
    rill_stream held = new_stream("held"), other = new_stream("other");
    rill_event event = new_event("later");
    uint32_t *p, *q;
    assert_ok(RILL_NEW(dut.device, kind, CELLS, &p));
    assert_ok(RILL_NEW(dut.device, kind, CELLS, &q));
    assert_ok(rill_stream_wait_event(held, event, 0));
    assert_ok(rill_fill_async(held, p, &value, sizeof value, CELLS));
    assert_ok(rill_copy_async(held, q, p, CELLS * sizeof *p));
    assert_ok(rill_copy_async(held, dut.host, q + CELLS - 1, sizeof value));
    assert_ok(rill_free(p));
    assert_ok(rill_free(q));
    assert_fails(rill_free(p), RILL_ERROR_NOT_FOUND);
    assert_ok(rill_stream_record_event(other, event, 0));
    assert_completes(held);
    assert_int_equal(dut.host[0], value);
    dut.host[0] = 0;
  }
}

/* The free of pool memory is also deferred, and nothing else gets the memory meanwhile. */
static void pool_memory_of_held_work_is_deferred(void) {
  enum { BYTES = 1 << 20 };
  const uint32_t value = 22, wrong = 23;
  rill_stream held = new_stream("held"), other = new_stream("other");
  rill_event event = new_event("later");
  uint32_t *p, *again;
  assert_ok(rill_alloc_async(other, BYTES, (void **)&p));
  assert_ok(rill_fill_async(other, p, &value, sizeof value, BYTES / sizeof *p));
  assert_completes(other);
  assert_ok(rill_stream_wait_event(held, event, 0));
  assert_ok(rill_copy_async(held, dut.host, p, sizeof *p));
  assert_ok(rill_free(p));
  assert_fails(rill_free(p), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_alloc_async(other, BYTES, (void **)&again));
  assert_ok(rill_fill_async(other, again, &wrong, sizeof wrong, BYTES / sizeof *p));
  assert_completes(other);
  assert_ok(rill_stream_record_event(other, event, 0));
  assert_completes(held);
  assert_int_equal(dut.host[0], value);
  assert_ok(rill_free(again));
}

static void read_pinned(void *user, rill_status status) {
  const uint32_t *const *places = user;
  if (status == RILL_OK) *(uint32_t *)(uintptr_t)places[1] = *places[0];
}

/* A host call may use any memory that the host can access. */
static void memory_of_held_host_calls_is_deferred(void) {
  rill_stream held = new_stream("held"), other = new_stream("other");
  rill_event event = new_event("later");
  uint32_t *p;
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_PINNED, CELLS, &p));
  const uint32_t *places[2] = { p, dut.host };
  *p = 33;
  assert_ok(rill_stream_wait_event(held, event, 0));
  assert_ok(rill_stream_host_call(held, read_pinned, places));
  assert_ok(rill_free(p));
  assert_ok(rill_stream_record_event(other, event, 0));
  assert_completes(held);
  assert_int_equal(dut.host[0], 33);
}

/* Held streams of other devices can use pinned memory, and device memory as a peer's. */
static void held_work_of_other_devices_defers_it(void) {
  needs_second_device();
  const uint32_t value = 8;
  for (uint32_t kind = RILL_MEMORY_DEVICE; kind <= RILL_MEMORY_PINNED; kind++) {
    rill_stream held = new_stream_on(dut.second, "held there"), other = new_stream_on(dut.second, "other there");
    rill_event event = new_event_on(dut.second, "later");
    uint32_t *p, *there;
    assert_ok(RILL_NEW(dut.device, kind, CELLS, &p));
    assert_ok(RILL_NEW(dut.second, RILL_MEMORY_DEVICE, CELLS, &there));
    assert_ok(rill_fill_async(other, there, &value, sizeof value, CELLS));
    assert_completes(other);
    assert_ok(rill_stream_wait_event(held, event, 0));
    assert_ok(rill_copy_async(held, p, there, CELLS * sizeof *p));
    assert_ok(rill_copy_async(held, dut.host, p + CELLS - 1, sizeof value));
    assert_ok(rill_free(p));
    assert_ok(rill_stream_record_event(other, event, 0));
    assert_completes(held);
    assert_int_equal(dut.host[0], value);
    dut.host[0] = 0;
    assert_ok(rill_free(there));
  }
}

static void do_nothing(void *user, rill_status status) { (void)user, (void)status; }

/* C3.8: deferred memory is bounded. Past the bound the allocation fails, not the free, and the text says what to do.
 * Once the work is submitted, the memory is available again. */
static void deferred_memory_is_bounded(void) {
  rill_stream held = new_stream("held"), other = new_stream("other");
  rill_event event = new_event("later");
  uint64_t free_bytes = 0, total_bytes = 0;
  void *p = NULL;
  assert_ok(rill_device_get_memory(dut.device, &free_bytes, &total_bytes));
  const size_t bytes = (size_t)total_bytes / 8;
  /* these allocations use most of the host's memory, so MALLOC_PERTURB_ must not write it */
  (void)mallopt(M_PERTURB, 0);
  assert_ok(rill_stream_wait_event(held, event, 0));
  assert_ok(rill_stream_host_call(held, do_nothing, NULL)); /* a host call may use any memory */
  unsigned rounds = 0;
  rill_status status = RILL_OK;
  for (; rounds < 8 && status == RILL_OK; rounds++) {
    status = rill_alloc(dut.device, bytes, RILL_MEMORY_DEVICE, &p);
    if (status == RILL_OK) assert_ok(rill_free(p));
  }
  assert_int_equal(status, RILL_ERROR_OUT_OF_MEMORY);
  assert_null(p);
  assert_true(rounds <= 5);
  assert_says("held");
  assert_ok(rill_stream_record_event(other, event, 0));
  assert_completes(held);
  for (rounds = 0; rounds < 8; rounds++) {
    assert_ok(rill_alloc(dut.device, bytes, RILL_MEMORY_DEVICE, &p));
    assert_ok(rill_free(p));
  }
}

static const char *frees(unsigned index, void *shared) {
  void **pointers = shared;
  REQUIRE_OK(rill_free(pointers[index]));
  return NULL;
}

/* C5.1: any thread may free, and each pointer is freed once. */
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

static void only_one_of_many_threads_frees(void) {
  for (int i = 0; i < 20; i++) {
    struct race race = { NULL, 0 };
    assert_ok(rill_alloc(dut.device, 4096, RILL_MEMORY_PINNED, &race.pointer));
    run_threads(4, tries_to_free, &race);
    assert_int_equal(race.freed, 1);
  }
}

/* C5.1, C3.8: work of a held stream on another device may still use the memory. */
static void waits_for_held_work_of_another_device(void) {
  needs_second_device();
  rill_stream held = new_stream_on(dut.second, "held"), other = new_stream_on(dut.second, "other");
  const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED };
  for (size_t i = 0; i < 2; i++) {
    rill_event event = new_event_on(dut.second, "awaited");
    rill_stream here = new_stream("here");
    uint32_t *memory = NULL, *again = NULL;
    const uint32_t value = 77 + (uint32_t)i;
    assert_ok(rill_alloc(dut.device, 4096, kinds[i], (void **)&memory));
    assert_ok(rill_fill_async(here, memory, &value, sizeof value, 1024));
    assert_completes(here);
    assert_ok(rill_stream_wait_event(held, event, 0));
    assert_ok(rill_copy_async(held, dut.host, memory, 4));
    assert_ok(rill_free(memory));
    /* gets the old address if the memory was freed */
    assert_ok(rill_alloc(dut.device, 4096, kinds[i], (void **)&again));
    assert_ok(rill_fill_async(here, again, &(uint32_t){ 1 }, sizeof value, 1024));
    assert_completes(here);
    assert_ok(rill_stream_record_event(other, event, 0));
    assert_completes(held);
    assert_int_equal(dut.host[0], value);
    assert_ok(rill_free(again));
  }
}

TESTS_ON_EACH_DEVICE("rill_free", TEST(does_nothing_for_null), TEST(refuses_foreign_pointers),
                     TEST(refuses_interior_pointers), TEST(refuses_a_second_free), TEST(waits_for_submitted_work),
                     TEST(pool_memory_waits_for_submitted_work), TEST(serves_threads_that_did_not_allocate),
                     TEST(only_one_of_many_threads_frees), TEST(memory_of_held_work_is_deferred),
                     TEST(pool_memory_of_held_work_is_deferred), TEST(memory_of_held_host_calls_is_deferred),
                     TEST(held_work_of_other_devices_defers_it), TEST(deferred_memory_is_bounded),
                     TEST(waits_for_held_work_of_another_device))
