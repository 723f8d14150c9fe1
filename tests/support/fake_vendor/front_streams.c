/* A vendor's interface over the engine, where both have the same: streams, events, captures, host functions. */
#include "front.h"

/* ---- streams ---- */

vendor_result VENDOR(StreamCreateWithPriority)(vendor_stream *out, unsigned int flags, int priority) {
  VENDOR_CALL(fake_stream_create(flags, priority, (void **)out));
}

vendor_result VENDOR(StreamQuery)(vendor_stream stream) { VENDOR_CALL(fake_stream_query(stream)); }

vendor_result VENDOR(StreamSynchronize)(vendor_stream stream) { VENDOR_CALL(fake_stream_synchronize(stream)); }

/* What a getter of one value needs: the stream, and somewhere to write to. */
static int look_at(vendor_stream handle, const void *out, struct fake_stream **stream) {
  return out == NULL ? FAKE_INVALID_VALUE : fake_stream_get(handle, stream);
}

static int stream_priority(vendor_stream handle, int *out) {
  struct fake_stream *stream;
  if (fake_quirks()->getters_look) fake_stream_look(handle, __func__);
  const int code = look_at(handle, out, &stream);
  if (code == FAKE_OK) *out = stream->priority;
  return code;
}

vendor_result VENDOR(StreamGetPriority)(vendor_stream stream, int *out) { VENDOR_CALL(stream_priority(stream, out)); }

static int stream_flags(vendor_stream handle, unsigned *out) {
  struct fake_stream *stream;
  if (fake_quirks()->getters_look) fake_stream_look(handle, __func__);
  const int code = look_at(handle, out, &stream);
  if (code == FAKE_OK) *out = stream->flags;
  return code;
}

vendor_result VENDOR(StreamGetFlags)(vendor_stream stream, unsigned int *out) {
  VENDOR_CALL(stream_flags(stream, out));
}

static int stream_is_capturing(vendor_stream handle, vendor_capture_status *out) {
  struct fake_stream *stream;
  const int code = look_at(handle, out, &stream);
  if (code == FAKE_OK) *out = (vendor_capture_status)stream->capture; /* numbered as the vendors do */
  return code;
}

vendor_result VENDOR(StreamIsCapturing)(vendor_stream stream, vendor_capture_status *out) {
  VENDOR_CALL(stream_is_capturing(stream, out));
}

vendor_result VENDOR(StreamBeginCapture)(vendor_stream stream, vendor_capture_mode mode) {
  VENDOR_CALL(fake_capture_begin(stream, (int)mode));
}

static int end_capture(vendor_stream stream, vendor_graph *out) {
  void *graph = NULL;
  const int code = out == NULL ? FAKE_INVALID_VALUE : fake_capture_end(stream, &graph);
  if (out != NULL) *out = graph;
  return code;
}

vendor_result VENDOR(StreamEndCapture)(vendor_stream stream, vendor_graph *out) {
  VENDOR_CALL(end_capture(stream, out));
}

static int exchange_capture_mode(vendor_capture_mode *mode) {
  int value = mode == NULL ? -1 : (int)*mode;
  const int code = fake_capture_exchange(&value);
  if (code == FAKE_OK) *mode = (vendor_capture_mode)value;
  return code;
}

vendor_result VENDOR(ThreadExchangeStreamCaptureMode)(vendor_capture_mode *mode) {
  VENDOR_CALL(exchange_capture_mode(mode));
}

/* ---- host functions ---- */

static void invoke_callback(const struct fake_host_call *call, int status) {
  ((vendor_callback)call->function)(call->stream, (vendor_result)status, call->user);
}

static void invoke_host_function(const struct fake_host_call *call, int status) {
  (void)status;
  ((vendor_host_fn)call->function)(call->user);
}

vendor_result VENDOR(StreamAddCallback)(vendor_stream stream, vendor_callback callback, void *user,
                                        unsigned int flags) {
  VENDOR_CALL(flags != 0 ? FAKE_INVALID_VALUE
                         : fake_host_call(&(struct fake_host_call){ .invoke = invoke_callback,
                                                                    .function = (void (*)(void))callback,
                                                                    .stream = stream,
                                                                    .user = user,
                                                                    .notified_of_faults = true }));
}

vendor_result VENDOR(LaunchHostFunc)(vendor_stream stream, vendor_host_fn function, void *user) {
  VENDOR_CALL(fake_host_call(&(struct fake_host_call){
      .invoke = invoke_host_function, .function = (void (*)(void))function, .stream = stream, .user = user }));
}

/* ---- events ---- */

vendor_result VENDOR(EventDestroy)(vendor_event event) { VENDOR_CALL(fake_event_destroy(event)); }

vendor_result VENDOR(IpcGetEventHandle)(vendor_ipc_event *out, vendor_event event) {
  VENDOR_CALL(fake_ipc_export_event(event, out));
}

vendor_result VENDOR(IpcOpenEventHandle)(vendor_event *out, vendor_ipc_event handle) {
  VENDOR_CALL(fake_ipc_open_event(&handle, (void **)out));
}

vendor_result VENDOR(EventRecord)(vendor_event event, vendor_stream stream) {
  VENDOR_CALL(fake_event_record(event, stream));
}

vendor_result VENDOR(EventRecordWithFlags)(vendor_event event, vendor_stream stream, unsigned int flags) {
  VENDOR_CALL(flags > VENDOR_RECORD_EXTERNAL ? FAKE_INVALID_VALUE : fake_event_record(event, stream));
}

vendor_result VENDOR(EventQuery)(vendor_event event) {
  fake_event_spend();
  VENDOR_CALL(fake_event_query(event));
}

vendor_result VENDOR(EventSynchronize)(vendor_event event) { VENDOR_CALL(fake_event_synchronize(event)); }

vendor_result VENDOR(EventElapsedTime)(float *ms, vendor_event start, vendor_event end) {
  VENDOR_CALL(fake_event_elapsed(start, end, ms));
}
