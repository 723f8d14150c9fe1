/* Many streams and threads wait for marks of one stream in random order, some with a time limit (C3.7, C4.3). No wait
 * may end before its mark is reached, and none may be lost. */
#include "support/testing.h"

enum { MARKS = 400, STREAMS = 300, THREADS = 8, ROUNDS = 6 };

static rill_event marks[MARKS];
static _Atomic unsigned passed;   /* number of marks that the source stream has passed */
static _Atomic unsigned reported; /* number of stream waits that have ended */
static _Atomic unsigned too_soon;

static void pass(void *user, rill_status status) {
  (void)user;
  if (status == RILL_OK) (void)atomic_fetch_add(&passed, 1);
}

/* Checks a wait that has ended. `user` is the number of its mark, counted from 1. */
static void look(void *user, rill_status status) {
  if (status != RILL_OK || atomic_load(&passed) < (uintptr_t)user) (void)atomic_fetch_add(&too_soon, 1);
  (void)atomic_fetch_add(&reported, 1);
}

static uint32_t next_random(uint32_t *state) { return (*state = *state * 1664525 + 1013904223) >> 8; }

/* While the gate is closed every wait must time out; afterwards each wait must end with its mark. */
static const char *waits_for_a_while(unsigned index, void *shared) {
  const _Atomic bool *const opened = shared;
  uint32_t state = index + 1;
  for (unsigned i = 0; i < scaled(300) || !atomic_load(opened); i++) {
    const unsigned mark = next_random(&state) % MARKS;
    const bool was_open = atomic_load(opened);
    const rill_status status = rill_event_synchronize_for(marks[mark], next_random(&state) % 50000);
    REQUIRE(status == RILL_OK || status == RILL_ERROR_TIMEOUT);
    if (status == RILL_OK) REQUIRE(atomic_load(&passed) > mark);
    if (was_open && i % 8 == 0) {
      REQUIRE_OK(rill_event_synchronize(marks[mark]));
      REQUIRE(atomic_load(&passed) > mark);
    }
  }
  return NULL;
}

static void marks_are_reached_in_their_order(void) {
  static rill_stream streams[STREAMS];
  const rill_stream source = new_stream("source");
  uint32_t state = 1;
  for (unsigned i = 0; i < MARKS; i++) marks[i] = new_event("mark");
  for (unsigned i = 0; i < STREAMS; i++) streams[i] = new_stream("waiting");
  for (unsigned round = 0; round < ROUNDS; round++) {
    _Atomic bool opened = false;
    unsigned waits = 0;
    atomic_store(&passed, 0);
    atomic_store(&reported, 0);
    struct gate *const gate = gate_close(source);
    for (unsigned i = 0; i < MARKS; i++) {
      assert_ok(rill_stream_host_call(source, pass, NULL));
      assert_ok(rill_stream_record_event(source, marks[i], 0));
    }
    struct background *const threads = start_threads(THREADS, waits_for_a_while, &opened);
    for (unsigned i = 0; i < 2 * STREAMS; i++, waits++) {
      const uintptr_t mark = next_random(&state) % MARKS;
      assert_ok(rill_stream_wait_event(streams[i % STREAMS], marks[mark], 0));
      assert_ok(rill_stream_host_call(streams[i % STREAMS], look, (void *)(mark + 1)));
    }
    assert_int_equal(atomic_load(&reported), 0);
    gate_open(gate);
    atomic_store(&opened, true);
    join_threads(threads);
    assert_ok(rill_device_synchronize(dut.device));
    assert_int_equal(atomic_load(&reported), waits);
    assert_int_equal(atomic_load(&too_soon), 0);
  }
}

TESTS_ON_EACH_DEVICE("stress: marks", TEST(marks_are_reached_in_their_order))
