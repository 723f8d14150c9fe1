/* A call of rill leaves the thread's native state as it found it (C1.7): after every step of the tour, and after steps
 * that fail, with nothing current, with another device current, and with a foreign context current. */
#include "tour.h"

static struct native_state before;

static void check_state(const char *step, const char *when) {
  const struct native_state after = native_state();
  if (after.current != before.current) {
    fail_msg("%s%s: the current context or device was %p, and is %p", step, when, (void *)before.current,
             (void *)after.current);
  }
  /* The owner's error may have been overwritten, as by any vendor call; rill's own error does not remain. */
  if (after.last_error != before.last_error && after.last_error != 0) {
    fail_msg("%s%s: the thread's last error was %d, and is %d", step, when, before.last_error, after.last_error);
  }
  if (after.capture_mode != before.capture_mode) {
    fail_msg("%s%s: the thread's capture mode was %d, and is %d", step, when, before.capture_mode, after.capture_mode);
  }
}

static void walk_guarded(void) {
  struct tour tour = { .ms = 0 };
  before = native_state();
  for (size_t i = 0; i < step_count; i++) {
    if (!step_applies(&steps[i])) continue;
    const rill_status status = steps[i].run(&tour);
    if (status != RILL_OK) fail_msg("%s: %s", steps[i].name, rill_last_error_text());
    check_state(steps[i].name, "");
  }
}

/* The steps of an empty tour fail: the handles are null.  Native failures are in fail_nth.c. */
static void walk_failing(void) {
  struct tour tour = { .ms = 0 };
  before = native_state();
  for (size_t i = 0; i < step_count; i++) {
    if (!step_applies(&steps[i]) || steps[i].part == MAKE) continue;
    ignore(steps[i].run(&tour));
    check_state(steps[i].name, " with null handles");
  }
}

/* Leaves unfinished work, so that queries answer "not ready". */
static void ask_unfinished(void) {
  struct tour tour = { .ms = 0 };
  bool out = true;
  assert_null(tour_walk(&tour, MAKE, MAKE));
  before = native_state();
  vendor.fake->pause(0);
  assert_ok(rill_stream_record_event(tour.stream, tour.event, 0));
  assert_ok(rill_stream_record_event(tour.stream, tour.start, 0));
  assert_ok(rill_stream_record_event(tour.stream, tour.end, 0));
  assert_ok(rill_stream_is_complete(tour.stream, &out));
  assert_false(out);
  check_state("rill_stream_is_complete", " of pending work");
  assert_ok(rill_event_is_ready(tour.event, &out));
  assert_false(out);
  check_state("rill_event_is_ready", " of pending work");
  assert_fails(rill_stream_synchronize_for(tour.stream, MILLISECOND), RILL_ERROR_TIMEOUT);
  check_state("rill_stream_synchronize_for", " of pending work");
  assert_fails(rill_event_synchronize_for(tour.event, MILLISECOND), RILL_ERROR_TIMEOUT);
  check_state("rill_event_synchronize_for", " of pending work");
  assert_fails(rill_event_elapsed_time(tour.start, tour.end, &tour.ms), RILL_ERROR_NOT_READY);
  check_state("rill_event_elapsed_time", " of pending work");
  assert_ok(rill_stream_release(tour.stream));
  tour.stream.id = 0;
  check_state("rill_stream_release", " of pending work");
  vendor.fake->resume(0);
  assert_null(tour_walk(&tour, RELEASE, RELEASE));
  check_state("the releases", "");
}

/* State that vendor calls change in another thread belongs to that thread. */
static const char *in_a_new_thread(unsigned index, void *shared) {
  (void)index, (void)shared;
  const struct native_state fresh = native_state();
  rill_stream stream;
  rill_event event;
  REQUIRE_OK(rill_stream_create(vendor.second, NULL, &stream));
  REQUIRE_OK(rill_stream_record_new_event(stream, NULL, &event));
  REQUIRE_OK(rill_stream_synchronize(stream));
  REQUIRE_OK(rill_event_release(event));
  REQUIRE_OK(rill_stream_release(stream));
  const struct native_state after = native_state();
  REQUIRE(after.current == fresh.current);
  REQUIRE(after.last_error == fresh.last_error);
  return NULL;
}

static void all_walks(void) {
  walk_guarded();
  walk_failing();
  ask_unfinished();
}

/* First, before any vendor call on this thread except the device search. */
static void works_with_nothing_current(void) {
  native_set_nothing();
  all_walks();
}

static void works_with_the_second_device_current(void) {
  native_set_second();
  all_walks();
  native_set_nothing();
}

static void works_with_a_foreign_context_current(void) {
  native_set_foreign();
  all_walks();
  native_set_nothing();
}

static void works_with_an_error_of_the_owner(void) {
  native_leave_error();
  all_walks();
}

/* Successful queries and submissions never look like an error, and never clear the owner's error. */
static void keeps_an_error_of_the_owner(void) {
  rill_stream stream;
  rill_event event;
  bool out = false;
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  assert_ok(rill_event_create(vendor.device, NULL, &event));
  native_leave_error();
  before = native_state();
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_stream_wait_event(stream, event, 0));
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_stream_is_complete(stream, &out));
  assert_true(out);
  assert_int_equal(native_state().last_error, before.last_error);
  assert_ok(rill_event_release(event));
  assert_ok(rill_stream_release(stream));
}

static void works_in_new_threads(void) { run_threads(4, in_a_new_thread, NULL); }

int main(void) {
  static const struct test begin[] = { TEST(vendor_begin) };
  static const struct test tests[] = {
    TEST(works_with_nothing_current),           TEST(works_with_the_second_device_current),
    TEST(works_with_a_foreign_context_current), TEST(works_with_an_error_of_the_owner),
    TEST(keeps_an_error_of_the_owner),          TEST(works_in_new_threads),
  };
  if (RUN_ONCE("fake devices", begin) != 0) return 1;
  return RUN_ONCE("native state", tests);
}
