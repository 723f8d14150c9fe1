/* rill_stream_synchronize_for */
#include "support/testing.h"

#include <pthread.h>
#include <signal.h>

static rill_status call_with_stream(uint64_t id) {
  return rill_stream_synchronize_for((rill_stream){ id }, 1000 * MILLISECOND);
}

static void refuses_bad_handles(void) { refuses_bad_streams("rill_stream_synchronize_for", call_with_stream); }

static const uint64_t limits[] = { 0, 1, MILLISECOND, UINT64_C(1) << 63, UINT64_MAX - 1, UINT64_MAX };

static void returns_at_once_when_idle(void) {
  rill_stream stream = new_stream("stream");
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    assert_ok(rill_stream_synchronize_for(stream, limits[i]));
  }
}

/* C3.10: TIMEOUT, never too early, and the stream stays usable. */
static void times_out_no_earlier_than_asked(void) {
  const uint64_t pauses[] = { 0, 1, MILLISECOND, 20 * MILLISECOND };
  rill_stream stream = new_stream("slow one");
  struct gate *gate = gate_close(stream);
  write_cell(stream, 0, 4);
  for (size_t i = 0; i < sizeof pauses / sizeof *pauses; i++) {
    const uint64_t start = now_ns();
    assert_fails(rill_stream_synchronize_for(stream, pauses[i]), RILL_ERROR_TIMEOUT);
    assert_true(now_ns() - start >= pauses[i]);
    assert_names("slow one");
  }
  read_cell(stream, 0); /* still usable */
  gate_open(gate);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 4);
}

static const char *opens_after_a_while(unsigned index, void *shared) {
  (void)index;
  let_pass_ns(5 * MILLISECOND);
  gate_open(shared);
  return NULL;
}

/* Time limits that would overflow when added to the clock are treated as long limits. */
static void waits_with_every_long_limit(void) {
  for (size_t i = 3; i < sizeof limits / sizeof *limits; i++) {
    rill_stream stream = new_stream("stream");
    struct gate *gate = gate_close(stream);
    write_cell(stream, 0, 20 + (uint32_t)i);
    read_cell(stream, 0);
    struct background *opener = start_threads(1, opens_after_a_while, gate);
    assert_ok(rill_stream_synchronize_for(stream, limits[i]));
    assert_int_equal(dut.host[0], 20 + i);
    join_threads(opener);
  }
}

static _Atomic unsigned signals;

static void note_signal(int number) {
  (void)number;
  atomic_fetch_add(&signals, 1);
}

static const char *sends_signals(unsigned index, void *shared) {
  (void)index;
  const pthread_t waiting = *(const pthread_t *)shared;
  for (int i = 0; i < 20; i++) {
    REQUIRE(pthread_kill(waiting, SIGUSR1) == 0);
    let_pass_ns(MILLISECOND / 2);
  }
  return NULL;
}

/* C3.10, T13: a signal handler that runs during the wait neither ends it early nor makes it fail. */
static void signals_do_not_end_it(void) {
  const struct sigaction action = { .sa_handler = note_signal }; /* without SA_RESTART */
  struct sigaction before;
  assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
  atomic_store(&signals, 0);
  rill_stream stream = new_stream("stream");
  pthread_t self = pthread_self();
  struct gate *gate = gate_close(stream);
  struct background *sender = start_threads(1, sends_signals, &self);
  const uint64_t start = now_ns();
  assert_fails(rill_stream_synchronize_for(stream, 30 * MILLISECOND), RILL_ERROR_TIMEOUT);
  assert_true(now_ns() - start >= 30 * MILLISECOND);
  join_threads(sender);
  gate_open(gate);
  assert_completes(stream);
  assert_true(atomic_load(&signals) > 0);
  assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
}

TESTS_ON_EACH_DEVICE("rill_stream_synchronize_for", TEST(refuses_bad_handles), TEST(returns_at_once_when_idle),
                     TEST(times_out_no_earlier_than_asked), TEST(waits_with_every_long_limit),
                     TEST(signals_do_not_end_it))
