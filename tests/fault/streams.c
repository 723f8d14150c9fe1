/* Native streams that are reused (C3.1), events that outlive their streams (C4.6), and streams that end with work
 * (C1.3): which calls reach the driver, and which do not. */
#include "children.h"
#include "vendor.h"

#include <stdio.h>

enum { MOST_KEPT = 64 };

static rill_stream new_one(void) {
  rill_stream stream;
  assert_ok(rill_stream_create(vendor.device, NULL, &stream));
  return stream;
}

static rill_event new_recorded(rill_stream stream, bool timing) {
  rill_event event;
  assert_ok(rill_stream_record_new_event(stream, RILL_EVENT_OPTIONS(.timing = timing), &event));
  return event;
}

static uintptr_t native_of(rill_stream stream) {
  uintptr_t native = 0;
  assert_ok(rill_stream_native(stream, &native));
  return native;
}

/* C3.1: few native streams serve many, and no more are kept than a bound for each priority and kind. */
static void native_streams_are_reused(void) {
  enum { MANY = 200, STREAMS = 2000 };
  static rill_stream streams[MANY];
  vendor_begin();
  ignore(rill_stream_release(new_one()));
  const uint64_t created = vendor_calls("stream_create");
  for (int i = 0; i < STREAMS; i++) assert_ok(rill_stream_release(new_one()));
  assert_true(vendor_calls("stream_create") - created <= 2 * MOST_KEPT);
  const size_t live = vendor.fake->live("stream");
  for (int i = 0; i < MANY; i++) streams[i] = new_one();
  for (int i = 0; i < MANY; i++) assert_ok(rill_stream_release(streams[i]));
  assert_ok(rill_device_synchronize(vendor.device)); /* ended and complete objects are destroyed after it */
  assert_true(vendor.fake->live("stream") <= live + MOST_KEPT);
}

/* C3.1: every option is as requested, and no work of the previous stream remains. */
static void a_reused_stream_is_like_new(void) {
  static const rill_stream_options kinds[] = {
    { sizeof kinds[0], 0, RILL_PRIORITY_CLAMP, false, NULL },
    { sizeof kinds[0], 0, RILL_PRIORITY_CLAMP, true, NULL },
    { sizeof kinds[0], RILL_PRIORITY_HIGH, RILL_PRIORITY_CLAMP, false, NULL },
    { sizeof kinds[0], RILL_PRIORITY_LOW, RILL_PRIORITY_CLAMP, true, NULL },
  };
  enum { KINDS = sizeof kinds / sizeof *kinds, ROUNDS = 40 };
  vendor_begin();
  for (int round = 0; round < ROUNDS; round++) {
    rill_stream old[KINDS], fresh[KINDS];
    for (int k = 0; k < KINDS; k++) {
      assert_ok(rill_stream_create(vendor.device, &kinds[k], &old[k]));
      assert_ok(rill_event_release(new_recorded(old[k], false)));
      assert_ok(rill_stream_synchronize(old[k]));
      assert_ok(rill_stream_release(old[k]));
    }
    assert_ok(rill_device_synchronize(vendor.device)); /* ended and complete objects are destroyed after it */
    vendor.fake->pause(0);
    for (int k = 0; k < KINDS; k++) {
      bool complete = false, blocking = !kinds[k].blocking;
      assert_ok(rill_stream_create(vendor.device, &kinds[k], &fresh[k]));
      assert_ok(rill_stream_is_complete(fresh[k], &complete));
      assert_true(complete);
      assert_ok(rill_stream_is_blocking(fresh[k], &blocking));
      assert_int_equal(blocking, kinds[k].blocking);
      int32_t wanted = kinds[k].priority == RILL_PRIORITY_HIGH  ? vendor.info.priority_greatest
                       : kinds[k].priority == RILL_PRIORITY_LOW ? vendor.info.priority_least
                                                                : 0;
      assert_int_equal(native_priority(native_of(fresh[k])), wanted);
      assert_int_equal(native_is_blocking(native_of(fresh[k])), kinds[k].blocking);
      assert_ok(rill_stream_release(fresh[k]));
      assert_ok(rill_stream_create(vendor.device, &kinds[k], &old[k]));
      assert_ok(rill_event_release(new_recorded(old[k], false))); /* pending when it is released */
      assert_ok(rill_stream_release(old[k]));
      for (int i = 0; i < 3; i++) {
        assert_ok(rill_stream_create(vendor.device, &kinds[k], &fresh[k]));
        assert_ok(rill_stream_is_complete(fresh[k], &complete));
        assert_true(complete);
        assert_ok(rill_stream_release(fresh[k]));
      }
    }
    vendor.fake->resume(0);
    assert_ok(rill_device_synchronize(vendor.device));
  }
}

