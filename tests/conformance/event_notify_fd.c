/* rill_event_notify_fd */
#include "support/native.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

static int fd_of_calls = -1;

static int new_eventfd(void) {
  const int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  assert_true(fd >= 0);
  return fd;
}

/* Returns the number of notifications since the last call. */
static uint64_t take(int fd) {
  uint64_t count = 0;
  return read(fd, &count, sizeof count) == (ssize_t)sizeof count ? count : 0;
}

/* Waits until there are `count` notifications. */
static void await(int fd, uint64_t count) {
  uint64_t got = 0;
  while (got < count) {
    struct pollfd ready = { .fd = fd, .events = POLLIN };
    assert_int_equal(poll(&ready, 1, (int)(TIMEOUT_NS / MILLISECOND)), 1);
    got += take(fd);
  }
  assert_int_equal(got, count);
}

static rill_status call_with_event(uint64_t id) { return rill_event_notify_fd((rill_event){ id }, fd_of_calls); }

static void refuses_bad_handles(void) {
  fd_of_calls = new_eventfd();
  refuses_bad_events("rill_event_notify_fd", call_with_event);
  assert_int_equal(take(fd_of_calls), 0);
  (void)close(fd_of_calls);
}

/* C1.6 */
static void refuses_other_descriptors(void) {
  const rill_event event = new_event("event");
  const int closed = new_eventfd(), file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  (void)close(closed);
  assert_true(file >= 0);
  assert_fails(rill_event_notify_fd(event, -1), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("fd -1 is not open");
  assert_fails(rill_event_notify_fd(event, closed), RILL_ERROR_INVALID_ARGUMENT);
  assert_fails(rill_event_notify_fd(event, file), RILL_ERROR_INVALID_ARGUMENT);
  assert_says("not an eventfd");
  (void)close(file);
}

/* C4.7 */
static void adds_at_once_if_never_recorded(void) {
  const int fd = new_eventfd();
  assert_ok(rill_event_notify_fd(new_event("never"), fd));
  assert_int_equal(take(fd), 1);
  (void)close(fd);
}

/* C4.7 */
static void adds_one_for_each_call_when_the_point_is_reached(void) {
  const int fd = new_eventfd();
  const rill_stream stream = new_stream("stream");
  const rill_event event = new_event("event");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, event, 0));
  for (int i = 0; i < 3; i++) assert_ok(rill_event_notify_fd(event, fd));
  assert_false(is_ready(event));
  assert_int_equal(take(fd), 0);
  gate_open(gate);
  await(fd, 3);
  assert_true(is_ready(event));
  assert_ok(rill_event_notify_fd(event, fd));
  await(fd, 1);
  (void)close(fd);
}

/* C4.7: later records have no effect, and the event may be released. */
static void refers_to_the_point_at_the_call(void) {
  const int fd = new_eventfd();
  const rill_stream first = new_stream("first"), second = new_stream("second");
  rill_event event;
  struct gate *gate = gate_close(first), *later = gate_close(second);
  assert_ok(rill_stream_record_new_event(first, NULL, &event));
  assert_ok(rill_event_notify_fd(event, fd));
  assert_ok(rill_stream_record_event(second, event, 0));
  assert_ok(rill_event_release(event));
  assert_int_equal(take(fd), 0);
  gate_open(gate);
  await(fd, 1);
  gate_open(later);
}

/* C4.7: an event that is not reached does not delay other notifications. */
static void is_not_held_up_by_another_stream(void) {
  const int fd = new_eventfd(), other = new_eventfd();
  const rill_stream first = new_stream("first"), second = new_stream("second");
  const rill_event slow = new_event("slow"), fast = new_event("fast");
  struct gate *gate = gate_close(first), *short_gate = gate_close(second);
  assert_ok(rill_stream_record_event(first, slow, 0));
  assert_ok(rill_stream_record_event(second, fast, 0));
  assert_ok(rill_event_notify_fd(slow, fd));
  assert_ok(rill_event_notify_fd(fast, other));
  gate_open(short_gate);
  await(other, 1);
  assert_int_equal(take(fd), 0);
  gate_open(gate);
  await(fd, 1);
  (void)close(fd);
  (void)close(other);
}

