/* Threads that end or are canceled, and objects that are released, leave nothing (T4). */
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

/* The same without waiting: objects released with pending work are destroyed when the work is done. */
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

/* ---- pthread_cancel ---- */

enum { A_MOMENT = 2 * MILLISECOND };

struct canceled {
  rill_status (*call)(const struct canceled *);
  rill_stream held;
  rill_event event; /* a record on `held`, which waits as well */
  void *memory;
  rill_status expected, status;
};

static rill_status wait_for_stream(const struct canceled *c) { return rill_stream_synchronize_for(c->held, A_MOMENT); }
static rill_status wait_for_event(const struct canceled *c) { return rill_event_synchronize_for(c->event, A_MOMENT); }
static rill_status wait_for_ever(const struct canceled *c) { return rill_stream_synchronize(c->held); }
static rill_status wait_for_event_for_ever(const struct canceled *c) { return rill_event_synchronize(c->event); }
static rill_status wait_for_device(const struct canceled *c) { return (void)c, rill_device_synchronize(life.device); }
static rill_status wait_for_users(const struct canceled *c) { return rill_host_unregister(c->memory); }

/* The thread ends at its first POSIX cancellation point, such as a wait for held work. */
static void *wait_canceled(void *argument) {
  struct canceled *c = argument;
  if (pthread_cancel(pthread_self()) != 0) die("no thread to cancel");
  c->status = c->call(c);
  pthread_testcancel();
  return NULL;
}

/* C1.7: the wait is made to its end, and the thread ends after it; other threads find no lock taken. */
static void wait_and_be_canceled(struct canceled c) {
  static char buffer[4096];
  const uint32_t pattern = 1;
  rill_event never;
  pthread_t thread;
  void *result = NULL;
  c.memory = buffer;
  c.status = RILL_ERROR_BACKEND;
  assert_ok(rill_host_register(life.device, buffer, sizeof buffer));
  assert_ok(rill_stream_create(life.device, NULL, &c.held));
  assert_ok(rill_event_create(life.device, NULL, &never));
  assert_ok(rill_stream_wait_event(c.held, never, 0));
  assert_ok(rill_fill_async(c.held, buffer, &pattern, sizeof pattern, sizeof buffer / sizeof pattern));
  assert_ok(rill_stream_record_new_event(c.held, NULL, &c.event));
  assert_int_equal(pthread_create(&thread, NULL, wait_canceled, &c), 0);
  if (c.expected == RILL_ERROR_TIMEOUT) assert_int_equal(pthread_join(thread, &result), 0);
  rill_stream other;
  assert_ok(rill_stream_create(life.device, NULL, &other));
  assert_ok(rill_stream_record_event(other, never, 0));
  if (c.expected == RILL_OK) assert_int_equal(pthread_join(thread, &result), 0);
  assert_ptr_equal(result, PTHREAD_CANCELED);
  assert_int_equal(c.status, c.expected);
  assert_ok(rill_stream_synchronize_for(c.held, TIMEOUT_NS));
  if (c.call != wait_for_users) assert_ok(rill_host_unregister(buffer));
  assert_ok(rill_event_release(c.event));
  assert_ok(rill_event_release(never));
  assert_ok(rill_stream_release(c.held));
  assert_ok(rill_stream_release(other));
  use(life.device);
}

static void a_canceled_thread_leaves_no_lock(void) {
  wait_and_be_canceled((struct canceled){ .call = wait_for_stream, .expected = RILL_ERROR_TIMEOUT });
  wait_and_be_canceled((struct canceled){ .call = wait_for_event, .expected = RILL_ERROR_TIMEOUT });
  wait_and_be_canceled((struct canceled){ .call = wait_for_ever, .expected = RILL_OK });
  wait_and_be_canceled((struct canceled){ .call = wait_for_event_for_ever, .expected = RILL_OK });
  wait_and_be_canceled((struct canceled){ .call = wait_for_device, .expected = RILL_OK });
  wait_and_be_canceled((struct canceled){ .call = wait_for_users, .expected = RILL_OK });
}

int main(void) {
  static const struct test tests[] = { TEST(short_threads_leave_nothing), TEST(objects_leave_nothing),
                                       TEST(released_work_leaves_nothing), TEST(a_canceled_thread_leaves_no_lock) };
  life_begin();
  return RUN_ONCE("what threads leave", tests);
}