/* C4.6: queries of an event whose stream has ended, in every way a stream may end; a runtime that would access that
 * stream is not queried, for which the fake would abort the program. */
enum end { RELEASED, HANDLE_GIVEN_OUT, ADOPTED, DESTROYED_BY_ITS_OWNER };

static void check_events_after(enum end end) {
  float ms = -1;
  bool ready = false;
  uintptr_t native = 0;
  rill_stream stream, other = new_one();
  const rill_import_options options = { .struct_size = sizeof options,
                                        .ownership = end == ADOPTED ? RILL_IMPORT_ADOPT : RILL_IMPORT_BORROW };
  if (end >= ADOPTED) {
    native = native_new_stream();
    assert_ok(rill_stream_import(vendor.device, native, &options, &stream));
  } else {
    stream = new_one();
    if (end == HANDLE_GIVEN_OUT) native = native_of(stream);
  }
  const size_t live = vendor.fake->live("stream");
  rill_event start = new_recorded(stream, true), stop = new_recorded(stream, true), known = new_recorded(stream, false);
  assert_ok(rill_event_synchronize(known));
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_stream_release(stream));
  if (end == DESTROYED_BY_ITS_OWNER) native_destroy_stream(native);
  assert_ok(rill_device_synchronize(vendor.device)); /* ended and complete objects are destroyed after it */
  if (end != RELEASED) assert_int_equal(vendor.fake->live("stream"), live - 1);
  assert_ok(rill_event_is_ready(start, &ready));
  assert_true(ready);
  assert_ok(rill_event_synchronize(stop));
  assert_ok(rill_event_synchronize_for(start, 1));
  assert_ok(rill_stream_wait_event(other, start, 0));
  assert_ok(rill_stream_wait_event(other, known, 0));
  assert_ok(rill_event_elapsed_time(start, stop, &ms));
  assert_true(ms >= 0);
  assert_ok(rill_stream_record_event(other, start, 0)); /* it is an event like any other */
  assert_ok(rill_event_synchronize(start));
  assert_ok(rill_event_release(start));
  assert_ok(rill_event_release(stop));
  assert_ok(rill_event_release(known));
  assert_ok(rill_stream_release(other));
}

static void events_outlive_their_streams(void) {
  vendor_begin();
  for (int round = 0; round < 3; round++) check_events_after(RELEASED);
  check_events_after(HANDLE_GIVEN_OUT);
  check_events_after(ADOPTED);
  check_events_after(DESTROYED_BY_ITS_OWNER);
}

/* C4.2, C4.6: an event that others record after the stream of rill's last record has ended stands for their record. */
static void records_of_others_count(void) {
  bool ready = true;
  uintptr_t native = 0;
  vendor_begin();
  rill_stream stream = new_one();
  const uintptr_t theirs = native_new_stream();
  rill_event event = new_recorded(stream, false);
  assert_ok(rill_event_native(event, &native));
  assert_ok(rill_stream_synchronize(stream));
  assert_ok(rill_stream_release(stream));
  assert_ok(rill_device_synchronize(vendor.device)); /* ended and complete objects are destroyed after it */
  assert_ok(rill_event_is_ready(event, &ready));
  assert_true(ready);
  vendor.fake->pause(0);
  native_record_event(native, theirs);
  assert_ok(rill_event_is_ready(event, &ready));
  assert_false(ready);
  assert_fails(rill_event_synchronize_for(event, 1000), RILL_ERROR_TIMEOUT);
  vendor.fake->resume(0);
  assert_ok(rill_event_synchronize(event));
  assert_ok(rill_event_release(event));
  native_destroy_stream(theirs);
}

/* C4.6, C7.3: the native stream is reused, and captured by others: an event of before is complete, and querying it
 * breaks nothing. */
