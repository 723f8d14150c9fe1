/* Streams: a queue and a thread for each, and operations that know what they come after. */
#include "engine.h"

#include <stdlib.h>
#include <time.h>

/* ---- operations ---- */

struct fake_op *fake_op_new(void (*run)(void *data, int status), void (*finish)(void *data), void *data) {
  struct fake_op *op = calloc(1, sizeof *op);
  if (op == NULL) return NULL;
  op->refs = 1;
  op->run = run;
  op->finish = finish;
  op->data = data;
  (void)pthread_cond_init(&op->finished, NULL);
  return op;
}

static void drop_after(struct fake_op *op) {
  for (size_t i = 0; i < op->after_count; i++) fake_op_release(op->after[i]);
  free(op->after);
  op->after = NULL;
  op->after_count = 0;
}

void fake_op_release(struct fake_op *op) {
  if (op == NULL || --op->refs != 0) return;
  drop_after(op);
  (void)pthread_cond_destroy(&op->finished);
  free(op);
}

int fake_op_after(struct fake_op *op, struct fake_op *other) {
  if (other == NULL || other->done) return FAKE_OK;
  struct fake_op **after = realloc(op->after, (op->after_count + 1) * sizeof *after);
  if (after == NULL) return FAKE_OUT_OF_MEMORY;
  op->after = after;
  op->after[op->after_count++] = other;
  other->refs++;
  return FAKE_OK;
}

void fake_op_wait(struct fake_op *op) {
  op->refs++;
  while (!op->done) fake_wait(&op->finished);
  fake_op_release(op);
}

