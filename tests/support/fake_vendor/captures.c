/* Captures: begin, detection, invalidation and end. */
#include "engine.h"

#include <stdlib.h>
#include <string.h>

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
  stream->capture_graph = fake_graph_new();
  if (stream->capture_graph == NULL) return FAKE_OUT_OF_MEMORY;
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
  if (stream->capture_graph != NULL) (void)fake_graph_destroy(fake_graph_handle(stream->capture_graph));
  stream->capture_graph = NULL;
  free(stream->capture_nodes);
  stream->capture_nodes = NULL;
  stream->capture_count = 0;
}

static int set_nodes(struct fake_stream *stream, void *const *nodes, size_t count) {
  void **copy = malloc((count + 1) * sizeof *copy);
  if (copy == NULL) return FAKE_OUT_OF_MEMORY;
  if (count > 0) memcpy(copy, nodes, count * sizeof *copy);
  free(stream->capture_nodes);
  stream->capture_nodes = copy;
  stream->capture_count = count;
  return FAKE_OK;
}

int fake_capture_add(struct fake_stream *stream, struct fake_op *op) {
  void *node = NULL;
  const struct fake_graph_place place = { NULL, stream->capture_nodes, stream->capture_count };
  int code = fake_graph_capture(stream->capture_graph, &place, op, &node);
  fake_op_release(op);
  if (code == FAKE_OK) code = set_nodes(stream, &node, 1);
  return code;
}

int fake_capture_info(const void *handle, int *status, void **graph, void *const **nodes, size_t *count) {
  struct fake_stream *stream;
  const int code = fake_stream_get(handle, &stream);
  if (code != FAKE_OK) return code;
  *status = stream->capture;
  *graph = stream->capture == FAKE_CAPTURE_ACTIVE ? fake_graph_handle(stream->capture_graph) : NULL;
  *nodes = stream->capture_nodes;
  *count = stream->capture_count;
  return FAKE_OK;
}

int fake_capture_end(void *handle, void **graph) {
  struct fake_stream *stream;
  const int code = fake_stream_get(handle, &stream);
  if (code != FAKE_OK) return code;
  if (stream->capture == FAKE_CAPTURE_NONE) return FAKE_INVALID_VALUE;
  if (stream->capture_mode != FAKE_CAPTURE_RELAXED && stream->capture_thread != &mode) return FAKE_CAPTURE_WRONG_THREAD;
  const bool valid = stream->capture == FAKE_CAPTURE_ACTIVE;
  *graph = valid ? fake_graph_handle(stream->capture_graph) : NULL;
  if (valid) stream->capture_graph = NULL;
  fake_capture_drop(stream);
  return valid ? FAKE_OK : FAKE_CAPTURE_INVALIDATED;
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
