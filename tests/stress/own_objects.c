/* Many threads create, use and destroy objects of their own (T1, T4). */
#include "support/testing.h"

enum { THREADS = 8 };

static void count(void *user, rill_status status) {
  if (status == RILL_OK) (void)__atomic_add_fetch((unsigned *)user, 1, __ATOMIC_SEQ_CST);
}

/* Creates, uses and releases two streams, two events and a host call, and checks the value of the cell. */
static const char *one_life(unsigned cell, uint32_t value) {
  rill_stream first, second;
  rill_event event, timing;
  unsigned calls = 0;
  bool ready;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &first));
  REQUIRE_OK(
      rill_stream_create(dut.device, RILL_STREAM_OPTIONS(.label = "storm", .priority = RILL_PRIORITY_HIGH), &second));
  REQUIRE_OK(rill_event_create(dut.device, NULL, &event));
  REQUIRE_OK(rill_event_create(dut.device, RILL_EVENT_OPTIONS(.timing = true), &timing));
  REQUIRE_OK(rill_fill_async(first, dut.memory + cell, &value, sizeof value, 1));
  REQUIRE_OK(rill_stream_record_event(first, event, 0));
  REQUIRE_OK(rill_stream_record_event(first, timing, 0));
  REQUIRE_OK(rill_stream_wait_event(second, event, 0));
  REQUIRE_OK(rill_event_release(event));
  REQUIRE_OK(rill_copy_async(second, dut.host + cell, dut.memory + cell, sizeof value));
  REQUIRE_OK(rill_stream_host_call(second, count, &calls));
  REQUIRE_OK(rill_stream_wait_stream(first, second));
  REQUIRE_OK(rill_event_is_ready(timing, &ready));
  REQUIRE_OK(rill_stream_release(second));
  REQUIRE_OK(rill_event_synchronize(timing));
  REQUIRE_OK(rill_event_release(timing));
  REQUIRE_OK(rill_stream_synchronize(first));
  REQUIRE_OK(rill_stream_release(first));
  REQUIRE(dut.host[cell] == value);
  REQUIRE(__atomic_load_n(&calls, __ATOMIC_SEQ_CST) == 1);
  return NULL;
}

static const char *storms(unsigned index, void *shared) {
  (void)shared;
  for (uint32_t i = 1; i <= scaled(1000); i++) {
    const char *failure = one_life(index, index * 100000 + i);
    if (failure != NULL) return failure;
  }
  return NULL;
}

static void threads_do_not_affect_each_other(void) { run_threads(THREADS, storms, NULL); }

static const char *allocates(unsigned index, void *shared) {
  (void)shared;
  for (unsigned i = 0; i < scaled(100); i++) {
    rill_stream stream;
    uint32_t *memory = NULL, *host = NULL, pattern = index * 1000 + i;
    const size_t count = 1000 + 37 * i;
    REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
    REQUIRE_OK(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, count, &memory));
    REQUIRE_OK(RILL_NEW(dut.device, RILL_MEMORY_PINNED, count, &host));
    REQUIRE_OK(rill_fill_async(stream, memory, &pattern, sizeof pattern, count));
    REQUIRE_OK(rill_copy_async(stream, host, memory, count * sizeof *host));
    REQUIRE_OK(rill_stream_synchronize(stream));
    REQUIRE(host[0] == pattern && host[count - 1] == pattern);
    REQUIRE_OK(rill_free(memory));
    REQUIRE_OK(rill_free(host));
    REQUIRE_OK(rill_stream_release(stream));
  }
  return NULL;
}

/* M22, C23 of the edge cases */
static void threads_allocate_and_copy(void) { run_threads(THREADS, allocates, NULL); }

TESTS_ON_EACH_DEVICE("stress: own objects", TEST(threads_do_not_affect_each_other), TEST(threads_allocate_and_copy))
