/* rill_pool_alloc_async: limits, and reuse of memory by other streams */
#include "support/testing.h"

static rill_status call_with_pool(uint64_t id) {
  void *out = &out;
  const rill_status status = rill_pool_alloc_async((rill_pool){ id }, new_stream("stream"), 16, &out);
  assert_null(out);
  return status;
}

static rill_pool sample;

static rill_status call_with_stream(uint64_t id) {
  void *out = &out;
  const rill_status status = rill_pool_alloc_async(sample, (rill_stream){ id }, 16, &out);
  assert_null(out);
  return status;
}

static rill_pool new_pool(uint64_t max_size) {
  rill_pool pool;
  assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.max_size = max_size, .label = "small"), &pool));
  return pool;
}

static void refuses_bad_pool_handles(void) { refuses_bad_pools("rill_pool_alloc_async", call_with_pool); }

static void refuses_bad_stream_handles(void) {
  sample = new_pool(0);
  refuses_bad_streams("rill_pool_alloc_async", call_with_stream);
  assert_ok(rill_pool_release(sample));
}

static void refuses_null_out(void) {
  rill_pool pool = new_pool(0);
  assert_fails(rill_pool_alloc_async(pool, new_stream("stream"), 1, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_pool_release(pool));
}

/* M11 */
static void refuses_streams_of_other_devices(void) {
  void *out = &out;
  needs_second_device();
  rill_pool pool = new_pool(0);
  assert_fails(rill_pool_alloc_async(pool, new_stream_on(dut.second, "there"), 1, &out), RILL_ERROR_WRONG_DEVICE);
  assert_null(out);
  assert_ok(rill_pool_release(pool));
}

/* C5.2: the limit counts memory allocated from the driver. */
static void respects_its_limit(void) {
  needs_plain_memory();
  enum { MIB = 1 << 20 };
  rill_pool pool = new_pool(4 * MIB);
  rill_pool_info info = RILL_POOL_INFO_INIT;
  rill_stream stream = new_stream("stream");
  void *pointers[4], *out = &out;
  for (int i = 0; i < 4; i++) assert_ok(rill_pool_alloc_async(pool, stream, MIB, &pointers[i]));
  assert_fails(rill_pool_alloc_async(pool, stream, MIB, &out), RILL_ERROR_OUT_OF_MEMORY);
  assert_null(out);
  assert_says("4194304");
  assert_says("small");
  assert_ok(rill_pool_get_info(pool, &info));
  assert_int_equal(info.reserved_peak, 4 * MIB);
  for (int i = 0; i < 4; i++) assert_ok(rill_free_async(stream, pointers[i]));
  assert_ok(rill_pool_alloc_async(pool, stream, MIB, &pointers[0]));
  assert_ok(rill_free_async(stream, pointers[0]));
  assert_ok(rill_pool_release(pool));
}

static const uint32_t old_value = 1, new_value = 2;

/* M11: if nothing else fits, the other stream waits for the free; the wait is on the device, not on the host. */
static void waits_for_memory_of_another_stream(void) {
  needs_plain_memory();
  enum { BYTES = 1 << 20 };
  rill_pool pool = new_pool(BYTES);
  rill_stream first = new_stream("first"), second = new_stream("second");
  uint32_t *p, *q;
  assert_ok(rill_pool_alloc_async(pool, first, BYTES, (void **)&p));
  struct gate *gate = gate_close(first);
  assert_ok(rill_fill_async(first, p, &old_value, 4, BYTES / 4));
  assert_ok(rill_copy_async(first, dut.host, p + BYTES / 4 - 1, 4));
  assert_ok(rill_free_async(first, p));
  assert_ok(rill_pool_alloc_async(pool, second, BYTES, (void **)&q));
  assert_ptr_equal(p, q);
  assert_ok(rill_fill_async(second, q, &new_value, 4, BYTES / 4));
  assert_false(is_complete(second));
  gate_open(gate);
  assert_ok(rill_copy_async(second, dut.host + 1, q + BYTES / 4 - 1, 4));
  assert_completes(second);
  assert_int_equal(dut.host[0], old_value);
  assert_int_equal(dut.host[1], new_value);
  assert_ok(rill_free_async(second, q));
  assert_ok(rill_pool_release(pool));
}

/* M11: it does not wait for work of the first stream after its free. */
static void does_not_wait_for_later_work_of_the_other_stream(void) {
  enum { BYTES = 1 << 20 };
  rill_pool pool = new_pool(BYTES);
  rill_stream first = new_stream("first"), second = new_stream("second");
  void *p, *q;
  assert_ok(rill_pool_alloc_async(pool, first, BYTES, &p));
  assert_ok(rill_fill_async(first, p, &old_value, 4, BYTES / 4));
  assert_ok(rill_free_async(first, p));
  struct gate *gate = gate_close(first);
  assert_ok(rill_pool_alloc_async(pool, second, BYTES, &q));
  assert_ok(rill_fill_async(second, q, &new_value, 4, BYTES / 4));
  assert_completes(second);
  assert_false(is_complete(first));
  gate_open(gate);
  assert_ok(rill_free_async(second, q));
  assert_ok(rill_pool_release(pool));
}

/* A stream takes over memory and frees it on a third stream that has not waited: the work of the first stream must
 * still be complete before the memory is reused. */
static void a_free_on_a_third_stream_remembers_the_first(void) {
  needs_plain_memory();
  enum { BYTES = 1 << 20 };
  rill_pool pool = new_pool(BYTES);
  rill_stream first = new_stream("first"), second = new_stream("second"), third = new_stream("third");
  uint32_t *p, *q, *r;
  assert_ok(rill_pool_alloc_async(pool, first, BYTES, (void **)&p));
  struct gate *gate = gate_close(first);
  assert_ok(rill_fill_async(first, p, &old_value, 4, BYTES / 4));
  assert_ok(rill_free_async(first, p));
  assert_ok(rill_pool_alloc_async(pool, second, BYTES, (void **)&q));
  assert_ok(rill_free_async(third, q));
  assert_ok(rill_pool_alloc_async(pool, third, BYTES, (void **)&r));
  assert_ok(rill_fill_async(third, r, &new_value, 4, BYTES / 4));
  assert_false(is_complete(third));
  gate_open(gate);
  assert_ok(rill_copy_async(third, dut.host, r, 4));
  assert_completes(third);
  assert_int_equal(dut.host[0], new_value);
  assert_ok(rill_free_async(third, r));
  assert_ok(rill_pool_release(pool));
}

/* M11: after the work before the free is known to be complete, any stream gets the memory without waiting. */
static void complete_memory_serves_any_stream(void) {
  needs_plain_memory();
  enum { BYTES = 1 << 20 };
  rill_pool pool = new_pool(BYTES);
  rill_stream first = new_stream("first"), second = new_stream("second");
  void *p, *q;
  assert_ok(rill_pool_alloc_async(pool, first, BYTES, &p));
  assert_ok(rill_fill_async(first, p, &old_value, 4, BYTES / 4));
  assert_ok(rill_free_async(first, p));
  assert_completes(first);
  struct gate *gate = gate_close(first);
  assert_ok(rill_pool_alloc_async(pool, second, BYTES, &q));
  assert_ptr_equal(p, q);
  assert_ok(rill_fill_async(second, q, &new_value, 4, BYTES / 4));
  assert_completes(second);
  gate_open(gate);
  assert_ok(rill_free_async(second, q));
  assert_ok(rill_pool_release(pool));
}

/* M11: a stream takes over memory from another stream and frees it. If there is no other memory, the same stream gets
 * it again immediately, even with unfinished work. */
static void memory_of_another_stream_becomes_its_own(void) {
  needs_plain_memory();
  enum { BYTES = 2 << 20 };
  rill_stream first = new_stream("first"), second = new_stream("second");
  rill_pool pool;
  void *p, *q, *again;
  assert_ok(rill_pool_create(dut.device, RILL_POOL_OPTIONS(.max_size = BYTES), &pool));
  assert_ok(rill_pool_alloc_async(pool, first, BYTES, &p));
  assert_ok(rill_free_async(first, p));
  assert_completes(first);
  assert_ok(rill_pool_alloc_async(pool, second, BYTES, &q));
  assert_ptr_equal(p, q);
  struct gate *gate = gate_close(second);
  for (int i = 0; i < 3; i++) {
    assert_ok(rill_free_async(second, q));
    assert_ok(rill_pool_alloc_async(pool, second, BYTES, &again));
    assert_ptr_equal(again, q);
  }
  gate_open(gate);
  assert_ok(rill_free_async(second, q));
  assert_ok(rill_pool_release(pool));
}

/* A stream does not wait for memory that a held stream freed, because the thread that releases the held stream may
 * itself be waiting for this stream. */
static void does_not_wait_for_held_memory(void) {
  needs_plain_memory();
  enum { BYTES = 1 << 20 };
  rill_pool pool = new_pool(BYTES);
  rill_stream held = new_stream("held"), other = new_stream("other");
  rill_event event = new_event("later");
  void *p, *out = &out;
  assert_ok(rill_stream_wait_event(held, event, 0));
  assert_ok(rill_pool_alloc_async(pool, held, BYTES, &p));
  assert_ok(rill_fill_async(held, p, &old_value, 4, BYTES / 4));
  assert_ok(rill_free_async(held, p));
  assert_fails(rill_pool_alloc_async(pool, other, BYTES, &out), RILL_ERROR_OUT_OF_MEMORY);
  assert_null(out);
  assert_ok(rill_stream_record_event(other, event, 0));
  assert_completes(held);
  assert_ok(rill_pool_alloc_async(pool, other, BYTES, &p));
  assert_ok(rill_free_async(other, p));
  assert_ok(rill_pool_release(pool));
}

/* Memory freed on a released stream can be allocated by later streams. */
static void memory_outlives_streams(void) {
  enum { BYTES = 1 << 20 };
  rill_pool pool = new_pool(BYTES);
  for (unsigned i = 0; i < 40; i++) {
    rill_stream stream;
    void *p;
    assert_ok(rill_stream_create(dut.device, NULL, &stream));
    assert_ok(rill_pool_alloc_async(pool, stream, BYTES, &p));
    assert_ok(rill_fill_async(stream, p, &old_value, 4, BYTES / 4));
    assert_ok(rill_free_async(stream, p));
    assert_ok(rill_stream_release(stream));
  }
  assert_ok(rill_pool_release(pool));
}

TESTS_ON_EACH_DEVICE("rill_pool_alloc_async", TEST(refuses_bad_pool_handles), TEST(refuses_bad_stream_handles),
                     TEST(refuses_null_out), TEST(refuses_streams_of_other_devices), TEST(respects_its_limit),
                     TEST(waits_for_memory_of_another_stream), TEST(does_not_wait_for_later_work_of_the_other_stream),
                     TEST(a_free_on_a_third_stream_remembers_the_first), TEST(complete_memory_serves_any_stream),
                     TEST(memory_of_another_stream_becomes_its_own), TEST(does_not_wait_for_held_memory),
                     TEST(memory_outlives_streams))