/* C4.7: a notification does not delay later work of the stream. */
static void delays_no_work(void) {
  const int fd = eventfd(UINT32_MAX, EFD_CLOEXEC); /* a write to this descriptor would block */
  const uint64_t most = UINT64_MAX - 1 - UINT32_MAX;
  const rill_stream stream = new_stream("stream");
  const rill_event event = new_event("event");
  assert_true(fd >= 0 && write(fd, &most, sizeof most) == (ssize_t)sizeof most);
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_event_notify_fd(event, fd));
  write_cell(stream, 0, 5);
  read_cell(stream, 0);
  gate_open(gate);
  assert_completes(stream);
  assert_int_equal(dut.host[0], 5);
  const int next = new_eventfd();
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_event_notify_fd(event, next));
  await(next, 1); /* a full counter does not delay other notifications */
  uint64_t count = 0;
  assert_true(read(fd, &count, sizeof count) == (ssize_t)sizeof count);
  assert_true(count == UINT64_MAX - 1);
  (void)close(fd);
  (void)close(next);
}

/* C4.7, C3.8: the record is queued; the point is reached when the record has been submitted and is complete. */
static void waits_for_a_held_record(void) {
  const int fd = new_eventfd();
  const rill_stream held = new_stream("held"), other = new_stream("other");
  const rill_event never = new_event("never"), event = new_event("event");
  assert_ok(rill_stream_wait_event(held, never, 0));
  write_cell(held, 0, 8);
  read_cell(held, 0);
  assert_ok(rill_stream_record_event(held, event, 0));
  assert_ok(rill_event_notify_fd(event, fd));
  assert_int_equal(take(fd), 0);
  assert_ok(rill_stream_record_event(other, never, 0));
  await(fd, 1);
  assert_int_equal(dut.host[0], 8);
  (void)close(fd);
}

/* C4.7, C3.8 */
static void notifies_of_a_failed_record(void) {
  const int fd = new_eventfd();
  const rill_stream held = new_stream("held");
  const rill_event event = new_event("event");
  rill_event never;
  bool ready = true;
  assert_ok(rill_event_create(dut.device, NULL, &never));
  assert_ok(rill_stream_wait_event(held, never, 0));
  assert_ok(rill_stream_record_event(held, event, 0));
  assert_ok(rill_event_notify_fd(event, fd));
  assert_ok(rill_event_release(never));
  await(fd, 1);
  assert_fails(rill_event_is_ready(event, &ready), RILL_ERROR_NOT_RECORDED);
  assert_ok(rill_event_notify_fd(event, fd));
  await(fd, 1);
  assert_fails(rill_stream_synchronize(held), RILL_ERROR_NOT_RECORDED);
  (void)close(fd);
}

/* C4.7 */
/* The point is what the event's owner has recorded. */
static void notifies_of_an_imported_event(void) {
  if (!native_available()) return;
  const int fd = new_eventfd();
  const uintptr_t native = native_event_create(dut.device);
  const rill_stream stream = new_stream("stream");
  uintptr_t native_stream = 0;
  rill_event event;
  assert_ok(rill_stream_native(stream, &native_stream));
  struct gate *gate = gate_close(stream);
  native_event_record(native, native_stream);
  assert_ok(rill_event_import(dut.device, native, NULL, &event));
  assert_ok(rill_event_notify_fd(event, fd));
  assert_int_equal(take(fd), 0);
  gate_open(gate);
  await(fd, 1);
  assert_ok(rill_event_release(event));
  native_event_destroy(native);
  (void)close(fd);
}

