/* A call finds a stream, the last reference to the stream is released, and the call then attaches something to it. The
 * release has already checked the stream, so the call itself has to check. */
#include "core/graph/capture.h"
#include "core/stream/stream.h"
#include "support/testing.h"

/* Finds the stream as a call of another thread would, and then releases it. */
static struct rill__stream *find_and_release(void) {
  rill_stream handle;
  if (rill_stream_create(dut.device, NULL, &handle) != RILL_OK) return NULL;
  struct rill__stream *stream = (struct rill__stream *)rill__find(handle.id, RILL__STREAM);
  rill__ref(&stream->base);
  assert_ok(rill_stream_release(handle));
  return stream;
}

static void does_not_begin_a_capture(void) {
  struct rill__stream *stream = find_and_release();
  const struct rill__capture_start start = { .mode = RILL_CAPTURE_GLOBAL };
  struct rill__thread *self = rill__enter(__func__);
  const rill_status status = rill__capture_begin(stream, &start);
  rill__leave(&self);
  assert_int_equal(status, RILL_ERROR_STALE_HANDLE);
  assert_int_equal(atomic_load(&rill__captures_active), 0);
  rill__unref(&stream->base);
  assert_ok(rill_device_synchronize(dut.device));
}

static void does_not_keep_a_cached_event(void) {
  struct rill__stream *stream = find_and_release();
  struct rill__event *event = NULL;
  struct rill__thread *self = rill__enter(__func__);
  const rill_status status = rill__stream_cached_event(stream, &event);
  const uint64_t id = status == RILL_OK ? event->base.id : 0;
  rill__leave(&self);
  rill__unref(&stream->base);
  bool ready = false;
  if (status == RILL_OK) assert_fails(rill_event_is_ready((rill_event){ id }, &ready), RILL_ERROR_STALE_HANDLE);
}

TESTS_ON_EACH_DEVICE("last release of a stream", TEST(does_not_begin_a_capture), TEST(does_not_keep_a_cached_event))
