/* rill_stream_wait_event for an event that was never recorded: the stream is held (C3.8). */
#include "support/testing.h"

#include "launch.rill.h"

static bool is_recorded(rill_event event) {
  bool recorded = false;
  assert_ok(rill_event_is_recorded(event, &recorded));
  return recorded;
}

static void record(rill_stream stream, rill_event event) { assert_ok(rill_stream_record_event(stream, event, 0)); }

static void wait_for(rill_stream stream, rill_event event) { assert_ok(rill_stream_wait_event(stream, event, 0)); }

/* A stream that waits for an event which was never recorded, and a second stream on which it can be recorded. */
struct scene {
  rill_stream held, other;
  rill_event event;
};

static struct scene hold(void) {
  struct scene s = { new_stream("held"), new_stream("other"), new_event("awaited") };
  wait_for(s.held, s.event);
  return s;
}

/* ---- holding and releasing ---- */

/* C3.8: later work waits until the event has been recorded ... */
static void holds_until_the_record(void) {
  struct scene s = hold();
  write_cell(s.held, 0, 1);
  read_cell(s.held, 0);
  assert_false(is_complete(s.held));
  assert_fails(rill_stream_synchronize_for(s.held, 5 * MILLISECOND), RILL_ERROR_TIMEOUT);
  assert_int_equal(__atomic_load_n(dut.host, __ATOMIC_SEQ_CST), 0);
  record(s.other, s.event);
  assert_completes(s.held);
  assert_int_equal(dut.host[0], 1);
}

/* ... and completed. */
static void holds_until_the_recorded_point_is_complete(void) {
  struct scene s = hold();
  read_cell(s.held, 0);
  struct gate *gate = gate_close(s.other);
  write_cell(s.other, 0, 2);
  record(s.other, s.event);
  assert_false(is_complete(s.held));
  gate_open(gate);
  assert_completes(s.held);
  assert_int_equal(dut.host[0], 2);
}

/* C3.11: an earlier query that saw the stream idle does not hide held work. */
static void an_earlier_idle_query_hides_nothing(void) {
  rill_stream held = new_stream("held"), other = new_stream("other");
  for (int i = 0; i < 3; i++) {
    rill_event event = new_event("awaited");
    write_cell(held, 0, 1);
    assert_completes(held);
    assert_true(is_complete(held));
    wait_for(held, event);
    assert_false(is_complete(held));
    write_cell(held, 0, 2);
    assert_false(is_complete(held));
    record(other, event);
    assert_completes(held);
  }
}

static void leaves_earlier_work_alone(void) {
  rill_stream stream = new_stream("stream");
  rill_event before = new_event("before");
  write_cell(stream, 0, 3);
  read_cell(stream, 0);
  record(stream, before);
  wait_for(stream, new_event("never recorded"));
  assert_becomes_ready(before);
  assert_int_equal(dut.host[0], 3);
  assert_false(is_complete(stream));
}

/* The wait refers to the first record; later records do not change it. */
static void is_bound_to_the_first_record(void) {
  struct scene s = hold();
  rill_stream busy = new_stream("busy");
  record(s.other, s.event);
  struct gate *gate = gate_close(busy);
  record(busy, s.event);
  assert_completes(s.held);
  gate_open(gate);
}

static void holds_many_streams(void) {
  enum { STREAMS = 32 };
  rill_stream held[STREAMS];
  rill_event event = new_event("awaited");
  for (unsigned i = 0; i < STREAMS; i++) {
    held[i] = new_stream("held");
    wait_for(held[i], event);
    write_cell(held[i], i, 100 + i);
    read_cell(held[i], i);
  }
  for (unsigned i = 0; i < STREAMS; i++) assert_false(is_complete(held[i]));
  record(new_stream("other"), event);
  for (unsigned i = 0; i < STREAMS; i++) {
    assert_completes(held[i]);
    assert_int_equal(dut.host[i], 100 + i);
  }
}

