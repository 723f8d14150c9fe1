/* Threads that come and go, and objects that do: nothing of them stays (T4). */
#include "life.h"

#include <malloc.h>
#include <pthread.h>

/* What the process has allocated; 0 where a checker has its own allocator. */
static size_t allocated(void) {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

enum { SLACK = 256 << 10 }; /* for what the C library and pools keep */

static void *one_call(void *argument) {
  rill_event event;
  rill_error error = RILL_ERROR_INIT;
  (void)argument;
  /* A thread begins without a last error, though its record may have been another's. */
  must(rill_last_error(&error));
  if (error.status != RILL_OK) die("a new thread has a last error: %s", rill_last_error_text());
  if (rill_last_error_text()[0] != '\0') die("a new thread has a last error's text");
  must(rill_event_create(life.device, NULL, &event));
  must(rill_event_release(event));
  ignore(rill_event_release(event)); /* leaves a last error */
  return NULL;
}

static void run_short_threads(unsigned count) {
  enum { AT_ONCE = 8 };
  for (unsigned i = 0; i < count; i += AT_ONCE) {
    pthread_t threads[AT_ONCE];
    for (int j = 0; j < AT_ONCE; j++) assert_int_equal(pthread_create(&threads[j], NULL, one_call, NULL), 0);
    for (int j = 0; j < AT_ONCE; j++) (void)pthread_join(threads[j], NULL);
  }
}

static void short_threads_leave_nothing(void) {
  run_short_threads(scaled(1000));
  const size_t before = allocated();
  run_short_threads(scaled(10000));
  const size_t after = allocated();
  if (after > before + SLACK) fail_msg("%zu bytes before, %zu after", before, after);
}

static void use_often(unsigned count) {
  for (unsigned i = 0; i < count; i++) use(life.device);
}

static void objects_leave_nothing(void) {
  use_often(scaled(500));
  const size_t before = allocated();
  use_often(scaled(3000));
  const size_t after = allocated();
  if (after > before + SLACK) fail_msg("%zu bytes before, %zu after", before, after);
}

/* The same without ever waiting: what was released with work pending goes when that is done. */
static void release_at_once(unsigned count) {
  for (unsigned i = 0; i < count; i++) {
    rill_stream stream;
    rill_event event;
    assert_ok(rill_stream_create(life.device, NULL, &stream));
    assert_ok(rill_stream_record_new_event(stream, NULL, &event));
    assert_ok(rill_stream_wait_event(stream, event, 0));
    assert_ok(rill_stream_release(stream));
    assert_ok(rill_event_release(event));
  }
  assert_ok(rill_device_synchronize(life.device));
  use(life.device);
}

static void released_work_leaves_nothing(void) {
  release_at_once(scaled(1000));
  const size_t before = allocated();
  release_at_once(scaled(3000));
  const size_t after = allocated();
  if (after > before + SLACK) fail_msg("%zu bytes before, %zu after", before, after);
}

int main(void) {
  static const struct test tests[] = { TEST(short_threads_leave_nothing), TEST(objects_leave_nothing),
                                       TEST(released_work_leaves_nothing) };
  life_begin();
  return RUN_ONCE("what stays", tests);
}
