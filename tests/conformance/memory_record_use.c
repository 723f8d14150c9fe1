/* rill_memory_record_use */
#include "support/testing.h"

#include <malloc.h>

static rill_status call_with_stream(uint64_t id) { return rill_memory_record_use(dut.memory, (rill_stream){ id }); }

static void refuses_bad_handles(void) { refuses_bad_streams("rill_memory_record_use", call_with_stream); }

/* C1.6 */
static void refuses_pointers_that_are_not_allocations(void) {
  rill_stream stream = new_stream("stream");
  int local = 0;
  char *p;
  assert_fails(rill_memory_record_use(NULL, stream), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_memory_record_use(&local, stream), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_memory_record_use(dut.memory + 1, stream), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_alloc_async(stream, 5000, (void **)&p));
  assert_fails(rill_memory_record_use(p + 4, stream), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_free_async(stream, p));
  assert_fails(rill_memory_record_use(p, stream), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_memory_record_use(dut.memory, stream));
}

static void refuses_streams_of_other_backends(void) {
  needs_foreign_device();
  assert_fails(rill_memory_record_use(dut.memory, new_stream_on(dut.foreign, "there")), RILL_ERROR_WRONG_BACKEND);
}

/* C5.2, M11: until the use is complete no stream gets the memory, not even the stream of the free; afterwards any
 * stream can get it. */
static void a_recorded_use_prevents_reuse(void) {
  enum { BYTES = 1 << 20 };
  rill_stream stream = new_stream("stream"), user = new_stream("user");
  rill_pool pool;
  void *first, *second, *third;
  assert_ok(rill_pool_create(dut.device, NULL, &pool));
  assert_ok(rill_pool_alloc_async(pool, stream, BYTES, &first));
  struct gate *gate = gate_close(user);
  assert_ok(rill_memory_record_use(first, user));
  assert_ok(rill_free_async(stream, first));
  assert_ok(rill_pool_alloc_async(pool, stream, BYTES, &second));
  assert_ptr_not_equal(first, second);
  gate_open(gate);
  assert_completes(user);
  assert_ok(rill_pool_alloc_async(pool, stream, BYTES, &third));
  assert_ok(rill_free_async(stream, second));
  assert_ok(rill_free_async(stream, third));
  assert_completes(stream);
  assert_ok(rill_pool_trim(pool, 0));
  rill_pool_info info = RILL_POOL_INFO_INIT;
  assert_ok(rill_pool_get_info(pool, &info));
  assert_int_equal(info.reserved, 0);
  assert_ok(rill_pool_release(pool));
}

/* If nothing else fits, the stream waits for the use. */
static void waits_for_a_recorded_use_under_a_limit(void) {
  needs_plain_memory();
  enum { BYTES = 1 << 20 };
  rill_stream stream = new_stream("stream"), user = new_stream("user");
  rill_pool pool;
  uint32_t *first, *second;
  const uint32_t one = 1, two = 2;
  assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.max_size = BYTES), &pool));
  assert_ok(rill_pool_alloc_async(pool, stream, BYTES, (void **)&first));
  struct gate *gate = gate_close(user);
  assert_ok(rill_fill_async(user, first, &one, 4, BYTES / 4));
  assert_ok(rill_copy_async(user, dut.host, first, 4));
  assert_ok(rill_memory_record_use(first, user));
  assert_ok(rill_free_async(stream, first));
  assert_ok(rill_pool_alloc_async(pool, stream, BYTES, (void **)&second));
  assert_ptr_equal(first, second);
  assert_ok(rill_fill_async(stream, second, &two, 4, BYTES / 4));
  assert_fails(rill_stream_synchronize_for(stream, 10 * MILLISECOND), RILL_ERROR_TIMEOUT);
  gate_open(gate);
  assert_completes(stream);
  assert_int_equal(dut.host[0], one);
  assert_ok(rill_free_async(stream, second));
  assert_ok(rill_pool_release(pool));
}

/* C3.8: a use on a held stream. */
static void a_recorded_use_on_a_held_stream_counts(void) {
  enum { BYTES = 1 << 20 };
  rill_stream stream = new_stream("stream"), held = new_stream("held");
  rill_event event = new_event("later");
  void *first, *second;
  const uint32_t one = 1;
  assert_ok(rill_alloc_async(stream, BYTES, &first));
  assert_ok(rill_stream_wait_event(held, event, 0));
  assert_ok(rill_fill_async(held, first, &one, 4, BYTES / 4));
  assert_ok(rill_memory_record_use(first, held));
  assert_ok(rill_free_async(stream, first));
  assert_ok(rill_alloc_async(stream, BYTES, &second));
  assert_ptr_not_equal(first, second);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_completes(held);
  assert_ok(rill_free_async(stream, second));
}

static const char *opens_after_a_while(unsigned index, void *shared) {
  (void)index;
  let_pass_ns(10 * MILLISECOND);
  gate_open(shared);
  return NULL;
}

