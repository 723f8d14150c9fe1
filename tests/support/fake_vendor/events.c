/* Events: each refers to the operation that recorded it last; a wait takes that operation when it is called. */
#include "engine.h"

#include <stdlib.h>
#include <time.h>

static int get_event(const void *handle, struct fake_event **out) {
  *out = fake_handle_get(FAKE_EVENT, handle);
  return *out == NULL ? FAKE_INVALID_HANDLE : fake_context_check((*out)->context);
}

int fake_event_create(unsigned flags, void **out) {
  const unsigned known = FAKE_EVENT_BLOCKING_SYNC | FAKE_EVENT_DISABLE_TIMING | FAKE_EVENT_INTERPROCESS;
  struct fake_context *context;
  int code = fake_current_context(&context);
  if (code == FAKE_OK) code = fake_context_check(context);
  if (code != FAKE_OK) return code;
  if (out == NULL || (flags & ~known) != 0) return FAKE_INVALID_VALUE;
  if ((flags & FAKE_EVENT_INTERPROCESS) == 0) return fake_event_of(context, flags, NULL, out);
  if ((flags & FAKE_EVENT_DISABLE_TIMING) == 0) return FAKE_INVALID_VALUE;
  struct fake_shared_event *shared = fake_shared_new();
  if (shared == NULL) return FAKE_OUT_OF_MEMORY;
  code = fake_event_of(context, flags, shared, out);
  if (code != FAKE_OK) fake_shared_end(shared);
  return code;
}

int fake_event_of(struct fake_context *context, unsigned flags, struct fake_shared_event *shared, void **out) {
  struct fake_event *event = calloc(1, sizeof *event);
  if (event == NULL) return FAKE_OUT_OF_MEMORY;
  event->context = context;
  event->flags = flags;
  event->shared = shared;
  event->handle = fake_handle_new(FAKE_EVENT, event);
  if (event->handle == NULL) {
    free(event);
    return FAKE_OUT_OF_MEMORY;
  }
  event->next = context->events;
  context->events = event;
  *out = event->handle;
  return FAKE_OK;
}

void fake_event_end(struct fake_event *event) {
  struct fake_event **at = &event->context->events;
  while (*at != event) at = &(*at)->next;
  *at = event->next;
  fake_op_release(event->recorded);
  if (event->shared != NULL) fake_shared_end(event->shared);
  fake_handle_end(event->handle);
  free(event);
}

int fake_event_destroy(void *handle) {
  struct fake_event *event;
  const int code = get_event(handle, &event);
  if (code == FAKE_OK) fake_event_end(event);
  return code;
}

int fake_event_record(void *handle, const void *stream_handle) {
  struct fake_event *event;
  struct fake_stream *stream;
  int code = get_event(handle, &event);
  if (code == FAKE_OK) code = fake_stream_get(stream_handle, &stream);
  if (code != FAKE_OK) return code;
  if (stream->context != event->context) return FAKE_INVALID_HANDLE;
  event->in_capture = stream->capture != FAKE_CAPTURE_NONE;
  event->stream = (uintptr_t)stream_handle > 2 ? stream_handle : NULL;
  if (event->in_capture) return FAKE_OK;
  const bool shared = event->shared != NULL && !fake_quirks()->shared_records_are_lost;
  struct fake_op *op = shared ? fake_shared_record(event->shared) : fake_op_new(NULL, NULL, NULL);
  if (op == NULL) return FAKE_OUT_OF_MEMORY;
  op->refs++;
  code = fake_submit(stream, op);
  if (code != FAKE_OK) {
    fake_op_release(op);
    return code;
  }
  fake_op_release(event->recorded);
  event->recorded = op;
  return FAKE_OK;
}

/* What an event's last record has left: a stream that has ended, or that captures by now. */
static int look_at_stream(const struct fake_event *event, bool looks, const char *what) {
  const struct fake_stream *last = event->stream == NULL ? NULL : fake_handle_get(FAKE_STREAM, event->stream);
  if (looks && event->stream != NULL) fake_stream_look(event->stream, what);
  if (!looks || last == NULL || last->capture != FAKE_CAPTURE_ACTIVE || event->in_capture) return FAKE_OK;
  if (!fake_quirks()->questions_break_captures) return FAKE_OK;
  (void)fake_capture_refuse((struct fake_stream *)(uintptr_t)last);
  return FAKE_CAPTURED_EVENT;
}

