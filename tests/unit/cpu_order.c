/* The order in which the cpu device runs streams. The creation of further threads is refused, so that a single worker
 * runs everything. */
#include "support/testing.h"

#include <errno.h>
#include <pthread.h>

int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static _Atomic bool refuse;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
  return refuse ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

static char order[16];
static _Atomic unsigned count;

/* Appends the first letter of its argument to a text. */
static void note(void *user, rill_status status) {
  (void)status;
  order[count++] = *(const char *)user;
}

static void submit(int32_t priority, const char *letter) {
  rill_stream stream;
  assert_ok(rill_stream_create(dut.device, RILL_STREAM_OPTIONS(.priority = priority), &stream));
  keep_stream_until_end(stream);
  assert_ok(rill_stream_host_call(stream, note, (void *)(uintptr_t)letter));
}

/* C3.2: of the streams with work, the one with the highest priority runs first; streams of the same priority run in the
 * order of submission. */
static void the_most_urgent_stream_runs_first(void) {
  rill_stream first = new_stream("first");
  assert_ok(rill_device_set_workers(dut.device, 1));
  assert_completes(first);
  assert_ok(rill_stream_host_call(first, note, (void *)(uintptr_t) "0"));
  assert_completes(first);
  refuse = true;
  struct gate *gate = gate_close(first);
  submit(RILL_PRIORITY_LOW, "l");
  submit(RILL_PRIORITY_NORMAL, "n");
  submit(RILL_PRIORITY_HIGH, "h");
  submit(RILL_PRIORITY_LOW, "L");
  submit(RILL_PRIORITY_HIGH, "H");
  gate_open(gate);
  assert_ok(rill_device_synchronize(dut.device));
  refuse = false;
  assert_string_equal(order, "0hHnlL");
}

TESTS_ON_EACH_DEVICE("stream order on the cpu", TEST(the_most_urgent_stream_runs_first))