/* C5.1: for memory from rill_alloc, work of its own device needs no recorded use. */
static void rill_free_waits_for_its_own_device(void) {
  rill_stream user = new_stream("user");
  void *p;
  assert_ok(rill_alloc(dut.device, 4096, RILL_MEMORY_DEVICE, &p));
  struct gate *gate = gate_close(user);
  write_cell(user, 0, 1);
  assert_ok(rill_memory_record_use(p, user));
  struct background *opener = start_threads(1, opens_after_a_while, gate);
  assert_ok(rill_free(p));
  assert_true(is_complete(user));
  join_threads(opener);
}

/* A driver need not know of work on another device, which uses the memory as a peer. Each later use is waited for. */
static void rill_free_waits_for_uses_on_other_devices(void) {
  needs_second_device();
  for (uint32_t kind = RILL_MEMORY_DEVICE; kind <= RILL_MEMORY_PINNED; kind++) {
    rill_stream user = new_stream_on(dut.second, "there"), idle = new_stream_on(dut.second, "idle there");
    void *p;
    assert_ok(rill_alloc(dut.device, 4096, kind, &p));
    assert_ok(rill_memory_record_use(p, user));
    assert_completes(user);
    struct gate *gate = gate_close(user);
    for (int i = 0; i < 3; i++) assert_ok(rill_memory_record_use(p, i == 1 ? idle : user));
    struct background *opener = start_threads(1, opens_after_a_while, gate);
    assert_ok(rill_free(p));
    assert_true(is_complete(user));
    join_threads(opener);
  }
}

/* C3.8: rill_free cannot wait for a use on a held stream, so the free is deferred. */
static void rill_free_defers_for_held_uses(void) {
  rill_stream held = new_stream("held"), other = new_stream("other");
  rill_event event = new_event("later");
  uint32_t *p;
  const uint32_t value = 3;
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, CELLS, &p));
  assert_ok(rill_stream_wait_event(held, event, 0));
  assert_ok(rill_fill_async(held, p, &value, sizeof value, CELLS));
  assert_ok(rill_copy_async(held, dut.host, p + CELLS - 1, sizeof value));
  assert_ok(rill_memory_record_use(p, held));
  assert_ok(rill_free(p));
  assert_fails(rill_memory_record_use(p, held), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_stream_record_event(other, event, 0));
  assert_completes(held);
  assert_int_equal(dut.host[0], value);
}

/* M11: only the last use of each stream is kept. This test makes no call that waits for the device, because such a call
 * might release the kept uses. A fake driver may queue all records, which take a few words each; an event is larger. */
static void repeated_uses_do_not_pile_up(void) {
  enum { STREAMS = 3, FEW = 1000, MANY = 20000, RECORD = 256 };
  rill_stream stream = new_stream("stream"), users[STREAMS];
  size_t before = 0;
  void *p;
  for (int i = 0; i < STREAMS; i++) users[i] = new_stream("user");
  assert_ok(rill_alloc_async(stream, 4096, &p));
  for (unsigned i = 0; i < MANY; i++) {
    if (i == FEW) before = mallinfo2().uordblks;
    assert_ok(rill_memory_record_use(p, users[i % STREAMS]));
  }
  const size_t after = mallinfo2().uordblks;
  if (after > before + (size_t)MANY * RECORD) fail_msg("%zu bytes of the heap in use, %zu later", before, after);
  assert_ok(rill_free_async(stream, p));
}

struct shared_memory {
  void *pooled, *plain;
};

static const char *notes(unsigned index, void *shared) {
  struct shared_memory *memory = shared;
  rill_stream stream;
  (void)index;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  for (unsigned i = 0; i < scaled(300); i++) {
    REQUIRE_OK(rill_memory_record_use(memory->pooled, stream));
    REQUIRE_OK(rill_memory_record_use(memory->plain, stream));
  }
  REQUIRE_OK(rill_stream_release(stream));
  return NULL;
}

/* C1.7 */
static void serves_many_threads(void) {
  rill_stream stream = new_stream("stream");
  struct shared_memory memory;
  assert_ok(rill_alloc_async(stream, 4096, &memory.pooled));
  assert_ok(rill_alloc(dut.device, 4096, RILL_MEMORY_DEVICE, &memory.plain));
  run_threads(4, notes, &memory);
  assert_ok(rill_free_async(stream, memory.pooled));
  assert_ok(rill_free(memory.plain));
}

TESTS_ON_EACH_DEVICE("rill_memory_record_use", TEST(refuses_bad_handles),
                     TEST(refuses_pointers_that_are_not_allocations), TEST(refuses_streams_of_other_backends),
                     TEST(a_recorded_use_prevents_reuse), TEST(waits_for_a_recorded_use_under_a_limit),
                     TEST(a_recorded_use_on_a_held_stream_counts), TEST(rill_free_waits_for_its_own_device),
                     TEST(rill_free_waits_for_uses_on_other_devices), TEST(rill_free_defers_for_held_uses),
                     TEST(repeated_uses_do_not_pile_up), TEST(serves_many_threads))
