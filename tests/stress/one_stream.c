/* Submits to one stream from many threads (T2): all work must run exactly once, and the work of each thread in its own
 * order. */
#include "support/testing.h"

#include "gate.rill.h"

enum { THREADS = 64 };

struct shared {
  rill_stream stream;
  unsigned calls;
};

static void count(void *user, rill_status status) {
  if (status == RILL_OK) (void)__atomic_add_fetch((unsigned *)user, 1, __ATOMIC_SEQ_CST);
}

/* Submits one operation of each kind. Cell 0 counts launches, and the thread's own cell holds the value that it wrote
 * last. */
static const char *submit(struct shared *shared, unsigned cell, uint32_t value) {
  const rill_launch launch = rill_launch_1d(1, 1);
  rill_event event;
  bool answer;
  REQUIRE_OK(rill_fill_async(shared->stream, dut.memory + cell, &value, sizeof value, 1));
  REQUIRE_OK(increment_launch(shared->stream, &launch, dut.memory));
  REQUIRE_OK(rill_stream_host_call(shared->stream, count, &shared->calls));
  REQUIRE_OK(rill_stream_record_new_event(shared->stream, NULL, &event));
  REQUIRE_OK(rill_stream_wait_event(shared->stream, event, 0));
  REQUIRE_OK(rill_event_is_ready(event, &answer));
  REQUIRE_OK(rill_event_release(event));
  REQUIRE_OK(rill_stream_is_complete(shared->stream, &answer));
  return NULL;
}

static const char *submits(unsigned index, void *user) {
  struct shared *shared = user;
  const unsigned rounds = scaled(200), cell = 1 + index % (CELLS - 1);
  for (unsigned i = 0; i < rounds; i++) {
    const char *failure = submit(shared, cell, index * 1000 + i);
    if (failure != NULL) return failure;
    if (i % 16 == 0) REQUIRE_OK(rill_stream_synchronize(shared->stream));
  }
  return NULL;
}

static void serves_many_threads(void) {
  struct shared shared = { new_stream("shared"), 0 };
  const unsigned rounds = scaled(200);
  run_threads(THREADS, submits, &shared);
  assert_ok(rill_copy_async(shared.stream, dut.host, dut.memory, CELLS * sizeof *dut.host));
  assert_completes(shared.stream);
  assert_int_equal(dut.host[0], THREADS * rounds);
  assert_int_equal(__atomic_load_n(&shared.calls, __ATOMIC_SEQ_CST), THREADS * rounds);
  for (unsigned cell = 1; cell < CELLS; cell++) {
    if (cell - 1 != (THREADS - 1) % (CELLS - 1)) { /* only one thread wrote it */
      assert_int_equal(dut.host[cell], (cell - 1) * 1000 + rounds - 1);
    }
  }
}

TESTS_ON_EACH_DEVICE("stress: one stream", TEST(serves_many_threads))