static uint64_t now_ns(void) {
  struct timespec t;
  (void)clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- the thread of a stream ---- */

/* Runs an operation's function without the lock. */
static void run(struct fake_device *device, struct fake_op *op) {
  const int status = device->fault;
  const bool runs = op->run != NULL && (status == FAKE_OK || op->after_fault);
  fake_unlock();
  if (runs && op->host_function) {
    (void)pthread_mutex_lock(&device->host_functions);
    fake_set_in_host_function(true);
    op->run(op->data, status);
    fake_set_in_host_function(false);
    (void)pthread_mutex_unlock(&device->host_functions);
  } else if (runs) {
    op->run(op->data, status);
  }
  if (op->finish != NULL) op->finish(op->data);
  fake_lock();
}

static void unlink_stream(struct fake_stream *stream) {
  for (struct fake_stream **at = &stream->context->streams; *at != NULL; at = &(*at)->next)
    if (*at == stream) {
      *at = stream->next;
      break;
    }
  fake_op_release(stream->last);
  (void)pthread_cond_destroy(&stream->work);
  free(stream);
}

static void *stream_thread(void *argument) {
  struct fake_stream *stream = argument;
  struct fake_device *device = stream->context->device;
  fake_lock();
  for (;;) {
    while (stream->first == NULL && !stream->ended) fake_wait(&stream->work);
    struct fake_op *op = stream->first;
    if (op == NULL) break;
    while (device->paused) fake_wait(&device->resumed);
    for (size_t i = 0; i < op->after_count; i++) fake_op_wait(op->after[i]);
    drop_after(op);
    run(device, op);
    stream->first = op->next;
    if (stream->first == NULL) stream->last_queued = NULL;
    op->time_ns = now_ns();
    op->done = true;
    (void)pthread_cond_broadcast(&op->finished);
    fake_op_release(op);
  }
  unlink_stream(stream);
  fake_unlock();
  return NULL;
}

static int start_thread(struct fake_stream *stream) {
  pthread_attr_t attributes;
  pthread_t thread;
  (void)pthread_attr_init(&attributes);
  (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  const int failed = pthread_create(&thread, &attributes, stream_thread, stream);
  (void)pthread_attr_destroy(&attributes);
  stream->has_thread = failed == 0;
  return failed == 0 ? FAKE_OK : FAKE_OUT_OF_MEMORY;
}

/* The legacy null stream and the blocking streams of its context order themselves against each other. */
static int order_with_null_stream(struct fake_stream *stream, struct fake_op *op) {
  struct fake_context *context = stream->context;
  int code = FAKE_OK;
  if (stream->null) {
    for (struct fake_stream *s = context->streams; s != NULL && code == FAKE_OK; s = s->next)
      if (s != stream && s->blocking) code = fake_op_after(op, s->last);
  } else if (stream->blocking && context->null_stream != NULL) {
    code = fake_op_after(op, context->null_stream->last);
  }
  return code;
}

/* Cleans up after a failed submission. */
static void discard(struct fake_op *op) {
  if (op->finish != NULL) op->finish(op->data);
  fake_op_release(op);
}

int fake_submit(struct fake_stream *stream, struct fake_op *op) {
  if (op == NULL) return FAKE_OUT_OF_MEMORY;
  if (stream->capture == FAKE_CAPTURE_ACTIVE) return fake_capture_add(stream, op);
  if (stream->capture != FAKE_CAPTURE_NONE) {
    discard(op);
    return FAKE_OK;
  }
  int code = order_with_null_stream(stream, op);
  if (code == FAKE_OK && !stream->has_thread) code = start_thread(stream);
  if (code != FAKE_OK) {
    discard(op);
    return code;
  }
  if (stream->last_queued != NULL) stream->last_queued->next = op;
  else stream->first = op;
  stream->last_queued = op;
  fake_op_release(stream->last);
  stream->last = op;
  op->refs++;
  (void)pthread_cond_signal(&stream->work);
  return FAKE_OK;
}

/* ---- streams ---- */

static struct fake_stream *new_stream(struct fake_context *context, unsigned flags, int priority) {
  static uint64_t ids;
  struct fake_stream *stream = calloc(1, sizeof *stream);
  if (stream == NULL) return NULL;
  stream->context = context;
  stream->id = ++ids;
  stream->flags = flags;
  stream->priority = priority;
  stream->blocking = (flags & FAKE_STREAM_NON_BLOCKING) == 0;
  (void)pthread_cond_init(&stream->work, NULL);
  stream->next = context->streams;
  context->streams = stream;
  return stream;
}

struct fake_stream *fake_null_stream_new(struct fake_context *context) {
  struct fake_stream *stream = new_stream(context, 0, 0);
  if (stream == NULL) return NULL;
  stream->null = true;
  stream->blocking = false; /* what blocking streams order themselves against, not one of them */
  return stream;
}

int fake_stream_create(unsigned flags, int priority, void **out) {
  struct fake_context *context;
  int code = fake_current_context(&context);
  if (code == FAKE_OK) code = fake_context_check(context);
  if (code != FAKE_OK) return code;
  if (out == NULL || (flags & ~(unsigned)FAKE_STREAM_NON_BLOCKING) != 0) return FAKE_INVALID_VALUE;
  if (priority > fake_vendor.priority_least) priority = fake_vendor.priority_least;
  if (priority < fake_vendor.priority_greatest) priority = fake_vendor.priority_greatest;
  struct fake_stream *stream = new_stream(context, flags, priority);
  if (stream == NULL) return FAKE_OUT_OF_MEMORY;
  stream->handle = fake_handle_new(FAKE_STREAM, stream);
  if (stream->handle == NULL) {
    unlink_stream(stream);
    return FAKE_OUT_OF_MEMORY;
  }
  *out = stream->handle;
  return FAKE_OK;
}

void fake_stream_end(struct fake_stream *stream) {
  fake_capture_drop(stream);
  if (stream->handle != NULL) fake_handle_end(stream->handle);
  stream->handle = NULL;
  stream->ended = true;
  if (stream->has_thread) (void)pthread_cond_signal(&stream->work);
  else unlink_stream(stream);
}

int fake_stream_destroy(void *handle) {
  if ((uintptr_t)handle <= 2) return FAKE_INVALID_HANDLE;
  struct fake_stream *stream;
  const int code = fake_stream_get(handle, &stream);
  if (code != FAKE_OK) return code;
  fake_stream_end(stream);
  return FAKE_OK;
}

static int per_thread_stream(struct fake_context *context, struct fake_stream **out) {
  static uint64_t threads;
  static _Thread_local uint64_t self;
  if (self == 0) self = ++threads;
  struct fake_stream *stream = context->streams;
  while (stream != NULL && stream->owner != self) stream = stream->next;
  if (stream == NULL) {
    stream = new_stream(context, 0, 0);
    if (stream == NULL) return FAKE_OUT_OF_MEMORY;
    stream->owner = self;
  }
  *out = stream;
  return FAKE_OK;
}

void fake_stream_look(const void *handle, const char *what) {
  if (fake_handle_was(FAKE_STREAM, handle)) fake_die("%s looks at a stream that has ended: freed memory", what);
}

int fake_stream_get(const void *handle, struct fake_stream **out) {
  if ((uintptr_t)handle > 2) {
    *out = fake_handle_get(FAKE_STREAM, handle);
    if (*out == NULL) return fake_handle_was(FAKE_STREAM, handle) ? FAKE_CONTEXT_IS_DESTROYED : FAKE_INVALID_HANDLE;
    return fake_context_check((*out)->context);
  }
  struct fake_context *context;
  int code = fake_current_context(&context);
  if (code == FAKE_OK) code = fake_context_check(context);
  if (code != FAKE_OK) return code;
  if ((uintptr_t)handle == 2) return per_thread_stream(context, out);
  *out = context->null_stream;
  return FAKE_OK;
}

/* The null stream is done when all blocking streams are, too. */
static bool is_done(const struct fake_stream *stream) {
  for (const struct fake_stream *s = stream->context->streams; s != NULL; s = s->next) {
    const bool counts = s == stream || (stream->null && s->blocking);
    if (counts && s->last != NULL && !s->last->done) return false;
  }
  return true;
}

int fake_stream_query(const void *handle) {
  struct fake_stream *stream;
  int code = fake_stream_get(handle, &stream);
  if (code == FAKE_OK) code = fake_capture_refuse(stream);
  if (code != FAKE_OK) return code;
  return is_done(stream) ? FAKE_OK : FAKE_NOT_READY;
}

int fake_stream_synchronize(const void *handle) {
  struct fake_stream *stream;
  int code = fake_stream_get(handle, &stream);
  if (code == FAKE_OK) code = fake_capture_refuse(stream);
  if (code != FAKE_OK) return code;
  struct fake_context *context = stream->context;
  if (!stream->null) {
    if (stream->last != NULL) fake_op_wait(stream->last); /* the stream may end meanwhile and is not accessed again */
    return fake_context_check(context);
  }
  /* The null stream: a marker after it is after all blocking streams. */
  struct fake_op *last = fake_op_new(NULL, NULL, NULL);
  if (last == NULL) return FAKE_OUT_OF_MEMORY;
  last->refs++;
  code = fake_submit(stream, last);
  if (code == FAKE_OK) fake_op_wait(last);
  fake_op_release(last);
  return code == FAKE_OK ? fake_context_check(context) : code;
}

/* ---- host functions ---- */

void fake_run_host_call(void *data, int status) {
  const struct fake_host_call *call = data;
  call->invoke(call, fake_quirks()->silent_callbacks ? FAKE_OK : status);
}

int fake_host_call(const struct fake_host_call *values) {
  struct fake_stream *stream;
  const int code = fake_stream_get(values->stream, &stream);
  if (code != FAKE_OK) return code;
  if (values->function == NULL) return FAKE_INVALID_VALUE;
  if (values->notified_of_faults && stream->capture != FAKE_CAPTURE_NONE) return FAKE_CAPTURE_UNSUPPORTED;
  struct fake_host_call *call = malloc(sizeof *call);
  if (call == NULL) return FAKE_OUT_OF_MEMORY;
  *call = *values;
  struct fake_op *op = fake_op_new(fake_run_host_call, free, call);
  if (op == NULL) {
    free(call);
    return FAKE_OUT_OF_MEMORY;
  }
  op->host_function = true;
  op->after_fault = call->notified_of_faults;
  return fake_submit(stream, op);
}
