/* rill_event_then */
#include "support/testing.h"

#include <pthread.h>

struct notified {
  _Atomic uint32_t count;
  rill_status status;
  pthread_t thread;
  rill_stream stream; /* stream that the function uses, unless it is null */
  uint32_t order[64];
};

static void note(void *user, rill_status status) {
  struct notified *const notified = user;
  notified->status = status;
  notified->thread = pthread_self();
  (void)atomic_fetch_add(&notified->count, 1);
}

static void await(struct notified *notified, uint32_t count) {
  const uint64_t until = now_ns() + TIMEOUT_NS;
  while (atomic_load(&notified->count) < count && now_ns() < until) let_pass_ns(10000);
  assert_int_equal(atomic_load(&notified->count), count);
}

static rill_status call_with_event(uint64_t id) { return rill_event_then((rill_event){ id }, note, NULL); }

static void refuses_bad_handles(void) { refuses_bad_events("rill_event_then", call_with_event); }

static void refuses_null_fn(void) {
  assert_fails(rill_event_then(new_event("event"), NULL, NULL), RILL_ERROR_INVALID_ARGUMENT);
}

/* C4.7: the function runs on a thread of rill, never inside the call. */
static void calls_on_another_thread(void) {
  struct notified notified = { .status = RILL_ERROR_INTERNAL };
  const rill_stream stream = new_stream("stream");
  const rill_event event = new_event("event");
  assert_ok(rill_event_then(event, note, &notified)); /* an event that was never recorded */
  await(&notified, 1);
  assert_int_equal(notified.status, RILL_OK);
  assert_false(pthread_equal(notified.thread, pthread_self()));
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_event_then(event, note, &notified));
  assert_int_equal(atomic_load(&notified.count), 1);
  gate_open(gate);
  await(&notified, 2);
  assert_true(is_ready(event));
  assert_ok(rill_event_then(event, note, &notified));
  await(&notified, 3);
  assert_false(pthread_equal(notified.thread, pthread_self()));
}

/* Submits work, waits for it, and requests another notification. */
static void use_rill(void *user, rill_status status) {
  struct notified *const notified = user;
  rill_event event = RILL_NULL_EVENT;
  notified->status = status;
  if (notified->status == RILL_OK) notified->status = rill_stream_record_new_event(notified->stream, NULL, &event);
  if (notified->status == RILL_OK) notified->status = rill_stream_synchronize(notified->stream);
  if (notified->status == RILL_OK) notified->status = rill_event_then(event, note, notified);
  (void)rill_event_release(event);
  (void)atomic_fetch_add(&notified->count, 1);
}

/* C4.7 */
static void may_call_rill(void) {
  const rill_stream stream = new_stream("stream");
  struct notified notified = { .status = RILL_ERROR_INTERNAL, .stream = new_stream("other") };
  const rill_event event = new_event("event");
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_event_then(event, use_rill, &notified));
  await(&notified, 2);
  assert_int_equal(notified.status, RILL_OK);
}

struct place {
  struct notified *notified;
  uint32_t number;
};

static void note_order(void *user, rill_status status) {
  const struct place *const place = user;
  place->notified->status = status;
  place->notified->order[atomic_load(&place->notified->count)] = place->number;
  (void)atomic_fetch_add(&place->notified->count, 1);
}

/* C4.7: the functions for one stream are called in the order of the records. */
static void calls_in_order(void) {
  struct notified notified = { .status = RILL_OK };
  struct place places[64];
  const rill_stream stream = new_stream("stream");
  struct gate *gate = gate_close(stream);
  for (uint32_t i = 0; i < 64; i++) {
    rill_event event;
    places[i] = (struct place){ &notified, i };
    assert_ok(rill_stream_record_new_event(stream, NULL, &event));
    assert_ok(rill_event_then(event, note_order, &places[i]));
    assert_ok(rill_event_release(event));
  }
  gate_open(gate);
  await(&notified, 64);
  for (uint32_t i = 0; i < 64; i++) assert_int_equal(notified.order[i], i);
}

/* C4.7, C3.8 */
static void says_why_a_record_failed(void) {
  struct notified notified = { .status = RILL_OK };
  const rill_stream held = new_stream("held");
  const rill_event event = new_event("event");
  rill_event never;
  assert_ok(rill_event_create(dut.device, NULL, &never));
  assert_ok(rill_stream_wait_event(held, never, 0));
  assert_ok(rill_stream_record_event(held, event, 0));
  assert_ok(rill_event_then(event, note, &notified));
  assert_ok(rill_event_release(never));
  await(&notified, 1);
  assert_int_equal(notified.status, RILL_ERROR_NOT_RECORDED);
  assert_fails(rill_stream_synchronize(held), RILL_ERROR_NOT_RECORDED);
}

/* C4.7 */
static void refuses_a_captured_point(void) {
  struct notified notified = { .status = RILL_OK };
  const rill_stream stream = new_stream("stream");
  const rill_event event = new_event("event");
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_fails(rill_event_then(event, note, &notified), RILL_ERROR_NOT_RECORDED);
  assert_ok(rill_stream_capture_abort(stream));
  assert_int_equal(atomic_load(&notified.count), 0);
}

TESTS_ON_EACH_DEVICE("rill_event_then", TEST(refuses_bad_handles), TEST(refuses_null_fn), TEST(calls_on_another_thread),
                     TEST(may_call_rill), TEST(calls_in_order), TEST(says_why_a_record_failed),
                     TEST(refuses_a_captured_point))
