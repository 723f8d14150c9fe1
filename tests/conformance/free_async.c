/* rill_free_async, and rill_free of memory of a pool */
#include "support/testing.h"

static rill_status call_with_stream(uint64_t id) { return rill_free_async((rill_stream){ id }, NULL); }

static void refuses_bad_handles(void) { refuses_bad_streams("rill_free_async", call_with_stream); }

/* M5 */
static void does_nothing_for_null(void) {
  spoil_last_error();
  assert_ok(rill_free_async(new_stream("stream"), NULL));
  assert_says("rill_device_count");
}

/* C1.6, M6, M7, M8 */
static void refuses_pointers_that_are_not_allocations(void) {
  rill_stream stream = new_stream("stream");
  int local = 0;
  char *p, *q;
  assert_fails(rill_free_async(stream, &local), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_free_async(stream, (void *)UINTPTR_MAX), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_free_async(stream, dut.memory), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_free_async(stream, dut.host), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_alloc_async(stream, 5000, (void **)&p));
  assert_ok(rill_alloc_async(stream, 5000, (void **)&q));
  assert_fails(rill_free_async(stream, p + 1), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_free_async(stream, p + 4999), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_free(p + 600), RILL_ERROR_INVALID_ARGUMENT);
  assert_ok(rill_free_async(stream, p));
  assert_fails(rill_free_async(stream, p), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_free(p), RILL_ERROR_NOT_FOUND);
  assert_ok(rill_free(q));
  assert_fails(rill_free(q), RILL_ERROR_NOT_FOUND);
  assert_fails(rill_free_async(stream, q), RILL_ERROR_NOT_FOUND);
}

static void refuses_streams_of_other_devices(void) {
  void *p;
  rill_stream stream = new_stream("stream");
  needs_second_device();
  assert_ok(rill_alloc_async(stream, 100, &p));
  assert_fails(rill_free_async(new_stream_on(dut.second, "there"), p), RILL_ERROR_WRONG_DEVICE);
  assert_ok(rill_free_async(stream, p));
}

static void refuses_streams_of_other_backends(void) {
  void *p;
  rill_stream stream = new_stream("stream");
  needs_foreign_device();
  assert_ok(rill_alloc_async(stream, 100, &p));
  assert_fails(rill_free_async(new_stream_on(dut.foreign, "there"), p), RILL_ERROR_WRONG_BACKEND);
  assert_ok(rill_free_async(stream, p));
}

/* M11, M19: memory freed on another stream is not reused on the first stream before the other stream reaches the free.
 */
static void frees_on_another_stream(void) {
  rill_stream stream = new_stream("stream"), other = new_stream("other");
  void *first, *second;
  assert_ok(rill_alloc_async(stream, 1 << 20, &first));
  struct gate *gate = gate_close(other);
  assert_ok(rill_free_async(other, first));
  assert_ok(rill_alloc_async(stream, 1 << 20, &second));
  assert_ptr_not_equal(first, second);
  gate_open(gate);
  assert_ok(rill_free_async(stream, second));
}

/* C4.6: memory can be freed after the stream of its allocation was released, and a stream can be released after a free
 * on it. */
static void streams_may_be_released(void) {
  rill_stream stream, other = new_stream("other");
  void *p;
  for (int i = 0; i < 20; i++) {
    assert_ok(rill_stream_create(dut.device, NULL, &stream));
    assert_ok(rill_alloc_async(stream, 300000, &p));
    const uint32_t value = 1;
    assert_ok(rill_fill_async(stream, p, &value, 4, 1000));
    if (i % 2 == 0) assert_ok(rill_free_async(stream, p));
    assert_ok(rill_stream_wait_stream(other, stream));
    assert_ok(rill_stream_release(stream));
    if (i % 4 == 1) assert_ok(rill_free_async(other, p));
    if (i % 4 == 3) assert_ok(rill_free(p));
  }
  assert_completes(other);
}

static const char *frees(unsigned index, void *shared) {
  void **pointers = shared;
  rill_stream stream;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  REQUIRE_OK(rill_free_async(stream, pointers[index]));
  REQUIRE_OK(rill_stream_release(stream));
  return NULL;
}

/* M22 */
static void serves_threads_that_did_not_allocate(void) {
  rill_stream stream = new_stream("stream");
  void *pointers[8];
  for (unsigned i = 0; i < 8; i++) assert_ok(rill_alloc_async(stream, 4096, &pointers[i]));
  run_threads(8, frees, pointers);
  for (unsigned i = 0; i < 8; i++) assert_fails(rill_free_async(stream, pointers[i]), RILL_ERROR_NOT_FOUND);
}

struct race {
  void *pointer;
  rill_stream stream;
  unsigned freed;
};

static const char *tries_to_free(unsigned index, void *shared) {
  struct race *race = shared;
  const rill_status status = index % 2 == 0 ? rill_free_async(race->stream, race->pointer) : rill_free(race->pointer);
  REQUIRE(status == RILL_OK || status == RILL_ERROR_NOT_FOUND);
  if (status == RILL_OK) (void)__atomic_add_fetch(&race->freed, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

/* M6 */
static void only_one_of_many_threads_frees(void) {
  struct race race = { .stream = new_stream("stream") };
  for (int i = 0; i < 20; i++) {
    race.freed = 0;
    assert_ok(rill_alloc_async(race.stream, 4096, &race.pointer));
    run_threads(4, tries_to_free, &race);
    assert_int_equal(race.freed, 1);
  }
}

/* C5.1: rill_free does not wait for a held stream, and the memory is not reused before the stream's work has finished.
 */
static void frees_while_a_stream_is_held(void) {
  rill_stream held = new_stream("held"), other = new_stream("other");
  rill_event event = new_event("later");
  void *p, *q;
  const uint32_t value = 5;
  assert_ok(rill_alloc_async(other, 1 << 20, &p));
  assert_ok(rill_stream_wait_event(held, event, 0));
  assert_ok(rill_fill_async(held, p, &value, 4, 100));
  assert_ok(rill_free(p));
  assert_ok(rill_alloc_async(other, 1 << 20, &q));
  assert_ptr_not_equal(p, q);
  assert_ok(rill_stream_record_event(other, event, 0));
  assert_completes(held);
  assert_ok(rill_free_async(other, q));
}

TESTS_ON_EACH_DEVICE("rill_free_async", TEST(refuses_bad_handles), TEST(does_nothing_for_null),
                     TEST(refuses_pointers_that_are_not_allocations), TEST(refuses_streams_of_other_devices),
                     TEST(refuses_streams_of_other_backends), TEST(frees_on_another_stream),
                     TEST(streams_may_be_released), TEST(serves_threads_that_did_not_allocate),
                     TEST(only_one_of_many_threads_frees), TEST(frees_while_a_stream_is_held))
