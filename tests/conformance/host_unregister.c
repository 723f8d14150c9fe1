/* rill_host_unregister */
#include "support/testing.h"

enum { BYTES = 50001 };

/* C1.6, M16 */
static void refuses_unregistered_memory(void) {
  char local = 0;
  void *heap = malloc(BYTES);
  assert_fails(rill_host_unregister(NULL), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_host_unregister(&local), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_host_unregister(heap), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_host_unregister((void *)UINTPTR_MAX), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_host_register(dut.device, heap, BYTES));
  assert_ok(rill_host_unregister(heap));
  assert_fails(rill_host_unregister(heap), RILL_ERROR_NOT_FOUND);
  free(heap);
}

/* C1.6, M16: refuses addresses inside a range and past its end. */
static void refuses_interior_pointers(void) {
  char *heap = malloc(BYTES);
  assert_ok(rill_host_register(dut.device, heap, BYTES - 1));
  assert_fails(rill_host_unregister(heap + 1), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_host_unregister(heap + BYTES - 2), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("first address");
  assert_fails(rill_host_unregister(heap + BYTES - 1), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_host_unregister(heap));
  free(heap);
}

/* M7: each function refuses memory of the other kind; the text names the right function, and nothing changes. */
static void allocations_and_registered_memory_are_distinguished(void) {
  const uint32_t kinds[] = { RILL_MEMORY_DEVICE, RILL_MEMORY_PINNED };
  for (size_t i = 0; i < 2; i++) {
    void *p = NULL;
    assert_ok(rill_alloc(dut.device, BYTES, kinds[i], &p));
    assert_fails(rill_host_unregister(p), RILL_ERROR_NOT_FOUND);
    assert_says("rill_free");
    assert_ok(rill_free(p));
  }
  void *heap = malloc(BYTES);
  assert_ok(rill_host_register(dut.device, heap, BYTES));
  assert_fails(rill_free(heap), RILL_ERROR_NOT_FOUND);
  assert_says("rill_host_unregister");
  assert_ok(rill_host_unregister(heap));
  free(heap);
}

static const char *opens_after_a_while(unsigned index, void *shared) {
  (void)index;
  let_pass_ns(10 * MILLISECOND);
  gate_open(shared);
  return NULL;
}

/* The call waits for work that uses the memory. */
static void waits_for_submitted_work(void) {
  rill_stream stream = new_stream("stream");
  unsigned char *heap = calloc(1, BYTES), *there = NULL;
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, BYTES, &there));
  assert_ok(rill_host_register(dut.device, heap, BYTES));
  const uint8_t value = 9;
  assert_ok(rill_fill_async(stream, there, &value, 1, BYTES));
  assert_completes(stream);
  struct gate *gate = gate_close(stream);
  assert_ok(rill_copy_async(stream, heap, there, BYTES));
  struct background *opener = start_threads(1, opens_after_a_while, gate);
  assert_ok(rill_host_unregister(heap));
  for (size_t i = 0; i < BYTES; i++) assert_int_equal(heap[i], 9);
  join_threads(opener);
  assert_completes(stream);
  assert_ok(rill_free(there));
  free(heap);
}

struct release {
  rill_stream other;
  rill_event event;
  _Atomic bool done;
};

static const char *records_after_a_while(unsigned index, void *shared) {
  struct release *release = shared;
  (void)index;
  let_pass_ns(10 * MILLISECOND);
  atomic_store(&release->done, true);
  REQUIRE_OK(rill_stream_record_event(release->other, release->event, 0));
  return NULL;
}

static void do_nothing(void *user, rill_status status) { (void)user, (void)status; }

/* C3.8: the call also waits for held work that uses the memory: copies in both directions, copies of rows and copies
 * within the memory, fills, a recorded use, and a host call, which may use any memory. */
static void waits_for_held_work(void) {
  unsigned char *heap = calloc(1, BYTES), *there = NULL;
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, BYTES, &there));
  for (int kind = 0; kind < 7; kind++) {
    const uint8_t value = (uint8_t)(9 + kind);
    struct release release = { new_stream("other"), new_event("awaited"), false };
    rill_stream held = new_stream("held");
    assert_ok(rill_host_register(dut.device, heap, BYTES));
    assert_ok(rill_fill_async(release.other, there, &value, 1, BYTES));
    assert_completes(release.other);
    memset(heap, value, BYTES);
    assert_ok(rill_stream_wait_event(held, release.event, 0));
    if (kind == 0) assert_ok(rill_copy_async(held, heap, there, BYTES));
    if (kind == 1) assert_ok(rill_copy_async(held, there, heap + 1, BYTES - 1));
    if (kind == 2) assert_ok(rill_copy_2d_async(held, heap + 7, 100, there, 50, 50, 300));
    if (kind == 3) assert_ok(rill_fill_2d_async(held, heap + 11, 100, &value, 1, 50, 300));
    if (kind == 4) assert_ok(rill_copy_async(held, heap, heap + BYTES / 2, BYTES / 2));
    if (kind == 5) assert_ok(rill_memory_record_use(heap, held));
    if (kind == 6) assert_ok(rill_stream_host_call(held, do_nothing, NULL));
    struct background *recorder = start_threads(1, records_after_a_while, &release);
    assert_ok(rill_host_unregister(heap));
    assert_true(atomic_load(&release.done));
    assert_true(is_complete(held));
    for (size_t i = 0; i < BYTES; i++) assert_int_equal(heap[i], value);
    join_threads(recorder);
  }
  assert_ok(rill_free(there));
  free(heap);
}

/* The call does not wait for held work that uses other memory; the same thread records the event afterwards. */
static void does_not_wait_for_held_work_on_other_memory(void) {
  rill_stream held = new_stream("held"), other = new_stream("other");
  rill_event event = new_event("awaited");
  void *heap = malloc(BYTES);
  assert_ok(rill_host_register(dut.device, heap, BYTES));
  assert_ok(rill_stream_wait_event(held, event, 0));
  write_cell(held, 0, 5);
  read_cell(held, 0);
  assert_ok(rill_host_unregister(heap));
  assert_false(is_complete(held));
  assert_ok(rill_stream_record_event(other, event, 0));
  assert_completes(held);
  assert_int_equal(dut.host[0], 5);
  free(heap);
}

/* After the call the memory is pageable, so a source is read at the call. */
static void memory_becomes_pageable_again(void) {
  rill_stream stream = new_stream("stream");
  uint32_t *heap = malloc(BYTES);
  assert_ok(rill_host_register(dut.device, heap, BYTES));
  assert_ok(rill_host_unregister(heap));
  heap[0] = 1;
  struct gate *gate = gate_close_for(stream, 100 * MILLISECOND);
  assert_ok(rill_copy_async(stream, dut.memory, heap, 4));
  heap[0] = 2;
  gate_open(gate);
  read_cell(stream, 0);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 1);
  free(heap);
}

TESTS_ON_EACH_DEVICE("rill_host_unregister", TEST(refuses_unregistered_memory), TEST(refuses_interior_pointers),
                     TEST(allocations_and_registered_memory_are_distinguished), TEST(waits_for_submitted_work),
                     TEST(waits_for_held_work), TEST(does_not_wait_for_held_work_on_other_memory),
                     TEST(memory_becomes_pageable_again))