static void refuses_a_captured_point(void) {
  const int fd = new_eventfd();
  const rill_stream stream = new_stream("stream");
  const rill_event event = new_event("event");
  assert_ok(rill_stream_capture_begin(stream, RILL_CAPTURE_GLOBAL));
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_fails(rill_event_notify_fd(event, fd), RILL_ERROR_NOT_RECORDED);
  assert_ok(rill_stream_capture_abort(stream));
  assert_int_equal(take(fd), 0);
  (void)close(fd);
}

/* C4.7, C7.3: notifications work during captures and invalidate none. */
static void leaves_captures_alone(void) {
  const int fd = new_eventfd();
  const rill_stream stream = new_stream("stream"), capturing = new_stream("capturing");
  const rill_event event = new_event("event");
  rill_graph graph;
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_stream_capture_begin(capturing, RILL_CAPTURE_GLOBAL));
  assert_ok(rill_event_notify_fd(event, fd));
  gate_open(gate);
  await(fd, 1);
  assert_ok(rill_stream_capture_end(capturing, &graph));
  keep_graph_until_end(graph);
  (void)close(fd);
}

/* C4.7, C1.10: the child is not notified of its parent's events, and the parent is notified once. */
static void notifies_only_the_parent_after_fork(void) {
  const int fd = new_eventfd();
  const rill_stream stream = new_stream("stream");
  const rill_event event = new_event("event");
  struct gate *gate = gate_close(stream);
  assert_ok(rill_stream_record_event(stream, event, 0));
  assert_ok(rill_event_notify_fd(event, fd));
  const pid_t child = fork();
  if (child == 0) {
    rill_device cpu;
    rill_event own;
    const int mine = eventfd(0, EFD_CLOEXEC);
    uint64_t count = 0;
    bool good = mine >= 0 && rill_device_open("cpu", &cpu) == RILL_OK;
    good = good && rill_event_create(cpu, NULL, &own) == RILL_OK;
    good = good && rill_event_notify_fd(own, mine) == RILL_OK;
    good = good && read(mine, &count, sizeof count) == (ssize_t)sizeof count && count == 1;
    _exit(good ? 0 : 1);
  }
  int status = 1;
  assert_true(child > 0 && waitpid(child, &status, 0) == child);
  assert_int_equal(status, 0);
  assert_int_equal(take(fd), 0);
  gate_open(gate);
  await(fd, 1);
  (void)close(fd);
}

/* C4.7, C8.3: notifications arrive in stream order, whatever the order of the calls. */
static void notifies_of_many_events(void) {
  enum { EVENTS = 200 };
  const int fd = new_eventfd();
  const rill_stream streams[2] = { new_stream("first"), new_stream("second") };
  rill_event events[EVENTS];
  struct gate *gates[2] = { gate_close(streams[0]), gate_close(streams[1]) };
  for (unsigned i = 0; i < EVENTS; i++) {
    events[i] = new_event("event");
    assert_ok(rill_stream_record_event(streams[i % 2], events[i], 0));
  }
  for (unsigned i = 0; i < EVENTS; i++) assert_ok(rill_event_notify_fd(events[(i * 7) % EVENTS], fd));
  assert_int_equal(take(fd), 0);
  gate_open(gates[1]);
  await(fd, EVENTS / 2);
  gate_open(gates[0]);
  await(fd, EVENTS / 2);
  (void)close(fd);
}

TESTS_ON_EACH_DEVICE("rill_event_notify_fd", TEST(refuses_bad_handles), TEST(refuses_other_descriptors),
                     TEST(adds_at_once_if_never_recorded), TEST(adds_one_for_each_call_when_the_point_is_reached),
                     TEST(refers_to_the_point_at_the_call), TEST(is_not_held_up_by_another_stream),
                     TEST(delays_no_work), TEST(waits_for_a_held_record), TEST(notifies_of_a_failed_record),
                     TEST(notifies_of_an_imported_event), TEST(refuses_a_captured_point), TEST(leaves_captures_alone),
                     TEST(notifies_only_the_parent_after_fork), TEST(notifies_of_many_events))
