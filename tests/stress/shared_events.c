/* Events and cached events that many threads record, wait for and ask (E35, C3.9, C4.2). */
#include "support/testing.h"

enum { THREADS = 16 };

static const char *records_and_asks(unsigned index, void *shared) {
  const rill_event event = *(const rill_event *)shared;
  rill_stream stream;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &stream));
  for (unsigned i = 0; i < scaled(1500); i++) {
    bool ready;
    REQUIRE_OK(rill_stream_record_event(stream, event, 0));
    REQUIRE_OK(rill_event_is_ready(event, &ready));
    if (index % 2 == 0) REQUIRE_OK(rill_stream_wait_event(stream, event, 0));
    if (i % 50 == index) REQUIRE_OK(rill_event_synchronize(event));
  }
  REQUIRE_OK(rill_stream_release(stream));
  return NULL;
}

static void one_event_serves_many_threads(void) {
  rill_event event = new_event("shared"), timing = new_timing_event("shared");
  run_threads(THREADS, records_and_asks, &event);
  assert_becomes_ready(event);
  run_threads(THREADS, records_and_asks, &timing);
  assert_becomes_ready(timing);
}

/* Each thread writes to the shared stream, and waits for it with a stream of its own, through one cached event. */
static const char *waits_for_stream(unsigned index, void *shared) {
  const rill_stream common = *(const rill_stream *)shared;
  rill_stream own;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &own));
  for (uint32_t i = 1; i <= scaled(600); i++) {
    REQUIRE_OK(rill_fill_async(common, dut.memory + index, &i, sizeof i, 1));
    REQUIRE_OK(rill_stream_wait_stream(own, common));
    REQUIRE_OK(rill_copy_async(own, dut.host + index, dut.memory + index, sizeof i));
    REQUIRE_OK(rill_stream_synchronize(own));
    REQUIRE(dut.host[index] == i);
  }
  REQUIRE_OK(rill_stream_release(own));
  return NULL;
}

static void many_threads_wait_for_one_stream(void) {
  rill_stream common = new_stream("common");
  run_threads(THREADS, waits_for_stream, &common);
  assert_completes(common);
}

/* The same through the default stream. */
static const char *waits_for_device(unsigned index, void *shared) {
  (void)shared;
  rill_stream own, standard;
  REQUIRE_OK(rill_stream_create(dut.device, NULL, &own));
  REQUIRE_OK(rill_device_default_stream(dut.device, &standard));
  for (uint32_t i = 1; i <= scaled(600); i++) {
    REQUIRE_OK(rill_fill_async(standard, dut.memory + index, &i, sizeof i, 1));
    REQUIRE_OK(rill_stream_wait_device(own, dut.device));
    REQUIRE_OK(rill_copy_async(own, dut.host + index, dut.memory + index, sizeof i));
    REQUIRE_OK(rill_stream_synchronize(own));
    REQUIRE(dut.host[index] == i);
  }
  REQUIRE_OK(rill_stream_release(own));
  return NULL;
}

static void many_threads_wait_for_the_device(void) { run_threads(THREADS, waits_for_device, NULL); }

TESTS_ON_EACH_DEVICE("stress: shared events", TEST(one_event_serves_many_threads),
                     TEST(many_threads_wait_for_one_stream), TEST(many_threads_wait_for_the_device))