static uint64_t processor_ns(void) {
  struct timespec now;
  (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void fake_event_spend(void) {
  const uint64_t ns = fake_options()->query_ns, start = ns > 0 ? processor_ns() : 0;
  while (ns > 0 && processor_ns() - start < ns) continue;
}

int fake_event_query(const void *handle) {
  struct fake_event *event;
  int code = get_event(handle, &event);
  if (code == FAKE_OK) code = look_at_stream(event, fake_quirks()->query_looks, "a question about an event");
  if (code != FAKE_OK) return code;
  if (event->in_capture) return FAKE_INVALID_VALUE;
  const bool done =
      event->shared != NULL ? fake_shared_is_done(event->shared) : event->recorded == NULL || event->recorded->done;
  return done ? FAKE_OK : FAKE_NOT_READY;
}

int fake_event_synchronize(const void *handle) {
  struct fake_event *event;
  int code = get_event(handle, &event);
  if (code == FAKE_OK) code = look_at_stream(event, fake_quirks()->synchronize_looks, "synchronizing an event");
  if (code != FAKE_OK) return code;
  if (event->in_capture) return FAKE_INVALID_VALUE;
  const struct fake_context *context = event->context;
  /* The event may end or be recorded again meanwhile. */
  if (event->shared != NULL) fake_shared_synchronize(event->shared);
  else if (event->recorded != NULL) fake_op_wait(event->recorded);
  return fake_context_check(context);
}

int fake_event_elapsed(const void *start_handle, const void *end_handle, float *ms) {
  struct fake_event *start, *end;
  int code = get_event(start_handle, &start);
  if (code == FAKE_OK) code = get_event(end_handle, &end);
  if (code != FAKE_OK) return code;
  if (ms == NULL) return FAKE_INVALID_VALUE;
  const bool timed = ((start->flags | end->flags) & FAKE_EVENT_DISABLE_TIMING) == 0;
  if (!timed || start->recorded == NULL || end->recorded == NULL || start->context != end->context)
    return FAKE_INVALID_HANDLE;
  if (!start->recorded->done || !end->recorded->done) return FAKE_NOT_READY;
  *ms = (float)((double)(int64_t)(end->recorded->time_ns - start->recorded->time_ns) / 1e6);
  return FAKE_OK;
}

int fake_stream_wait(const void *stream_handle, const void *event_handle) {
  struct fake_stream *stream;
  struct fake_event *event;
  int code = fake_stream_get(stream_handle, &stream);
  if (code == FAKE_OK) code = get_event(event_handle, &event);
  if (code != FAKE_OK) return code;
  const struct fake_quirks *quirks = fake_quirks();
  if (quirks->wait_looks && event->stream != NULL) fake_stream_look(event->stream, "a wait for an event");
  const struct fake_stream *last = event->stream == NULL ? NULL : fake_handle_get(FAKE_STREAM, event->stream);
  if (quirks->waits_are_isolated && last != NULL && last->capture == FAKE_CAPTURE_ACTIVE && !event->in_capture)
    return FAKE_CAPTURE_ISOLATION;
  if (event->shared != NULL && quirks->shared_waits_end && fake_shared_records(event->shared) > 32) return FAKE_OK;
  if (event->shared != NULL ? fake_shared_is_done(event->shared) : event->recorded == NULL) return FAKE_OK;
  struct fake_op *op = event->shared != NULL ? fake_shared_wait(event->shared) : fake_op_new(NULL, NULL, NULL);
  if (op == NULL) return FAKE_OUT_OF_MEMORY;
  if (event->shared == NULL) code = fake_op_after(op, event->recorded);
  if (code != FAKE_OK) {
    fake_op_release(op);
    return code;
  }
  return fake_submit(stream, op);
}