/* Each wait holds the work after it. */
static void holds_for_several_events_in_turn(void) {
  rill_stream stream = new_stream("held"), other = new_stream("other");
  rill_event first = new_event("first"), second = new_event("second"), between = new_event("between");
  wait_for(stream, first);
  write_cell(stream, 0, 1);
  record(stream, between);
  wait_for(stream, second);
  write_cell(stream, 0, 2);
  read_cell(stream, 0);
  record(other, second); /* recorded out of order: the wait still comes after the first one */
  assert_false(is_ready(between));
  record(other, first);
  assert_becomes_ready(between);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 2);
}

/* C3.8: an event that is created signaled does not hold a stream. */
static void signaled_events_start_a_ring_of_buffers(void) {
  enum { BUFFERS = 3, ROUNDS = 10 };
  rill_stream upload = new_stream("upload"), compute = new_stream("compute");
  rill_event is_free[BUFFERS], is_full[BUFFERS];
  for (unsigned i = 0; i < BUFFERS; i++) {
    assert_ok(rill_event_create(dut.device, RILL_EVENT_OPTIONS(.signaled = true), &is_free[i]));
    keep_event_until_end(is_free[i]);
    is_full[i] = new_event("full");
  }
  for (unsigned i = 0; i < ROUNDS; i++) {
    const unsigned b = i % BUFFERS;
    wait_for(upload, is_free[b]);
    write_cell(upload, b, i);
    record(upload, is_full[b]);
    wait_for(compute, is_full[b]);
    assert_ok(rill_copy_async(compute, dut.host + i, dut.memory + b, sizeof *dut.host));
    record(compute, is_free[b]);
  }
  assert_completes(compute);
  for (unsigned i = 0; i < ROUNDS; i++) assert_int_equal(dut.host[i], i);
}

/* ---- copied at submission ---- */

static void take_status(void *user, rill_status status) { *(rill_status *)user = status; }

/* C3.8: arguments, patterns and pageable sources are read at the call, and all work runs in order. */
static void copies_its_inputs_at_the_call(void) {
  struct scene s = hold();
  rill_kernel kernel = new_kernel(&launch_bundle, "store");
  rill_status status = RILL_ERROR_INTERNAL;
  uint32_t pattern = 11, value = 12, *out = dut.memory + 1;
  uint32_t *pageable = malloc(sizeof *pageable);
  *pageable = 13;
  rill_launch launch = rill_launch_1d(1, 1);
  rill_arg args[] = { { &value, sizeof value }, { &out, sizeof out } };
  assert_ok(rill_fill_async(s.held, dut.memory, &pattern, sizeof pattern, 1));
  assert_ok(rill_stream_launch(s.held, kernel, &launch, args, 2));
  assert_ok(rill_copy_async(s.held, dut.memory + 2, pageable, sizeof *pageable));
  assert_ok(rill_stream_host_call(s.held, take_status, &status));
  assert_ok(rill_copy_async(s.held, dut.host, dut.memory, 3 * sizeof *dut.host));
  pattern = value = *pageable = 99;
  out = NULL;
  memset(args, 0, sizeof args);
  memset(&launch, 0, sizeof launch);
  assert_ok(rill_kernel_release(kernel));
  record(s.other, s.event);
  assert_completes(s.held);
  assert_int_equal(dut.host[0], 11);
  assert_int_equal(dut.host[1], 12);
  assert_int_equal(dut.host[2], 13);
  assert_int_equal(status, RILL_OK);
  free(pageable);
}