static void events_do_not_see_the_next_use(void) {
  bool ready = false;
  vendor_begin();
  rill_stream first = new_one(), waiting = new_one(), second;
  rill_event event = new_recorded(first, false), other = new_recorded(first, false);
  const uintptr_t native = native_of(waiting); /* so that something is shared */
  assert_true(native != 0);
  assert_ok(rill_stream_synchronize(first));
  assert_ok(rill_stream_release(first));
  assert_ok(rill_device_synchronize(vendor.device)); /* ended and complete objects are destroyed after it */
  second = new_one();                                /* the native stream of the first */
  if (native_begin_capture(second)) {
    assert_ok(rill_event_is_ready(event, &ready));
    assert_true(ready);
    assert_ok(rill_event_synchronize(other));
    assert_ok(rill_stream_wait_event(waiting, event, 0));
    native_end_capture(second); /* it is valid still */
  }
  assert_ok(rill_event_release(event));
  assert_ok(rill_event_release(other));
  assert_ok(rill_stream_release(second));
  assert_ok(rill_stream_release(waiting));
}

/* C7.3: an event recorded before its stream was captured by others. Some versions of HIP break the capture when the
 * event is queried; then the query is refused. Others refuse to wait for it, which a complete event does not need. */
static void a_query_breaks_no_later_capture(void) {
  bool ready = false;
  vendor_begin();
  rill_stream stream = new_one(), waiting = new_one();
  rill_event event = new_recorded(stream, false), other = new_recorded(stream, false);
  rill_event never_asked = new_recorded(stream, false);
  assert_ok(rill_stream_synchronize(stream));
  if (native_begin_capture(stream)) {
    const rill_status asked = rill_event_is_ready(event, &ready);
    const rill_status waited = rill_event_synchronize_for(other, TIMEOUT_NS);
    const rill_status ordered = rill_stream_wait_event(waiting, never_asked, 0);
    if (ordered != RILL_OK) {
      assert_int_equal(ordered, RILL_ERROR_CAPTURE_ACTIVE);
      assert_int_equal(waited, RILL_ERROR_CAPTURE_ACTIVE);
    }
    if (asked != RILL_OK || waited != RILL_OK) {
      assert_int_equal(asked, RILL_ERROR_CAPTURE_ACTIVE);
      assert_int_equal(waited, RILL_ERROR_CAPTURE_ACTIVE);
      assert_fails(rill_event_synchronize(other), RILL_ERROR_CAPTURE_ACTIVE);
      assert_says("capturing");
    }
    native_end_capture(stream); /* it is valid still */
  }
  assert_ok(rill_event_synchronize(event));
  assert_ok(rill_event_synchronize(other));
  assert_ok(rill_event_release(event));
  assert_ok(rill_event_release(other));
  assert_ok(rill_event_release(never_asked));
  assert_ok(rill_stream_release(waiting));
  assert_ok(rill_stream_release(stream));
}

/* C1.3, C8.3: streams that end with work cost other calls almost nothing. */
static void busy_streams_do_not_slow_others(void) {
  enum { BUSY = 300, CALLS = 500 };
  vendor_begin();
  assert_ok(rill_device_synchronize(vendor.device)); /* ended and complete objects are destroyed after it */
  vendor.fake->pause(0);
  for (int i = 0; i < BUSY; i++) {
    rill_stream stream = new_one();
    assert_ok(rill_event_release(new_recorded(stream, false)));
    assert_ok(rill_stream_release(stream));
  }
  const uint64_t asked = vendor_calls("stream_query") + vendor_calls("event_query");
  for (int i = 0; i < CALLS; i++) {
    rill_event event;
    assert_ok(rill_event_create(vendor.device, NULL, &event));
    assert_ok(rill_event_release(event));
  }
  assert_true(vendor_calls("stream_query") + vendor_calls("event_query") - asked <= CALLS / 4);
  const uint64_t before = vendor_calls("stream_query");
  for (int i = 0; i < CALLS; i++) assert_ok(rill_stream_release(new_one()));
  assert_true(vendor_calls("stream_query") - before <= 3 * CALLS + MOST_KEPT); /* made, ended, and its own */
  vendor.fake->resume(0);
  assert_ok(rill_device_synchronize(vendor.device)); /* ended and complete objects are destroyed after it */
  assert_true(vendor.fake->live("stream") <= MOST_KEPT + 16);
}

