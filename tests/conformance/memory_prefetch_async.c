/* rill_memory_prefetch_async */
#include "managed.h"

static rill_status call_with_stream(uint64_t id) {
  return rill_memory_prefetch_async((rill_stream){ id }, dut.memory, 4);
}

static void refuses_bad_handles(void) { refuses_bad_streams("rill_memory_prefetch_async", call_with_stream); }

/* C1.6, M24 */
static void refuses_unmanaged_memory(void) {
  rill_stream stream = new_stream("stream");
  char local = 0;
  assert_fails(rill_memory_prefetch_async(stream, &local, 1), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_memory_prefetch_async(stream, NULL, 1), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_memory_prefetch_async(stream, dut.memory, 1), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_memory_prefetch_async(stream, dut.host, 1), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("managed");
}

/* C1.6, M24 */
static void refuses_ranges_past_the_end(void) {
  rill_stream stream = new_stream("stream");
  unsigned char *p = new_managed(0);
  assert_fails(rill_memory_prefetch_async(stream, p, MANAGED_BYTES + 1), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_memory_prefetch_async(stream, p + 1, MANAGED_BYTES), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_memory_prefetch_async(stream, p + 1, SIZE_MAX), RILL_ERROR_OUT_OF_RANGE);
  assert_ok(rill_free(p));
}

/* M24 */
static void does_nothing_for_zero_bytes(void) {
  rill_stream stream = new_stream("stream");
  assert_ok(rill_memory_prefetch_async(stream, NULL, 0));
  assert_ok(rill_memory_prefetch_async(stream, dut.memory, 0));
  assert_completes(stream);
}

static void refuses_another_backends_memory(void) {
  needs_foreign_device();
  unsigned char *p = new_managed(0);
  rill_stream foreign = new_stream_on(dut.foreign, "foreign");
  assert_fails(rill_memory_prefetch_async(foreign, p, 1), RILL_ERROR_WRONG_BACKEND);
  assert_ok(rill_free(p));
}

/* C5.4: prefetching a whole range or a part, in both directions, changes no byte. */
static void leaves_every_byte_unchanged(void) {
  rill_stream stream = new_stream("stream");
  unsigned char *p = new_managed(7);
  assert_ok_or_unsupported(rill_memory_prefetch_async(stream, p, MANAGED_BYTES));
  assert_ok_or_unsupported(rill_memory_prefetch_async(stream, p + 4097, 70001));
  const uint8_t value = 8;
  assert_ok(rill_fill_async(stream, p + 3, &value, 1, MANAGED_BYTES - 3));
  assert_completes(stream);
  for (size_t i = 0; i < MANAGED_BYTES; i++) assert_int_equal(p[i], i < 3 ? 7 : 8);
  assert_ok(rill_free(p));
}

/* C3.8: on a held stream the prefetch is queued, and submitted with the other work. */
static void waits_on_a_held_stream(void) {
  rill_stream held = new_stream("held"), other = new_stream("other");
  rill_event event = new_event("awaited");
  unsigned char *p = new_managed(3);
  if (rill_memory_prefetch_async(other, p, 1) == RILL_OK) {
    assert_ok(rill_stream_wait_event(held, event, 0));
    assert_ok(rill_memory_prefetch_async(held, p, MANAGED_BYTES));
    const uint8_t value = 4;
    assert_ok(rill_fill_async(held, p, &value, 1, MANAGED_BYTES));
    assert_false(is_complete(held));
    assert_ok(rill_stream_record_event(other, event, 0));
    assert_completes(held);
    for (size_t i = 0; i < MANAGED_BYTES; i++) assert_int_equal(p[i], 4);
  }
  assert_completes(other);
  assert_ok(rill_free(p));
}

/* C5.4: prefetches to the stream's device, not to the device for which the memory was allocated. */
static void prefetches_to_another_device(void) {
  needs_second_device();
  rill_stream there = new_stream_on(dut.second, "there");
  unsigned char *p = new_managed(5);
  assert_ok_or_unsupported(rill_memory_prefetch_async(there, p, MANAGED_BYTES));
  const uint8_t value = 6;
  assert_ok(rill_fill_async(there, p, &value, 1, MANAGED_BYTES));
  assert_completes(there);
  for (size_t i = 0; i < MANAGED_BYTES; i++) assert_int_equal(p[i], 6);
  assert_ok(rill_free(p));
}

TESTS_ON_EACH_DEVICE("rill_memory_prefetch_async", TEST(refuses_bad_handles), TEST(refuses_unmanaged_memory),
                     TEST(refuses_ranges_past_the_end), TEST(does_nothing_for_zero_bytes),
                     TEST(refuses_another_backends_memory), TEST(leaves_every_byte_unchanged),
                     TEST(waits_on_a_held_stream), TEST(prefetches_to_another_device))