/* C3.8: held work is validated at submission. */
static void refuses_misuse_at_the_call(void) {
  struct scene s = hold();
  const uint32_t value = 1;
  const rill_launch empty = RILL_LAUNCH_INIT, one = rill_launch_1d(1, 1);
  rill_kernel kernel = new_kernel(&launch_bundle, "store");
  assert_fails(rill_fill_async(s.held, dut.memory, &value, 3, 1), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_copy_async(s.held, dut.host, dut.memory + CELLS - 1, 8), RILL_ERROR_OUT_OF_RANGE);
  assert_fails(rill_stream_launch(s.held, kernel, &empty, RILL_ARGS(1u, dut.memory)), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_launch(s.held, kernel, &one, RILL_ARGS(1u)), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_host_call(s.held, NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_stream_wait_event(s.held, RILL_NULL_EVENT, 0), RILL_ERROR_INVALID_HANDLE);
  record(s.other, s.event);
  assert_completes(s.held);
}

/* C3.8: the queue is bounded; past the bound the call returns OUT_OF_MEMORY, and queued work still runs. */
static void queues_a_bounded_number_of_bytes(void) {
  enum { PIECE = 4 << 20, PIECES = 256 };
  struct scene s = hold();
  unsigned char *source = calloc(1, PIECE), *there = NULL;
  assert_ok(RILL_NEW(dut.device, RILL_MEMORY_DEVICE, PIECE, &there));
  write_cell(s.held, 0, 5);
  unsigned taken = 0;
  rill_status status = RILL_OK;
  while (taken < PIECES && (status = rill_copy_async(s.held, there, source, PIECE)) == RILL_OK) taken++;
  assert_true(taken >= 1);
  assert_int_equal(status, RILL_ERROR_OUT_OF_MEMORY);
  record(s.other, s.event);
  read_cell(s.held, 0);
  assert_completes(s.held);
  assert_int_equal(dut.host[0], 5);
  assert_ok(rill_free(there));
  free(source);
}

/* C3.4 */
static void the_native_handle_is_not_ready(void) {
  struct scene s = hold();
  uintptr_t native = 1;
  assert_fails(rill_stream_native(s.held, &native), RILL_ERROR_NOT_READY);
  assert_int_equal(native, 0);
  record(s.other, s.event);
  assert_completes(s.held);
  assert_ok(rill_stream_native(s.held, &native));
}

/* C3.8: a stream whose native handle was returned cannot be held. */
static void refuses_streams_whose_native_handle_was_given_out(void) {
  if (!dut.gpu) return;
  rill_stream stream = new_stream("stream"), imported;
  uintptr_t native;
  assert_ok(rill_stream_native(stream, &native));
  assert_fails(rill_stream_wait_event(stream, new_event("awaited"), 0), RILL_ERROR_NOT_RECORDED);
  assert_says("awaited");
  assert_ok(rill_stream_import(dut.device, 0, NULL, &imported));
  keep_stream_until_end(imported);
  assert_fails(rill_stream_wait_event(imported, new_event("awaited"), 0), RILL_ERROR_NOT_RECORDED);
  assert_completes(stream);
}

/* ---- records on held streams ---- */

/* C3.8: the event is recorded but not ready; waits refer to this record and hold their streams in turn. */
static void a_record_on_a_held_stream_counts(void) {
  struct scene s = hold();
  rill_stream third = new_stream("third");
  rill_event second = new_event("second");
  float ms;
  write_cell(s.held, 0, 6);
  record(s.held, second);
  assert_true(is_recorded(second));
  assert_false(is_ready(second));
  assert_fails(rill_event_synchronize_for(second, MILLISECOND), RILL_ERROR_TIMEOUT);
  assert_fails(rill_event_elapsed_time(second, second, &ms), RILL_ERROR_TIMING_DISABLED);
  assert_ok(rill_stream_wait_event(third, second, RILL_WAIT_MUST_BE_RECORDED));
  read_cell(third, 0);
  assert_false(is_complete(third));
  record(s.other, s.event);
  assert_completes(third);
  assert_becomes_ready(second);
  assert_int_equal(dut.host[0], 6);
}

/* C3.8: chains, of events and of rill_stream_wait_stream. */
static void holding_spreads_through_chains(void) {
  enum { LINKS = 16 };
  struct scene s = hold();
  rill_stream last = s.held;
  write_cell(s.held, 0, 7);
  for (unsigned i = 1; i < LINKS; i++) {
    rill_stream stream = new_stream("link");
    if (i % 2 == 0) {
      assert_ok(rill_stream_wait_stream(stream, last));
    } else {
      rill_event event = new_event("link");
      record(last, event);
      wait_for(stream, event);
    }
    assert_ok(rill_copy_async(stream, dut.memory + i, dut.memory + i - 1, sizeof(uint32_t)));
    last = stream;
  }
  read_cell(last, LINKS - 1);
  assert_false(is_complete(last));
  record(s.other, s.event);
  assert_completes(last);
  assert_int_equal(dut.host[LINKS - 1], 7);
}

/* W8: a queued wait still refers to its record when the event is recorded elsewhere. */
static void a_wait_keeps_its_held_point(void) {
  struct scene s = hold();
  rill_stream third = new_stream("third");
  rill_event second = new_event("second");
  write_cell(s.held, 0, 8);
  record(s.held, second);
  wait_for(third, second);
  read_cell(third, 0);
  record(s.other, second);
  assert_becomes_ready(second);
  assert_false(is_complete(third));
  record(s.other, s.event);
  assert_completes(third);
  assert_int_equal(dut.host[0], 8);
}

static void a_stream_may_wait_for_its_own_held_record(void) {
  struct scene s = hold();
  rill_event second = new_event("second");
  record(s.held, second);
  wait_for(s.held, second);
  write_cell(s.held, 0, 9);
  read_cell(s.held, 0);
  record(s.other, s.event);
  assert_completes(s.held);
  assert_int_equal(dut.host[0], 9);
}

/* ---- cycles ---- */

/* C3.8: the record is refused immediately, with the names in the text; the event can then be recorded on another
 * stream. */
static void refuses_a_record_after_its_own_wait(void) {
  struct scene s = hold();
  assert_fails(rill_stream_record_event(s.held, s.event, 0), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("held");
  assert_says("awaited");
  assert_false(is_recorded(s.event));
  record(s.other, s.event);
  assert_completes(s.held);
}

static void refuses_longer_cycles(void) {
  struct scene s = hold();
  rill_stream second = new_stream("second stream"), third = new_stream("third stream");
  rill_event passed_on = new_event("passed on");
  record(s.held, passed_on);
  wait_for(second, passed_on);
  assert_ok(rill_stream_wait_stream(third, second));
  assert_fails(rill_stream_record_event(third, s.event, 0), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("held");
  assert_says("second stream");
  assert_says("third stream");
  record(s.other, s.event);
  assert_completes(third);
}

/* ---- events that go unrecorded ---- */

/* C3.8: held work fails, host calls receive the status, one synchronize reports it, and the stream stays usable. */
static void fails_when_the_event_is_released_unrecorded(void) {
  struct scene s = hold();
  rill_status reported = RILL_OK;
  write_cell(s.held, 0, 1);
  assert_ok(rill_stream_host_call(s.held, take_status, &reported));
  assert_ok(rill_event_release(s.event));
  assert_fails(rill_stream_synchronize(s.held), RILL_ERROR_NOT_RECORDED);
  assert_int_equal(reported, RILL_ERROR_NOT_RECORDED);
  assert_ok(rill_stream_synchronize(s.held));
  write_cell(s.held, 1, 2);
  read_cell(s.held, 1);
  read_cell(s.held, 0);
  assert_completes(s.held);
  assert_int_equal(dut.host[1], 2);
  assert_int_equal(dut.host[0], 0);
}

/* Releasing a reference that is not the last has no effect. */
static void a_reference_keeps_the_stream_held(void) {
  struct scene s = hold();
  assert_ok(rill_event_retain(s.event));
  assert_ok(rill_event_release(s.event));
  assert_false(is_complete(s.held));
  record(s.other, s.event);
  assert_completes(s.held);
}

/* C3.7: once it has been recorded, the event may be released. */
static void the_event_may_be_released_after_its_record(void) {
  struct scene s = hold();
  struct gate *gate = gate_close(s.other);
  record(s.other, s.event);
  assert_ok(rill_event_release(s.event));
  assert_false(is_complete(s.held));
  gate_open(gate);
  assert_completes(s.held);
}

/* ---- the host ---- */

static const char *synchronizes_stream(unsigned index, void *shared) {
  (void)index;
  REQUIRE_OK(rill_stream_synchronize(*(const rill_stream *)shared));
  REQUIRE(__atomic_load_n(dut.host, __ATOMIC_SEQ_CST) == 4);
  return NULL;
}

static const char *synchronizes_device(unsigned index, void *shared) {
  (void)index, (void)shared;
  REQUIRE_OK(rill_device_synchronize(dut.device));
  REQUIRE(__atomic_load_n(dut.host, __ATOMIC_SEQ_CST) == 4);
  return NULL;
}

/* C3.8, C2.5: host waits block until the held work has been submitted and is complete. */
static void host_waits_block(void) {
  const thread_body bodies[] = { synchronizes_stream, synchronizes_device };
  for (int i = 0; i < 2; i++) {
    struct scene s = hold();
    dut.host[0] = 0;
    write_cell(s.held, 0, 4);
    read_cell(s.held, 0);
    struct background *threads = start_threads(2, bodies[i], &s.held);
    let_pass_ns(2 * MILLISECOND); /* gives the waits time to block */
    record(s.other, s.event);
    join_threads(threads);
  }
}

/* C1.3: submitted work still completes. */
static void the_held_stream_may_be_released(void) {
  struct scene s = hold();
  rill_event done = new_event("done");
  write_cell(s.held, 0, 5);
  read_cell(s.held, 0);
  record(s.held, done);
  assert_ok(rill_stream_release(s.held));
  assert_false(is_ready(done));
  record(s.other, s.event);
  assert_becomes_ready(done);
  assert_int_equal(dut.host[0], 5);
}

struct race {
  rill_stream waiter, recorder;
  rill_event event;
};

static const char *waits_or_records(unsigned index, void *shared) {
  const struct race *race = shared;
  if (index == 0) {
    REQUIRE_OK(rill_stream_wait_event(race->waiter, race->event, 0));
  } else {
    REQUIRE_OK(rill_stream_record_event(race->recorder, race->event, 0));
  }
  return NULL;
}

/* C3.8: a wait races with the first record; in either order the stream is not left held. */
static void no_wait_is_lost_in_a_race(void) {
  struct race race = { new_stream("waiter"), new_stream("recorder"), RILL_NULL_EVENT };
  for (unsigned i = 0; i < scaled(300); i++) {
    assert_ok(rill_event_create(dut.device, NULL, &race.event));
    run_threads(2, waits_or_records, &race);
    write_cell(race.waiter, 0, i);
    assert_completes(race.waiter);
    assert_ok(rill_event_release(race.event));
  }
}

/* W6 */
static void holds_for_an_event_of_another_device(void) {
  needs_second_device();
  rill_stream held = new_stream("held");
  rill_event event = new_event_on(dut.second, "there");
  wait_for(held, event);
  write_cell(held, 0, 6);
  read_cell(held, 0);
  assert_false(is_complete(held));
  record(new_stream_on(dut.second, "there"), event);
  assert_completes(held);
  assert_int_equal(dut.host[0], 6);
}

TESTS_ON_EACH_DEVICE("held streams", TEST(holds_until_the_record), TEST(holds_until_the_recorded_point_is_complete),
                     TEST(an_earlier_idle_query_hides_nothing), TEST(leaves_earlier_work_alone),
                     TEST(is_bound_to_the_first_record), TEST(holds_many_streams),
                     TEST(holds_for_several_events_in_turn), TEST(signaled_events_start_a_ring_of_buffers),
                     TEST(copies_its_inputs_at_the_call), TEST(refuses_misuse_at_the_call),
                     TEST(queues_a_bounded_number_of_bytes), TEST(the_native_handle_is_not_ready),
                     TEST(refuses_streams_whose_native_handle_was_given_out), TEST(a_record_on_a_held_stream_counts),
                     TEST(holding_spreads_through_chains), TEST(a_wait_keeps_its_held_point),
                     TEST(a_stream_may_wait_for_its_own_held_record), TEST(refuses_a_record_after_its_own_wait),
                     TEST(refuses_longer_cycles), TEST(fails_when_the_event_is_released_unrecorded),
                     TEST(a_reference_keeps_the_stream_held), TEST(the_event_may_be_released_after_its_record),
                     TEST(host_waits_block), TEST(the_held_stream_may_be_released), TEST(no_wait_is_lost_in_a_race),
                     TEST(holds_for_an_event_of_another_device))
