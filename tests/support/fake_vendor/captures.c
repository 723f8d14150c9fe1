/* Captures: begun, noticed, invalidated and ended, never built. */
#include "engine.h"

/* Streams that capture are linked; a thread is distinguished by the address of its mode. */
static struct fake_stream *capturing;
static _Thread_local int mode = FAKE_CAPTURE_GLOBAL;

int fake_capture_begin(void *handle, int how) {
  struct fake_stream *stream;
  const int code = fake_stream_get(handle, &stream);
  if (code != FAKE_OK) return code;
  if (stream->null) return FAKE_CAPTURE_UNSUPPORTED;
  if (how < FAKE_CAPTURE_GLOBAL || how > FAKE_CAPTURE_RELAXED || stream->capture != FAKE_CAPTURE_NONE)
    return FAKE_INVALID_VALUE;
  stream->capture = FAKE_CAPTURE_ACTIVE;
  stream->capture_mode = how;
  stream->capture_thread = &mode;
  stream->next_capturing = capturing;
  capturing = stream;
  return FAKE_OK;
}

void fake_capture_drop(struct fake_stream *stream) {
  for (struct fake_stream **at = &capturing; *at != NULL; at = &(*at)->next_capturing)
    if (*at == stream) {
      *at = stream->next_capturing;
      break;
    }
  stream->capture = FAKE_CAPTURE_NONE;
}

int fake_capture_end(void *handle, void **graph) {
  struct fake_stream *stream;
  const int code = fake_stream_get(handle, &stream);
  if (code != FAKE_OK) return code;
  if (stream->capture == FAKE_CAPTURE_NONE) return FAKE_INVALID_VALUE;
  if (stream->capture_mode != FAKE_CAPTURE_RELAXED && stream->capture_thread != &mode) return FAKE_CAPTURE_WRONG_THREAD;
  const bool valid = stream->capture == FAKE_CAPTURE_ACTIVE;
  fake_capture_drop(stream);
  *graph = NULL;
  if (!valid) return FAKE_CAPTURE_INVALIDATED;
  *graph = fake_handle_new(FAKE_GRAPH, stream->context);
  return *graph != NULL ? FAKE_OK : FAKE_OUT_OF_MEMORY;
}

int fake_capture_exchange(int *how) {
  if (how == NULL || *how < FAKE_CAPTURE_GLOBAL || *how > FAKE_CAPTURE_RELAXED) return FAKE_INVALID_VALUE;
  const int before = mode;
  mode = *how;
  *how = before;
  return FAKE_OK;
}

static void invalidate(struct fake_stream *stream) {
  if (!fake_quirks()->captures_survive) stream->capture = FAKE_CAPTURE_BROKEN;
}

int fake_capture_refuse(struct fake_stream *stream) {
  if (stream->capture == FAKE_CAPTURE_NONE) return FAKE_OK;
  invalidate(stream);
  return FAKE_CAPTURE_UNSUPPORTED;
}

int fake_capture_check(enum fake_safety safety) {
  struct fake_context *context = NULL;
  if (safety == FAKE_SAFE || capturing == NULL) return FAKE_OK;
  if (safety == FAKE_UNSAFE && mode == FAKE_CAPTURE_RELAXED) return FAKE_OK;
  if (safety == FAKE_WAITS_FOR_CONTEXT) (void)fake_current_context(&context);
  int code = FAKE_OK;
  for (struct fake_stream *stream = capturing; stream != NULL; stream = stream->next_capturing) {
    const bool own = stream->capture_thread == &mode && stream->capture_mode != FAKE_CAPTURE_RELAXED;
    const bool global = mode != FAKE_CAPTURE_THREAD && stream->capture_mode == FAKE_CAPTURE_GLOBAL;
    const bool waited_for = safety == FAKE_WAITS_FOR_ALL || (context != NULL && stream->context == context);
    if (!waited_for && ((safety == FAKE_WAITS_FOR_CONTEXT && mode == FAKE_CAPTURE_RELAXED) || (!own && !global)))
      continue;
    invalidate(stream);
    code = FAKE_CAPTURE_UNSUPPORTED;
  }
  return code;
}