/* C1.7: events recorded, asked and waited for by some threads while others end their streams, in every way. */
struct mix {
  rill_event events[8];
  _Atomic unsigned next;
};

static const char *mixes(unsigned index, void *shared) {
  struct mix *mix = shared;
  for (unsigned i = 0; i < scaled(400); i++) {
    rill_event event = mix->events[atomic_fetch_add(&mix->next, 1) % 8];
    rill_stream stream;
    bool ready = false;
    REQUIRE_OK(rill_stream_create(vendor.device, NULL, &stream));
    REQUIRE_OK(rill_stream_record_event(stream, event, 0));
    if ((i + index) % 3 == 0) {
      uintptr_t native = 0;
      REQUIRE_OK(rill_stream_native(stream, &native));
    }
    REQUIRE_OK(rill_event_is_ready(mix->events[i % 8], &ready));
    if (i % 5 == 0) REQUIRE_OK(rill_event_synchronize(mix->events[(i + 3) % 8]));
    REQUIRE_OK(rill_stream_wait_event(stream, mix->events[(i + 5) % 8], 0));
    REQUIRE_OK(rill_stream_release(stream));
  }
  return NULL;
}

static void threads_end_streams_while_others_query(void) {
  static struct mix mix;
  vendor_begin();
  rill_stream stream = new_one();
  for (int i = 0; i < 8; i++) mix.events[i] = new_recorded(stream, false);
  run_threads(6, mixes, &mix);
  for (int i = 0; i < 8; i++) {
    assert_ok(rill_event_synchronize(mix.events[i]));
    assert_ok(rill_event_release(mix.events[i]));
  }
  assert_ok(rill_stream_release(stream));
  assert_ok(rill_device_synchronize(vendor.device));
}

/* C4.2: of two simultaneous records on two streams either is the last, and rill knows which: one stream ends, and the
 * event agrees with the driver. The driver is also queried, so its version is one that does not access streams. */
static struct {
  rill_stream streams[2];
  rill_event event;
} pair;

static const char *records(unsigned index, void *shared) {
  (void)shared;
  REQUIRE_OK(rill_stream_record_event(pair.streams[index], pair.event, 0));
  return NULL;
}

static void wait_for_flag(void *user, rill_status status) {
  (void)status;
  while (!atomic_load((_Atomic bool *)user)) let_pass_ns(1000);
}

static void the_last_of_two_records_counts(void) {
  vendor_begin();
  uintptr_t native = 0;
  assert_ok(rill_event_create(vendor.device, NULL, &pair.event));
  assert_ok(rill_event_native(pair.event, &native));
  for (unsigned round = 0; round < scaled(2000); round++) {
    static _Atomic bool open;
    bool ready = false;
    atomic_store(&open, false);
    for (int i = 0; i < 2; i++) {
      pair.streams[i] = new_one();
      assert_true(native_of(pair.streams[i]) != 0); /* so that its native stream ends with it */
    }
    assert_ok(rill_stream_host_call(pair.streams[1], wait_for_flag, &open));
    run_threads(2, records, NULL);
    assert_ok(rill_stream_synchronize(pair.streams[0]));
    assert_ok(rill_stream_release(pair.streams[0]));
    assert_ok(rill_event_is_ready(pair.event, &ready));
    assert_int_equal(ready, native_event_is_ready(native));
    atomic_store(&open, true);
    assert_ok(rill_stream_synchronize(pair.streams[1]));
    assert_ok(rill_stream_release(pair.streams[1]));
  }
  assert_ok(rill_event_release(pair.event));
}

int main(int argc, char **argv) {
  static const struct mode modes[] = {
    MODE(native_streams_are_reused),
    MODE(a_reused_stream_is_like_new),
    MODE(events_outlive_their_streams),
    MODE(records_of_others_count),
    MODE(events_do_not_see_the_next_use),
    MODE(a_query_breaks_no_later_capture),
    MODE(busy_streams_do_not_slow_others),
    MODE(threads_end_streams_while_others_query),
    MODE_WITH(the_last_of_two_records_counts, "RILL_FAKE_HIP_VERSION=50221153", "RILL_FAKE_YIELD=1"),
  };
  return RUN_MODES("native streams", argc, argv, modes);
}
